import { useId } from 'react'
import { useTranslation } from 'react-i18next'
import { useLook, useWidth } from '../look'
import { figureText } from './results'

// Parallel coordinates: an axis for each setting that differs, the result last, and a
// line for each job across them.

export interface Axis {
  name: string
  values: (string | undefined)[] // of each line
}

interface Scale {
  at: (value: string) => number // 0 at the bottom to 1
  ticks: { at: number; label: string }[]
}

const wordsMax = 12 // values of an axis that is no number

// scaleOf lays the values of an axis out: numbers by size, or by their logarithm where
// they span more than two decades, words in their order; nothing where there are too
// many words to tell apart, or one value only.
export function scaleOf(values: (string | undefined)[]): Scale | undefined {
  const known = [...new Set(values.filter((value): value is string => value !== undefined && value !== ''))]
  if (known.length < 2) return undefined
  const numbers = known.map(Number)
  if (numbers.every(Number.isFinite)) {
    const least = Math.min(...numbers)
    const most = Math.max(...numbers)
    const log = least > 0 && most / least > 100
    const on = (n: number) => (log ? Math.log(n / least) / Math.log(most / least) : (n - least) / (most - least))
    const middle = log ? Math.sqrt(least * most) : (least + most) / 2
    return { at: (value) => on(Number(value)), ticks: [least, middle, most].map((n) => ({ at: on(n), label: figureText(n) })) }
  }
  if (known.length > wordsMax) return undefined
  const words = known.sort()
  const place = (value: string) => words.indexOf(value) / (words.length - 1)
  return { at: place, ticks: words.map((value) => ({ at: place(value), label: value.length > 18 ? value.slice(0, 17) + '…' : value })) }
}

const height = 260
const above = 34
const below = 16
const beside = 60
const linesMax = 200

export function Parallel({ axes, names }: { axes: Axis[]; names: string[] }) {
  const { t } = useTranslation()
  const { dark } = useLook()
  const [width, ref] = useWidth(320)
  const id = useId()
  const drawn = axes.flatMap((axis) => {
    const scale = scaleOf(axis.values)
    return scale ? [{ ...axis, scale }] : []
  })
  const result = drawn.at(-1)
  const wide = Math.max(width, beside * 2 + (drawn.length - 1) * 110)
  const x = (i: number) => beside + (drawn.length < 2 ? 0 : (i / (drawn.length - 1)) * (wide - beside * 2))
  const y = (at: number) => above + (1 - at) * (height - above - below)
  const colour = (line: number) => {
    const value = result?.values[line]
    if (value === undefined || value === '') return 'var(--hatch)'
    const at = result!.scale.at(value)
    return `hsl(${Math.round(250 - at * 210)} ${dark ? '75% 68%' : '70% 42%'})`
  }
  if (drawn.length < 2) return <p className="quiet" ref={ref}>{t('compare.no_curves')}</p>
  return (
    <div ref={ref} style={{ overflowX: 'auto' }} tabIndex={0} role="group" aria-labelledby={id}>
      <p className="quiet" id={id}>{t('compare.parallel_help')} {t('compare.lines', { count: Math.min(linesMax, names.length) })}</p>
      <svg className="axes" width={wide} height={height} role="img" aria-label={drawn.map((axis) => axis.name).join(', ')}>
        {names.slice(0, linesMax).map((name, line) => {
          const points = drawn.flatMap((axis, i) => {
            const value = axis.values[line]
            return value === undefined || value === '' ? [] : [`${x(i).toFixed(1)},${y(axis.scale.at(value)).toFixed(1)}`]
          })
          return (
            <path key={line} d={'M' + points.join('L')} stroke={colour(line)}><title>{`${name}: ${drawn.map((axis) => `${axis.name} ${axis.values[line] ?? '–'}`).join(', ')}`}</title></path>
          )
        })}
        {drawn.map((axis, i) => (
          <g key={axis.name}>
            <line x1={x(i)} x2={x(i)} y1={above} y2={height - below} />
            <text x={x(i)} y={14} textAnchor="middle">{axis.name.length > 22 ? axis.name.slice(0, 21) + '…' : axis.name}<title>{axis.name}</title></text>
            {axis.scale.ticks.map((tick) => <text key={tick.at} x={x(i) + 5} y={y(tick.at) + (tick.at === 1 ? -3 : 4)}>{tick.label}</text>)}
          </g>
        ))}
      </svg>
    </div>
  )
}
