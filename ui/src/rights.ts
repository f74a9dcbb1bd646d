import { useQuery } from '@tanstack/react-query'
import { sessionQuery } from './shell'
import type { Token } from './types'

// What a role may ask for at all, as the rules of nomadlike/auth say; a test
// compares them. What may be done to one job or node comes with it, as `may`.
const roles = {
  submit: ['user', 'project-admin', 'admin'],
  vip: ['operator', 'admin'],
  what_if: ['user', 'project-admin', 'operator', 'admin'],
  move: ['operator', 'admin'],
  drain: ['operator', 'admin'],
}
export type Right = keyof typeof roles
export const rights = roles

// allows is true too while nobody knows yet who is signed in: the server
// decides, and the pages only leave out what it would refuse.
export const allows = (right: Right, role?: string) => !role || roles[right].includes(role)

// useRights tells what whoever is signed in may ask for.
export function useRights(): (right: Right) => boolean {
  const role = useQuery<Token | null>({ ...sessionQuery, enabled: false }).data?.role
  return (right) => allows(right, role)
}

// useUser is who is signed in, by name; nobody while that is not known, and with a
// token that is no one's.
export const useUser = () => useQuery<Token | null>({ ...sessionQuery, enabled: false }).data?.user ?? ''
