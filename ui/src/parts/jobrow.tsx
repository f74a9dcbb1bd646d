import { useTranslation } from 'react-i18next'
import { Link } from 'react-router'
import { clock, progress, since } from '../format'
import { reasonText } from '../i18n'
import type { JobSummary, JobTrend } from '../types'
import { doneOf, type Ends, type Live } from './mine'
import { figureText } from './results'
import { Spark } from './spark'
import { startText } from './starts'
import { stateTag } from './states'

type T = ReturnType<typeof useTranslation>['t']

const at = (ms: number, now: number) => clock(new Date(ms).toISOString(), now)

// endsText is when a job that runs ends: at its likely time, and how far that may
// be off, where both ends of it are known.
export function endsText(t: T, ends: Ends, now: number): string {
  if (!ends.p50) return t('home.end_unknown')
  const p50 = at(ends.p50, now)
  const near = ends.p90 - ends.p50 < 12 * 3_600_000 // then the second time needs no date
  const p90 = ends.p90 ? (near ? at(ends.p90, ends.p90) : at(ends.p90, now)) : ''
  return p90 && p90 !== p50 ? t('home.ends_between', { p50, p90 }) : t('home.ends_at', { p50 })
}

// secondLine is the one sentence that matters now about a job.
export function secondLine(t: T, job: JobSummary): string {
  const what = [t('short.nodes', { count: job.nodes })]
  if (job.specs?.length) what.push(job.specs.join(', '))
  if (job.attempt > 1) what.push(t('home.attempt', { count: job.attempt }))
  const why = reasonText(job.state === 'queued' ? job.wait : job.reason)
  return why ? `${why} · ${what[0]}` : what.join(' · ')
}

// JobRow is a job in two lines: its name and what matters now, its state, how far
// it is, and when something happens to it next.
// Where one of a list shows how a metric goes, all have the room for it.
export function JobRow({ live, now, trends }: { live: Live; now: number; trends?: boolean }) {
  const { t } = useTranslation()
  const { job, ends, starts, place } = live
  const done = job.finished_at ? undefined : doneOf(live, now)
  const line = secondLine(t, job)
  return (
    <li className="jobrow">
      <div className="name"><Link to={'/jobs/' + job.id}>{job.name}</Link><p className="quiet" title={line}>{line}</p></div>
      <div>{stateTag(job.state, t)}</div>
      <div className="far">
        {done ? <p className="quiet">{job.subjobs > 1 ? progress(job) : t(done.byTime ? 'home.by_time' : 'home.done', { share: Math.round(done.share * 100) })}</p> : <p className="quiet">{job.state === 'queued' && place ? t('home.place', { place }) : job.started_at ? since(job.started_at, job.finished_at, now) : ''}</p>}
        {!job.finished_at && <Progress done={done?.share} waits={job.state === 'queued'} />}
      </div>
      {trends && <div className="trend">{job.trend && <Trend trend={job.trend} />}</div>}
      <div className="when">
        {job.finished_at ? clock(job.finished_at, now) : job.state === 'queued' ? (starts ? startText(t, starts, now) : t('forecast.unknown')) : ends ? endsText(t, ends, now) : t('home.end_unknown')}
      </div>
    </li>
  )
}

// Trend is how a metric went lately, with its newest value as a number.
function Trend({ trend: { metric, values } }: { trend: JobTrend }) {
  const all = values ?? []
  return <><p className="quiet" title={metric}>{metric} {figureText(all.at(-1))}</p><Spark values={all} /></>
}

// Progress is a bar: solid as far as it is, hatched where it is foreseen only.
export function Progress({ done, waits }: { done?: number; waits?: boolean }) {
  return <div className={waits ? 'progress waits' : 'progress'} aria-hidden="true">{done !== undefined && <i style={{ width: `${Math.round(done * 100)}%` }} />}</div>
}
