import { Fragment, useCallback, useMemo, useState, type HTMLAttributes, type ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { nextOrder } from '../grid'
import { Loading } from '../states'
import { Button } from '../controls'

// Scroll holds what may be wider than the screen. Where a part of it is hidden,
// the box takes the focus, so that people scroll it with their keys.
export function Scroll({ label, className = '', style, frame: follow, children }: { label: string; className?: string; style?: React.CSSProperties; frame?: (box: HTMLElement | null) => void | (() => void); children: ReactNode }) {
  const [hides, setHides] = useState(false)
  const frame = useCallback((box: HTMLDivElement | null) => {
    if (!box) return
    const look = () => setHides(box.scrollWidth > box.clientWidth + 1 || box.scrollHeight > box.clientHeight + 1)
    const watch = new ResizeObserver(look)
    watch.observe(box)
    for (const inner of box.children) watch.observe(inner)
    const unfollow = follow?.(box)
    return () => {
      watch.disconnect()
      unfollow?.()
    }
  }, [follow])
  return <div ref={frame} className={'scroll ' + className} style={style} {...(hides ? { role: 'group', tabIndex: 0, 'aria-label': label } : {})}>{children}</div>
}

export interface Column<R> {
  title: ReactNode
  cell: (row: R) => ReactNode
  width?: number // pixels
  right?: boolean // figures that are compared
  wide?: boolean // left out where the screen is narrow
  clip?: boolean // one line, cut off
  compare?: (a: R, b: R) => number
}

export interface TableProps<R> {
  label: string
  rows: readonly R[]
  columns: (Column<R> | false | undefined)[]
  idOf: (row: R) => string | number
  empty?: ReactNode
  loading?: boolean
  least?: number // pixels: below that the table scrolls
  page?: number // rows at a time
  unfold?: (row: R) => ReactNode // what a row opens to
  unfolds?: (row: R) => boolean // all rows do, unless told
  rowProps?: (row: R) => HTMLAttributes<HTMLTableRowElement>
}

// Table is rows of one kind. What is long comes in pages; the order is that of
// the rows until a column is chosen.
export function Table<R>({ label, rows, columns: given, idOf, empty, loading, least, page = Infinity, unfold, unfolds, rowProps }: TableProps<R>) {
  const { t } = useTranslation()
  const [order, setOrder] = useState('')
  const [at, setAt] = useState(0)
  const [opened, setOpened] = useState<ReadonlySet<string | number>>(new Set())
  const columns = given.filter((column) => !!column)
  const compare = order && columns[Math.abs(Number(order))]?.compare
  const inOrder = useMemo(() => (compare ? [...rows].sort(order.startsWith('-') ? (a, b) => compare(b, a) : compare) : rows), [rows, order, compare])
  const first = Math.min(at, Math.max(0, Math.ceil(rows.length / page) - 1)) * (page === Infinity ? 0 : page)
  const shown = page === Infinity ? inOrder : inOrder.slice(first, first + page)
  const looks = (column: Column<R>) => [column.right && 'right', column.wide && 'wide', column.clip && 'clip'].filter(Boolean).join(' ') || undefined
  const toggle = (id: string | number) => setOpened((old) => {
    const next = new Set(old)
    if (!next.delete(id)) next.add(id)
    return next
  })
  const across = columns.length + (unfold ? 1 : 0)
  return (
    <div className="table-frame">
      <Scroll label={label}>
        <table className="table" style={least ? { ['--least' as string]: least + 'px' } : undefined}>
          <caption className="hidden">{label}</caption>
          <thead>
            <tr>
              {unfold && <th scope="col" className="unfolds"><span className="hidden">{t('queue.open_row')}</span></th>}
              {columns.map((column, i) => {
                const key = String(i)
                const way = order === key ? 'ascending' : order === '-' + key ? 'descending' : 'none'
                return (
                  <th key={i} scope="col" className={looks(column)} style={{ width: column.width }} aria-sort={column.compare && way}>
                    {column.compare ? <button type="button" title={t('grid.sort')} onClick={() => { setOrder(nextOrder(order, key)); setAt(0) }}>{column.title} <i aria-hidden="true">{way === 'ascending' ? '▲' : way === 'descending' ? '▼' : '↕'}</i></button> : column.title}
                  </th>
                )
              })}
            </tr>
          </thead>
          <tbody>
            {shown.map((row) => {
              const id = idOf(row)
              const open = opened.has(id)
              return (
                <Fragment key={id}>
                  <tr {...rowProps?.(row)} className="row">
                    {unfold && <td className="unfolds">{unfolds && !unfolds(row) ? null : <button type="button" className="unfold" aria-expanded={open} aria-label={t('queue.open_row')} onClick={() => toggle(id)}><span aria-hidden="true">{open ? '▾' : '▸'}</span></button>}</td>}
                    {columns.map((column, i) => <td key={i} className={looks(column)}>{column.cell(row)}</td>)}
                  </tr>
                  {open && unfold && <tr className="opened"><td colSpan={across}>{unfold(row)}</td></tr>}
                </Fragment>
              )
            })}
            {shown.length === 0 && <tr className="empty"><td colSpan={across}>{loading ? <Loading /> : (empty ?? t('controls.nothing'))}</td></tr>}
          </tbody>
        </table>
      </Scroll>
      {rows.length > page && (
        <div className="bar pages" role="group" aria-label={t('controls.pages', { name: label })}>
          <Button small disabled={first === 0} aria-label={t('controls.before')} onClick={() => setAt(first / page - 1)}>‹</Button>
          <span className="quiet" role="status">{t('controls.rows', { from: first + 1, to: first + shown.length, all: rows.length })}</span>
          <Button small disabled={first + page >= rows.length} aria-label={t('controls.next')} onClick={() => setAt(first / page + 1)}>›</Button>
        </div>
      )}
    </div>
  )
}
