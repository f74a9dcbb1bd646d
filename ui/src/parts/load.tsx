import { useMemo } from 'react'
import { useTranslation } from 'react-i18next'
import { clock } from '../format'
import { useWidth } from '../look'
import type { Timeline } from '../types'
import { loadOf } from './mine'

const height = 180
const left = 36
const below = 22
const above = 8

// fullHour is the first full hour behind a time, on the reader's clock.
function fullHour(time: number): number {
  const at = new Date(time)
  at.setMinutes(60, 0, 0)
  return at.getTime()
}

// Load draws how many cards are held over the next hours: solid by jobs that run
// until their likely ends, hatched by those whose start is foreseen.
export function Load({ timeline }: { timeline: Timeline }) {
  const { t } = useTranslation()
  const [width, ref] = useWidth(240)
  const { steps, total, cards } = useMemo(() => loadOf(timeline), [timeline])
  if (!total || steps.length < 2) return <p className="quiet" ref={ref}>{t('home.load_none')}</p>
  const from = steps[0]!.at
  const to = steps.at(-1)!.at
  const x = (time: number) => left + ((time - from) / (to - from || 1)) * (width - left - 12)
  const y = (count: number) => above + (1 - count / total) * (height - above - below)
  const area = (top: (i: number) => number, floor: (i: number) => number) => {
    const up = steps.flatMap((step, i) => (i === 0 ? [[x(step.at), y(top(0))]] : [[x(step.at), y(top(i - 1))], [x(step.at), y(top(i))]]))
    const down = steps.flatMap((step, i) => (i === 0 ? [[x(step.at), y(floor(0))]] : [[x(step.at), y(floor(i - 1))], [x(step.at), y(floor(i))]])).reverse()
    return 'M' + [...up, ...down].map(([px, py]) => `${px!.toFixed(1)},${py!.toFixed(1)}`).join('L') + 'Z'
  }
  const half = Math.round(total / 2)
  const marks = [...new Set([0, half, total])]
  const hour = 3_600_000
  const every = Math.max(1, Math.round((to - from) / hour / 4)) * hour
  const ticks: number[] = []
  for (let at = fullHour(from); at <= to; at += every) ticks.push(at)
  const most = steps.reduce((max, step) => Math.max(max, step.running + step.foreseen), 0)
  return (
    <figure className="load" ref={ref}>
      <svg width={width} height={height} role="img" aria-label={t('home.load_about', { now: steps[0]!.running, total, most })}>
        <defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="2.5" height="6" className="hatch-line" /></pattern></defs>
        {marks.map((count) => <g key={count}><line x1={left} x2={width - 12} y1={y(count)} y2={y(count)} className="grid-line" /><text x={left - 6} y={y(count) + 4} textAnchor="end">{count}</text></g>)}
        <path d={area((i) => steps[i]!.running, () => 0)} className="load-running" />
        <path d={area((i) => steps[i]!.running + steps[i]!.foreseen, (i) => steps[i]!.running)} fill="url(#hatch)" />
        {ticks.map((at) => <text key={at} x={x(at)} y={height - 5} textAnchor={x(at) > width - 30 ? 'end' : 'middle'}>{clock(new Date(at).toISOString(), from).slice(-5)}</text>)}
        <line x1={left} x2={left} y1={above} y2={height - below} className="now-line" />
      </svg>
      <figcaption className="quiet">{t(cards ? 'home.load_cards' : 'home.load_nodes')}</figcaption>
    </figure>
  )
}
