import { keepPreviousData, useQueries } from '@tanstack/react-query'
import { useMemo } from 'react'
import { get, part } from '../api'
import { number } from '../format'
import type { JobResults, JobSummary, MetricResult } from '../types'
import type { Figure } from './views'

const askedMax = 100 // jobs of one question, as the API has it
export const figureJobsMax = 500 // jobs of a list whose figures are asked for

export type Results = Map<string, Map<string, MetricResult>> // by id of the job, and name

// useResults asks where metrics of the first jobs of a list stand, a bounded number of
// jobs at a time. No names is all metrics.
export function useResults(jobs: JobSummary[], names: string[], enabled = true): Results {
  const wanted = [...new Set(names)].sort().join(',')
  const pages = useMemo(() => {
    const ids = jobs.filter((job) => job.started_at).slice(0, figureJobsMax).map((job) => job.id)
    return Array.from({ length: Math.ceil(ids.length / askedMax) }, (_, i) => ids.slice(i * askedMax, (i + 1) * askedMax).join(','))
  }, [jobs])
  return useQueries({
    queries: (enabled ? pages : []).map((ids) => ({
      queryKey: ['results', wanted, ids],
      placeholderData: keepPreviousData,
      staleTime: 15_000,
      refetchInterval: 30_000,
      retry: false,
      queryFn: ({ signal }: { signal: AbortSignal }) => get<JobResults>(`/v1/job-results?job=${ids}${wanted && '&name=' + part(wanted)}`, signal),
    })),
    combine,
  })
}

function combine(found: { data?: JobResults }[]): Results {
  const all: Results = new Map()
  for (const { data } of found) {
    for (const job of data?.jobs ?? []) all.set(job.job_id, new Map((job.metrics ?? []).map((one) => [one.name, one])))
  }
  return all
}

// figureIn is a figure of one job, nothing where it is not known.
export function figureIn(results: Results, id: string, { kind, name }: Figure): number | undefined {
  const one = results.get(id)?.get(name)
  if (!one) return undefined
  return kind === 'last' ? one.last.value : one[kind]
}

// namesIn are the names of the metrics of some jobs, those of most jobs first.
export function namesIn(results: Results): string[] {
  const counts = new Map<string, number>()
  for (const metrics of results.values()) for (const name of metrics.keys()) counts.set(name, (counts.get(name) ?? 0) + 1)
  return [...counts].sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1)).map(([name]) => name)
}

// figureText writes a value with the digits that tell it from its neighbours.
export const figureText = (value: number | undefined) => (value === undefined ? '' : Math.abs(value) >= 1000 ? number(Math.round(value)) : String(Number(value.toPrecision(4))))
