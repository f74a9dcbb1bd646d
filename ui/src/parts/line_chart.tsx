import { useEffect, useRef } from 'react'
import { useTranslation } from 'react-i18next'
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { number } from '../format'
import { useLook, useWidth } from '../look'
import { nearest, onPoint, pointAt, pointed } from './cursor'

export interface Line {
  name: string
  values: (number | null)[]
}

const colours = ['#2f7de1', '#2ea44f', '#c9840b', '#9a6fd0', '#1c9db3', '#d64541', '#c2478f', '#6b8e23']
const shownInTable = 20
const legendMost = 8

// short writes a value with the digits that tell it from its neighbours: a
// learning rate of 0.0001 is not 0.
const short = (v: number) => (Math.abs(v) >= 1 ? number(v) : String(Number(v.toPrecision(3))))

// rangeOf is what an axis of values goes over: from zero, unless all values lie far
// from it; then the axis is broken, which is said.
export function rangeOf(least: number | null, most: number | null): [number, number] {
  if (least === null || most === null || (least === 0 && most === 0)) return [0, 1]
  if (least >= 0 && least < most * 0.6) return [0, most * 1.05 || 1]
  if (most <= 0 && most > least * 0.6) return [least * 1.05 || -1, 0]
  const room = (most - least || Math.abs(most) || 1) * 0.08
  const low = least - room
  return [least >= 0 && low < 0 ? 0 : low, most + room]
}

const breaks = (range: [number, number]) => range[0] > 0 || range[1] < 0

const clockText = (seconds: number, exact: boolean) => new Date(seconds * 1000).toTimeString().slice(0, exact ? 8 : 5)

// LineChart draws lines over x, which is seconds of a clock with time, else a
// number such as the step; times are then the seconds of each. The moment that the
// page points at is shown, and pointing here moves it. text writes a value, with
// its unit unless told. The last values stand below as a table for those who do not
// see the drawing.
export default function LineChart({ label, x, lines, time = false, unit = '', log = false, times, text, height = 240, dashes, xLabel }: { label: string; x: number[]; lines: Line[]; time?: boolean; unit?: string; log?: boolean; times?: (number | null)[]; text?: (value: number) => string; height?: number; dashes?: (number[] | undefined)[]; xLabel?: string }) {
  const { t } = useTranslation()
  const { dark } = useLook()
  const [width, frame] = useWidth(200)
  const place = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot>(undefined)
  const clock = useRef<(number | null)[]>([])
  clock.current = time ? x : (times ?? [])
  const mine = useRef(false)
  const shape = lines.map((line) => line.name).join('|')
  const say = text ?? ((v: number) => short(v) + unit)
  const all = lines.flatMap((line) => line.values).filter((v): v is number => v !== null && Number.isFinite(v))
  const range = rangeOf(all.length ? all.reduce((a, b) => Math.min(a, b)) : null, all.length ? all.reduce((a, b) => Math.max(a, b)) : null)
  const broken = !log && !text && all.length > 0 && breaks(range)
  useEffect(() => {
    const ink = dark ? '#d7dbe0' : '#23272c'
    const grid = { stroke: dark ? '#2a2f36' : '#e3e6ea', width: 1 }
    // Labels of values need as much room as the longest of them, in the letters that
    // they are drawn with: the drawing may have others set.
    const room = (u: uPlot, values: string[] | null) => {
      u.ctx.save()
      u.ctx.font = `${12 * devicePixelRatio}px system-ui`
      const most = (values ?? []).reduce((most, value) => Math.max(most, u.ctx.measureText(value).width / devicePixelRatio), 24)
      u.ctx.restore()
      return most + 18
    }
    plot.current = new uPlot(
      {
        width,
        height,
        scales: { x: { time }, y: log ? { distr: 3 } : { range: (_, least, most) => (text ? [least, most === least ? most + 1 : most] : rangeOf(least, most)) } },
        cursor: { points: { size: 6 } },
        legend: { show: lines.length <= legendMost },
        hooks: {
          setCursor: [(u) => {
            const seconds = u.cursor.idx === null || u.cursor.idx === undefined ? undefined : clock.current[u.cursor.idx]
            if (!u.cursor.event || seconds === undefined || seconds === null) return
            mine.current = true
            pointAt(seconds)
            mine.current = false
          }],
        },
        axes: [
          { stroke: ink, grid, ticks: grid, label: xLabel ?? (time ? undefined : t('curves.step')), labelSize: 16, labelFont: '12px system-ui', font: '12px system-ui', size: 30, space: 64, values: (_: uPlot, ticks: number[]) => ticks.map((v) => (time ? clockText(v, ticks.some((tick) => tick % 60 !== 0)) : Number.isInteger(v) ? v.toLocaleString('en') : '')) },
          { stroke: ink, grid, ticks: grid, font: '12px system-ui', size: (u, values) => Math.ceil(room(u, values)), space: 34, values: (_, ticks) => ticks.map((v) => (v === null ? '' : say(v))) },
        ],
        series: [{ value: (_: uPlot, at: number | null) => (at === null ? '–' : time ? clockText(at, true) : short(at)), label: time ? t('curves.time') : t('curves.step') }, ...lines.map((line, i) => ({ label: line.name, stroke: colours[i % colours.length]!, width: 1.5, dash: dashes?.[i], spanGaps: true, value: (_: uPlot, v: number | null) => (v === null ? '–' : say(v)) }))],
      },
      [x, ...lines.map((line) => line.values)],
      place.current!,
    )
    const follow = () => {
      const u = plot.current
      const at = pointed()
      if (!u || mine.current) return
      const here = at === undefined ? -1 : nearest(clock.current, at)
      u.setCursor(here < 0 ? { left: -10, top: -10 } : { left: u.valToPos(u.data[0][here]!, 'x'), top: u.bbox.height / devicePixelRatio / 2 }, false)
    }
    follow()
    const unfollow = onPoint(follow)
    return () => {
      unfollow()
      plot.current?.destroy()
    }
  }, [shape, dark, time, unit, log, height]) // eslint-disable-line react-hooks/exhaustive-deps
  useEffect(() => plot.current?.setSize({ width, height }), [width, height])
  useEffect(() => plot.current?.setData([x, ...lines.map((line) => line.values)]), [x, lines])
  const last = (values: (number | null)[]) => values.findLast((v) => v !== null) ?? null
  return (
    <div ref={frame}>
      <div ref={place} style={{ minHeight: height }} role="img" aria-label={t('curves.about', { name: label, count: lines.length, points: x.length })} />
      {broken && <p className="quiet broken">{t('curves.broken', { value: say(range[0] > 0 ? range[0] : range[1]) })}</p>}
      <details>
        <summary>{t('forecast.table')}</summary>
        <table className="plain">
          <thead><tr><th scope="col">{label}</th><th scope="col">{t('curves.last')}</th><th scope="col">{t('curves.least')}</th><th scope="col">{t('curves.most')}</th></tr></thead>
          <tbody>
            {lines.slice(0, shownInTable).map((line) => {
              const known = line.values.filter((v): v is number => v !== null)
              const told = (v: number | null) => (v === null || !Number.isFinite(v) ? '–' : say(v))
              return <tr key={line.name}><th scope="row">{line.name}</th><td>{told(last(line.values))}</td><td>{told(Math.min(...known))}</td><td>{told(Math.max(...known))}</td></tr>
            })}
          </tbody>
        </table>
      </details>
    </div>
  )
}
