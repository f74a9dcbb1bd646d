import { useMemo } from 'react'
import { useTranslation } from 'react-i18next'
import { useNavigate } from 'react-router'
import { number, size } from '../format'
import { useGuest } from '../guest'
import { reasonText } from '../i18n'
import type { NodeSummary } from '../types'
import { Grid, sorted, useHeight, type Column } from './grid'
import { WordTag } from './states'

export const nodeTone = (node: Pick<NodeSummary, 'status' | 'eligibility'>) => (node.status === 'lost' ? 'bad' : node.status !== 'ready' ? 'busy' : node.eligibility !== 'eligible' ? 'busy' : 'good') as 'good' | 'busy' | 'bad'

export function NodeWord({ node }: { node: Pick<NodeSummary, 'status' | 'eligibility' | 'status_reason' | 'faults'> }) {
  const { t } = useTranslation()
  const unfit = node.status === 'ready' ? (node.faults ?? []).find((f) => f.unfit) : undefined
  if (unfit) return <WordTag tone="bad" title={reasonText(unfit.reason)}>{t('node.unfit', { fault: unfit.name })}{node.eligibility !== 'eligible' && ' · ' + t('eligibility.' + node.eligibility)}</WordTag>
  return (
    <WordTag tone={nodeTone(node)} title={reasonText(node.status_reason)}>
      {t('node_status.' + node.status)}{node.eligibility !== 'eligible' && ' · ' + t('eligibility.' + node.eligibility)}
    </WordTag>
  )
}

export function NodeTable({ nodes, order, setOrder }: { nodes: NodeSummary[]; order: string; setOrder: (order: string) => void }) {
  const { t } = useTranslation()
  const go = useNavigate()
  const guest = useGuest()
  const columns = useMemo<Column<NodeSummary>[]>(() => [
    { key: 'name', title: t('job.node'), width: 180, compare: (a, b) => a.name.localeCompare(b.name), cell: (n) => (guest ? n.name : <a href={'/nodes/' + n.id}>{n.name}</a>) },
    { key: 'status', title: t('job.status'), width: 160, cell: (n) => <NodeWord node={n} /> },
    { key: 'pool', title: t('jobs.pool'), width: 110, compare: (a, b) => (a.pool ?? '').localeCompare(b.pool ?? ''), cell: (n) => n.pool },
    { key: 'cards', title: t('cluster.cards'), width: 220, grows: true, cell: cardsText },
    { key: 'cpu', title: t('cluster.cpu'), width: 120, compare: (a, b) => a.used.cpu - b.used.cpu, cell: (n) => `${number(n.used.cpu)} / ${number(n.capacity.cpu)}` },
    { key: 'memory', title: t('cluster.memory'), width: 170, compare: (a, b) => a.used.memory - b.used.memory, cell: (n) => `${size(n.used.memory)} / ${size(n.capacity.memory)}` },
    { key: 'allocs', title: t('cluster.allocs'), width: 90, compare: (a, b) => a.used.allocs - b.used.allocs, cell: (n) => n.used.allocs },
    { key: 'version', title: t('cluster.version'), width: 120, cell: (n) => n.version },
  ], [t, guest])
  const rows = useMemo(() => sorted(nodes, columns, order), [nodes, columns, order])
  return <Grid label={t('cluster.list')} rows={rows} columns={columns} idOf={(n) => n.id} height={useHeight(330)} order={order} setOrder={setOrder} empty={<p>{t('cluster.none')}</p>} go={(path) => void go(path)} />
}

function cardsText(node: NodeSummary): string {
  const models = new Map<string, [number, number]>()
  for (const device of node.devices ?? []) {
    const at = models.get(device.model) ?? [0, 0]
    models.set(device.model, [at[0] + (node.used.devices?.[device.id] ? 1 : 0), at[1] + 1])
  }
  return [...models].map(([model, [held, all]]) => `${model} ${held}/${all}`).join(' · ') || '–'
}
