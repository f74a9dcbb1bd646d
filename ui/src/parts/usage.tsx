import { useQuery } from '@tanstack/react-query'
import type { TFunction } from 'i18next'
import { lazy, Suspense, useEffect, useMemo, useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { get, part } from '../api'
import { number, quote, size } from '../format'
import type { JobUsage, JobHistory, RankUsage } from '../types'
import { Cli } from './actions'
import { Segments } from './controls'
import { Table } from './controls/table'
import { Cursor } from './cursor'
import { joined, lineOf, whole, type Line } from './rank_history'
import { NodeLink } from './places'
import { Failed, Loading, WordTag, failing } from './states'

const LineChart = lazy(() => import('./line_chart'))

const every = 2000 // milliseconds between questions; servers answer from a cache of one second
const keptMax = 450 // points of each rank: a quarter of an hour
const pastEvery = 60_000
const pastPoints = 240

// What is drawn of each rank. The value is between 0 and 1, or null where it
// is not measured; text is what a person reads.
interface Measure {
  key: string
  value: (rank: RankUsage) => number | null
  text: (rank: RankUsage, t: TFunction) => string
  low?: boolean // a low value is what stands out
  unit?: string // of a hundred times the value; percent unless told
}

const mean = (values: number[]) => (values.length ? values.reduce((sum, v) => sum + v, 0) / values.length : null)
const gauges = (rank: RankUsage, name: string) => (rank.devices ?? []).flatMap((d) => (d.gauges?.[name] === undefined ? [] : [d.gauges[name]]))
const sum = (values: number[]) => values.reduce((all, v) => all + v, 0)
const percent = (value: number | null) => (value === null ? '–' : `${Math.round(value * 100)} %`)

// ratio of one gauge to another over all cards of a rank.
const ratio = (rank: RankUsage, used: string, total: string) => {
  const all = sum(gauges(rank, total))
  return all > 0 ? sum(gauges(rank, used)) / all : null
}
const hottest = 100 // degrees that the colour ends at

export const measures: Measure[] = [
  { key: 'card', low: true, value: (r) => mean(gauges(r, 'utilization_ratio')), text: (r) => percent(mean(gauges(r, 'utilization_ratio'))) },
  { key: 'card_memory', value: (r) => ratio(r, 'memory_used_bytes', 'memory_total_bytes'), text: (r) => (gauges(r, 'memory_used_bytes').length ? size(sum(gauges(r, 'memory_used_bytes'))) : '–') },
  { key: 'temperature', unit: ' °C', value: (r) => { const all = gauges(r, 'temperature_celsius'); return all.length ? Math.min(1, Math.max(...all) / hottest) : null }, text: (r) => { const all = gauges(r, 'temperature_celsius'); return all.length ? `${Math.round(Math.max(...all))} °C` : '–' } },
  { key: 'power', value: (r) => ratio(r, 'power_watts', 'power_limit_watts'), text: (r) => (gauges(r, 'power_watts').length ? `${Math.round(sum(gauges(r, 'power_watts')))} W` : '–') },
  { key: 'cpu', low: true, value: (r) => (r.measured && r.cpu ? Math.min(1, (r.cpu_busy ?? 0) / r.cpu) : null), text: (r) => (r.measured ? `${number(r.cpu_busy ?? 0)} / ${number(r.cpu)}` : '–') },
  { key: 'memory', value: (r) => (r.measured && r.memory ? Math.min(1, (r.memory_used ?? 0) / r.memory) : null), text: (r) => (r.measured ? `${size(r.memory_used ?? 0)} / ${size(r.memory)}` : '–') },
]

// stragglers are the ranks whose value is less than half of the middle one, of
// a gang that works.
export function stragglers(ranks: RankUsage[], value: Measure['value']): number[] {
  const known = ranks.flatMap((r) => { const v = value(r); return v === null ? [] : [{ rank: r.rank, v }] })
  if (known.length < 3) return []
  const middle = [...known].sort((a, b) => a.v - b.v)[Math.floor(known.length / 2)]!.v
  return middle < 0.2 ? [] : known.filter((one) => one.v < middle / 2).map((one) => one.rank)
}

// heat is the colour of a value between 0 and 1.
const heat = (value: number) => `color-mix(in srgb, var(--heat) ${Math.round(value * 100)}%, var(--shade))`

// Figures are what the ranks of a job use now, and used since they began: nodes
// keep that, and what they do not keep yet was seen since the page was opened.
// Of a job that does not run, they are what its newest attempt used.
export function Figures({ id, name, subjob, live }: { id: string; name: string; subjob: number; live: boolean }) {
  const { t } = useTranslation()
  const [shown, setShown] = useState('')
  const kept = useRef(new Map<string, Line>())
  const figures = useQuery({
    queryKey: ['job', id, 'figures', subjob],
    refetchInterval: live ? every : false,
    queryFn: ({ signal }) => get<JobUsage>(`/v1/jobs/${part(id)}/figures?subjob=${subjob}`, signal),
  })
  const attempt = figures.data?.attempt ?? 0
  const past = useQuery({
    queryKey: ['job', id, 'past', subjob, attempt, live],
    enabled: attempt > 0,
    refetchInterval: live ? pastEvery : false,
    queryFn: ({ signal }) => get<JobHistory>(`/v1/jobs/${part(id)}/figures/past?subjob=${subjob}&attempt=${attempt}&points=${pastPoints}`, signal),
  })
  const over = !live
  const ranks = useMemo(() => {
    const all = figures.data?.ranks ?? []
    if (!over) return all
    const used = new Map((past.data?.ranks ?? []).map((rank) => [rank.alloc_id, rank]))
    return all.map((rank) => { const was = used.get(rank.alloc_id); return was ? { ...whole(was), status: rank.status } : rank })
  }, [figures.data, past.data, over])
  const have = measures.filter((m) => ranks.some((r) => m.value(r) !== null))
  useEffect(() => {
    for (const m of measures) {
      const list = kept.current.get(m.key) ?? { at: [], ranks: new Map<number, (number | null)[]>() }
      kept.current.set(m.key, list)
      if (!figures.data || over) continue
      list.at.push(figures.dataUpdatedAt / 1000)
      for (const r of ranks) {
        const line = list.ranks.get(r.rank) ?? new Array<number | null>(list.at.length - 1).fill(null)
        line.push(m.value(r))
        list.ranks.set(r.rank, line)
      }
      for (const line of list.ranks.values()) while (line.length < list.at.length) line.push(null)
      if (list.at.length > keptMax) {
        list.at.shift()
        for (const line of list.ranks.values()) line.shift()
      }
    }
  }, [figures.dataUpdatedAt]) // eslint-disable-line react-hooks/exhaustive-deps
  const one = have.find((m) => m.key === shown) ?? have[0]
  const before = one && kept.current.get(one.key)?.at[0]
  const began = useMemo(() => (one ? lineOf(past.data, one.value, before ?? Infinity) : undefined), [past.data, one, before])
  if (failing(figures)) return <Failed error={figures.error} retry={() => void figures.refetch()} />
  if (!figures.data) return <Loading />
  if (ranks.length === 0) return <p className="quiet">{t('job.no_attempt')}</p>
  const slow = one?.low ? stragglers(ranks, one.value) : []
  const seen = one && kept.current.get(one.key)
  const line = began && joined(began, seen ?? { at: [], ranks: new Map() })
  return (
    <div className="stack">
      <section className="card" aria-label={t('figures.strip')}>
        <h2>{t('figures.strip')}</h2>
        {have.length === 0 && <p className="quiet">{past.isLoading ? t('states.loading') : over ? t('figures.none_kept') : t('figures.none')}</p>}
        {over && have.length > 0 && <p className="quiet">{t('figures.whole')}</p>}
        {have.map((m) => (
          <div key={m.key} className="heat-row">
            <span className="heat-name">{t('figures.' + m.key)}</span>
            <div className="heat" role="img" aria-label={t('figures.strip_about', { name: t('figures.' + m.key), values: ranks.slice(0, 64).map((r) => `${r.rank}: ${m.text(r, t)}`).join(', ') })}>
              {ranks.map((r) => {
                const value = m.value(r)
                return <i key={r.rank} className={value === null ? 'unknown' : m.low && stragglers(ranks, m.value).includes(r.rank) ? 'slow' : undefined} style={value === null ? undefined : { background: heat(value) }} title={`${t('logs.rank', { rank: r.rank })} · ${r.node} · ${m.text(r, t)}`} />
              })}
            </div>
          </div>
        ))}
        {slow.length > 0 && <p><WordTag tone="busy">{t('figures.slow', { ranks: slow.join(', ') })}</WordTag></p>}
      </section>
      {past.data?.away?.length ? <p className="quiet">{t('figures.away', { nodes: past.data.away.join(', ') })}</p> : null}
      {one && line && line.at.length > 1 && (
        <section className="card" aria-label={t('figures.since')}>
          <div className="bar">
            <h2>{t('figures.since')}</h2>
            <Cursor from={line.at[0]!} to={line.at.at(-1)!} />
            <Segments label={t('figures.measure')} value={one.key} change={setShown} options={have.map((m) => ({ value: m.key, label: t('figures.' + m.key) }))} />
          </div>
          <Suspense fallback={<Loading />}>
            <LineChart label={t('figures.' + one.key)} x={line.at} time lines={[...line.ranks].slice(0, 64).map(([rank, values]) => ({ name: t('logs.rank', { rank }), values: values.map((v) => (v === null ? null : v * 100)) }))} unit={one.unit ?? ' %'} />
          </Suspense>
          <Cli text={`nomadlike job figures ${subjob ? `-subjob ${subjob} ` : ''}-rank ${ranks[0]!.rank} ${quote(name)}`} />
        </section>
      )}
      <section className="card" aria-label={t(over ? 'figures.ranks_past' : 'figures.ranks')}>
        <h2>{t(over ? 'figures.ranks_past' : 'figures.ranks')}</h2>
        <Table<RankUsage> label={t(over ? 'figures.ranks_past' : 'figures.ranks')} idOf={(r) => r.alloc_id} rows={ranks} page={64} least={760}
          unfold={!over && ranks.some((r) => r.devices?.length) ? (r) => <Cards rank={r} /> : undefined} unfolds={(r) => !!r.devices?.length}
          columns={[
            { title: t('job.rank'), width: 60, cell: (r) => r.rank },
            { title: t('job.node'), cell: (r) => <NodeLink id={r.node_id} name={r.node} /> },
            { title: t('job.status'), cell: (r) => <>{t('alloc.' + r.status)}{!r.measured && live && <span className="quiet"> · {t('figures.unmeasured')}</span>}</> },
            ...have.map((m) => ({ title: t('figures.' + m.key), cell: (r: RankUsage) => m.text(r, t) })),
            { title: t('figures.processes'), width: 100, cell: (r) => r.processes ?? '–' },
          ]} />
        {figures.data.more ? <p className="quiet">{t('figures.more', { count: figures.data.more })}</p> : null}
        <Cli text={`nomadlike job figures ${over ? '-past ' : ''}${subjob ? `-subjob ${subjob} ` : ''}${quote(name)}`} />
      </section>
    </div>
  )
}

function Cards({ rank }: { rank: RankUsage }) {
  const { t } = useTranslation()
  return (
    <Table label={t('cluster.cards')} idOf={(d) => d.id} rows={rank.devices ?? []} columns={[
      { title: t('node.card'), width: 60, cell: (d) => d.index },
      { title: t('node.model'), cell: (d) => d.model },
      { title: t('figures.card'), cell: (d) => gaugeText(d.gauges, 'utilization_ratio') },
      { title: t('figures.card_memory'), cell: (d) => cardMemory(d.gauges) },
      { title: t('figures.temperature'), cell: (d) => gaugeText(d.gauges, 'temperature_celsius') },
      { title: t('figures.power'), cell: (d) => gaugeText(d.gauges, 'power_watts') },
    ]} />
  )
}

// gaugeText writes a gauge with the unit that its name ends with.
export function gaugeText(all: Record<string, number> | undefined, name: string): string {
  const value = all?.[name]
  if (value === undefined) return '–'
  if (name.endsWith('_ratio')) return percent(value)
  if (name.endsWith('_bytes') || name.endsWith('_bytes_total')) return size(value)
  if (name.endsWith('_bytes_per_second')) return size(value) + '/s'
  if (name.endsWith('_celsius')) return `${Math.round(value)} °C`
  if (name.endsWith('_watts')) return `${Math.round(value)} W`
  if (name.endsWith('_hertz')) return `${Math.round(value / 1e6)} MHz`
  if (name.endsWith('_volts')) return `${number(value)} V`
  if (name.endsWith('_joules_total')) return `${number(value / 3.6e6)} kWh`
  return number(value)
}

export function cardMemory(all: Record<string, number> | undefined, memory = 0): string {
  const used = all?.memory_used_bytes
  const total = all?.memory_total_bytes ?? memory
  if (used === undefined) return total ? size(total) : '–'
  return `${size(used)} / ${size(total)}`
}
