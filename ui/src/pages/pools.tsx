import { useQuery } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'
import { Link } from 'react-router'
import { get, part } from '../api'
import { number, size } from '../format'
import { Cli } from '../parts/actions'
import { Table } from '../parts/controls/table'
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
      <section className="card" aria-label={t('menu.pools')}>
        <Table<PoolDetail> label={t('menu.pools')} idOf={(p) => p.pool.name} loading={pools.isPending} rows={pools.data ?? []} least={800} empty={t('cluster.none')} columns={[
          { title: t('jobs.pool'), cell: (p) => <>{p.pool.name} <span className="quiet">{p.pool.description}</span></> },
          { title: t('cluster.nodes'), cell: (p) => `${p.ready} / ${p.nodes}` },
          { title: t('cluster.cards'), cell: (p) => `${p.devices_used} / ${p.devices}` },
          { title: t('node.model'), cell: (p) => (p.models ?? []).map((m) => `${m.model} ${m.used}/${m.total}`).join(' · ') || '–' },
          { title: t('cluster.cpu'), cell: (p) => `${number(p.cpu_used)} / ${number(p.cpu)}` },
          { title: t('cluster.memory'), cell: (p) => `${size(p.memory_used)} / ${size(p.memory)}` },
          { title: t('pools.queued'), right: true, cell: (p) => p.queued },
          { title: t('pools.running'), right: true, cell: (p) => p.running },
          { title: t('menu.limits'), cell: (p) => <Link to={'/limits?pool=' + part(p.pool.name)} aria-label={t('pools.limits_of', { pool: p.pool.name })}>{t('menu.limits')}</Link> },
        ]} />
        <Cli text="nomadlike pool list" />
      </section>
    </div>
  )
}
