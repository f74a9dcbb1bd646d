import { useEffect, useRef } from 'react'
import { useTranslation } from 'react-i18next'
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { number } from '../format'
import { useLook, useWidth } from '../look'

export interface Line {
  name: string
  values: (number | null)[]
}

const colours = ['#2f7de1', '#2ea44f', '#c9840b', '#9a6fd0', '#1c9db3', '#d64541', '#c2478f', '#6b8e23']
const shownInTable = 20

// short writes a value with the digits that tell it from its neighbours: a
// learning rate of 0.0001 is not 0.
const short = (v: number) => (Math.abs(v) >= 1 ? number(v) : String(Number(v.toPrecision(3))))

// LineChart draws lines over x, which is seconds of a clock with time, else a
// number such as the step. The last values stand below as a table for those
// who do not see the drawing.
export default function LineChart({ label, x, lines, time = false, unit = '', log = false, sync }: { label: string; x: number[]; lines: Line[]; time?: boolean; unit?: string; log?: boolean; sync?: string }) {
  const { t } = useTranslation()
  const { dark } = useLook()
  const [width, frame] = useWidth(240)
  const place = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot>(undefined)
  const shape = lines.map((line) => line.name).join('|')
  useEffect(() => {
    const ink = dark ? '#d7dbe0' : '#23272c'
    const grid = { stroke: dark ? '#2a2f36' : '#e3e6ea', width: 1 }
    plot.current = new uPlot(
      {
        width,
        height: 240,
        scales: { x: { time }, y: log ? { distr: 3 } : {} },
        cursor: sync ? { sync: { key: sync } } : {},
        legend: { show: lines.length <= 8 },
        axes: [
          { stroke: ink, grid, ticks: grid, ...(time ? { values: (_: uPlot, ticks: number[]) => ticks.map((s) => new Date(s * 1000).toTimeString().slice(0, ticks.some((tick) => tick % 60 !== 0) ? 8 : 5)) } : {}) },
          { stroke: ink, grid, ticks: grid, size: 60, values: (_, ticks) => ticks.map((v) => short(v) + unit) },
        ],
        series: [{ value: (_: uPlot, at: number | null) => (at === null ? '–' : time ? new Date(at * 1000).toTimeString().slice(0, 8) : short(at)), label: time ? t('curves.time') : t('curves.step') }, ...lines.map((line, i) => ({ label: line.name, stroke: colours[i % colours.length]!, width: 1.5, spanGaps: true, value: (_: uPlot, v: number | null) => (v === null ? '–' : short(v) + unit) }))],
      },
      [x, ...lines.map((line) => line.values)],
      place.current!,
    )
    return () => plot.current?.destroy()
  }, [shape, dark, time, unit, log, sync]) // eslint-disable-line react-hooks/exhaustive-deps
  useEffect(() => plot.current?.setSize({ width, height: 240 }), [width])
  useEffect(() => plot.current?.setData([x, ...lines.map((line) => line.values)]), [x, lines])
  const last = (values: (number | null)[]) => values.findLast((v) => v !== null) ?? null
  return (
    <div ref={frame}>
      <div ref={place} role="img" aria-label={t('curves.about', { name: label, count: lines.length, points: x.length })} />
      <details>
        <summary>{t('forecast.table')}</summary>
        <table className="plain">
          <thead><tr><th scope="col">{label}</th><th scope="col">{t('curves.last')}</th><th scope="col">{t('curves.least')}</th><th scope="col">{t('curves.most')}</th></tr></thead>
          <tbody>
            {lines.slice(0, shownInTable).map((line) => {
              const known = line.values.filter((v): v is number => v !== null)
              const text = (v: number | null) => (v === null || !Number.isFinite(v) ? '–' : short(v) + unit)
              return <tr key={line.name}><th scope="row">{line.name}</th><td>{text(last(line.values))}</td><td>{text(Math.min(...known))}</td><td>{text(Math.max(...known))}</td></tr>
            })}
          </tbody>
        </table>
      </details>
    </div>
  )
}
