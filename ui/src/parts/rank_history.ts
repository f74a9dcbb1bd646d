import type { JobHistory, RankUsage, RankHistory } from '../types'

// What nodes keep of ranks is turned into the form of what ranks use now, so
// that both are shown by the same measures. A figure that was not measured is
// missing, as is that of a rank without cards.

const cardGauges = { device_utilization_ratio: 'utilization_ratio', device_memory_used_bytes: 'memory_used_bytes', device_memory_total_bytes: 'memory_total_bytes', device_temperature_celsius: 'temperature_celsius', device_power_watts: 'power_watts', device_power_limit_watts: 'power_limit_watts' }
const means = ['cpu_cores', 'device_utilization_ratio', 'device_power_watts'] // of the others the highest stands for a time

function usageOf(rank: RankHistory, of: (gauge: string) => number | null): RankUsage {
  const cores = of('cpu_cores')
  const memory = of('memory_used_bytes')
  const gauges: Record<string, number> = {}
  for (const [kept, name] of Object.entries(cardGauges)) {
    const value = of(kept)
    if (value !== null) gauges[name] = value
  }
  return {
    alloc_id: rank.alloc_id, rank: rank.rank, node_id: rank.node_id, node: rank.node, status: rank.status, measured: cores !== null || memory !== null,
    cpu: cores === null ? 0 : rank.cpu, cpu_busy: cores ?? 0, memory: memory === null ? 0 : rank.memory, memory_used: memory ?? 0, // of 0 nothing is shown
    processes: of('processes') ?? undefined,
    devices: Object.keys(gauges).length ? [{ id: '', index: 0, model: '', healthy: true, gauges }] : [],
  }
}

// whole is what a rank used all the time that it ran, as one.
export function whole(rank: RankHistory): RankUsage {
  return usageOf(rank, (gauge) => {
    const known = ((rank.series ?? []).find((one) => one.gauge === gauge)?.values ?? []).filter((v): v is number => v !== null)
    if (known.length === 0) return null
    return means.includes(gauge) ? known.reduce((sum, v) => sum + v, 0) / known.length : known.reduce((most, v) => Math.max(most, v))
  })
}

export interface Line {
  at: number[] // seconds
  ranks: Map<number, (number | null)[]>
}

// lineOf is one measure of every rank over time, before a moment in seconds.
export function lineOf(past: JobHistory | undefined, value: (rank: RankUsage) => number | null, before: number): Line {
  const at = (past?.at ?? []).map((one) => Date.parse(one ?? '') / 1000).filter((second) => second < before)
  const ranks = new Map<number, (number | null)[]>()
  for (const rank of past?.ranks ?? []) {
    const kept = new Map((rank.series ?? []).map((one) => [one.gauge, one.values]))
    const values = at.map((_, i) => value(usageOf(rank, (gauge) => kept.get(gauge)?.[i] ?? null)))
    if (values.some((v) => v !== null)) ranks.set(rank.rank, values)
  }
  return { at, ranks }
}

// joined puts what was kept before what was seen since.
export function joined(kept: Line, seen: Line): Line {
  const nothing = (length: number) => new Array<number | null>(length).fill(null)
  const ranks = new Map<number, (number | null)[]>()
  for (const rank of [...new Set([...kept.ranks.keys(), ...seen.ranks.keys()])].sort((a, b) => a - b)) {
    ranks.set(rank, [...(kept.ranks.get(rank) ?? nothing(kept.at.length)), ...(seen.ranks.get(rank) ?? nothing(seen.at.length))])
  }
  return { at: [...kept.at, ...seen.at], ranks }
}
