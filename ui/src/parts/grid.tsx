import { memo, useCallback, useEffect, useMemo, useRef, useState, type CSSProperties, type ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { useWidth } from '../look'

// A table of any number of rows, all of one height, of which only those are
// drawn that are seen, and some above and below. What a cell holds is light:
// text, and links that the table itself follows. Every cell has its size in
// pixels from the column, which a browser lays out faster than tracks that
// share what is left.

export interface Column<R> {
  key: string
  title: string
  width: number // pixels, at least
  grows?: boolean // takes what is left of the width
  compare?: (a: R, b: R) => number
  known?: (row: R) => boolean // whether a row has a value; those that have none stand last in either order
  cell: (row: R) => ReactNode
}

const plainHeight = 33 // of a row that has one line
export const twoLines = 52 // of a row that has two
const headHeight = 33
const step = 8 // rows that the window moves by at a time
const spare = 16 // rows above and below what is seen
const widest = 1800 // pixels of a page at most
const around = 34 // pixels beside the rows in it

// windowOf says which rows to draw: from first up to, without, end.
export function windowOf(top: number, height: number, count: number, rowHeight = plainHeight): { first: number; end: number } {
  const seen = Math.floor(Math.max(0, top) / rowHeight / step) * step
  return { first: Math.max(0, Math.min(seen, count) - spare), end: Math.min(count, seen + step + Math.ceil(height / rowHeight) + spare) }
}

// widthsOf gives every column its width in pixels: columns are as wide as they
// ask for, and those that grow share what is left.
export function widthsOf(columns: { width: number; grows?: boolean }[], width: number, lead = 0): CSSProperties[] {
  const growing = columns.filter((column) => column.grows).length
  const left = Math.max(0, width - lead - columns.reduce((sum, column) => sum + column.width, 0))
  const more = Math.floor(left / (growing || columns.length || 1))
  return columns.map((column) => ({ width: column.width + (column.grows || !growing ? more : 0) }))
}

// sorted orders rows as a key of the address says: the name of a column, with
// a minus before it for the other way round.
export function sorted<R>(rows: R[], columns: Column<R>[], order: string): R[] {
  const column = columns.find((one) => one.key === order.replace(/^-/, ''))
  const compare = column?.compare
  if (!compare) return rows
  const way = order.startsWith('-') ? (a: R, b: R) => compare(b, a) : compare
  const known = column.known
  return known ? [...rows.filter(known).sort(way), ...rows.filter((row) => !known(row))] : [...rows].sort(way)
}

// nextOrder is what a click on a column's head makes of the order.
export const nextOrder = (order: string, key: string) => (order === key ? '-' + key : order === '-' + key ? '' : key)

export interface GridProps<R> {
  label: string
  rows: R[]
  columns: Column<R>[]
  idOf: (row: R) => string
  height: number
  order: string
  setOrder: (order: string) => void
  empty: ReactNode
  go: (path: string) => void
  at?: number // the row that the keyboard stands on
  lead?: { head: ReactNode; width: number; cell: (row: R) => ReactNode } // before the columns, such as a box to tick
  rowHeight?: number // pixels
  headingOf?: (row: R) => ReactNode // of a row that heads those behind it, and has no cells
}

export function Grid<R>({ label, rows, columns, idOf, height, order, setOrder, empty, go, at = -1, lead, rowHeight = plainHeight, headingOf }: GridProps<R>) {
  const { t } = useTranslation()
  const box = useRef<HTMLDivElement>(null)
  const [width, follows] = useWidth(240, Math.min(widest, innerWidth) - around)
  const frame = useCallback((element: HTMLDivElement | null) => {
    box.current = element
    return follows(element)
  }, [follows])
  const [top, setTop] = useState(0)
  const { first, end } = windowOf(top, height, rows.length, rowHeight)
  const least = columns.reduce((sum, column) => sum + column.width, lead?.width ?? 0)
  const leadWidth = lead?.width
  const widths = useMemo(() => widthsOf(columns, width, leadWidth), [columns, width, leadWidth])
  const leadStyle = useMemo(() => ({ width: leadWidth }), [leadWidth])
  useEffect(() => {
    const here = box.current
    if (!here || at < 0) return
    const y = at * rowHeight
    if (y < here.scrollTop) here.scrollTop = y
    else if (y + rowHeight > here.scrollTop + here.clientHeight - headHeight) here.scrollTop = y + rowHeight + headHeight - here.clientHeight
  }, [at, rowHeight])
  const scroll = () => {
    const now = Math.floor(box.current!.scrollTop / rowHeight / step) * step * rowHeight
    if (now !== top) setTop(now)
  }
  const follow = (event: React.MouseEvent) => {
    const link = (event.target as Element).closest('a')
    if (!link || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return
    event.preventDefault()
    go(link.getAttribute('href')!)
  }
  return (
    <div className={rowHeight > plainHeight ? 'grid tall' : 'grid'} role="table" aria-label={label} aria-rowcount={rows.length + 1} tabIndex={0} ref={frame} onScroll={scroll} onClick={follow} style={{ height }}>
      <div className="grid-inner" role="rowgroup" style={{ minWidth: least, height: headHeight }}>
        <div className="grid-row head" role="row" aria-rowindex={1}>
          {lead && <span role="columnheader" style={leadStyle}>{lead.head}</span>}
          {columns.map((column, i) => {
            const way = order === column.key ? 'ascending' : order === '-' + column.key ? 'descending' : 'none'
            return (
              <span key={column.key} role="columnheader" style={widths[i]} aria-sort={column.compare ? way : undefined}>
                {column.compare ? <button type="button" title={t('grid.sort')} onClick={() => setOrder(nextOrder(order, column.key))}>{column.title} <i aria-hidden="true">{way === 'ascending' ? '▲' : way === 'descending' ? '▼' : '↕'}</i></button> : column.title}
              </span>
            )
          })}
        </div>
      </div>
      <div className="grid-inner rows" role="rowgroup" style={{ minWidth: least, height: rows.length * rowHeight }}>
        {rows.slice(first, end).map((row, i) => {
          const heading = headingOf?.(row)
          return heading ? (
            <div key={idOf(row)} className="grid-heading" role="row" aria-rowindex={first + i + 2} style={{ top: (first + i) * rowHeight, height: rowHeight }}><span role="rowheader">{heading}</span></div>
          ) : (
            <Row key={idOf(row)} row={row} index={first + i} columns={columns} widths={widths} leadStyle={leadStyle} here={first + i === at} lead={lead} rowHeight={rowHeight} />
          )
        })}
      </div>
      {rows.length === 0 && <div className="grid-empty">{empty}</div>}
    </div>
  )
}

interface RowProps<R> {
  row: R
  index: number
  columns: Column<R>[]
  widths: CSSProperties[]
  leadStyle: CSSProperties
  here: boolean
  lead?: GridProps<R>['lead']
  rowHeight: number
}

function plainRow<R>({ row, index, columns, widths, leadStyle, here, lead, rowHeight }: RowProps<R>) {
  return (
    <div className={here ? 'grid-row here' : 'grid-row'} role="row" aria-rowindex={index + 2} style={{ top: index * rowHeight, height: rowHeight }}>
      {lead && <span role="cell" style={leadStyle}>{lead.cell(row)}</span>}
      {columns.map((column, i) => <span key={column.key} role="cell" style={widths[i]}>{column.cell(row)}</span>)}
    </div>
  )
}
const Row = memo(plainRow) as typeof plainRow

// useHeight is what is left of the window below so many pixels.
export function useHeight(above: number): number {
  const [height, setHeight] = useState(Math.max(240, innerHeight - above))
  useEffect(() => {
    const change = () => setHeight(Math.max(240, innerHeight - above))
    addEventListener('resize', change)
    return () => removeEventListener('resize', change)
  }, [above])
  return height
}
