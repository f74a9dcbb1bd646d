import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { get, part } from '../../api'
import { clock, lengthOf, millis, number, since, span } from '../../format'
import { DeedDialog } from '../../parts/actions'
import { Button } from '../../parts/controls'
import { Progress } from '../../parts/jobrow'
import type { Ends } from '../../parts/mine'
import { Spark } from '../../parts/spark'
import { useNow } from '../../parts/states'
import type { Attempt, JobDetail, JobHistory, JobMetrics, JobUsage, MetricSeries, Subjob } from '../../types'

const trendPoints = 60
const speedOver = 5 // points at least

const value = (v: number) => (Math.abs(v) >= 1000 ? Math.round(v).toLocaleString('en') : Math.abs(v) >= 1 ? number(v) : String(Number(v.toPrecision(3))))

// trendOf is what the first rank that measures itself has written in an attempt.
export function trendOf(metrics: JobMetrics | undefined, attempt: number | undefined) {
  const rank = (metrics?.ranks ?? []).filter((one) => one.attempt === attempt).sort((a, b) => a.rank - b.rank).find((one) => (one.series ?? []).length > 0)
  const series = rank?.series ?? []
  const longest = series.reduce<MetricSeries | undefined>((best, one) => ((one.points?.length ?? 0) > (best?.points?.length ?? 0) ? one : best), undefined)
  const loss = series.find((one) => /^(train[_/ ]?)?loss$/i.test(one.name)) ?? series.find((one) => /loss/i.test(one.name))
  return { loss, longest, speeds: speedsOf(longest) }
}

// speedsOf are steps a second between the points of a series.
export function speedsOf(series: MetricSeries | undefined): number[] {
  const points = series?.points ?? []
  return points.slice(1).flatMap((point, i) => {
    const took = (Date.parse(point.at ?? '') - Date.parse(points[i]!.at ?? '')) / 1000
    const steps = point.step - points[i]!.step
    return took > 0 && steps > 0 ? [steps / took] : []
  })
}

// recentOf is how fast it is now: over the newest quarter of its points.
export function recentOf(series: MetricSeries | undefined): number | undefined {
  const points = (series?.points ?? []).slice(-Math.max(speedOver, Math.ceil((series?.points?.length ?? 0) / 4)))
  if (points.length < 2) return undefined
  const took = (Date.parse(points.at(-1)!.at ?? '') - Date.parse(points[0]!.at ?? '')) / 1000
  const steps = points.at(-1)!.step - points[0]!.step
  return took > 0 && steps > 0 ? steps / took : undefined
}

// busyOf is how busy the cards of a job are now, or its cores when it has no cards.
export function busyOf(usage: JobUsage | undefined): { share: number; cards: number } | undefined {
  const ranks = (usage?.ranks ?? []).filter((rank) => rank.measured)
  const cards = ranks.flatMap((rank) => (rank.devices ?? []).flatMap((card) => (card.gauges?.utilization_ratio === undefined ? [] : [card.gauges.utilization_ratio])))
  if (cards.length) return { share: cards.reduce((sum, v) => sum + v, 0) / cards.length, cards: cards.length }
  const had = ranks.reduce((sum, rank) => sum + rank.cpu, 0)
  return had > 0 ? { share: Math.min(1, ranks.reduce((sum, rank) => sum + (rank.cpu_busy ?? 0), 0) / had), cards: 0 } : undefined
}

// pastBusyOf is how busy they were over time: the mean of all ranks.
export function pastBusyOf(past: JobHistory | undefined, cards: boolean): (number | null)[] {
  const gauge = cards ? 'device_utilization_ratio' : 'cpu_cores'
  return (past?.at ?? []).map((_, i) => {
    const known = (past?.ranks ?? []).flatMap((rank) => {
      const v = (rank.series ?? []).find((one) => one.gauge === gauge)?.values?.[i]
      return v === null || v === undefined ? [] : [cards ? v : rank.cpu ? v / rank.cpu : v]
    })
    return known.length ? known.reduce((sum, v) => sum + v, 0) / known.length : null
  })
}

// everyOf is how often checkpoints were registered lately, in milliseconds.
export function everyOf(saved: Subjob['checkpoints']): number {
  const times = (saved ?? []).map((one) => millis(one.saved_at)).filter(Boolean)
  return times.length < 2 ? 0 : (times.at(-1)! - times[0]!) / (times.length - 1)
}

