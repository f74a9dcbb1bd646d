import { useMemo } from 'react'
import { useTranslation } from 'react-i18next'
import { Link, useNavigate } from 'react-router'
import { clock } from '../format'
import type { PastSpan } from '../types'
import type { Tile } from './cells'
import { Button } from './controls'
import { Grid, sorted, useHeight, type Column } from './grid'
import { covers, numbers } from './past'

const daySpans = 60 // of a node beside the wall

interface Row {
  id: string
  tile: Tile
  span: PastSpan
}

// HolderTable lists what held the cards of some nodes at a moment of the past.
export function HolderTable({ tiles, order, setOrder }: { tiles: Tile[]; order: string; setOrder: (order: string) => void }) {
  const { t } = useTranslation()
  const go = useNavigate()
  const columns = useMemo<Column<Row>[]>(() => [
    { key: 'name', title: t('job.node'), width: 180, compare: (a, b) => a.tile.node.name.localeCompare(b.tile.node.name), cell: (r) => <a href={'/nodes/' + r.tile.node.id}>{r.tile.node.name}</a> },
    { key: 'cards', title: t('cluster.cards'), width: 120, cell: (r) => numbers(r.tile.then?.node, r.span) },
    { key: 'job', title: t('jobs.name'), width: 220, grows: true, compare: (a, b) => (a.span.job ?? '').localeCompare(b.span.job ?? ''), cell: (r) => <JobName span={r.span} plain /> },
    { key: 'project', title: t('jobs.project'), width: 130, compare: (a, b) => (a.span.project ?? '').localeCompare(b.span.project ?? ''), cell: (r) => r.span.project },
    { key: 'user', title: t('jobs.user'), width: 130, compare: (a, b) => (a.span.user ?? '').localeCompare(b.span.user ?? ''), cell: (r) => r.span.user },
    { key: 'from', title: t('cluster.held_from'), width: 150, compare: (a, b) => (a.span.from ?? '').localeCompare(b.span.from ?? ''), cell: (r) => clock(r.span.from) },
    { key: 'to', title: t('cluster.held_to'), width: 150, compare: (a, b) => (a.span.to ?? '9').localeCompare(b.span.to ?? '9'), cell: (r) => (r.span.to ? clock(r.span.to) : t('wall.still')) },
  ], [t])
  const rows = useMemo(() => sorted(tiles.flatMap((tile) => (tile.then?.spans ?? []).map((span, i) => ({ id: `${tile.node.id}/${i}`, tile, span }))), columns, order), [tiles, columns, order])
  return <Grid label={t('cluster.holders')} rows={rows} columns={columns} idOf={(r) => r.id} height={useHeight(330)} order={order} setOrder={setOrder} empty={<p>{t('cluster.past_none')}</p>} go={(path) => void go(path)} />
}

function JobName({ span, plain }: { span: PastSpan; plain?: boolean }) {
  const { t } = useTranslation()
  if (!span.job_id) return <span className="quiet">{t('queue.hidden')}</span>
  const name = span.job + (span.subjob ? ` #${span.subjob}` : '')
  return <>{plain ? <a href={'/jobs/' + span.job_id}>{name}</a> : <Link to={'/jobs/' + span.job_id}>{name}</Link>}{span.held && ` · ${t('cluster.held_debug')}`}</>
}

// NodeDay looks at the last day of one node beside the wall: who held its cards, with
// those of the moment marked.
export function NodeDay({ tile, at, close }: { tile: Tile; at: number; close: () => void }) {
  const { t } = useTranslation()
  const node = tile.then?.node
  const spans = [...(node?.spans ?? [])].reverse()
  const near = spans.findIndex((span) => covers(span, at))
  const first = Math.max(0, Math.min(near - daySpans / 2, spans.length - daySpans))
  return (
    <aside className="card closer" aria-label={tile.node.name}>
      <div className="bar"><h2><Link to={'/nodes/' + tile.node.id}>{tile.node.name}</Link></h2><span className="grow" /><Button tone="bare" small aria-label={t('cluster.close')} onClick={close}>✕</Button></div>
      <p className="quiet">{t('cluster.node_day')}</p>
      {spans.length === 0 ? <p>{t('cluster.past_none')}</p> : (
        <table className="small">
          <caption className="hidden">{t('cluster.holders')}</caption>
          <thead><tr><th scope="col">{t('node.card')}</th><th scope="col">{t('jobs.name')}</th><th scope="col">{t('cluster.held_from')}</th><th scope="col">{t('cluster.held_to')}</th></tr></thead>
          <tbody>{spans.slice(first, first + daySpans).map((span, i) => (
            <tr key={i} className={covers(span, at) ? 'then' : undefined} aria-current={covers(span, at) ? 'time' : undefined}><th scope="row">{numbers(node, span)}</th><td><JobName span={span} /></td><td>{clock(span.from)}</td><td>{span.to ? clock(span.to) : t('wall.still')}</td></tr>
          ))}</tbody>
        </table>
      )}
      {node?.complete_since && <p className="quiet">{t('cluster.past_cut', { count: 1, node: tile.node.name })}</p>}
    </aside>
  )
}
