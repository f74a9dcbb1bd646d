import { useMemo } from 'react'
import { useTranslation } from 'react-i18next'
import { clock, millis } from '../format'
import { useWidth } from '../look'
import type { Outlook, PoolLoad } from '../types'

const height = 190
const left = 36
const right = 12
const below = 22
const above = 18

// hours are the full hours of a span on the reader's clock, every so many of them.
export function hours(from: number, to: number, every: number): number[] {
  const at = new Date(from)
  at.setMinutes(0, 0, 0)
  const out: number[] = []
  for (; at.getTime() <= to; at.setHours(at.getHours() + 1)) if (at.getTime() >= from && at.getHours() % every === 0) out.push(at.getTime())
  return out
}

// band is the outline of what lies between two heights, step by step: what is known
// at an instant holds until the next.
export function band(x: number[], low: number[], high: number[]): string {
  const edge = (y: number[]) => x.flatMap((at, i) => (i ? [[at, y[i - 1]!], [at, y[i]!]] : [[at, y[0]!]]))
  return 'M' + [...edge(high), ...edge(low).reverse()].map(([px, py]) => `${px!.toFixed(1)},${py!.toFixed(1)}`).join('L') + 'Z'
}

// layersOf are the bands of a load, from below: how high each begins and ends at
// every instant. What is away hangs from the top.
export function layersOf(load: PoolLoad) {
  const none = (load.total ?? []).map(() => 0)
  const sum = (a: number[], b: number[] | null) => a.map((n, i) => n + (b?.[i] ?? 0))
  const used = sum(none, load.used)
  const held = sum(used, load.held)
  const foreseen = sum(held, load.foreseen)
  const total = load.total ?? []
  return { used: [none, used], held: [used, held], foreseen: [held, foreseen], away: [total.map((n, i) => n - (load.away?.[i] ?? 0)), total] } as const
}

// Load draws how many cards are held over a day past and the hours ahead: solid what
// jobs used, pale what those that run go on to use, hatched those that wait.
export function Load({ outlook, pool }: { outlook: Outlook; pool: string }) {
  const { t } = useTranslation()
  const [width, ref] = useWidth(240)
  const load = outlook.pools?.find((one) => one.pool === pool) ?? outlook.all
  const layers = useMemo(() => layersOf(load), [load])
  const times = useMemo(() => (outlook.times ?? []).map(millis), [outlook])
  const most = Math.max(0, ...(load.total ?? []))
  const now = outlook.now
  if (!most || times.length < 2) return <p className="quiet" ref={ref}>{t('home.load_none')}</p>
  const from = times[0]!
  const to = times.at(-1)!
  const x = (time: number) => left + ((time - from) / (to - from)) * (width - left - right)
  const y = (count: number) => above + (1 - count / most) * (height - above - below)
  const draw = ([low, high]: readonly [number[], number[]], first: number, last: number) => band(times.slice(first, last).map(x), low.slice(first, last).map(y), high.slice(first, last).map(y))
  const has = (counts: number[] | null) => (counts ?? []).some((n) => n > 0)
  const end = times.length
  const at = x(times[now]!)
  const marks = [...new Set([0, Math.round(most / 2), most])]
  const ahead = Math.max(...times.map((_, i) => (i < now ? 0 : (load.used?.[i] ?? 0) + (load.foreseen?.[i] ?? 0))))
  return (
    <figure className="load" ref={ref}>
      <svg width={width} height={height} role="img" aria-label={t('home.load_about', { now: load.used?.[now] ?? 0, total: load.total?.[now] ?? 0, most: ahead })}>
        <defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="2.5" height="6" className="hatch-line" /></pattern></defs>
        {marks.map((count) => <g key={count}><line x1={left} x2={width - right} y1={y(count)} y2={y(count)} className="grid-line" /><text x={left - 6} y={y(count) + 4} textAnchor="end">{count}</text></g>)}
        {has(load.away) && <path d={draw(layers.away, 0, end)} className="load-away" />}
        <path d={draw(layers.used, 0, now + 1)} className="load-used" />
        <path d={draw(layers.used, now, end)} className="load-on" />
        {has(load.held) && <path d={draw(layers.held, 0, end)} className="load-held" />}
        <path d={draw(layers.foreseen, now, end)} fill="url(#hatch)" />
        {hours(from, to, width < 560 ? 12 : 6).map((time) => <text key={time} x={x(time)} y={height - 5} textAnchor={x(time) > width - 30 ? 'end' : x(time) < left + 16 ? 'start' : 'middle'}>{clock(new Date(time).toISOString(), time)}</text>)}
        <line x1={at} x2={at} y1={above - 4} y2={height - below} className="now-line" />
        <text x={at + 4} y={above - 6} className="now-text">{t('home.load_now')}</text>
      </svg>
      <figcaption className="quiet">{t(load.counts_nodes ? 'home.load_nodes' : 'home.load_cards')}{has(load.held) && ' ' + t('home.load_held')}{has(load.away) && ' ' + t('home.load_away')}</figcaption>
    </figure>
  )
}
