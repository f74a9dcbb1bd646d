import { jobStates, type JobSummary } from '../types'

// What the list of jobs shows, as the address says it. The same filters are
// flags of `nomadlike job list` and parameters of GET /v1/jobs.
export interface Filter {
  text: string
  states: string[]
  user: string
  project: string
  priority: string
  pool: string
  code: string
  spec: string
  output: string
  cause: string
  tag: string
}

// One of these values, which the list offers to choose from.
export const chosenFields = ['project', 'user', 'priority', 'cause', 'tag', 'pool', 'code', 'spec'] as const
export type ChosenField = (typeof chosenFields)[number]

export const readFilter = (params: URLSearchParams): Filter => ({
  text: params.get('text') ?? '',
  states: (params.get('state') ?? '').split(',').filter((state) => (jobStates as string[]).includes(state)),
  user: params.get('user') ?? '',
  project: params.get('project') ?? '',
  priority: params.get('priority') ?? '',
  pool: params.get('pool') ?? '',
  code: params.get('code') ?? '',
  spec: params.get('spec') ?? '',
  output: params.get('output') ?? '',
  cause: params.get('cause') ?? '',
  tag: params.get('tag') ?? '',
})

// causeOf is the id of the one reason that the list shows for a job.
export const causeOf = (job: JobSummary) => (job.state === 'queued' ? job.wait : job.reason)?.id ?? ''

// valuesOf are what a field of a job says, for filters and for what they offer.
export function valuesOf(job: JobSummary, field: ChosenField): string[] {
  switch (field) {
    case 'code':
      return job.code ?? []
    case 'spec':
      return job.specs ?? []
    case 'tag':
      return job.tags ?? []
    case 'cause':
      return [causeOf(job)].filter(Boolean)
  }
  const value = job[field]
  return value ? [value] : []
}

// What a word of a search that begins with such a name is compared with, whole and in
// capitals or not, as the servers do with `text` of GET /v1/jobs.
const wordFields: Record<string, (job: JobSummary) => string[]> = {
  tag: (job) => job.tags ?? [],
  user: (job) => [job.user ?? ''],
  project: (job) => [job.project],
  code: (job) => job.code ?? [],
  card: (job) => job.specs ?? [],
  pool: (job) => [job.pool ?? ''],
}

// finds reports whether every word of a search is found in a job.
export function finds(job: JobSummary, text: string): boolean {
  return text.toLowerCase().split(/\s+/).filter(Boolean).every((word) => {
    const [, field, value] = /^([a-z]+):(.*)$/.exec(word) ?? []
    const values = field === undefined ? undefined : wordFields[field]
    if (values) return !value || values(job).some((one) => one.toLowerCase() === value)
    return job.id.startsWith(word) || [job.name, job.note ?? '', ...(job.tags ?? [])].some((one) => one.toLowerCase().includes(word))
  })
}

// keeps reports whether a job passes the filters.
export function keeps(job: JobSummary, filter: Filter): boolean {
  return (
    finds(job, filter.text) &&
    (filter.states.length === 0 || filter.states.includes(job.state)) &&
    (!filter.output || (job.output ?? '').includes(filter.output.trim())) &&
    chosenFields.every((field) => !filter[field] || valuesOf(job, field).includes(filter[field]))
  )
}
