import { useQuery } from '@tanstack/react-query'
import { lazy, Suspense, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { get, part } from '../api'
import { clock, lengthOf, quote } from '../format'
import type { CardHistory, NodeHistory, NodeSummary, GaugeHistory } from '../types'
import { Cli } from './actions'
import { Segments } from './controls'
import type { Line } from './line_chart'
import { Failed, failing } from './states'

const LineChart = lazy(() => import('./line_chart'))

const chartRoom = 308 // pixels: a chart with its legend and the line of its table
const every = 60_000 // milliseconds: the node keeps a value a minute
const points = 288
const linesMax = 64
const stripsMax = 16 // cards that were not well
const spellsMax = 4 // times that are told of one, the newest
const minutesOf: Record<string, number> = { '1h': 60, '6h': 360, '24h': 1440 }
const spans = ['1h', '6h', '24h'] as const

// What can be drawn: a figure of cards or of the machine, with the unit that a
// person reads and what a value is multiplied by for it.
interface Drawn {
  key: string
  gauge: string
  machine?: boolean
  unit: string
  by: number
}
const gibibyte = 2 ** -30
export const drawn: Drawn[] = [
  { key: 'card', gauge: 'utilization_ratio', unit: ' %', by: 100 },
  { key: 'card_memory', gauge: 'memory_used_bytes', unit: ' GiB', by: gibibyte },
  { key: 'temperature', gauge: 'temperature_celsius', unit: ' °C', by: 1 },
  { key: 'power', gauge: 'power_watts', unit: ' W', by: 1 },
  { key: 'faults', gauge: 'ecc_uncorrected_total', unit: '', by: 1 },
  { key: 'cpu', gauge: 'cpu_cores', machine: true, unit: '', by: 1 },
  { key: 'memory', gauge: 'memory_used_bytes', machine: true, unit: ' GiB', by: gibibyte },
]

const valuesOf = (series: GaugeHistory[] | null, gauge: string) => (series ?? []).find((one) => one.gauge === gauge)?.values
export const cardName = (card: Pick<CardHistory, 'index' | 'slice' | 'gone' | 'id'>) => (card.gone ? card.id : card.slice ? `${card.index}(${card.slice})` : String(card.index))

// linesOf are the lines of one figure: one of each card, or that of the machine.
export function historyLines(past: NodeHistory, one: Drawn, label: (card: CardHistory) => string, machine: string): Line[] {
  const scaled = (values: (number | null)[]) => values.map((v) => (v === null ? null : v * one.by))
  if (one.machine) {
    const values = valuesOf(past.machine, one.gauge)
    return values ? [{ name: machine, values: scaled(values) }] : []
  }
  return (past.devices ?? []).flatMap((card) => {
    const values = valuesOf(card.series, one.gauge)
    return values ? [{ name: label(card), values: scaled(values) }] : []
  })
}

// UsageHistory is what a node and its cards measured during the last day. The node
// itself keeps it: it is there after this page was closed, and asked for anew.
export function UsageHistory({ node, device }: { node: NodeSummary; device?: string }) {
  const { t } = useTranslation()
  const [span, setSpan] = useState<(typeof spans)[number]>('6h')
  const [shown, setShown] = useState('')
  // The page need not wait for it, for its room is kept, but where strips of cards that
  // are not well follow: how many is known with it.
  const later = (node.devices ?? []).every((card) => card.healthy)
  const past = useQuery({
    queryKey: ['node', node.id, 'past', span, device],
    meta: { later },
    refetchInterval: every,
    queryFn: ({ signal }) => get<NodeHistory>(`/v1/nodes/${part(node.id)}/figures?since=${span}&points=${points}${device ? '&device=' + part(device) : ''}`, signal),
  })
  const label = (card: CardHistory) => t('node.card_number', { number: cardName(card) })
  const found = past.data
  const have = found ? drawn.filter((one) => !(device && one.machine) && historyLines(found, one, label, '').length > 0) : []
  const one = have.find((d) => d.key === shown) ?? have[0]
  const lines = found && one ? historyLines(found, one, label, node.name).slice(0, linesMax) : []
  return (
    <section className="card" aria-label={device ? t('node.past_card', { device }) : t('node.past')}>
      <div className="bar">
        <h2>{t('node.past')}</h2>
        <Segments label={t('node.past_span')} value={span} change={setSpan} options={spans.map((value) => ({ value, label: t('node.past_' + value) }))} />
        {have.length > 1 && <Segments label={t('figures.measure')} value={one!.key} change={setShown} options={have.map((d) => ({ value: d.key, label: t('figures.' + d.key) }))} />}
      </div>
      {failing(past) ? <Failed error={past.error} retry={() => void past.refetch()} /> : !found ? <div style={{ minHeight: chartRoom }} aria-busy="true" /> : !one ? <p className="quiet">{t('node.no_past')}</p> : (
        <Suspense fallback={<div style={{ minHeight: chartRoom }} />}>
          <LineChart label={t('figures.' + one.key)} x={(found.at ?? []).map((at) => Date.parse(at ?? '') / 1000)} time lines={lines} unit={one.unit} />
        </Suspense>
      )}
      {found && <HealthStrips past={found} node={node.id} span={span} />}
      <Cli text={`nomadlike node figures ${device ? `-device ${quote(device)} ` : ''}-since ${span} ${quote(node.name)}`} />
    </section>
  )
}

// HealthStrips show when cards were not well, of those that once were not.
function HealthStrips({ past, node, span }: { past: NodeHistory; node: string; span: string }) {
  const { t } = useTranslation()
  const sick = (past.devices ?? []).flatMap((card) => {
    const values = valuesOf(card.series, 'healthy')
    return values?.some((v) => v === 0) ? [{ card, values }] : []
  })
  if (sick.length === 0) return null
  return (
    <>
      <h3>{t('node.past_health')}</h3>
      {sick.slice(0, stripsMax).map(({ card }) => <HealthStrip key={card.id} card={card} coarse={past} node={node} span={span} />)}
    </>
  )
}

// HealthStrip is one card minute by minute. The answer for a whole machine puts
// as many minutes together as it must, and one bad minute made all of them red.
function HealthStrip({ card, coarse, node, span }: { card: CardHistory; coarse: NodeHistory; node: string; span: string }) {
  const { t } = useTranslation()
  const fine = useQuery({
    queryKey: ['node', node, 'past', span, card.id, 'health'],
    refetchInterval: every,
    queryFn: ({ signal }) => get<NodeHistory>(`/v1/nodes/${part(node)}/figures?since=${span}&points=${minutesOf[span]}&device=${part(card.id)}`, signal),
  })
  const past = fine.data ?? coarse
  const values = valuesOf((past.devices ?? []).find((one) => one.id === card.id)?.series ?? null, 'healthy') ?? []
  const text = spells(values, past.at ?? [], lengthOf(past.step ?? '') || every).map(([from, to]) => t('node.past_unwell', { from: clock(from), to: clock(to) })).slice(-spellsMax).join('; ')
  return (
    <div className="heat-row">
      <span className="heat-name">{t('node.card_number', { number: cardName(card) })}</span>
      <div>
        <div className="health" role="img" title={text} aria-label={text}>
          {runs(values).map(([v, many], i) => <i key={i} style={{ flexGrow: many }} className={v === null ? 'unknown' : v === 0 ? 'sick' : 'well'} />)}
        </div>
        <span className="quiet">{text}</span>
      </div>
    </div>
  )
}

// runs puts equal values that follow one another together.
const runs = (values: (number | null)[]) => values.reduce<[number | null, number][]>((all, v) => {
  const last = all.at(-1)
  if (last && last[0] === v) last[1]++
  else all.push([v, 1])
  return all
}, [])

// spells are the times during which a card was not well, each from the beginning
// of its first minute to the end of its last one.
export function spells(values: (number | null)[], at: (string | null | undefined)[], step: number): [string, string][] {
  let i = 0
  return runs(values).flatMap(([v, many]) => {
    const [first, last] = [at[i], at[i + many - 1]]
    i += many
    return v === 0 && first && last ? [[first, new Date(Date.parse(last) + step).toISOString()] as [string, string]] : []
  })
}
