import { get } from '../api'
import { quote } from '../format'
import type { User, UserDetail, UserList } from '../types'

// usersQuery asks for all accounts; operators and administrators may.
export const usersQuery = { queryKey: ['users'], queryFn: ({ signal }: { signal: AbortSignal }) => get<UserList>('/v1/users', signal).then((list): UserDetail[] => list.users ?? []) }

// changeOf is the command that makes an account or changes what it says. Of one that is
// there it names what is other.
export function changeOf(user: User, before?: User): string {
  const flags = ([['-display-name', 'display_name'], ['-email', 'email'], ['-role', 'role'], ['-home', 'project'], ['-language', 'language']] as const)
    .filter(([, field]) => (user[field] ?? '') !== (before?.[field] ?? ''))
    .map(([flag, field]) => `${flag} ${quote(user[field] ?? '')}`)
  return ['nomadlike user', before ? 'update' : 'create', ...flags, quote(user.name || 'USER')].join(' ')
}

// What becomes of the jobs of an account that is disabled.
export const jobChoices = ['run_on', 'stop', 'hand_over'] as const
export type Jobs = (typeof jobChoices)[number]

// disableOf is the command that disables an account.
export const disableOf = (name: string, jobs?: Jobs, to = '') =>
  ['nomadlike user disable', jobs && '-jobs ' + jobs.replace('_', '-'), jobs === 'hand_over' && '-to ' + quote(to || 'USER'), quote(name)].filter(Boolean).join(' ')
