import { useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { lengthOf } from '../../format'
import { Button } from '../../parts/controls'
import { Check, Choice, Count, Field } from '../../parts/controls/fields'
import { Scroll } from '../../parts/controls/table'
import { EntryMark, type Entry } from '../../parts/entries'
import { envText, readEnv, sizeText, type FileChange } from '../../parts/jobfile'
import { LimitPresets, shortLimit } from '../../parts/limit'
import type { Job } from '../../types'

const modes = ['single', 'none', 'pytorch', 'deepspeed', 'mpi', 'horovod', 'tensorflow', 'mindspore', 'jax']

// Form shows what the file says and changes it there; what it has no field
// for stays as it is. While the file cannot be read, nothing can be changed.
export function Form({ job, defaults, change, open }: { job?: Job; defaults: { path: string }[]; change: (set: FileChange[]) => Promise<void>; open: boolean }) {
  const { t } = useTranslation()
  const left = (path: string) => defaults.some((d) => d.path === path)
  const specs = job?.resources ?? []
  const mode = job?.distributed.mode ?? 'single'
  const off = !job
  return (
    <details className="card" open={open || undefined}>
      <summary>{t('create.form')}</summary>
      {off && <p className="quiet" role="status">{t('create.form_off')}</p>}
      <div className="form">
        <SentField entry="job.name" label={t('jobs.name')} off={off} width={150} value={job?.name ?? ''} set={(value) => change([{ at: '#', value }])} />
        <SentCount entry="job.nodes" label={t('jobs.nodes')} off={off} least={1} value={job?.nodes ?? 1} set={(value) => change([{ at: 'nodes', value }])} />
        <Choice entry="job.distributed" label={t('create.mode')} off={off} width={130} value={mode} change={(value) => void change([{ at: 'distributed#', value }])} options={modes.map((value) => ({ value, label: value }))} />
        <Choice entry="job.priority" label={t('jobs.priority')} off={off} width={120} value={job?.priority ?? 'normal'} change={(value) => void change([{ at: 'priority', value: value === 'normal' ? null : value }])} options={(['normal', 'urgent', 'critical'] as const).map((value) => ({ value, label: t('priority.' + value) }))} />
        <SentField entry="job.pool" label={t('jobs.pool')} off={off} width={110} value={left('placement.pool') ? '' : (job?.placement?.pool ?? '')} set={(value) => change([{ at: 'placement.pool', value: value || null }])} />
        <SentField entry="job.time_limit" label={t('job.limit')} off={off} width={90} value={job?.time_limit && job.time_limit !== '0s' && !left('time_limit') ? shortLimit(lengthOf(job.time_limit)) : ''} hint="36h" set={(value) => change([{ at: 'time_limit', value: value || null }])} />
        <LimitPresets off={off} value={job?.time_limit && !left('time_limit') && lengthOf(job.time_limit) ? shortLimit(lengthOf(job.time_limit)) : ''} set={(value) => change([{ at: 'time_limit', value }])} />
        <Check entry="job.preemptible" off={off} checked={job?.preemptible ?? false} change={(checked) => void change([{ at: 'preemptible', value: checked || null }])}>{t('jobs.preemptible')}</Check>
      </div>
      <Scroll label={t('create.specs')}><table className="table specs">
        <caption className="hidden">{t('create.specs')}</caption>
        <thead><tr><th scope="col"><span className="named">{t('job.spec')}<EntryMark entry="job.spec" label={t('job.spec')} /></span></th><th scope="col"><span className="named">{t('cluster.cpu')}<EntryMark entry="job.cpu" label={t('cluster.cpu')} /></span></th><th scope="col"><span className="named">{t('cluster.memory')}<EntryMark entry="job.memory" label={t('cluster.memory')} /></span></th><th scope="col"><span className="named">{t('create.kind')}<EntryMark entry="job.device" label={t('create.kind')} /></span></th><th scope="col"><span className="named">{t('create.cards')}<EntryMark entry="job.device_count" label={t('create.cards')} /></span></th><th scope="col"><span className="named">{t('node.model')}<EntryMark entry="job.device_model" label={t('node.model')} /></span></th><th scope="col"><span className="hidden">{t('deed.delete')}</span></th></tr></thead>
        <tbody>
          {specs.map((spec, i) => {
            const at = `resources[${i}]`
            const device = spec.devices?.[0]
            const aria = (name: string) => `${name} ${i + 1}`
            return (
              <tr key={i}>
                <th scope="row"><SentField bare label={aria(t('job.spec'))} width={90} value={spec.label ?? ''} set={(value) => change([{ at: at + '#', value }])} hint={String(i + 1)} /></th>
                <td><SentCount bare label={aria(t('cluster.cpu'))} least={0.01} value={spec.cpu} set={(value) => change([{ at: at + '.cpu', value }])} /></td>
                <td><SentField bare label={aria(t('cluster.memory'))} width={90} value={sizeText(spec.memory)} set={(value) => change([{ at: at + '.memory', value }])} /></td>
                <td><SentField bare label={aria(t('create.kind'))} width={110} value={device?.kind ?? ''} hint="nvidia/gpu" set={(value) => change([{ at: at + '.device#', value: value || null }])} /></td>
                <td><SentCount bare label={aria(t('create.cards'))} least={0} value={device ? (device.count ?? 1) : 0} set={(value) => change(value === 0 ? [{ at: at + '.device#', value: null }] : [...(device ? [] : [{ at: at + '.device#', value: 'nvidia/gpu' }]), { at: at + '.device.count', value }])} /></td>
                <td><SentField bare label={aria(t('node.model'))} width={90} value={device?.model ?? ''} off={!device} set={(value) => change([{ at: at + '.device.model', value: value || null }])} /></td>
                <td>{specs.length > 1 && <Button small aria-label={`${t('create.remove_spec')} ${i + 1}`} onClick={() => change([{ at: at + '#', value: null }])}>✕</Button>}</td>
              </tr>
            )
          })}
        </tbody>
      </table></Scroll>
      <p><Button small disabled={off || specs.length === 0} onClick={() => change([{ at: `resources[${specs.length}]#`, value: `spec-${specs.length + 1}` }, { at: `resources[${specs.length}].cpu`, value: specs.at(-1)?.cpu ?? 1 }, { at: `resources[${specs.length}].memory`, value: sizeText(specs.at(-1)?.memory ?? 0) }])}>{t('create.add_spec')}</Button></p>
      <div className="form">
        <SentField entry="job.image" label={t('create.image')} off={off} width={200} value={job?.task.image ?? ''} set={(value) => change([{ at: 'task.image', value: value || null }, { at: 'task.driver', value: value ? 'docker' : 'exec' }])} />
        <SentField entry="job.command" label={t('create.command')} off={off} width={420} grow value={job?.task.command ?? ''} set={(value) => change([{ at: 'task.command', value }])} />
        <SentField entry="job.env" label={t('create.env')} off={off} width={260} grow value={envText(job?.task.env)} hint="A=1 B=2" set={(value) => { const env = readEnv(value); return change([{ at: 'task.env', value: Object.keys(env).length ? env : null }]) }} />
      </div>
    </details>
  )
}

// useSent is what a field shows while its value is typed and on its way to the
// file. A value is sent once, though confirming a field and leaving it both send: a
// second time would write over what was typed into the file meanwhile.
function useSent<T>(value: T, set: (value: T) => Promise<void>) {
  const [, redraw] = useState(0)
  const typed = useRef<T>(undefined)
  const sent = useRef<T>(undefined)
  const type = (now: T | undefined) => {
    typed.current = now
    redraw((n) => n + 1)
  }
  const send = () => {
    const now = typed.current
    if (now === undefined || now === sent.current) return
    if (now === value && sent.current === undefined) return type(undefined)
    sent.current = now
    void set(now).finally(() => {
      if (sent.current === now) sent.current = undefined
      if (typed.current === now) type(undefined)
    })
  }
  return { shown: typed.current ?? value, type, send }
}

// SentField is a text that is carried into the file when it is left or confirmed.
function SentField({ label, entry, value, set, width, off, hint, bare, grow }: { label: string; entry?: Entry; value: string; set: (value: string) => Promise<void>; width: number; off?: boolean; hint?: string; bare?: boolean; grow?: boolean }) {
  const { shown, type, send } = useSent(value, set)
  return <Field label={label} entry={entry} bare={bare} grow={grow} width={width} placeholder={hint} off={off} value={shown} change={type} done={send} />
}

// SentCount is a number that is carried into the file when it is left or confirmed,
// or with each step of its arrows.
function SentCount({ label, entry, value, set, least, off, bare }: { label: string; entry?: Entry; value: number; set: (value: number) => Promise<void>; least: number; off?: boolean; bare?: boolean }) {
  const { shown, type, send } = useSent(value, set)
  return <Count label={label} entry={entry} bare={bare} width={80} least={least} most={4096} off={off} value={shown} change={type} done={send} />
}
