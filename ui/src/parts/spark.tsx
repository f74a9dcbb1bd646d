// Spark is a trend in a small line, from zero where values are shares. What it shows
// stands beside it as a number: those who do not see it miss nothing.
const width = 120
const height = 24

export function sparkOf(values: (number | null)[], least?: number, most?: number): string {
  const known = values.filter((v): v is number => v !== null && Number.isFinite(v))
  if (known.length < 2) return ''
  const low = least ?? Math.min(...known)
  const high = most ?? Math.max(...known)
  const points = values.flatMap((v, i) => (v === null || !Number.isFinite(v) ? [] : [`${((i / (values.length - 1)) * width).toFixed(1)},${(height - 2 - ((v - low) / (high - low || 1)) * (height - 4)).toFixed(1)}`]))
  return 'M' + points.join('L')
}

export function Spark({ values, least, most, tone }: { values: (number | null)[]; least?: number; most?: number; tone?: 'ok' }) {
  const path = sparkOf(values, least, most)
  if (!path) return null
  return <svg className={tone ? 'spark ' + tone : 'spark'} width={width} height={height} viewBox={`0 0 ${width} ${height}`} aria-hidden="true"><path d={path} /></svg>
}
