import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { Link, useParams } from 'react-router'
import { get, part } from '../api'
import { dateTime, number, quote, shortID, since, size } from '../format'
import { reasonText } from '../i18n'
import { Cli } from '../parts/actions'
import { Button } from '../parts/controls'
import { Table } from '../parts/controls/table'
import { useMissed } from '../parts/elsewhere'
import { Failed, Loading, useNow, useTitle, WordTag, failing } from '../parts/states'
import type { Allocation, DeviceState, EventList, NodeDetail, NodeDevices } from '../types'
import { cardMemory, gaugeText } from '../parts/usage'
import { NodeFaults } from '../parts/nodefaults'
import { UsageHistory } from '../parts/history'
import { actsOf, NodeDialog, TreatDialog, type Deed, type Treatment } from '../parts/nodedeeds'
import { NodeWord } from '../parts/nodetable'
import { History } from './job/story'

export function NodePage() {
  const { t } = useTranslation()
  const { id = '' } = useParams()
  const node = useQuery({ queryKey: ['node', id], queryFn: ({ signal }) => get<NodeDetail>('/v1/nodes/' + part(id), signal), refetchInterval: 20_000 })
  const events = useQuery({ queryKey: ['node', id, 'events'], queryFn: ({ signal }) => get<EventList>(`/v1/nodes/${part(id)}/events`, signal).then((e) => e.events ?? []) })
  const [deed, setDeed] = useState<Deed>()
  const now = useNow(10_000)
  useTitle(node.data?.name ?? t('menu.cluster'))
  const missed = useMissed(id, node)
  if (!node.data) return <div className="page"><h1>{t('menu.cluster')}</h1>{missed ? <Failed error={missed} retry={() => void node.refetch()} /> : <Loading />}</div>
  const n = node.data
  const allocs = n.allocations ?? []
  const mayDrain = !n.may || n.may.includes('drain')
  return (
    <div className="page">
      <div className="bar">
        <h1>{n.name}</h1>
        <NodeWord node={n} />
        <span className="grow" />
        {mayDrain && (n.eligibility === 'eligible' ? (['cordon', 'drain'] as Deed[]) : (['uncordon', 'drain'] as Deed[])).map((one) => <Button key={one} tone={one === 'drain' ? 'danger' : 'plain'} onClick={() => setDeed(one)}>{t('node.' + one)}</Button>)}
      </div>
      <p className="truth">
        {t('node.truth', { status: t('node_status.' + n.status), since: since(n.status_at ?? n.registered_at, null, now), allocs: n.used.allocs })}
        {n.status_reason && ' ' + reasonText(n.status_reason)}
        {n.used.overcommitted && ' ' + t('node.overcommitted')}
      </p>
      <NodeFaults node={n} events={events.data ?? []} />
      <DeviceTable node={n} />
      <UsageHistory node={n} />
      <section className="card" aria-label={t('node.work')}>
        <h2>{t('node.work')}</h2>
        <Table<Allocation> label={t('node.work')} idOf={(a) => a.id} page={50} least={700} rows={allocs} empty={t('node.no_work')} columns={[
          { title: t('jobs.name'), cell: (a) => <Link to={'/jobs/' + a.job_id}>{a.job_name}</Link> },
          { title: t('jobs.project'), cell: (a) => a.project },
          { title: t('job.rank'), cell: (a) => a.rank, width: 70 },
          { title: t('jobs.attempt'), width: 80, cell: (a) => a.attempt },
          { title: t('job.status'), cell: (a) => t('alloc.' + a.status, a.status) + (a.quarantined ? ' · ' + t('node.quarantined') : '') },
          { title: t('job.cards'), cell: (a) => (a.devices?.length ? t('short.cards', { count: a.devices.length }) : t('short.cores', { count: a.spec.cpu })) },
          { title: t('jobs.started'), cell: (a) => dateTime(a.started_at) },
          { title: t('jobs.id'), cell: (a) => <code>{shortID(a.id)}</code> },
        ]} />
      </section>
      <section className="card" aria-label={t('node.history')}><h2>{t('node.history')}</h2><History events={events.data ?? []} error={events.error} /><Cli text={`nomadlike node history ${quote(n.name)}`} /></section>
      <div className="cards">
        <section className="card" aria-label={t('node.facts')}>
          <h2>{t('node.facts')}</h2>
          <dl className="facts">
            {([['id', <code key="i">{n.id}</code>], ['addr', n.addr], ['pool', n.pool], ['version', n.version], ['cpu', `${number(n.used.cpu)} / ${number(n.capacity.cpu)}`], ['memory', `${size(n.used.memory)} / ${size(n.capacity.memory)}`], ['drivers', n.drivers?.join(', ')], ['topology', n.topology?.join(' / ')], ['rdma', n.rdma ? t('node.yes') : undefined], ['root', n.root ? t('node.root_yes') : undefined], ['registered', dateTime(n.registered_at, true)]] as [string, React.ReactNode][])
              .filter(([, value]) => value)
              .map(([key, value]) => [<dt key={key}>{t('node.' + key)}</dt>, <dd key={key + '='}>{value}</dd>])}
          </dl>
        </section>
        <section className="card" aria-label={t('node.attributes')}>
          <details><summary><h2 className="inline">{t('node.attributes')}</h2></summary>
          <dl className="facts">{Object.entries(n.attributes ?? {}).sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, value]) => [<dt key={key}>{key}</dt>, <dd key={key + '='}>{value}</dd>])}</dl></details>
        </section>
      </div>
      {deed && <NodeDialog deed={deed} node={n} close={() => setDeed(undefined)} />}
    </div>
  )
}

