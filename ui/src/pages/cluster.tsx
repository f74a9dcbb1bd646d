import { useQuery } from '@tanstack/react-query'
import { lazy, Suspense, useMemo, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { Link, useNavigate } from 'react-router'
import { useAddress } from '../address'
import { call, get, part } from '../api'
import { number, size } from '../format'
import { reasonText } from '../i18n'
import { Button, Pick, Segments } from '../parts/controls'
import { Grid, sorted, useHeight, type Column } from '../parts/grid'
import { useGuest } from '../guest'
import { useSession } from '../shell'
import { again } from '../again'
import { Failed, useTitle, WordTag, failing } from '../parts/states'
import { cellsOf, idle, Wall } from '../parts/wall'
import type { Available, DeviceList, DeviceState, NodeList, NodeSummary } from '../types'

const nodesMax = 5000

// The dialog brings the library of components, which nobody waits for who looks at the wall.
const ShareDialog = lazy(() => again(() => import('../parts/share')).then((m) => ({ default: m.ShareDialog })))

async function allNodes(signal?: AbortSignal): Promise<NodeSummary[]> {
  const nodes: NodeSummary[] = []
  let after = ''
  do {
    const page = await get<NodeList>(firstNodes + (after && '&after=' + part(after)), signal)
    nodes.push(...(page.nodes ?? []))
    after = page.next ?? ''
  } while (after && nodes.length < nodesMax)
  return nodes
}

// What boot.js asks for as well.
export const firstNodes = '/v1/nodes?limit=1000'

// nodesQuery asks for all nodes.
export const nodesQuery = { queryKey: ['nodes'], queryFn: ({ signal }: { signal: AbortSignal }) => allNodes(signal) }

// The smallest job asks which job holds each card; whoever may submit nothing
// sees that a card is held, and not by whom.
const smallest = { job: { name: 'any', nodes: 1, resources: [{ cpu: 0.01, memory: 16 << 20 }], distributed: { mode: 'single' }, task: { driver: 'exec', command: 'true' } } }

// keepsNode reports whether a node is one of those that are asked for: by a word,
// or by the model of its cards. What its cards do is measured on it.
export function keepsNode(node: NodeSummary, show: string, measured: DeviceState[] = [], user = ''): boolean {
  switch (show) {
    case '':
      return true
    case 'mine':
      return measured.some((d) => d.owner?.user && d.owner.user === user)
    case 'unused':
      return measured.some((d) => d.owner && (d.gauges?.utilization_ratio ?? 1) < idle)
    case 'idle':
      return node.used.allocs === 0
    case 'fault':
      return node.status !== 'ready' || (node.devices ?? []).some((d) => !d.healthy)
    case 'free4':
      return (node.devices ?? []).filter((d) => d.healthy && !node.used.devices?.[d.id]).length >= 4
  }
  return (node.devices ?? []).some((d) => d.model === show)
}

export function Cluster() {
  const { t } = useTranslation()
  useTitle(t('menu.cluster'))
  const session = useSession()
  const shared = useGuest()
  const [params, put] = useAddress()
  const [sharing, setSharing] = useState(false)
  const board = params.has('board')
  const mayShare = !board && (session.data?.role === 'admin' || session.data?.role === 'operator')
  const nodes = useQuery({ ...nodesQuery, refetchInterval: 30_000 })
  const cards = useQuery({
    queryKey: ['nodes', 'cards'],
    retry: false,
    enabled: !shared,
    queryFn: ({ signal }) => call<Available>('POST', '/v1/nodes/available', smallest, signal).catch(() => ({ nodes: [], specs: [], models: [] }) as Available),
  })
  const measured = useQuery({
    queryKey: ['nodes', 'figures'],
    retry: false,
    enabled: !shared && (nodes.data ?? []).some((n) => n.devices?.length),
    refetchInterval: 5000,
    queryFn: ({ signal }) => get<DeviceList>('/v1/devices?limit=1000', signal).then((d) => d.nodes ?? []),
  })
  const view = params.get('view') === 'list' ? 'list' : 'wall'
  const setView = (value: 'wall' | 'list') => put('view', value === 'wall' ? '' : value)
  const text = params.get('text') ?? ''
  const setText = (value: string) => put('text', value)
  const show = params.get('show') ?? ''
  const setShow = (value: string) => put('show', value)
  const models = useMemo(() => [...new Set((nodes.data ?? []).flatMap((n) => (n.devices ?? []).map((d) => d.model)))].sort(), [nodes.data])
  const user = session.data?.user
  const devicesOf = useMemo(() => new Map((measured.data ?? []).map((node) => [node.id, node.devices ?? []])), [measured.data])
  const shown = useMemo(
    () =>
      (nodes.data ?? []).filter((node) => {
        if (text && !`${node.name} ${node.pool ?? ''}`.toLowerCase().includes(text.toLowerCase())) return false
        return keepsNode(node, show, devicesOf.get(node.id), user)
      }),
    [nodes.data, text, show, devicesOf, user],
  )
  const cells = useMemo(() => cellsOf(shown, cards.data?.nodes ?? [], measured.data), [shown, cards.data, measured.data])
  const total = useMemo(() => sum(nodes.data ?? []), [nodes.data])
  return (
    <div className="page">
      <div className="bar">
        <h1>{t('menu.cluster')}</h1>
        <span className="grow" />
        {!shared && (board ? <Link to="/cluster">{t('cluster.leave')}</Link> : <Link to="/cluster?board">{t('cluster.board')}</Link>)}
        {mayShare && <Button onClick={() => setSharing(true)}>{t('share.share')}</Button>}
        {sharing && <Suspense><ShareDialog path="/v1/wall/shares" close={() => setSharing(false)} /></Suspense>}
        {!board && <Segments<'wall' | 'list'> label={t('cluster.view')} value={view} change={setView} options={[{ value: 'wall', label: t('cluster.wall') }, { value: 'list', label: t('cluster.list') }]} />}
      </div>
      {failing(nodes) && <Failed error={nodes.error} retry={() => void nodes.refetch()} />}
      <section className="card" aria-label={t('cluster.figures')}>
        <dl className="figures">
          {([['nodes', `${total.ready} / ${total.nodes}`], ['held_cards', `${total.held} / ${total.cards}`], ['sick', String(total.sick)], ['held_cpu', `${number(total.cpuUsed)} / ${number(total.cpu)}`], ['held_memory', `${size(total.memoryUsed)} / ${size(total.memory)}`]] as const).map(([key, value]) => (
            <div key={key}><dt>{t('cluster.' + key)}</dt><dd>{value}</dd></div>
          ))}
        </dl>
      </section>
      {!board && <div className="bar" role="search" aria-label={t('jobs.filter')}>
          <input className="field" type="search" style={{ width: 220 }} aria-label={t('cluster.search')} placeholder={t('cluster.search')} value={text} onChange={(e) => setText(e.target.value)} />
          <Pick width={200} label={t('cluster.show')} value={show} change={setShow}
            options={[...[...(measured.data ? ['mine', 'unused'] : []), 'idle', 'fault', 'free4'].map((value) => ({ value, label: t('cluster.only_' + value) })), ...models.map((value) => ({ value, label: value }))]} />
          <span className="quiet" role="status">{t('cluster.count', { count: shown.length })}</span>
        </div>}
      {view === 'wall' || board ? (
        <section className="card" aria-label={t('cluster.wall')}><Wall tiles={cells} /></section>
      ) : (
        <NodeTable nodes={shown} order={params.get('sort') ?? ''} setOrder={(value) => put('sort', value)} />
      )}
    </div>
  )
}

function sum(nodes: NodeSummary[]) {
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

function NodeTable({ nodes, order, setOrder }: { nodes: NodeSummary[]; order: string; setOrder: (order: string) => void }) {
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
