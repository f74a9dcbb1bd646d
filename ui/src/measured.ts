// What nodes measure of machines, cards and ranks, and what ranks print of
// themselves, as the API answers it.

import type { Time } from './types'

export interface PastSeries {
  gauge: string
  values: (number | null)[]
}
export interface CardPast {
  id: string
  index: number
  slice?: number
  model?: string
  gone?: boolean
  series: PastSeries[] | null
}
export interface NodePast {
  id: string
  name: string
  step: string
  at: Time[] | null
  machine: PastSeries[] | null
  devices: CardPast[] | null
}
export interface RankFigures {
  alloc_id: string
  rank: number
  node_id: string
  node: string
  status: string
  measured: boolean
  at?: Time
  cpu: number
  cpu_busy?: number
  cpu_seconds?: number
  memory: number
  memory_used?: number
  processes?: number
  devices?: { id: string; index: number; model: string; healthy: boolean; gauges?: Record<string, number> }[]
}
export interface JobFigures {
  job_id: string
  subjob: number
  attempt: number
  ranks: RankFigures[] | null
  more?: number
}
export interface RankPast {
  alloc_id: string
  rank: number
  node_id: string
  node: string
  status: string
  cpu: number
  memory: number
  series: PastSeries[] | null
}
export interface JobPast {
  job_id: string
  subjob: number
  attempt: number
  step: string
  at: Time[] | null
  ranks: RankPast[] | null
  away?: string[]
  more?: number
}
export interface MetricSeries {
  name: string
  source: string
  count: number
  min: number
  max: number
  points: { step: number; at: string | null; value: number }[] | null
  not_finite?: number
}
export interface RankMetrics {
  alloc_id: string
  subjob?: number
  attempt: number
  rank: number
  node: string
  series: MetricSeries[] | null
}
export interface JobMetrics {
  ranks: RankMetrics[] | null
  left_out?: number
  away?: string[]
}