// DeviceTable is what the cards of a node measure, who holds them, and what is
// wrong with them; operators bring them back from here.
function DeviceTable({ node }: { node: NodeDetail }) {
  const { t } = useTranslation()
  const [treat, setTreat] = useState<Treatment>()
  const cards = useQuery({ queryKey: ['node', node.id, 'devices'], refetchInterval: 3000, queryFn: ({ signal }) => get<NodeDevices>(`/v1/nodes/${part(node.id)}/devices`, signal) })
  if (failing(cards)) return <Failed error={cards.error} />
  if (!cards.data) return null
  const c = cards.data
  const name = (d: DeviceState) => (d.slice ? `${d.index}(${d.slice})` : String(d.index))
  return (
    <section className="card" aria-label={t('cluster.cards')}>
      <h2>{t('node.use')}</h2>
      <p>
        {c.measured ? t('node.busy', { cpu: number(c.cpu_busy ?? 0), cores: number(c.cpu), memory: size(c.memory_busy ?? 0), time: dateTime(c.at, true) }) : t('node.unmeasured')}
      </p>
      {(c.devices ?? []).length > 0 && (
        <Table<DeviceState> label={t('node.use')} idOf={(d) => d.id} least={1100} rows={c.devices ?? []} unfold={(d) => <CardDetail node={node} card={d} />}
          columns={[
            { title: t('node.card'), width: 60, cell: (d) => name(d) },
            { title: t('node.model'), width: 200, cell: (d) => d.model || d.kind },
            { title: t('figures.card'), width: 100, cell: (d) => gaugeText(d.gauges, 'utilization_ratio') },
            { title: t('figures.card_memory'), cell: (d) => cardMemory(d.gauges, d.memory) },
            { title: t('figures.temperature'), width: 100, cell: (d) => gaugeText(d.gauges, 'temperature_celsius') },
            { title: t('figures.power'), width: 80, cell: (d) => gaugeText(d.gauges, 'power_watts') },
            { title: t('job.status'), cell: (d) => <WordTag tone={d.healthy ? (d.used ? 'good' : 'plain') : 'bad'} title={reasonText(d.health)}>{d.healthy ? (d.used ? t('wall.held') : t('wall.free')) : t('node.quarantined')}</WordTag> },
            { title: t('jobs.name'), cell: (d) => (d.owner ? <><Link to={'/jobs/' + d.owner.job_id}>{d.owner.job}</Link> <span className="quiet">{t('logs.rank', { rank: d.owner.rank })}{d.owner.user && ` · ${d.owner.user}`}</span></> : d.used ? t('queue.hidden') : '–') },
            { title: t('node.link'), width: 90, cell: (d) => d.link_group },
            { title: t('node.cure'), width: 220, cell: (d) => (
              <>
                {d.health && <div className="quiet">{reasonText(d.health)}{d.action && ` · ${t('action.' + d.action)}`}</div>}
                {(!node.may || node.may.includes('drain')) && actsOf(d).map((act) => <Button key={act} small disabled={act === 'reset' && d.used} onClick={() => setTreat({ device: d, act })}>{t('node.' + act)}</Button>)}
              </>
            ) },
          ]} />
      )}
      <Cli text={`nomadlike device list -node ${quote(node.name)}`} />
      {treat && <TreatDialog node={node} treat={treat} close={() => setTreat(undefined)} />}
    </section>
  )
}

// CardDetail is every gauge of a card, its processes, and what happened to it.
function CardDetail({ node, card }: { node: NodeDetail; card: DeviceState }) {
  const { t } = useTranslation()
  const events = useQuery({ queryKey: ['node', node.id, 'events', card.id], queryFn: ({ signal }) => get<EventList>(`/v1/nodes/${part(node.id)}/events?device=${part(card.id)}`, signal).then((e) => e.events ?? []) })
  return (
    <div className="stack">
      <div className="cards">
        <div>
          <h3>{t('node.card_facts')}</h3>
          <dl className="facts"><dt>{t('node.id')}</dt><dd><code>{card.id}</code></dd>{Object.keys(card.gauges ?? {}).sort().map((name) => [<dt key={name}><code>{name}</code></dt>, <dd key={name + '='}>{gaugeText(card.gauges, name)}</dd>])}</dl>
        </div>
        <div>
          <h3>{t('node.card_history')}</h3>
          {events.data?.length === 0 ? <p className="quiet">{t('node.card_no_history')}</p> : <History events={events.data ?? []} error={events.error} />}
          <Cli text={`nomadlike device history ${quote(node.name)} ${quote(card.id)}`} />
          {(card.processes ?? []).length > 0 && (
            <>
              <h3>{t('figures.processes')}</h3>
              <Table label={t('figures.processes')} idOf={(p) => p.pid} rows={card.processes ?? []} columns={[
                { title: 'PID', cell: (p) => p.pid },
                { title: t('jobs.name'), cell: (p) => p.name ?? '–' },
                { title: t('figures.card_memory'), right: true, cell: (p) => (p.memory ? size(p.memory) : '–') },
              ]} />
            </>
          )}
        </div>
      </div>
      <UsageHistory node={node} device={card.id} />
    </div>
  )
}
