import { useQuery, useQueryClient } from '@tanstack/react-query'
import { App, Button, Modal, Table } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { Link, useParams } from 'react-router'
import { call, get, part } from '../api'
import { dateTime, number, quote, shortID, since, size } from '../format'
import { reasonText } from '../i18n'
import { Cli } from '../parts/actions'
import { errorText, Failed, Loading, useNow, useTitle, WordTag } from '../parts/states'
import type { Allocation, Device, NodeDetail } from '../types'
import { NodeWord } from './cluster'

type Deed = 'cordon' | 'uncordon' | 'drain'

export function NodePage() {
  const { t } = useTranslation()
  const { id = '' } = useParams()
  const node = useQuery({ queryKey: ['node', id], queryFn: ({ signal }) => get<NodeDetail>('/v1/nodes/' + part(id), signal), refetchInterval: 20_000 })
  const [deed, setDeed] = useState<Deed>()
  const now = useNow(10_000)
  useTitle(node.data?.name ?? t('menu.cluster'))
  if (node.isPending) return <Loading />
  if (!node.data) return <div className="page"><Failed error={node.error} retry={() => void node.refetch()} /></div>
  const n = node.data
  const allocs = n.allocations ?? []
  const holder = (device: Device) => allocs.find((a) => a.devices?.includes(device.id))
  return (
    <div className="page">
      <div className="bar">
        <h1>{n.name}</h1>
        <NodeWord node={n} />
        <span className="grow" />
        {(n.eligibility === 'eligible' ? (['cordon', 'drain'] as Deed[]) : (['uncordon', 'drain'] as Deed[])).map((one) => <Button key={one} danger={one === 'drain'} onClick={() => setDeed(one)}>{t('node.' + one)}</Button>)}
      </div>
      <p className="truth">
        {t('node.truth', { status: t('node_status.' + n.status), since: since(n.status_at ?? n.registered_at, null, now), allocs: n.used.allocs })}
        {n.status_reason && ' ' + reasonText(n.status_reason)}
        {n.used.overcommitted && ' ' + t('node.overcommitted')}
      </p>
      <div className="cards">
        <section className="card" aria-label={t('node.facts')}>
          <h2>{t('node.facts')}</h2>
          <dl className="facts">
            {([['id', <code key="i">{n.id}</code>], ['addr', n.addr], ['pool', n.pool], ['version', n.version], ['cpu', `${number(n.used.cpu)} / ${number(n.capacity.cpu)}`], ['memory', `${size(n.used.memory)} / ${size(n.capacity.memory)}`], ['drivers', n.drivers?.join(', ')], ['topology', n.topology?.join(' / ')], ['rdma', n.rdma ? t('node.yes') : undefined], ['registered', dateTime(n.registered_at, true)]] as [string, React.ReactNode][])
              .filter(([, value]) => value)
              .map(([key, value]) => [<dt key={key}>{t('node.' + key)}</dt>, <dd key={key + '='}>{value}</dd>])}
          </dl>
        </section>
        <section className="card" aria-label={t('node.attributes')}>
          <h2>{t('node.attributes')}</h2>
          <dl className="facts">{Object.entries(n.attributes ?? {}).sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, value]) => [<dt key={key}>{key}</dt>, <dd key={key + '='}>{value}</dd>])}</dl>
        </section>
      </div>
      {(n.devices ?? []).length > 0 && (
        <section className="card" aria-label={t('cluster.cards')}>
          <h2>{t('cluster.cards')}</h2>
          <Table<Device> size="small" rowKey="id" pagination={false} scroll={{ x: 700 }} dataSource={[...(n.devices ?? [])].sort((a, b) => a.index - b.index)} columns={[
            { title: t('node.card'), width: 60, dataIndex: 'index' },
            { title: t('node.model'), dataIndex: 'model' },
            { title: t('cluster.memory'), render: (_, d) => size(d.memory) },
            { title: t('job.status'), render: (_, d) => (d.healthy ? <WordTag tone={holder(d) ? 'good' : 'plain'}>{t(holder(d) ? 'wall.held' : 'wall.free')}</WordTag> : <WordTag tone="bad">{reasonText(d.health) || t('wall.sick')}</WordTag>) },
            { title: t('jobs.name'), render: (_, d) => { const a = holder(d); return a && <Link to={'/jobs/' + a.job_id}>{a.job_name}</Link> } },
            { title: t('node.driver'), dataIndex: 'driver_version' },
            { title: t('node.link'), dataIndex: 'link_group' },
            { title: 'NUMA', width: 70, dataIndex: 'numa_node' },
          ]} />
        </section>
      )}
      <section className="card" aria-label={t('node.work')}>
        <h2>{t('node.work')}</h2>
        <Table<Allocation> size="small" rowKey="id" pagination={{ pageSize: 50, hideOnSinglePage: true }} scroll={{ x: 700 }} dataSource={allocs} locale={{ emptyText: <p>{t('node.no_work')}</p> }} columns={[
          { title: t('jobs.name'), render: (_, a) => <Link to={'/jobs/' + a.job_id}>{a.job_name}</Link> },
          { title: t('jobs.project'), dataIndex: 'project' },
          { title: t('job.rank'), dataIndex: 'rank', width: 70 },
          { title: t('jobs.attempt'), dataIndex: 'attempt', width: 80 },
          { title: t('job.status'), render: (_, a) => t('alloc.' + a.status, a.status) + (a.quarantined ? ' · ' + t('node.quarantined') : '') },
          { title: t('job.cards'), render: (_, a) => (a.devices?.length ? t('short.cards', { count: a.devices.length }) : t('short.cores', { count: a.spec.cpu })) },
          { title: t('jobs.started'), render: (_, a) => dateTime(a.started_at) },
          { title: t('jobs.id'), render: (_, a) => <code>{shortID(a.id)}</code> },
        ]} />
      </section>
      {deed && <NodeDialog deed={deed} node={n} close={() => setDeed(undefined)} />}
    </div>
  )
}

function NodeDialog({ deed, node, close }: { deed: Deed; node: NodeDetail; close: () => void }) {
  const { t } = useTranslation()
  const { message } = App.useApp()
  const client = useQueryClient()
  const [busy, setBusy] = useState(false)
  const run = async () => {
    setBusy(true)
    try {
      await call('POST', `/v1/nodes/${part(node.id)}/${deed}`, deed === 'drain' ? {} : undefined)
      await client.invalidateQueries({ predicate: (query) => ['node', 'nodes'].includes(query.queryKey[0] as string) })
      close()
    } catch (error) {
      void message.error(errorText(error, t), 8)
      setBusy(false)
    }
  }
  return (
    <Modal open title={`${t('node.' + deed)} · ${node.name}`} okText={t('node.' + deed)} cancelText={t('deed.cancel')} okButtonProps={{ danger: deed === 'drain', loading: busy }} onOk={() => void run()} onCancel={close}>
      <p>{t('node.ask_' + deed)}</p>
      <Cli text={`nomadlike node ${deed} ${quote(node.name)}`} />
    </Modal>
  )
}
