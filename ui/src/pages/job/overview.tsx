import { useQuery } from '@tanstack/react-query'
import { lazy, Suspense, useMemo } from 'react'
import { useTranslation } from 'react-i18next'
import { Link, useLocation } from 'react-router'
import { again } from '../../again'
import { get, part } from '../../api'
import { withTexts } from '../../i18n'
import { ForecastCard } from '../../parts/forecast'
import type { Ends } from '../../parts/mine'
import { failing, Loading } from '../../parts/states'
import { linesOf } from '../../parts/training'
import type { Allocation, Attempt, Event, JobDetail, JobForecast, JobMetrics, Subjob } from '../../types'
import { CanDo, Cause, recognised } from './cause'
import { Facts } from './facts'
import { FaultStories } from './faults'
import { trendOf } from './keys'
import { RankLog, RankPanel, rankOf, Ranks } from './ranks'
import { History } from './story'
import { Strip } from './strip'

const LineChart = lazy(() => import('../../parts/line_chart'))
const Trials = lazy(() => again(() => Promise.all([import('./trials'), withTexts('compare')])).then(([m]) => m))

// Known is what the page of a job has read of it.
export interface Known {
  id: string // as the address has it
  full: string
  detail: JobDetail
  subjob: number
  standing?: Subjob
  attempts: Attempt[]
  newest?: Attempt
  ranks: Allocation[]
  events: Event[]
  forecast?: JobForecast
  ends?: Ends
  holderEnds?: Map<string, Ends>
  shared: boolean
  may: (verb: string) => boolean
  env: boolean // its environment may be read
  live: boolean
  errors: { allocs: unknown; events: unknown }
}

// Overview is what a job's state makes the first thing to know: why it failed, until
// when it waits, or how its run goes.
export function Overview(known: Known) {
  const { t } = useTranslation()
  const { id, full, detail, subjob, standing, attempts, newest, ranks, events, forecast, ends, holderEnds, shared, may, env, live, errors } = known
  const { hash } = useLocation()
  const chosen = rankOf(hash)
  const open = ranks.find((rank) => rank.rank === chosen)
  const failedFirst = detail.state === 'failed' ? (ranks.find((a) => a.id === newest?.first_failed) ?? ranks.find((a) => a.status === 'failed')) : undefined
  const logs = !shared && may('logs')
  const faulted = attempts.some((a) => a.outcome === 'failed' || a.outcome === 'lost')
  const runs = detail.state === 'running' || detail.state === 'paused'
  return (
    <div className="stack">
      {logs && failedFirst && (
        <Cause key={failedFirst.id} id={id} detail={detail} alloc={failedFirst} attempt={newest} found={recognised(events, newest?.number)}>
          <CanDo id={id} full={full} alloc={failedFirst} may={may} />
        </Cause>
      )}
      {detail.state === 'queued' && !shared && <ForecastCard id={full} spec={detail.job} forecast={forecast} holders={forecast?.holders} subjob={subjob} ends={holderEnds} may={may} told />}
      {detail.job.type === 'batch' && !shared && <Suspense fallback={<Loading />}><Trials id={full} detail={detail} live={live} /></Suspense>}
      <section className="card" aria-label={t('job.timeline')}><h2>{t('job.timeline')}</h2><Strip detail={detail} attempts={attempts} events={events} standing={standing} ends={ends} /></section>
      <FaultStories id={full} name={detail.job.name} subjob={subjob} enabled={!shared && faulted} />
      {open && !shared && <RankPanel key={open.id} id={id} detail={detail} alloc={open} attempt={newest} events={events} logs={logs} env={env} live={live} />}
      <div className="cards">
        <div className="stack">
          <section className="card" aria-label={t('job.ranks')} id="ranks"><h2>{t('job.ranks')}</h2><Ranks ranks={ranks} error={errors.allocs} open={chosen} failed={newest?.first_failed} /></section>
          {runs && logs && <Loss full={full} subjob={subjob} newest={newest} />}
        </div>
        <div className="stack">
          {runs && logs && ranks[0] && (
            <section className="card" aria-label={t('job.last_lines')}>
              <div className="bar"><h2>{t('job.last_lines')}</h2><span className="quiet">{t('logs.rank', { rank: ranks[0].rank })}</span><span className="grow" /><Link className="button small" to={`/jobs/${id}/logs`}>{t('job.open_logs')}</Link></div>
              <RankLog alloc={ranks[0]} live={live} count={6} />
            </section>
          )}
          <section className="card" aria-label={t('job.history')}><h2>{t('job.history')}</h2><History events={events} error={errors.events} /></section>
        </div>
      </div>
      <section className="card" aria-label={t('job.facts')}><h2>{t('job.facts')}</h2><Facts detail={detail} /></section>
    </div>
  )
}

// Loss is the loss of the newest attempt, where a rank writes one.
function Loss({ full, subjob, newest }: { full: string; subjob: number; newest?: Attempt }) {
  const { t } = useTranslation()
  const metrics = useQuery({ queryKey: ['job', full, 'trend', subjob, newest?.number], enabled: !!newest, refetchInterval: 15_000, retry: false, queryFn: ({ signal }) => get<JobMetrics>(`/v1/jobs/${part(full)}/metrics?subjob=${subjob}&attempt=${newest!.number}&points=60`, signal) })
  const { loss } = trendOf(metrics.data, newest?.number)
  const name = loss?.name
  const drawn = useMemo(() => (name ? linesOf(metrics.data?.ranks ?? [], name, false, (rank) => t('logs.rank', { rank: rank.rank })) : undefined), [metrics.data, name, t])
  if (!drawn || drawn.x.length < 2 || failing(metrics)) return null
  return (
    <section className="card" aria-label={name}>
      <h2>{name}</h2>
      <Suspense fallback={<Loading />}><LineChart label={name!} x={drawn.x} times={drawn.times} lines={drawn.lines} height={190} /></Suspense>
    </section>
  )
}
