import { useQuery } from '@tanstack/react-query'
import { sessionQuery } from './shell'
import type { Membership, Self, Token } from './types'

// Who is signed in: what the token is good for in the project that requests act in. The
// role is that there, and project is '' where it holds in the whole cluster.
export interface Who extends Token {
  acting: string
  cluster?: string // a role in the whole cluster beside that in the project
  memberships: Membership[]
}

// whoOf is the same as the API tells it.
export const whoOf = (self: Self): Who => ({
  ...self.token, role: self.role, project: self.cluster === self.role ? '' : self.project,
  acting: self.project, cluster: self.cluster, memberships: self.memberships ?? [],
})

// What a role may ask for at all, as the rules of nomadlike/auth say; a test
// compares them. What may be done to one job or node comes with it, as `may`.
const roles = {
  submit: ['user', 'project-admin', 'admin'],
  vip: ['operator', 'admin'],
  what_if: ['user', 'project-admin', 'operator', 'admin'],
  move: ['operator', 'admin'],
  drain: ['operator', 'admin'],
  token_write: ['admin'],
  user_list: ['operator', 'admin'],
  user_write: ['admin'],
  members: ['project-admin', 'admin'],
  project_write: ['admin'],
  pool_write: ['operator', 'admin'],
  operator_read: ['operator', 'admin'],
  audit: ['operator', 'admin'],
  settings: ['admin'],
  secrets: ['user', 'project-admin', 'admin'],
  keys_rotate: ['admin'],
}
export type Right = keyof typeof roles
export const rights = roles

// To which jobs a role may do something, by the verbs of the policy: to those of one's
// own, to those of one's project, or to all. Lists do not say it of each job.
type Reach = 'own' | 'project' | 'all'
const everybody: Record<string, Reach> = { user: 'own', 'project-admin': 'project', operator: 'all', admin: 'all' }
const owners: Record<string, Reach> = { user: 'own', 'project-admin': 'project', admin: 'all' }
export const reaches: Record<string, Record<string, Reach>> = {
  stop: everybody, control: everybody, annotate: everybody, priority: everybody,
  delete: owners, 'time-limit': owners, clone: owners,
  move: { operator: 'all', admin: 'all' },
}

// mayDo are the verbs that somebody may do to a job, as far as its project and its
// owner tell; what its owner allows others is left to the page of the job.
export function mayDo(job: { user?: string; project: string }, who?: (Token & { cluster?: string }) | null): string[] {
  if (!who) return []
  const here = !who.project || who.project === job.project
  const reach = { own: here && !!who.user && who.user === job.user, project: here, all: true }
  return Object.keys(reaches).filter((verb) => {
    const of = reaches[verb]![who.role]
    return (of && reach[of]) || reaches[verb]![who.cluster ?? ''] === 'all'
  })
}

// allows is true too while nobody knows yet who is signed in: the server
// decides, and the pages only leave out what it would refuse.
export const allows = (right: Right, role?: string) => !role || roles[right].includes(role)

// operates reports whether somebody looks after the whole cluster.
export const operates = (who?: Who | null) => !!who && [who.role, who.cluster ?? ''].some((role) => roles.operator_read.includes(role))

// useRights tells what whoever is signed in may ask for.
export function useRights(): (right: Right) => boolean {
  const who = useQuery<Who | null>({ ...sessionQuery, enabled: false }).data
  return (right) => allows(right, who?.role) || (!!who?.cluster && allows(right, who.cluster))
}

// useUser is who is signed in, by name; nobody while that is not known, and with a
// token that is no one's.
export const useUser = () => useQuery<Who | null>({ ...sessionQuery, enabled: false }).data?.user ?? ''
