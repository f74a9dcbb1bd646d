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

export type Need = 'failed' | 'expired' | 'never' | 'paused' | 'idle' | 'held' | 'limit' | 'asked'

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

// cutShort tells whether the time limit of a job that runs probably ends it: its
// likely end is not before that. What only runs until somebody ends it is not cut.
export const cutShort = (job: JobSummary, ends?: Ends): boolean => job.type !== 'dev' && !!job.limit_at && !!ends?.p50 && ends.p50 >= millis(job.limit_at) - 60_000

// needsOf are the jobs that want their owner, the newest first: what failed or ran
// into its limit within a day, or is held to be looked at; what a VIP job asks about; what can never start;
// what holds and does nothing; and what its limit will end before it is done.
export function needsOf(jobs: JobSummary[], now: number, ends?: Map<string, Ends>): { job: JobSummary; need: Need }[] {
  return jobs
    .flatMap((job): { job: JobSummary; need: Need }[] => {
      const news = now - millis(job.finished_at) < needFor
      if (job.asked) return [{ job, need: 'asked' }]
      if (millis(job.held_until) > now) return [{ job, need: 'held' }]
      if (job.state === 'failed' && news) return [{ job, need: 'failed' }]
      if (job.state === 'expired' && news) return [{ job, need: 'expired' }]
      if (job.state === 'queued' && job.wait?.never) return [{ job, need: 'never' }]
      if (job.state === 'paused') return [{ job, need: 'paused' }]
      if (job.idle === 'cards') return [{ job, need: 'idle' }]
      if (job.state === 'running' && cutShort(job, ends?.get(job.id))) return [{ job, need: 'limit' }]
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
