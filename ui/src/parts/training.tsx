import { useQuery } from '@tanstack/react-query'
import { lazy, Suspense, useMemo, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { get, part } from '../api'
import { quote } from '../format'
import type { Allocation, JobMetrics, MetricSeries, RankMetrics } from '../types'
import { Cli } from './actions'
import { Segments } from './controls'
import { Check } from './controls/fields'
import { LinesBeside, UseBeside } from './beside'
import { Cursor } from './cursor'
import type { Line } from './line_chart'
import { Failed, Loading, failing } from './states'

const LineChart = lazy(() => import('./line_chart'))

const every = 5000
const drawnMax = 12 // charts of metrics, of those that a job names
const linesMax = 64 // of one chart

// nameOf tells metrics of one name but of several sources apart.
const nameOf = (series: MetricSeries) => (series.source === 'log' ? series.name : `${series.name} · ${series.source}`)

// namesOf lists the metrics of a job: loss first, then what has most points.
export function namesOf(ranks: RankMetrics[]): string[] {
  const counts = new Map<string, number>()
  for (const rank of ranks) for (const series of rank.series ?? []) counts.set(nameOf(series), (counts.get(nameOf(series)) ?? 0) + series.count)
  const loss = (name: string) => (/loss/i.test(name) ? 0 : 1)
  return [...counts].sort(([a, x], [b, y]) => loss(a) - loss(b) || y - x || (a < b ? -1 : 1)).map(([name]) => name)
}

// linesOf puts one figure of all ranks and attempts over one axis of steps, or
// of seconds; times are the seconds of each place, by the last attempt that was there.
export function linesOf(ranks: RankMetrics[], name: string, time: boolean, label: (rank: RankMetrics) => string): { x: number[]; lines: Line[]; times: (number | null)[] } {
  const found = ranks.flatMap((rank) => (rank.series ?? []).filter((series) => nameOf(series) === name).map((series) => ({ rank, series })))
  const at = (point: { step: number; at: string | null }) => (time ? Math.round(Date.parse(point.at ?? '') / 1000) : point.step)
  const places = new Map<number, number>()
  const x = [...new Set(found.flatMap(({ series }) => (series.points ?? []).map(at)))].sort((a, b) => a - b)
  x.forEach((value, i) => places.set(value, i))
  const lines = found.slice(0, linesMax).map(({ rank, series }) => {
    const values = new Array<number | null>(x.length).fill(null)
    for (const point of series.points ?? []) values[places.get(at(point))!] = point.value
    return { name: label(rank), values }
  })
  const times = new Array<number | null>(x.length).fill(null)
  for (const { series } of [...found].sort((a, b) => a.rank.attempt - b.rank.attempt || b.rank.rank - a.rank.rank)) {
    for (const point of series.points ?? []) if (point.at) times[places.get(at(point))!] = Date.parse(point.at) / 1000
  }
  return { x, lines, times }
}

// spanOf is from when to when points of ranks are, in seconds.
export function spanOf(ranks: RankMetrics[]): [number, number] {
  const times = ranks.flatMap((rank) => (rank.series ?? []).flatMap((series) => (series.points ?? []).flatMap((point) => (point.at ? [Date.parse(point.at) / 1000] : []))))
  return times.length ? [times.reduce((a, b) => Math.min(a, b)), times.reduce((a, b) => Math.max(a, b))] : [0, 0]
}

// Training is the training metrics that a job wrote of itself: loss, accuracy, speed.
export function Training({ id, name, subjob, attempt, ranks: gang = [], live }: { id: string; name: string; subjob: number; attempt?: number; ranks?: Allocation[]; live: boolean }) {
  const { t } = useTranslation()
  const [axis, setAxis] = useState<'step' | 'time'>('step')
  const [log, setLog] = useState(false)
  const metrics = useQuery({
    queryKey: ['job', id, 'metrics', subjob],
    refetchInterval: live ? every : false,
    queryFn: ({ signal }) => get<JobMetrics>(`/v1/jobs/${part(id)}/metrics?subjob=${subjob}&points=500`, signal),
  })
  const ranks = useMemo(() => metrics.data?.ranks ?? [], [metrics.data])
  const names = useMemo(() => namesOf(ranks), [ranks])
  if (failing(metrics)) return <Failed error={metrics.error} retry={() => void metrics.refetch()} />
  if (!metrics.data) return <Loading />
  const label = (rank: RankMetrics) => `${t('logs.rank', { rank: rank.rank })} · ${t('job.attempt', { number: rank.attempt })}`
  const [from, to] = spanOf(ranks)
  const odd = ranks.flatMap((rank) => (rank.series ?? []).filter((s) => s.not_finite).map((s) => t('training.odd', { name: nameOf(s), rank: rank.rank, count: s.not_finite })))
  return (
    <div className="stack">
      <div className="bar">
        <Segments<'step' | 'time'> label={t('training.axis')} value={axis} change={setAxis} options={[{ value: 'step', label: t('curves.step') }, { value: 'time', label: t('curves.time') }]} />
        <Check checked={log} change={setLog}>{t('training.log')}</Check>
        <Cursor from={from} to={to} />
      </div>
      {names.length === 0 && <p className="quiet">{t('training.none')}</p>}
      {odd.map((text) => <p key={text} className="tone-bad">{text}</p>)}
      {(metrics.data.away ?? []).length > 0 && <p className="quiet">{t('training.away', { nodes: metrics.data.away!.join(', ') })}</p>}
      <div className="cards">
        {names.slice(0, drawnMax).map((one) => {
          const { x, lines, times } = linesOf(ranks, one, axis === 'time', label)
          const positive = lines.every((line) => line.values.every((v) => v === null || v > 0))
          return (
            <section key={one} className="card" aria-label={one}>
              <h2>{one} <span className="quiet">{lines.length > 0 && Number((lines[0]!.values.findLast((v) => v !== null) ?? 0).toPrecision(4))}</span></h2>
              <Suspense fallback={<Loading />}><LineChart label={one} x={x} lines={lines} time={axis === 'time'} times={times} log={log && positive} /></Suspense>
            </section>
          )
        })}
      </div>
      {names.length > drawnMax && <p className="quiet">{t('training.more', { names: names.slice(drawnMax, drawnMax + 50).join(', ') })}</p>}
      {attempt !== undefined && <UseBeside id={id} subjob={subjob} attempt={attempt} live={live} />}
      {gang.length > 0 && <LinesBeside allocs={gang} live={live} />}
      <Cli text={`nomadlike job metrics ${subjob ? `-subjob ${subjob} ` : ''}${quote(name)}`} />
    </div>
  )
}
