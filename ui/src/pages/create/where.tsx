import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { call } from '../../api'
import { Button, Segments } from '../../parts/controls'
import { Scroll } from '../../parts/controls/table'
import type { Entry } from '../../parts/entries'
import { sizeText, type FileChange } from '../../parts/jobfile'
import { WordTag } from '../../parts/states'
import type { Available, DeviceDemand } from '../../types'
import { Amount, One, Part, Text, useFilling, Yes } from './fields'
import { useDrivers, useNodes, usePools } from './offers'
import { listOf } from './what'

const modes = ['single', 'none', 'pytorch', 'deepspeed', 'mpi', 'horovod', 'tensorflow', 'mindspore', 'jax']

// Which options of a mode belong to it: those of another are refused, so they go with it.
const optionsOf: Record<string, string[]> = {
  world_size: ['pytorch', 'deepspeed'], rewrite: ['pytorch', 'mpi', 'mindspore', 'jax'], launcher: ['deepspeed'], procs_per_node: ['pytorch', 'deepspeed', 'horovod', 'mpi', 'mindspore', 'jax'],
  master_port: ['pytorch', 'deepspeed', 'tensorflow', 'mindspore', 'jax'], parameter_servers: ['tensorflow'], chief: ['tensorflow'], rank_table: ['mindspore'],
}

// modeChanges set a mode: what belonged to the one before goes, and one node is one.
export const modeChanges = (mode: string): FileChange[] => [
  { at: 'distributed#', value: mode },
  ...Object.entries(optionsOf).filter(([, of]) => !of.includes(mode)).map(([option]) => ({ at: 'distributed.' + option, value: null })),
  ...(mode === 'single' ? [{ at: 'nodes', value: 1 }] : []),
]

// Where is the second part: how many nodes, of what kind, and which.
export function Where({ room, nodes = true }: { room: { hcl: string; body: object; valid: boolean }; nodes?: boolean }) {
  const { t } = useTranslation()
  const { job } = useFilling()
  const mode = job?.distributed.mode ?? 'single'
  const has = (option: string) => optionsOf[option]!.includes(mode)
  return (
    <Part title={t('create.part_where')} said={t('create.free_of_all')} heads={['nodes', 'distributed', 'resources', 'placement']}>
      <Cards room={room} />
      <div className="form">
        <Amount at="nodes" entry="job.nodes" label={t('jobs.nodes')} least={1} most={10_000} value={job?.nodes ?? 1} />
        <One at="distributed#" entry="job.distributed" label={t('create.mode')} width={140} value={mode} options={modes.map((value) => ({ value, label: value }))} write={modeChanges} />
        {has('procs_per_node') && <Amount at="distributed.procs_per_node" entry="job.procs_per_node" label={t('create.procs')} least={0} most={1024} none value={job?.distributed.procs_per_node ?? 0} />}
        {has('parameter_servers') && <Amount at="distributed.parameter_servers" entry="job.parameter_servers" label={t('create.servers')} least={0} none value={job?.distributed.parameter_servers ?? 0} />}
        {has('chief') && <Yes at="distributed.chief" entry="job.chief" label={t('create.chief')} value={job?.distributed.chief ?? false} />}
      </div>
      <p className="quiet">{t('create.mode_' + mode)}</p>
      <Specs />
      {nodes && <Nodes />}
      <div className="form">
        <One at="placement.spread_or_pack" entry="job.spread" label={t('create.spread')} value={job?.placement?.spread_or_pack ?? 'pack'} usual="pack" options={[{ value: 'pack', label: t('create.pack') }, { value: 'spread', label: t('create.spread_out') }]} />
      </div>
    </Part>
  )
}

