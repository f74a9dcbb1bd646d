import { useQuery } from '@tanstack/react-query'
import { lazy, Suspense, useEffect, useMemo, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { get, part, send } from '../api'
import { dateTime } from '../format'
import type { Allocation, JobHistory } from '../types'
import { Segments } from './controls'
import { Choice } from './controls/fields'
import { usePointed } from './cursor'
import { colour, timed, visible } from './logs'
import { lineOf } from './rank_history'
import { errorText, failing, Loading } from './states'
import { measures } from './usage'

// What stands beside the curves of a job: what its ranks used at the same time, and
// what they printed. The moment that the page points at is shown in all of it.

const LineChart = lazy(() => import('./line_chart'))

const ranksMost = 16
const tail = 1000
const around = 4 // lines before and behind the moment

// UseBeside draws what the ranks of an attempt used, each measure by itself.
export function UseBeside({ id, subjob, attempt, live }: { id: string; subjob: number; attempt: number; live: boolean }) {
  const { t } = useTranslation()
  const past = useQuery({
    queryKey: ['job', id, 'past', subjob, attempt, live], refetchInterval: live ? 60_000 : false, retry: false,
    queryFn: ({ signal }) => get<JobHistory>(`/v1/jobs/${part(id)}/figures/past?subjob=${subjob}&attempt=${attempt}&points=240`, signal),
  })
  const drawn = useMemo(() => measures.flatMap((one) => {
    const line = lineOf(past.data, one.value, Infinity)
    const lines = [...line.ranks].slice(0, ranksMost).map(([rank, values]) => ({ name: t('logs.rank', { rank }), values: values.map((v) => (v === null ? null : v * 100)) }))
    return lines.length && line.at.length > 1 ? [{ key: one.key, unit: one.unit ?? ' %', x: line.at, lines }] : []
  }), [past.data, t])
  if (failing(past)) return <p className="quiet">{errorText(past.error, t)}</p>
  if (drawn.length === 0) return null
  return (
    <>
      <h2>{t('beside.use')}</h2>
      <div className="cards">
        {drawn.map((one) => (
          <section key={one.key} className="card" aria-label={t('figures.' + one.key)}>
            <h3>{t('figures.' + one.key)}</h3>
            <Suspense fallback={<Loading />}><LineChart label={t('figures.' + one.key)} x={one.x} time lines={one.lines} unit={one.unit} height={160} /></Suspense>
          </section>
        ))}
      </div>
    </>
  )
}

// nearLines are the lines around a moment in milliseconds, and which of them was the
// last one then; without a moment the last ones.
export function nearLines<L extends { at?: number }>(lines: L[], at: number | undefined): { shown: L[]; here: number } {
  const here = at === undefined ? -1 : lines.findLastIndex((line) => line.at !== undefined && line.at <= at)
  if (here < 0) return { shown: lines.slice(-2 * around - 1), here: -1 }
  const from = Math.max(0, here - around)
  return { shown: lines.slice(from, here + around + 1), here: here - from }
}

// LinesBeside are the lines that a rank printed around the moment.
export function LinesBeside({ allocs, live }: { allocs: Allocation[]; live: boolean }) {
  const { t } = useTranslation()
  const [rank, setRank] = useState(allocs[0]!.rank)
  const [stream, setStream] = useState<'stdout' | 'stderr'>('stdout')
  const alloc = allocs.find((one) => one.rank === rank) ?? allocs[0]!
  const at = usePointed()
  const log = useQuery({
    queryKey: ['lines', alloc.id, stream], refetchInterval: live ? 15_000 : false, retry: false,
    queryFn: async ({ signal }) => (await (await send('GET', `/v1/allocations/${part(alloc.id)}/logs?stream=${stream}&tail=${tail}&times=true`, undefined, signal)).text()).split('\n').filter(Boolean).map(timed),
  })
  useEffect(() => { if (log.data?.length === 0 && stream === 'stdout') setStream('stderr') }, [log.data, stream])
  const { shown, here } = nearLines(log.data ?? [], at === undefined ? undefined : at * 1000 + 500)
  return (
    <section className="card" aria-label={t('beside.lines')}>
      <div className="bar">
        <h2>{t('beside.lines')}</h2>
        <Choice bare small label={t('job.rank')} value={rank} change={setRank} options={allocs.slice(0, 64).map((one) => ({ value: one.rank, label: t('logs.rank', { rank: one.rank }) }))} />
        <Segments label={t('logs.stream')} value={stream} change={setStream} options={(['stdout', 'stderr'] as const).map((value) => ({ value, label: value }))} />
      </div>
      {failing(log) ? <p className="quiet">{errorText(log.error, t)}</p> : !log.data ? <Loading /> : (
        <pre className="logs few" tabIndex={0} aria-label={t('beside.lines')}>
          {shown.length === 0 && <div>{t('logs.empty')}</div>}
          {shown.map((line, i) => (
            <div key={i} className={i === here ? 'here' : undefined} aria-current={i === here || undefined}>
              {line.at !== undefined && <time dateTime={new Date(line.at).toISOString()}>{dateTime(new Date(line.at).toISOString(), true).slice(11)}</time>}
              {colour(visible(line.text)).map((span) => span.text).join('')}
            </div>
          ))}
        </pre>
      )}
    </section>
  )
}
