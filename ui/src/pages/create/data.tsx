import { useTranslation } from 'react-i18next'
import { size } from '../../format'
import { Button } from '../../parts/controls'
import type { Entry } from '../../parts/entries'
import { useSession } from '../../shell'
import type { DataRef } from '../../types'
import { Amount, One, Part, Text, useFilling, Yes } from './fields'
import { namedOption, useNamed } from './offers'

const kinds = ['dataset', 'model', 'algorithm', 'volume'] as const
type Kind = (typeof kinds)[number]

// Data is the fourth part: what the job reads, and where it writes.
export function Data() {
  const { t } = useTranslation()
  const { job } = useFilling()
  const of: Record<Kind, DataRef[]> = { dataset: job?.datasets ?? [], model: job?.models ?? [], algorithm: job?.algorithms ?? [], volume: job?.volumes ?? [] }
  const mounts = job?.mounts?.length ?? 0
  const count = kinds.reduce((sum, kind) => sum + of[kind].length, mounts)
  return (
    <Part title={t('create.part_data')} said={count > 0 ? t('create.data_count', { count }) : undefined} heads={[...kinds, 'mount', 'output']}>
      {kinds.map((kind) => <References key={kind} kind={kind} refs={of[kind]} />)}
      <Mounts />
      <div className="form">
        {kinds.map((kind) => (kind !== 'algorithm' || of.algorithm.length === 0) && <Adder key={kind} kind={kind} refs={of[kind]} />)}
        <Text at={`mount[${mounts}]#`} entry="job.mount" label={t('create.add_mount')} width={150} value="" hint="/data" write={(value) => (value ? [{ at: `mount[${mounts}]#`, value }] : [])} />
      </div>
      <div className="form">
        <Text at="output#" entry="job.output" label={t('create.output')} grow value={job?.output ?? ''} hint="models/run7" />
        <Text at="output.storage" entry="job.output_storage" label={t('create.storage')} off={!job?.output} value={job?.output_storage ?? ''} />
      </div>
      <p className="quiet">{t('create.output_said')}</p>
    </Part>
  )
}

const emptyNames: Record<Kind, string> = { dataset: 'create.add_dataset', model: 'create.add_model', algorithm: 'create.add_algorithm', volume: 'create.add_volume' }

// Adder adds data of one kind by its name. Data of another project is named with it;
// what is the project's own goes first.
function Adder({ kind, refs }: { kind: Kind; refs: DataRef[] }) {
  const { t } = useTranslation()
  const found = useNamed(kind)
  const project = useSession().data?.acting ?? ''
  const at = `${kind}[${refs.length}]`
  const add = (typed: string) => {
    const name = typed.trim()
    const known = found.filter((one) => one.object.name === name).map((one) => one.object.project)
    const other = known.length === 1 && known[0] !== project ? known[0]! : ''
    return name ? [{ at: at + '#', value: name }, ...(kind === 'dataset' ? [{ at: at + '.read_only', value: true }] : []), ...(other ? [{ at: at + '.project', value: other }] : [])] : []
  }
  return <Text at={at + '#'} entry={`job.${kind}` as Entry} label={t(emptyNames[kind])} width={150} value="" options={found.filter((one) => !refs.some((ref) => ref.name === one.object.name)).map(namedOption)} hint={t('create.search')} write={add} />
}

// References are the data of one kind that the job names.
function References({ kind, refs }: { kind: Kind; refs: DataRef[] }) {
  const { t } = useTranslation()
  const found = useNamed(kind)
  if (refs.length === 0) return null
  return (
    <fieldset className="rows-of">
      <legend>{t('create.kind_' + kind)}</legend>
      {refs.map((ref, i) => <Reference key={i} kind={kind} at={`${kind}[${i}]`} ref_={ref} found={found.find((one) => one.object.name === ref.name && (!ref.object || ref.object.project === one.object.project))} />)}
    </fieldset>
  )
}

function Reference({ kind, at, ref_: ref, found }: { kind: Kind; at: string; ref_: DataRef; found?: ReturnType<typeof useNamed>[number] }) {
  const { t } = useTranslation()
  const { change } = useFilling()
  const versions = (found?.object.versions ?? []).filter((one) => one.state === 'ready').map((one) => one.number)
  return (
    <div className="form">
      <Text at={at + '#'} bare label={t('create.name_of', { kind: t('create.kind_' + kind) })} width={160} value={ref.name} write={(value) => [{ at: at + '#', value: value || null }]} />
      {kind !== 'volume' && (versions.length > 0
        ? <One at={at + '.version'} label={t('create.version')} width={150} usual="0" value={ref.object?.asked ? '0' : String(ref.version ?? 0)} options={[{ value: '0', label: t('create.newest', { version: found?.newest ?? 0 }) }, ...[...versions].reverse().map((one) => ({ value: String(one), label: `v${one}` }))]} write={(value) => [{ at: at + '.version', value: value === '0' ? null : Number(value) }]} />
        : <Amount at={at + '.version'} label={t('create.version')} least={0} most={1 << 30} none value={ref.version ?? 0} />)}
      {(kind === 'dataset' || kind === 'model') && !ref.object && <One at={at + '.from'} label={t('create.from')} width={130} usual="private" value={ref.from ?? 'private'} options={(kind === 'model' ? ['private', 'favorite', 'pretrained'] : ['private', 'favorite']).map((value) => ({ value, label: t('create.from_' + value) }))} />}
      {!ref.object && <Text at={at + '.storage'} label={t('create.storage')} width={110} value={ref.storage ?? ''} />}
      {kind !== 'model' && <Yes at={at + '.read_only'} label={t('create.read_only')} value={ref.read_only ?? false} write={(now) => [{ at: at + '.read_only', value: now || null }, ...(!now && ref.prepare ? [{ at: at + '.prepare', value: null }] : [])]} />}
      {kind === 'dataset' && <Yes at={at + '.prepare'} label={t('create.prepare')} value={ref.prepare ?? false} write={(now) => [...(now ? [{ at: at + '.read_only', value: true }] : []), { at: at + '.prepare', value: now || null }]} />}
      {found && <span className="quiet said">{[found.object.project, size(found.bytes), found.object.description].filter(Boolean).join(' · ')}</span>}
      <Button small aria-label={t('create.remove', { name: ref.name })} onClick={() => void change([{ at: at + '#', value: null }])}>✕</Button>
    </div>
  )
}

// Mounts are directories of storages at places of the job's choice.
function Mounts() {
  const { t } = useTranslation()
  const { job, change } = useFilling()
  const mounts = job?.mounts ?? []
  if (mounts.length === 0) return null
  return (
    <fieldset className="rows-of">
      <legend>{t('create.mounts')}</legend>
      {mounts.map((mount, i) => {
        const at = `mount[${i}]`
        return (
          <div key={i} className="form">
            <Text at={at + '#'} label={t('create.target')} width={150} value={mount.target} write={(value) => [{ at: at + '#', value }]} />
            <Text at={at + '.source'} label={t('create.source')} width={180} value={mount.source ?? ''} />
            <Text at={at + '.storage'} label={t('create.storage')} width={110} value={mount.storage ?? ''} />
            <Yes at={at + '.read_only'} label={t('create.read_only')} value={mount.read_only ?? false} />
            <Button small aria-label={t('create.remove', { name: mount.target })} onClick={() => void change([{ at: at + '#', value: null }])}>✕</Button>
          </div>
        )
      })}
    </fieldset>
  )
}
