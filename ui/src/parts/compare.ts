import type { JobMetrics, MetricResult } from '../types'
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

export interface Difference {
  path: string // as the job is written in JSON; of a command that differs in options only, with the option
  values: (string | undefined)[] // of each job
}

// What the servers add to a job, and what only people read of it: no settings.
const noSettings = new Set(['id', 'name', 'user', 'submitted_at', 'idempotency_key', 'source', 'resume', 'patient_starts', 'outside_yields', 'saves_at_ends', 'kills_last', 'rdma_by_nodes', 'tags', 'note', 'description'])
const labels = ['name', 'label', 'kind', 'target', 'when'] // by which the items of a list are told apart

// flat lists what a job says, by path.
function flat(value: unknown, path: string, into: Map<string, string>) {
  if (value === null || value === undefined || value === '') return
  if (Array.isArray(value)) {
    if (value.every((item) => typeof item !== 'object')) into.set(path, value.join(', '))
    else value.forEach((item: Record<string, unknown>, i) => {
      const label = labels.map((key) => item[key]).find((text) => typeof text === 'string' && text !== '')
      flat(item, value.length === 1 && label === undefined ? path : `${path}[${(label as string | undefined) ?? i}]`, into)
    })
  } else if (typeof value === 'object') {
    for (const [key, inner] of Object.entries(value)) if (!noSettings.has(key) || (path !== '' && key === 'name')) flat(inner, path ? path + '.' + key : key, into)
  } else into.set(path, String(value))
}

const given = '✓' // the value of an option that has none

// optionsOf parts a command into its options, --name value, --name=value or NAME=value,
// and what else it says; nothing where only a shell knows where a word ends.
export function optionsOf(line: string): { rest: string; options: Map<string, string> } | undefined {
  if (/['"`]/.test(line)) return undefined
  const words = line.split(/\s+/).filter((word) => word && word !== '\\')
  const options = new Map<string, string>()
  const rest: string[] = []
  for (let i = 0; i < words.length; i++) {
    const word = words[i]!
    const at = word.indexOf('=')
    const next = words[i + 1]
    const [name, value] = at > 0 ? [word.slice(0, at), word.slice(at + 1)] : word.startsWith('-') && next && !next.startsWith('-') && !next.includes('=') ? [word, words[++i]!] : word.startsWith('-') ? [word, given] : ['', '']
    if (!name) rest.push(word)
    else if (options.has(name)) return undefined
    else options.set(name, value)
  }
  return { rest: rest.join(' '), options }
}

// differencesOf are the settings in which some jobs differ, in the order in which they
// stand in the jobs, with what each says.
export function differencesOf(jobs: object[]): Difference[] {
  const said = jobs.map((job) => {
    const into = new Map<string, string>()
    flat(job, '', into)
    return into
  })
  const paths = [...new Set(said.flatMap((one) => [...one.keys()]))]
  return paths.flatMap((path): Difference[] => {
    const values = said.map((one) => one.get(path))
    if (new Set(values).size < 2) return []
    if (!/(^|\.)(command|arguments)$/.test(path)) return [{ path, values }]
    const parted = values.map((value) => (value === undefined ? undefined : optionsOf(value)))
    if (parted.some((one) => !one || one.rest !== parted[0]!.rest)) return [{ path, values }]
    const names = [...new Set(parted.flatMap((one) => [...one!.options.keys()]))]
    const some = names.map((name) => ({ path: `${path} ${name}`, values: parted.map((one) => one!.options.get(name)) })).filter((one) => new Set(one.values).size > 1)
    return some.length > 0 ? some : [{ path, values }]
  })
}
