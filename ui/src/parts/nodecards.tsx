import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { Link } from 'react-router'
import { get, part } from '../api'
import { reasonText } from '../i18n'
import type { NodeDetail, NodeDevices } from '../types'
import type { Tile } from './cells'
import { Button } from './controls'
import { actsOf, NodeDialog, TreatDialog, type Deed, type Treatment } from './nodedeeds'
import { NodeWord } from './nodetable'
import { cardMemory, gaugeText } from './usage'

// NodeCards looks closely at one node beside the wall: what is wrong with it, whose
// jobs it runs, what its cards do, and what an operator can do about it.
export function NodeCards({ tile, close }: { tile: Tile; close: () => void }) {
  const { t } = useTranslation()
  const { node } = tile
  const [deed, setDeed] = useState<Deed>()
  const [treat, setTreat] = useState<Treatment>()
  const detail = useQuery({ queryKey: ['node', node.id], queryFn: ({ signal }) => get<NodeDetail>('/v1/nodes/' + part(node.id), signal) })
  const cards = useQuery({ queryKey: ['node', node.id, 'devices'], retry: false, refetchInterval: 3000, queryFn: ({ signal }) => get<NodeDevices>(`/v1/nodes/${part(node.id)}/devices`, signal) })
  const may = !detail.data?.may || detail.data.may.includes('drain')
  const devices = cards.data?.devices ?? []
  const sick = devices.filter((d) => !d.healthy)
  const jobs = new Map((detail.data?.allocations ?? []).map((a) => [a.job_id, a.job_name]))
  return (
    <aside className="card closer" aria-label={node.name}>
      <div className="bar"><h2><Link to={'/nodes/' + node.id}>{node.name}</Link></h2><NodeWord node={node} /><span className="grow" /><Button tone="bare" small aria-label={t('cluster.close')} onClick={close}>✕</Button></div>
      {sick.map((d) => (
        <div key={d.id}>
          <p><b>{t('cluster.card', { index: d.index })}</b> · {d.model || d.kind} · {t('node.quarantined')}<br /><span className="quiet">{reasonText(d.health)}{d.action && ` · ${t('action.' + d.action)}`}</span></p>
          {may && actsOf(d).map((act) => <Button key={act} small disabled={act === 'reset' && d.used} onClick={() => setTreat({ device: d, act })}>{t('node.' + act)}</Button>)}
        </div>
      ))}
      {jobs.size > 0 && <p>{[...jobs].slice(0, 6).map(([id, name], i) => <span key={id}>{i > 0 && ', '}<Link to={'/jobs/' + id}>{name || t('queue.hidden')}</Link></span>)}{jobs.size > 6 && ' …'}</p>}
      {devices.length > 0 && (
        <table className="small">
          <caption className="hidden">{t('cluster.cards')}</caption>
          <thead><tr><th scope="col">{t('node.card')}</th><th scope="col">{t('figures.card')}</th><th scope="col">{t('figures.card_memory')}</th><th scope="col">°C</th></tr></thead>
          <tbody>{devices.map((d) => (
            <tr key={d.id} className={d.healthy ? undefined : 'bad'}><th scope="row">{d.slice ? `${d.index}(${d.slice})` : d.index}</th><td>{gaugeText(d.gauges, 'utilization_ratio')}</td><td>{cardMemory(d.gauges, d.memory)}</td><td>{gaugeText(d.gauges, 'temperature_celsius')}</td></tr>
          ))}</tbody>
        </table>
      )}
      {may && <div className="bar">{(node.eligibility === 'eligible' ? (['cordon', 'drain'] as Deed[]) : (['uncordon'] as Deed[])).map((one) => <Button key={one} small tone={one === 'drain' ? 'danger' : 'plain'} onClick={() => setDeed(one)}>{t('node.' + one)}</Button>)}</div>}
      {deed && <NodeDialog deed={deed} node={node} close={() => setDeed(undefined)} />}
      {treat && <TreatDialog node={node} treat={treat} close={() => setTreat(undefined)} />}
    </aside>
  )
}