// Nodes is whether the job takes nodes of a pool, by the version of their driver too, or
// those that it names: the two exclude each other.
function Nodes() {
  const { t } = useTranslation()
  const { job, left, change } = useFilling()
  const [pools, nodes, drivers] = [usePools(), useNodes(), useDrivers()]
  const named = job?.placement?.nodes ?? []
  const [chosen, choose] = useState<'any' | 'named'>()
  const by = named.length > 0 ? 'named' : (chosen ?? 'any')
  const turn = (now: 'any' | 'named') => {
    choose(now)
    if (now === 'any' && named.length > 0) void change([{ at: 'placement.nodes', value: null }])
    if (now === 'named' && job?.placement && !left('placement.pool')) void change([{ at: 'placement.pool', value: null }, { at: 'placement.driver_version', value: null }])
  }
  return (
    <div className="form">
      <span className="control"><span className="named"><span className="quiet small-label">{t('create.by')}</span></span>
        <Segments label={t('create.by')} value={by} change={turn} options={[{ value: 'any', label: t('create.by_pool') }, { value: 'named', label: t('create.by_name') }]} /></span>
      {by === 'any' ? <>
        <Text at="placement.pool" entry="job.pool" label={t('jobs.pool')} width={140} value={left('placement.pool') ? '' : (job?.placement?.pool ?? '')} hint={left('placement.pool') ? job?.placement?.pool : undefined} options={pools} />
        <Text at="placement.driver_version" entry="job.driver_version" label={t('node.driver')} width={140} value={left('placement.driver_version') ? '' : (job?.placement?.driver_version ?? '')} hint=">= 535, < 560" options={drivers} />
      </> : <Names label={t('create.names')} value={named} options={nodes} set={(list) => change([{ at: 'placement.nodes', value: list.length ? list : null }])} />}
    </div>
  )
}

// Names is a list of names, of which one after the other is added and removed.
export function Names({ label, value, options, set, at = 'placement.nodes', entry = 'job.placement_nodes' }: { label: string; value: string[]; options: { value: string; label: string }[]; set: (list: string[]) => Promise<boolean>; at?: string; entry?: Entry }) {
  const { t } = useTranslation()
  return (
    <>
      <Text at={at} entry={entry} label={label} width={200} value="" hint={t('create.add')} options={options.filter((one) => !value.includes(one.value))} write={(typed) => {
        const list = [...new Set([...value, ...listOf(typed)])]
        return [{ at, value: list }]
      }} />
      {value.length > 0 && <span className="bar chosen-list" role="group" aria-label={label}>{value.map((one) => <Button key={one} small aria-label={t('create.remove', { name: one })} onClick={() => void set(value.filter((other) => other !== one))}>{one} ✕</Button>)}</span>}
    </>
  )
}

// Cards are the models of accelerators that there are: how many are free, whether they
// are idle or short, and which of them the job takes.
function Cards({ room }: { room: { hcl: string; body: object; valid: boolean } }) {
  const { t } = useTranslation()
  const { job, change } = useFilling()
  const found = useQuery({ queryKey: ['nodes', 'available', room.hcl], enabled: room.valid, retry: false, placeholderData: keepPreviousData, queryFn: ({ signal }) => call<Available>('POST', '/v1/nodes/available', room.body, signal) }).data
  const models = found?.models ?? []
  const device = job?.resources?.[0]?.devices?.[0]
  const wants = (one: DeviceDemand) => !!device && device.kind === one.kind && (device.model === one.model || !!device.models?.includes(one.model))
  const take = (one?: DeviceDemand) => change(one
    ? [...(device ? [] : [{ at: 'resources.device#', value: one.kind }, { at: 'resources.device.count', value: 1 }]), { at: 'resources.device#', value: one.kind }, { at: 'resources.device.models', value: null }, { at: 'resources.device.model', value: one.model }]
    : [{ at: 'resources.device#', value: null }])
  const spec = found?.specs?.[0]
  return (
    <>
      {models.length > 0 && (
        <Scroll label={t('create.models')}><table className="table small-rows">
          <caption className="hidden">{t('create.models')}</caption>
          <thead><tr><th scope="col"><span className="hidden">{t('create.take')}</span></th><th scope="col">{t('node.model')}</th><th scope="col">{t('create.kind')}</th><th scope="col">{t('create.free')}</th><th scope="col">{t('job.status')}</th><th scope="col">{t('create.waited_for')}</th></tr></thead>
          <tbody>
            {models.map((one) => (
              <tr key={one.kind + one.model} className={wants(one) ? 'taken' : undefined}>
                <td><input type="radio" name="card" aria-label={`${one.model} ${one.kind}`} disabled={!job} checked={wants(one)} onChange={() => void take(one)} /></td>
                <th scope="row">{one.model}</th><td>{one.kind}</td><td>{one.free} / {one.total}</td>
                <td><WordTag tone={one.free > 0 ? 'good' : 'busy'}>{t(one.free > 0 ? 'create.idle' : 'create.tight')}</WordTag></td>
                <td>{one.wanted > 0 ? one.wanted : '–'}</td>
              </tr>
            ))}
            <tr className={job && !device ? 'taken' : undefined}><td><input type="radio" name="card" aria-label={t('create.no_cards')} disabled={!job} checked={!!job && !device} onChange={() => void take()} /></td><th scope="row">{t('create.no_cards')}</th><td colSpan={4} /></tr>
          </tbody>
        </table></Scroll>
      )}
      {spec && <p className="quiet" role="status">{t('create.spec_room', { spec: spec.label || 1, idle: spec.idle, nodes: spec.nodes, need: spec.need })}</p>}
    </>
  )
}

