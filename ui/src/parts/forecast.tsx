import { useQuery } from '@tanstack/react-query'
import { lazy, Suspense, useMemo, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { call, part } from '../api'
import { clock, millis, quote, spelled } from '../format'
import { reasonText } from '../i18n'
import { useRights } from '../rights'
import type { Help, Job, JobForecast, JobRef, Forecast } from '../types'
import { Cli } from './actions'
import { Button } from './controls'
import { Table } from './controls/table'
import { changesOf, HelpDialog, inPlace } from './help_deed'
import { endsText } from './jobrow'
import type { Ends } from './mine'
import { JobLink } from './places'
import { startText } from './starts'
import { Failed, failing, Loading, useNow } from './states'

const LineChart = lazy(() => import('./line_chart'))

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

// HolderTable names who holds what a job waits for, with when each of them is
// expected to leave it.
export function HolderTable({ holders, ends }: { holders?: JobRef[]; ends?: Map<string, Ends> }) {
  const { t } = useTranslation()
  const now = useNow(10_000)
  if (!holders?.length) return null
  return (
    <Table<JobRef> label={t('queue.holders')} idOf={(holder) => holder.id || 'hidden'} rows={holders} page={8} columns={[
      { title: t('forecast.holder'), cell: (holder) => (holder.id ? <JobLink id={holder.id} name={holder.name} /> : t('queue.hidden')) },
      { title: t('jobs.user'), wide: true, cell: (holder) => holder.user ?? '–' },
      { title: t('forecast.leaves'), cell: (holder) => { const end = holder.id ? ends?.get(holder.id) : undefined; return end?.p50 ? endsText(t, end, now) : holder.idle ? t(`queue.idle_${holder.idle}`) : holder.id ? t('home.end_unknown') : '–' } },
    ]} />
  )
}

// Helps are changes that would start a job sooner. With apply, each that can be made
// is a button.
export function Helps({ helps, apply }: { helps?: Help[]; apply?: (help: Help) => void }) {
  const { t } = useTranslation()
  if (!helps?.length) return <p className="quiet">{t('forecast.no_helps')}</p>
  return (
    <ul className="deeds helps">
      {helps.map((help, i) => (
        <li key={i}>
          <span>
            {reasonText(help)}<br />
            <strong>{startText(t, help)}</strong>
            {help.sooner && help.sooner !== '0s' && <span className="quiet"> {t('forecast.sooner', { time: spelled(help.sooner) })}</span>}
            {(help.victims ?? []).length > 0 && <span className="tone-bad"> {t('forecast.victims', { count: help.victims!.length })}</span>}
          </span>
          {apply && changesOf(help) && <Button small onClick={() => apply(help)}>{t(inPlace(help) ? 'forecast.apply' : 'help.again')}</Button>}
        </li>
      ))}
    </ul>
  )
}

// ForecastCard says when a queued job starts, why not now unless that is told
// already, who holds what it waits for, and what would help.
export function ForecastCard({ id, spec, forecast, holders, subjob, ends, may = () => true, told }: { id: string; spec: Job; forecast?: JobForecast; holders?: JobRef[]; subjob: number; ends?: Map<string, Ends>; may?: (verb: string) => boolean; told?: boolean }) {
  const { t } = useTranslation()
  const start = (forecast?.starts ?? []).find((s) => s.subjob === subjob) ?? forecast?.starts?.[0]
  const allowed = useRights()('submit')
  const outlook = useQuery({
    queryKey: ['job', id, 'helps'],
    enabled: allowed,
    refetchInterval: 30_000,
    queryFn: ({ signal }) => call<JobForecast>('GET', `/v1/jobs/${part(id)}/forecast?helps=true`, undefined, signal),
  })
  const [help, setHelp] = useState<Help>()
  const history = (forecast?.history ?? []).flatMap((list) => list ?? [])
  const helps = (outlook.data?.helps ?? []).filter((one) => (inPlace(one) ? may(one.kind === 'time_limit' ? 'time-limit' : 'priority') : may('stop') && may('clone')))
  return (
    <section className="card" aria-label={t('forecast.title')}>
      <h2>{t('forecast.title')}</h2>
      {start && <p className="verdict">{startText(t, start)}</p>}
      {start && <p>{t('forecast.position', { position: start.position, pool: start.pool })}</p>}
      {start?.wait && !told && <p>{t('forecast.because', { reason: reasonText(start.wait) })}</p>}
      {(holders ?? []).length > 0 && <><h3>{t('forecast.held')}</h3><HolderTable holders={holders} ends={ends} /></>}
      {allowed && <h3>{t('forecast.helps')}</h3>}
      {!allowed ? null : failing(outlook) ? <Failed error={outlook.error} /> : !outlook.data ? <Loading /> : <Helps helps={helps} apply={setHelp} />}
      {history.length > 1 && <Moves history={history} />}
      <Cli text={`nomadlike job forecast ${quote(spec.name)}`} />
      {help && <HelpDialog id={id} job={spec} help={help} start={start} close={() => setHelp(undefined)} />}
    </section>
  )
}

// movesOf are the answers that were given, as times in seconds.
export function movesOf(history: Forecast[]) {
  const points = history.filter((kept) => kept.p50 && kept.given_at).slice(-60)
  const seconds = (time: Forecast['p50']) => Math.round(millis(time) / 1000)
  return { points, x: points.map((kept) => seconds(kept.given_at)), p50: points.map((kept) => seconds(kept.p50)), p90: points.map((kept) => seconds(kept.p90 ?? kept.p50)) }
}

// Moves is how the estimate moved since submission: when each answer was given, and
// what start it foresaw.
export function Moves({ history }: { history: Forecast[] }) {
  const { t } = useTranslation()
  const { points, x, p50, p90 } = useMemo(() => movesOf(history), [history])
  const lines = useMemo(() => [{ name: t('forecast.likely'), values: p50 }, { name: t('forecast.nine'), values: p90 }], [p50, p90, t])
  if (points.length < 2) return null
  return (
    <>
      <h3>{t('forecast.moved')}</h3>
      <Suspense fallback={<Loading />}>
        <LineChart label={t('forecast.moved')} x={x} time height={170} lines={lines} dashes={[undefined, [4, 4]]} text={(v) => clock(new Date(v * 1000).toISOString()).slice(-5)} xLabel={t('forecast.given')} />
      </Suspense>
      <details>
        <summary>{t('forecast.answers')}</summary>
        <Table<Forecast> label={t('forecast.moved')} idOf={(p) => p.given_at ?? ''} rows={points} columns={[
          { title: t('forecast.given'), cell: (p) => clock(p.given_at) },
          { title: t('forecast.likely'), cell: (p) => clock(p.p50) },
          { title: t('forecast.nine'), cell: (p) => clock(p.p90) },
        ]} />
      </details>
    </>
  )
}
