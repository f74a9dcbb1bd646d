import { useQuery } from '@tanstack/react-query'
import { Input, Segmented, Select, Table } from 'antd'
import { useMemo } from 'react'
import { useTranslation } from 'react-i18next'
import { Link } from 'react-router'
import { useAddress } from '../address'
import { call, get, part } from '../api'
import { number, size } from '../format'
import { reasonText } from '../i18n'
import { Failed, useTitle, WordTag } from '../parts/states'
import { cellsOf, Wall } from '../parts/wall'
import type { Available, Node, NodeDevices } from '../types'

const nodesMax = 5000

async function allNodes(signal?: AbortSignal): Promise<Node[]> {
  const nodes: Node[] = []
  let after = ''
  do {
    const page = await get<{ nodes: Node[] | null; next?: string }>(`/v1/nodes?limit=1000${after && '&after=' + part(after)}`, signal)
    nodes.push(...(page.nodes ?? []))
    after = page.next ?? ''
  } while (after && nodes.length < nodesMax)
  return nodes
}

// The smallest job asks which job holds each card; whoever may submit nothing
// sees that a card is held, and not by whom.
const smallest = { job: { name: 'any', nodes: 1, resources: [{ cpu: 0.01, memory: 16 << 20 }], distributed: { mode: 'single' }, task: { driver: 'exec', command: 'true' } } }

export function Cluster() {
  const { t } = useTranslation()
  useTitle(t('menu.cluster'))
  const nodes = useQuery({ queryKey: ['nodes'], queryFn: ({ signal }) => allNodes(signal), refetchInterval: 30_000 })
  const cards = useQuery({
    queryKey: ['nodes', 'cards'],
    retry: false,
    queryFn: ({ signal }) => call<Available>('POST', '/v1/nodes/available', smallest, signal).catch(() => ({ nodes: [], specs: [], models: [] }) as Available),
  })
  const measured = useQuery({
    queryKey: ['nodes', 'figures'],
    retry: false,
    enabled: (nodes.data ?? []).some((n) => n.devices?.length),
    refetchInterval: 5000,
    queryFn: ({ signal }) => get<{ nodes: NodeDevices[] | null }>('/v1/devices?limit=1000', signal).then((d) => d.nodes ?? []),
  })
  const [params, put] = useAddress()
  const view = params.get('view') === 'list' ? 'list' : 'wall'
  const setView = (value: 'wall' | 'list') => put('view', value === 'wall' ? '' : value)
  const text = params.get('text') ?? ''
  const setText = (value: string) => put('text', value)
  const show = params.get('show') ?? ''
  const setShow = (value: string) => put('show', value)
  const models = useMemo(() => [...new Set((nodes.data ?? []).flatMap((n) => (n.devices ?? []).map((d) => d.model)))].sort(), [nodes.data])
  const shown = useMemo(
    () =>
      (nodes.data ?? []).filter((node) => {
        if (text && !`${node.name} ${node.pool ?? ''}`.toLowerCase().includes(text.toLowerCase())) return false
        const free = (node.devices ?? []).filter((d) => d.healthy && !node.used.devices?.[d.id]).length
        switch (show) {
          case '':
            return true
          case 'idle':
            return node.used.allocs === 0
          case 'fault':
            return node.status !== 'ready' || (node.devices ?? []).some((d) => !d.healthy)
          case 'free4':
            return free >= 4
        }
        return (node.devices ?? []).some((d) => d.model === show)
      }),
    [nodes.data, text, show],
  )
  const cells = useMemo(() => cellsOf(shown, cards.data?.nodes ?? [], measured.data), [shown, cards.data, measured.data])
  const total = useMemo(() => sum(nodes.data ?? []), [nodes.data])
  return (
    <div className="page">
      <div className="bar">
        <h1>{t('menu.cluster')}</h1>
        <span className="grow" />
        <Link to="/cluster?board">{t('cluster.board')}</Link>
        <Segmented value={view} aria-label={t('cluster.view')} onChange={(value) => setView(value as 'wall' | 'list')} options={[{ value: 'wall', label: t('cluster.wall') }, { value: 'list', label: t('cluster.list') }]} />
      </div>
      {nodes.error && <Failed error={nodes.error} retry={() => void nodes.refetch()} />}
      <section className="card" aria-label={t('cluster.figures')}>
        <dl className="figures">
          {([['nodes', `${total.ready} / ${total.nodes}`], ['cards', `${total.held} / ${total.cards}`], ['sick', String(total.sick)], ['cpu', `${number(total.cpuUsed)} / ${number(total.cpu)}`], ['memory', `${size(total.memoryUsed)} / ${size(total.memory)}`]] as const).map(([key, value]) => (
            <div key={key}><dt>{t('cluster.' + key)}</dt><dd>{value}</dd></div>
          ))}
        </dl>
      </section>
      <div className="bar" role="search" aria-label={t('jobs.filter')}>
        <Input allowClear style={{ width: 220 }} aria-label={t('cluster.search')} placeholder={t('cluster.search')} value={text} onChange={(e) => setText(e.target.value)} />
        <Select allowClear style={{ width: 200 }} aria-label={t('cluster.show')} placeholder={t('cluster.show')} value={show || undefined} onChange={(value?: string) => setShow(value ?? '')}
          options={[...['idle', 'fault', 'free4'].map((value) => ({ value, label: t('cluster.only_' + value) })), ...models.map((value) => ({ value, label: value }))]} />
        <span className="quiet" role="status">{t('cluster.count', { count: shown.length })}</span>
      </div>
      {view === 'wall' ? (
        <section className="card" aria-label={t('cluster.wall')}><Wall tiles={cells} /></section>
      ) : (
        <NodeTable nodes={shown} loading={nodes.isPending} />
      )}
    </div>
  )
}

