import { useQuery } from '@tanstack/react-query'
import { Table } from 'antd'
import { useTranslation } from 'react-i18next'
import { get } from '../api'
import { number, size } from '../format'
import { Cli } from '../parts/actions'
import { Failed, useTitle, failing } from '../parts/states'
import type { PoolDetail, PoolList } from '../types'

export function Pools() {
  const { t } = useTranslation()
  useTitle(t('menu.pools'))
  const pools = useQuery({ queryKey: ['pools'], refetchInterval: 30_000, queryFn: ({ signal }) => get<PoolList>('/v1/pools', signal).then((p) => p.pools ?? []) })
  return (
    <div className="page">
      <h1>{t('menu.pools')}</h1>
      {failing(pools) && <Failed error={pools.error} retry={() => void pools.refetch()} />}
      <Table<PoolDetail> size="small" rowKey={(p) => p.pool.name} loading={pools.isPending} dataSource={pools.data ?? []} pagination={false} scroll={{ x: 800 }} locale={{ emptyText: <p>{t('cluster.none')}</p> }} columns={[
        { title: t('jobs.pool'), render: (_, p) => <>{p.pool.name} <span className="quiet">{p.pool.description}</span></> },
        { title: t('cluster.nodes'), render: (_, p) => `${p.ready} / ${p.nodes}` },
        { title: t('cluster.cards'), render: (_, p) => `${p.devices_used} / ${p.devices}` },
        { title: t('node.model'), render: (_, p) => (p.models ?? []).map((m) => `${m.model} ${m.used}/${m.total}`).join(' · ') || '–' },
        { title: t('cluster.cpu'), render: (_, p) => `${number(p.cpu_used)} / ${number(p.cpu)}` },
        { title: t('cluster.memory'), render: (_, p) => `${size(p.memory_used)} / ${size(p.memory)}` },
        { title: t('pools.queued'), dataIndex: 'queued' },
        { title: t('pools.running'), dataIndex: 'running' },
      ]} />
      <Cli text="nomadlike pool list" />
    </div>
  )
}