// Keys are the six figures of a job that runs.
export function Keys({ id, detail, standing, newest, subjob, ends, logs, may }: { id: string; detail: JobDetail; standing?: Subjob; newest?: Attempt; subjob: number; ends?: Ends; logs: boolean; may: (verb: string) => boolean }) {
  const { t } = useTranslation()
  const now = useNow(5000)
  const [extends_, setExtends] = useState(false)
  const path = '/v1/jobs/' + part(id)
  const metrics = useQuery({ queryKey: ['job', id, 'trend', subjob, newest?.number], enabled: logs && !!newest, refetchInterval: 15_000, retry: false, queryFn: ({ signal }) => get<JobMetrics>(`${path}/metrics?subjob=${subjob}&attempt=${newest!.number}&points=${trendPoints}`, signal) })
  const usage = useQuery({ queryKey: ['job', id, 'figures', subjob], refetchInterval: 10_000, retry: false, queryFn: ({ signal }) => get<JobUsage>(`${path}/figures?subjob=${subjob}`, signal) })
  const past = useQuery({ queryKey: ['job', id, 'busy', subjob, newest?.number], enabled: !!newest, refetchInterval: 60_000, retry: false, queryFn: ({ signal }) => get<JobHistory>(`${path}/figures/past?subjob=${subjob}&attempt=${newest!.number}&points=${trendPoints}`, signal) })
  const { loss, longest, speeds } = trendOf(metrics.data, newest?.number)
  const speed = recentOf(longest)
  const busy = busyOf(usage.data)
  const saved = standing?.checkpoints?.at(-1)
  const every = everyOf(standing?.checkpoints)
  const began = millis(newest?.running_at)
  const share = began && ends?.p50 && ends.p50 > began ? Math.min(0.99, Math.max(0, (now - began) / (ends.p50 - began))) : undefined
  const limit = detail.job.time_limit && lengthOf(detail.job.time_limit) && began ? began + lengthOf(detail.job.time_limit) : 0
  const near = limit > 0 && (limit - now < 3_600_000 || (ends?.p90 ?? 0) >= limit)
  const time = (ms: number) => clock(new Date(ms).toISOString(), now)
  return (
    <section className="card runkeys" aria-label={t('keys.title')}>
      <dl>
        <div><dt>{t('keys.progress')}</dt><dd>{longest ? <><b>{value(longest.last.step)}</b> <small>{t('keys.steps')}</small></> : share !== undefined ? <><b>{Math.round(share * 100)}</b> <small>%</small></> : <b>–</b>}{share !== undefined && <><Progress done={share} /><small>{t('home.by_time', { share: Math.round(share * 100) })}</small></>}</dd></div>
        <div><dt>{t('keys.speed')}</dt><dd><b>{speed === undefined ? '–' : value(speed)}</b> {speed !== undefined && <small>{t('keys.per_second')}</small>}<Spark values={speeds} least={0} /></dd></div>
        <div><dt>{loss?.name ?? t('keys.loss')}</dt><dd><b>{loss ? value(loss.last.value) : '–'}</b><Spark values={(loss?.points ?? []).map((point) => point.value)} /></dd></div>
        <div><dt>{t(busy && !busy.cards ? 'keys.cores' : 'keys.cards')}</dt><dd><b>{busy ? Math.round(busy.share * 100) : '–'}</b> {busy && <small>{busy.cards ? t('keys.of_cards', { count: busy.cards }) : '%'}</small>}<Spark values={pastBusyOf(past.data, !!busy?.cards)} least={0} most={1} tone="ok" /></dd></div>
        <div><dt>{t('job.checkpoint')}</dt><dd>{saved ? <><b>{since(saved.saved_at, null, now)}</b> <small>{t('keys.ago')}{saved.step ? ' · ' + t('keys.at_step', { step: saved.step.toLocaleString('en') }) : ''}</small>{every > 0 && <small className="line">{t('keys.every', { time: span(every) })}</small>}</> : <><b>–</b><small className="line">{t('keys.none_saved')}</small></>}</dd></div>
        <div><dt>{t('keys.ends')}</dt><dd>{ends?.p50 ? <><b>{time(ends.p50)}</b>{ends.p90 > ends.p50 && <small className="line">{t('keys.nine', { time: time(ends.p90) })}</small>}</> : <b>–</b>}{limit > 0 && <small className={near ? 'line tone-busy' : 'line'}>{t('keys.limit', { time: time(limit) })}</small>}{limit > 0 && may('time-limit') && <Button small onClick={() => setExtends(true)}>{t('keys.extend')}</Button>}</dd></div>
      </dl>
      {extends_ && <DeedDialog deed="limit" jobs={[{ id, name: detail.job.name, state: detail.state, priority: detail.job.priority }]} close={() => setExtends(false)} />}
    </section>
  )
}
