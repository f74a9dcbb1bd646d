import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useNavigate } from 'react-router'
import { call, part } from '../api'
import { clock, millis, quote, spelled } from '../format'
import { reasonText } from '../i18n'
import { useRights } from '../rights'
import type { Help, Job, JobForecast, JobRef, Forecast } from '../types'
import { Cli, DeedDialog } from './actions'
import { Button } from './controls'
import { Table } from './controls/table'
import { JobLink } from './places'
import { startText } from './starts'
import { Failed, failing } from './states'

export { startText }

// Holders names jobs; of one that the reader may not see it says whose it is not.
export function Holders({ holders }: { holders?: JobRef[] }) {
  const { t } = useTranslation()
  if (!holders?.length) return null
  return (
    <>
      {holders.slice(0, 6).map((holder, i) => (
        <span key={holder.id + i}>{i > 0 && ', '}{holder.id ? <JobLink id={holder.id} name={holder.name} /> : t('queue.hidden')}{holder.user && <span className="quiet"> ({holder.user})</span>}{holder.idle && <span className="quiet"> {t(`queue.idle_${holder.idle}`)}</span>}</span>
      ))}
      {holders.length > 6 && ' …'}
    </>
  )
}

// Helps are changes that would start a job sooner. With apply, each is a
// button.
export function Helps({ helps, apply }: { helps?: Help[]; apply?: (help: Help) => void }) {
  const { t } = useTranslation()
  if (!helps?.length) return <p className="quiet">{t('forecast.no_helps')}</p>
  return (
    <ul className="problems">
      {helps.map((help, i) => (
        <li key={i}>
          {reasonText(help)} — <strong>{startText(t, help)}</strong>
          {help.sooner && help.sooner !== '0s' && <span className="quiet"> {t('forecast.sooner', { time: spelled(help.sooner) })}</span>}
          {apply && (help.kind === 'nodes' || help.kind === 'priority' || help.kind === 'time_limit' || help.kind === 'preemptible') && <> <Button small onClick={() => apply(help)}>{t('forecast.apply')}</Button></>}
        </li>
      ))}
    </ul>
  )
}

// ForecastCard says when a queued job starts, why not now, and what would help.
export function ForecastCard({ id, spec, forecast, holders, subjob }: { id: string; spec: Job; forecast?: JobForecast; holders?: JobRef[]; subjob: number }) {
  const { t } = useTranslation()
  const start = (forecast?.starts ?? []).find((s) => s.subjob === subjob) ?? forecast?.starts?.[0]
  const allowed = useRights()('submit')
  const outlook = useQuery({
    queryKey: ['job', id, 'helps'],
    enabled: allowed,
    refetchInterval: 30_000,
    queryFn: ({ signal }) => call<JobForecast>('GET', `/v1/jobs/${part(id)}/forecast?helps=true`, undefined, signal),
  })
  const go = useNavigate()
  const [help, setHelp] = useState<Help>()
  // What changes the job itself is done to it; what would be another job is
  // shown as its file.
  const apply = (one: Help) => (one.kind === 'priority' || one.kind === 'time_limit' ? setHelp(one) : void go(`/jobs/new?clone=${part(id)}&${one.kind === 'nodes' ? `nodes=${one.nodes ?? one.min_nodes}` : 'preemptible'}`))
  const history = (forecast?.history ?? []).flatMap((list) => list ?? [])
  return (
    <section className="card" aria-label={t('forecast.title')}>
      <h2>{t('forecast.title')}</h2>
      {start && <p className="verdict">{startText(t, start)}</p>}
      {start && <p>{t('forecast.position', { position: start.position, pool: start.pool })}</p>}
      {start?.wait && <p>{t('forecast.because', { reason: reasonText(start.wait) })} <Holders holders={holders} /></p>}
      {allowed && <h3>{t('forecast.helps')}</h3>}
      {!allowed ? null : failing(outlook) ? <Failed error={outlook.error} /> : <Helps helps={outlook.data?.helps} apply={apply} />}
      {history.length > 1 && <Moves history={history} />}
      <Cli text={`nomadlike job forecast ${quote(spec.name)}`} />
      {help && <DeedDialog deed={help.kind === 'priority' ? 'priority' : 'limit'} first={{ priority: help.priority, limit: help.time_limit }} jobs={[{ id, name: spec.name, state: 'queued', priority: spec.priority }]} close={() => setHelp(undefined)} />}
    </section>
  )
}

// Moves is how the estimate moved since submission.
export function Moves({ history }: { history: Forecast[] }) {
  const { t } = useTranslation()
  const points = history.filter((kept) => kept.p50).slice(-60)
  if (points.length < 2) return null
  const x0 = millis(points[0]!.given_at)
  const x1 = millis(points.at(-1)!.given_at)
  const all = points.flatMap((p) => [millis(p.p50), millis(p.p90) || millis(p.p50)])
  const y0 = Math.min(...all)
  const y1 = Math.max(...all)
  const x = (p: Forecast) => 4 + ((millis(p.given_at) - x0) / (x1 - x0 || 1)) * 292
  const y = (v: number) => 56 - ((v - y0) / (y1 - y0 || 1)) * 52
  const line = (value: (p: Forecast) => number) => points.map((p) => `${x(p).toFixed(1)},${y(value(p)).toFixed(1)}`).join(' ')
  return (
    <>
      <h3>{t('forecast.moved')}</h3>
      <svg viewBox="0 0 300 60" width="300" height="60" role="img" aria-label={t('forecast.moved')}>
        <polyline points={line((p) => millis(p.p90) || millis(p.p50))} fill="none" stroke="var(--expired)" strokeDasharray="3 3" />
        <polyline points={line((p) => millis(p.p50))} fill="none" stroke="var(--accent)" strokeWidth="1.5" />
      </svg>
      <details>
        <summary>{t('forecast.table')}</summary>
        <Table<Forecast> label={t('forecast.moved')} idOf={(p) => p.given_at ?? ''} rows={points} columns={[
          { title: t('forecast.given'), cell: (p) => clock(p.given_at) },
          { title: 'P50', cell: (p) => clock(p.p50) },
          { title: 'P90', cell: (p) => clock(p.p90) },
        ]} />
      </details>
    </>
  )
}
