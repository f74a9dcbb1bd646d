import type { JobDiff, JobMetrics, MetricResult } from '../types'
import type { Line } from './line_chart'

// What the comparison of jobs shows, worked out of answers of the API.

// curvesOf puts one metric of several jobs over one axis of steps: of each the series
// of rank 0 through its attempts, the newest value of a step. Where rank 0 has none,
// the last rank speaks.
export function curvesOf(jobs: { name: string; metrics?: JobMetrics }[], name: string): { x: number[]; lines: Line[] } {
  const curves = jobs.map(({ name: job, metrics }) => {
    const points = new Map<number, number>()
    const ranks = [...(metrics?.ranks ?? [])].filter((rank) => rank.series?.some((series) => series.name === name))
    const speaks = ranks.some((rank) => rank.rank === 0) ? 0 : Math.max(...ranks.map((rank) => rank.rank))
    for (const rank of ranks.filter((one) => one.rank === speaks).sort((a, b) => a.attempt - b.attempt)) {
      const found = (rank.series ?? []).filter((series) => series.name === name)
      const series = found.find((one) => one.source === 'log') ?? found[0]
      for (const point of series?.points ?? []) points.set(point.step, point.value)
    }
    return { job, points }
  })
  const x = [...new Set(curves.flatMap(({ points }) => [...points.keys()]))].sort((a, b) => a - b)
  return { x, lines: curves.map(({ job, points }) => ({ name: job, values: x.map((step) => points.get(step) ?? null) })) }
}

// metricNames are the names of the metrics of some jobs: those of most jobs first, and
// of these a loss before others.
export function metricNames(results: Iterable<Map<string, MetricResult>>): string[] {
  const counts = new Map<string, number>()
  for (const metrics of results) for (const name of metrics.keys()) counts.set(name, (counts.get(name) ?? 0) + 1)
  const loss = (name: string) => (/loss/i.test(name) ? 0 : 1)
  return [...counts].sort(([a, x], [b, y]) => y - x || loss(a) - loss(b) || (a < b ? -1 : 1)).map(([name]) => name)
}

// subjobResults are the newest values of the subjobs of a batch by metric.
export function subjobResults(metrics?: JobMetrics): Map<number, Map<string, MetricResult>> {
  const out = new Map<number, Map<string, MetricResult>>()
  for (const rank of metrics?.ranks ?? []) {
    const of = out.get(rank.subjob ?? 0) ?? new Map<string, MetricResult>()
    for (const series of rank.series ?? []) {
      if (series.count && !of.has(series.name)) of.set(series.name, { name: series.name, count: series.count, min: series.min, max: series.max, last: series.last })
    }
    out.set(rank.subjob ?? 0, of)
  }
  return out
}

export interface Compared {
  path: string // in the words of the job file, or of what ranks found
  values: (string | undefined)[] // of each job
}

const noSettings = ['tags', 'note', 'description'] // what only people read

// comparedOf puts the differences of jobs from the first one together: what a job does
// not differ in it has in common with the first.
export function comparedOf(diffs: (JobDiff | undefined)[]): Compared[] {
  const fields = new Map<string, { first: string; others: Map<number, string> }>()
  diffs.forEach((diff, i) => {
    for (const one of [...(diff?.differences ?? []), ...(diff?.found ?? [])]) {
      if (noSettings.includes(one.path)) continue
      const field = fields.get(one.path) ?? { first: one.before, others: new Map<number, string>() }
      field.others.set(i, one.after)
      fields.set(one.path, field)
    }
  })
  return [...fields].map(([path, { first, others }]) => ({ path, values: [first || undefined, ...diffs.map((_, i) => (others.get(i) ?? first) || undefined)] }))
}