// Specs are what each node gives to the job: one, or several that do as well.
function Specs() {
  const { t } = useTranslation()
  const { job, change } = useFilling()
  const specs = job?.resources ?? []
  const last = specs.at(-1)
  return (
    <>
      {specs.map((spec, i) => {
        const at = `resources[${i}]`
        const device = spec.devices?.[0]
        const of = (name: string) => (specs.length > 1 ? `${name} ${i + 1}` : name)
        return (
          <fieldset key={i} className="rows-of">
            <legend>{specs.length > 1 ? t('create.spec_of', { spec: i + 1 }) : t('create.spec_only')}</legend>
            <div className="form">
              {specs.length > 1 && <Text at={at + '#'} entry="job.spec" label={of(t('job.spec'))} width={90} value={spec.label ?? ''} hint={String(i + 1)} write={(value) => [{ at: at + '#', value }]} />}
              <Amount at={at + '.cpu'} entry="job.cpu" label={of(t('cluster.cpu'))} least={0.01} value={spec.cpu} />
              <Text at={at + '.memory'} entry="job.memory" label={of(t('cluster.memory'))} width={90} value={sizeText(spec.memory)} />
              <Text at={at + '.device#'} entry="job.device" label={of(t('create.kind'))} width={110} value={device?.kind ?? ''} hint="nvidia/gpu" />
              <Amount at={at + '.device.count'} entry="job.device_count" label={of(t('create.cards'))} least={0} value={device ? (device.count ?? 1) : 0} write={(value) => (value === 0 ? [{ at: at + '.device#', value: null }] : [...(device ? [] : [{ at: at + '.device#', value: 'nvidia/gpu' }]), { at: at + '.device.count', value }])} />
              <Text at={at + '.device.model'} entry="job.device_model" label={of(t('node.model'))} width={90} value={device?.model ?? ''} off={!device} />
              <Text at={at + '.shared_memory'} entry="job.shm" label={of(t('create.shm'))} width={90} value={spec.shared_memory ? sizeText(spec.shared_memory) : ''} hint="64GiB" />
              <Text at={at + '.disk'} entry="job.disk" label={of(t('create.disk'))} width={90} value={spec.disk ? sizeText(spec.disk) : ''} hint="200GiB" />
              <Amount at={at + '.sku'} entry="job.sku" label={of(t('create.sku'))} least={0} most={1024} none value={spec.sku ?? 0} />
              <Yes at={at + '.rdma'} entry="job.rdma" label={of(t('create.rdma'))} value={spec.rdma ?? false} />
              {specs.length > 1 && <Button small aria-label={`${t('create.remove_spec')} ${i + 1}`} onClick={() => void change([{ at: at + '#', value: null }])}>✕</Button>}
            </div>
          </fieldset>
        )
      })}
      <p><Button small disabled={!last} onClick={() => void change([
        ...(specs.length === 1 && !last!.label ? [{ at: 'resources#', value: 'spec-1' }] : []),
        { at: `resources[${specs.length}]#`, value: `spec-${specs.length + 1}` }, { at: `resources[${specs.length}].cpu`, value: last!.cpu }, { at: `resources[${specs.length}].memory`, value: sizeText(last!.memory) },
      ])}>{t('create.add_spec')}</Button></p>
    </>
  )
}
