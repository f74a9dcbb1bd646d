import type { Bar, JobSummary, QueueEntry, Timeline, When } from '../types'
import { millis } from '../format'

// What the home page says of somebody's jobs, worked out of lists that other
// pages have too: pure, so that tests can say what it is.

export interface Ends {
  p50: number // milliseconds; 0 when nobody knows
  p90: number
}

// A job with what is foreseen for it.
export interface Live {
  job: JobSummary
  ends?: Ends // of one that runs
  starts?: When // of one that waits
  place?: number // in its queue
}

export type Need = 'failed' | 'expired' | 'never' | 'paused'

const over: JobSummary['state'][] = ['succeeded', 'failed', 'stopped', 'expired']
const needFor = 24 * 3_600_000 // milliseconds that an end is news

// endsOf is when the jobs of a timeline end: the last of a job's bars.
export function endsOf(timeline?: Timeline): Map<string, Ends> {
  const out = new Map<string, Ends>()
  for (const bar of barsOf(timeline)) {
    if (bar.kind !== 'running' || !bar.job_id) continue
    const had = out.get(bar.job_id) ?? { p50: 0, p90: 0 }
    out.set(bar.job_id, { p50: Math.max(had.p50, millis(bar.p50)), p90: Math.max(had.p90, millis(bar.p90)) })
  }
  return out
}

const barsOf = (timeline?: Timeline): Bar[] => (timeline?.rows ?? []).flatMap((row) => row.bars ?? [])

// liveOf puts jobs that are not over in the order in which something happens to
// them: those that run by their ends, then those that wait by their starts.
export function liveOf(jobs: JobSummary[], timeline?: Timeline, queue: QueueEntry[] = []): Live[] {
  const ends = endsOf(timeline)
  const first = new Map<string, QueueEntry>()
  for (const entry of queue) if (!first.has(entry.job_id)) first.set(entry.job_id, entry)
  const live = jobs.filter((job) => !over.includes(job.state)).map((job): Live => {
    const entry = job.state === 'queued' ? first.get(job.id) : undefined
    return { job, ends: job.state === 'queued' ? undefined : ends.get(job.id), starts: entry?.forecast, place: entry?.position }
  })
  const soon = ({ ends, starts }: Live) => ends?.p50 || millis(starts?.p50) || (starts?.verdict === 'now' ? 1 : Infinity)
  return live.sort((a, b) => Number(a.job.state === 'queued') - Number(b.job.state === 'queued') || soon(a) - soon(b) || a.job.name.localeCompare(b.job.name))
}

// needsOf are the jobs that want their owner, the newest first: what failed or ran
// into its limit within a day, what can never start, what stands still and holds.
export function needsOf(jobs: JobSummary[], now: number): { job: JobSummary; need: Need }[] {
  return jobs
    .flatMap((job): { job: JobSummary; need: Need }[] => {
      const news = now - millis(job.finished_at) < needFor
      if (job.state === 'failed' && news) return [{ job, need: 'failed' }]
      if (job.state === 'expired' && news) return [{ job, need: 'expired' }]
      if (job.state === 'queued' && job.wait?.never) return [{ job, need: 'never' }]
      if (job.state === 'paused') return [{ job, need: 'paused' }]
      return []
    })
    .sort((a, b) => millis(b.job.finished_at ?? b.job.submitted_at) - millis(a.job.finished_at ?? a.job.submitted_at))
}

// doneOf is how far a job is, 0 to 1: of a batch by the subjobs that ended well,
// else by its time against the forecast of its end, which byTime says.
export function doneOf({ job, ends }: Live, now: number): { share: number; byTime: boolean } | undefined {
  if (job.subjobs > 1) return { share: (job.counts?.succeeded ?? 0) / job.subjobs, byTime: false }
  const began = millis(job.started_at)
  if (!began || !ends?.p50 || ends.p50 <= began) return undefined
  return { share: Math.min(0.99, Math.max(0, (now - began) / (ends.p50 - began))), byTime: true }
}

// A Step of the load: so many cards from a time on.
export interface Step {
  at: number
  running: number
  foreseen: number // beyond those: jobs that wait, as forecast
}

// loadOf is how many cards are held from now to the timeline's end, by jobs that
// run and by those whose start is foreseen; of a cluster without cards, how many
// ranks stand on nodes.
export function loadOf(timeline: Timeline): { steps: Step[]; total: number; cards: boolean } {
  const rows = timeline.rows ?? []
  const total = rows.reduce((sum, row) => sum + (row.devices ?? 0), 0)
  const cards = total > 0
  const from = millis(timeline.from)
  const to = millis(timeline.to)
  const bars = barsOf(timeline).filter((bar) => !cards || (bar.devices ?? 0) > 0)
  const marks = [...new Set([from, to, ...bars.flatMap((bar) => [millis(bar.from), millis(bar.to) || to])])].filter((at) => at >= from && at <= to).sort((a, b) => a - b)
  const steps = marks.map((at): Step => {
    const step = { at, running: 0, foreseen: 0 }
    for (const bar of bars) {
      if (millis(bar.from) > at || (millis(bar.to) || Infinity) <= at) continue
      step[bar.kind === 'running' ? 'running' : 'foreseen'] += cards ? bar.devices! : 1
    }
    return step
  })
  return { steps, total: cards ? total : rows.length, cards }
}
