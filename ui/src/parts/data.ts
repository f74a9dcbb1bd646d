import { get, part } from '../api'
import { quote } from '../format'
import type { DataDetail, DataEntry, DataList, DataUse } from '../types'

// What pages, and the palette, ask about named data.

// Ref names an object.
export interface Ref {
  project: string
  kind: string
  name: string
}

export const refOf = ({ object }: DataDetail): Ref => ({ project: object.project, kind: object.kind, name: object.name })

// pageOf is where an object has its page.
export const pageOf = ({ project, kind, name }: Ref, tab = '') => ['/data', part(project), part(kind), part(name), ...(tab ? [tab] : [])].join('/')

// addressOf is where the API has it, with what is asked about it.
export function addressOf({ project, kind, name }: Ref, what = '', more: Record<string, string | number> = {}): string {
  const query = new URLSearchParams({ kind, of: project })
  for (const [key, value] of Object.entries(more)) if (value) query.set(key, String(value))
  return `/v1/data/${part(name)}${what}?${query.toString()}`
}

// fileAddress is that of a file or directory of a version. Its path is spelled already,
// because names are bytes and need not be text.
export const fileAddress = (ref: Ref, what: string, version: number, path: string, more: Record<string, string | number> = {}) => addressOf(ref, what, { version, ...more }) + (path && '&path=' + path)

// spelled is one name as a part of such a path, and readable the other way round.
export const spelled = ({ ref, name }: Pick<DataEntry, 'ref' | 'name'>) => ref ?? part(name)
export function readable(step: string): string {
  try {
    return decodeURIComponent(step)
  } catch {
    return step
  }
}

// The lists follow the event stream; what nobody tells, such as a share that ended, is
// asked for now and then.
const now = 60_000
export const listQuery = (acting: string) => ({ queryKey: ['data', 'list', acting], refetchInterval: now, queryFn: ({ signal }: { signal: AbortSignal }) => get<DataList>('/v1/data?all=true', signal) })
export const oneQuery = (ref: Ref) => ({ queryKey: ['data', 'one', ref.project, ref.kind, ref.name], refetchInterval: now, queryFn: ({ signal }: { signal: AbortSignal }) => get<DataDetail>(addressOf(ref), signal) })
export const usedQuery = (ref: Ref) => ({ queryKey: ['data', 'use', ref.project, ref.kind, ref.name], refetchInterval: now, queryFn: ({ signal }: { signal: AbortSignal }) => get<DataUse>(addressOf(ref, '/use'), signal) })

// Whose are the lists that people look at.
export const whoses = ['project', 'mine', 'favourites', 'published', 'all'] as const
export type Whose = (typeof whoses)[number]

// isOf reports whether an object is in one of them.
export function isOf({ object, favourite }: DataDetail, whose: Whose, user: string, acting: string): boolean {
  switch (whose) {
    case 'mine':
      return !!user && object.owner === user
    case 'project':
      return object.project === acting || !acting
    case 'favourites':
      return favourite
    case 'published':
      return !!object.published
  }
  return true
}

// kindsOf are the kinds that a list has, in the order in which kinds are usual.
const usual = ['dataset', 'model', 'algorithm', 'output', 'volume', 'image']
export const kindsOf = (all: DataDetail[]) => [...new Set(all.map(({ object }) => object.kind))].sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1))
const rank = (kind: string) => (usual.indexOf(kind) + usual.length + 1) % (usual.length + 1)

// matches reports whether every word of a text is somewhere in what an object says.
export function matches({ object, newest_tag: tag }: DataDetail, text: string): boolean {
  const said = [object.name, object.project, object.owner, object.description, tag, ...Object.entries(object.labels ?? {}).map(([key, value]) => `${key}=${value}`)].join(' ').toLowerCase()
  return text.toLowerCase().split(/\s+/).every((word) => said.includes(word))
}

// flagsOf are those that the command line needs to mean the same object.
export const flagsOf = ({ project, kind }: Ref, acting: string) => (kind === 'dataset' ? '' : `-kind ${kind} `) + (project === acting ? '' : `-of ${quote(project)} `)

// labelsOf reads lines NAME=VALUE, undefined where one is none; linesOf writes them.
export function labelsOf(text: string): Record<string, string> | undefined {
  const labels: Record<string, string> = {}
  for (const line of text.split('\n').map((one) => one.trim()).filter(Boolean)) {
    const at = line.indexOf('=')
    if (at < 1) return undefined
    labels[line.slice(0, at).trim()] = line.slice(at + 1).trim()
  }
  return labels
}
export const linesOf = (labels?: Record<string, string> | null) => Object.entries(labels ?? {}).sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, value]) => `${key}=${value}`).join('\n')