function sum(nodes: Node[]) {
  const out = { nodes: nodes.length, ready: 0, cards: 0, held: 0, sick: 0, cpu: 0, cpuUsed: 0, memory: 0, memoryUsed: 0 }
  for (const node of nodes) {
    if (node.status === 'ready') out.ready++
    for (const device of node.devices ?? []) {
      out.cards++
      if (!device.healthy) out.sick++
      if (node.used.devices?.[device.id]) out.held++
    }
    out.cpu += node.capacity.cpu
    out.cpuUsed += node.used.cpu
    out.memory += node.capacity.memory
    out.memoryUsed += node.used.memory
  }
  return out
}

export const nodeTone = (node: Pick<Node, 'status' | 'eligibility'>) => (node.status === 'lost' ? 'bad' : node.status !== 'ready' ? 'busy' : node.eligibility !== 'eligible' ? 'busy' : 'good') as 'good' | 'busy' | 'bad'

export function NodeWord({ node }: { node: Pick<Node, 'status' | 'eligibility' | 'status_reason'> }) {
  const { t } = useTranslation()
  return (
    <WordTag tone={nodeTone(node)} title={reasonText(node.status_reason)}>
      {t('node_status.' + node.status)}{node.eligibility !== 'eligible' && ' · ' + t('eligibility.' + node.eligibility)}
    </WordTag>
  )
}

function NodeTable({ nodes, loading }: { nodes: Node[]; loading: boolean }) {
  const { t } = useTranslation()
  return (
    <Table<Node>
      size="small"
      virtual
      rowKey="id"
      aria-label={t('cluster.list')}
      loading={loading}
      dataSource={nodes}
      pagination={false}
      scroll={{ x: 900, y: Math.max(240, innerHeight - 330) }}
      locale={{ emptyText: <p>{t('cluster.none')}</p> }}
      columns={[
        { title: t('job.node'), width: 180, sorter: (a, b) => a.name.localeCompare(b.name), render: (_, n) => <Link to={'/nodes/' + n.id}>{n.name}</Link> },
        { title: t('job.status'), width: 160, render: (_, n) => <NodeWord node={n} /> },
        { title: t('jobs.pool'), width: 110, dataIndex: 'pool' },
        { title: t('cluster.cards'), width: 220, render: (_, n) => cardsText(n) },
        { title: t('cluster.cpu'), width: 120, sorter: (a, b) => a.used.cpu - b.used.cpu, render: (_, n) => `${number(n.used.cpu)} / ${number(n.capacity.cpu)}` },
        { title: t('cluster.memory'), width: 170, render: (_, n) => `${size(n.used.memory)} / ${size(n.capacity.memory)}` },
        { title: t('cluster.allocs'), width: 90, sorter: (a, b) => a.used.allocs - b.used.allocs, render: (_, n) => n.used.allocs },
        { title: t('cluster.version'), width: 120, ellipsis: true, dataIndex: 'version' },
      ]}
    />
  )
}

function cardsText(node: Node): string {
  const models = new Map<string, [number, number]>()
  for (const device of node.devices ?? []) {
    const at = models.get(device.model) ?? [0, 0]
    models.set(device.model, [at[0] + (node.used.devices?.[device.id] ? 1 : 0), at[1] + 1])
  }
  return [...models].map(([model, [held, all]]) => `${model} ${held}/${all}`).join(' · ') || '–'
}
