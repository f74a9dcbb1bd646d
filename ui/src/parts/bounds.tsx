import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useNavigate } from 'react-router'
import { call, part } from '../api'
import { dateTime, quote, spelled } from '../format'
import type { JobDefaults, PoolCeilings, Priority, Project, ProjectDetail, Quota } from '../types'
import { Cli } from './actions'
import { CeilingFields, ceilingCounts, ceilingsFor, ceilingSpans, lengthFor, numberOf, textOf } from './ceiling_fields'
import { Button, Note } from './controls'
import { Dialog } from './controls/dialog'
import { Check, Choice, Field } from './controls/fields'
import { bytesOf, sizeText } from './jobfile'
import { details, errorText } from './states'
import { reasonText } from '../i18n'

// useProjectChange puts a record, and closes its dialog when that is done.
export function useProjectChange(close: () => void) {
  const client = useQueryClient()
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>()
  const run = async (act: () => Promise<unknown>) => {
    setBusy(true)
    setError(undefined)
    try {
      await act()
      await client.invalidateQueries({ predicate: ({ queryKey }) => ['projects', 'session', 'jobs', 'self'].includes(queryKey[0] as string) })
      close()
      return true
    } catch (failure) {
      setError(failure)
      setBusy(false)
      return false
    }
  }
  return { busy, error, run }
}

// Refused says why a record was not taken, field by field.
export function Refused({ error }: { error: unknown }) {
  const { t } = useTranslation()
  if (error === undefined) return null
  return <Note tone="error" title={errorText(error, t)}>{details(error).map((one, i) => <p key={i}>{one.message ?? reasonText(one)}</p>)}</Note>
}

interface Row {
  kind: string
  model: string
  guaranteed: string
  maximum: string
}

const rowsOf = (quotas?: Quota[]): Row[] => (quotas ?? []).map((quota) => ({ kind: quota.kind, model: quota.model ?? '', guaranteed: textOf(quota.guaranteed), maximum: textOf(quota.maximum) }))

// quotasOf are the quotas that are written in rows; one without a kind is none.
export const quotasOf = (rows: Row[]): Quota[] => rows.filter((row) => row.kind.trim()).map((row) => ({ kind: row.kind.trim(), ...(row.model.trim() && { model: row.model.trim() }), guaranteed: numberOf(row.guaranteed) ?? 0, ...(numberOf(row.maximum) !== undefined && { maximum: numberOf(row.maximum) }) }))

// BoundsDialog makes a project or changes what bounds it: quotas, defaults for jobs and
// ceilings. Who belongs to it stays as it is.
export function BoundsDialog({ project, taken = [], close }: { project?: Project; taken?: string[]; close: () => void }) {
  const { t } = useTranslation()
  const go = useNavigate()
  const { busy, error, run } = useProjectChange(close)
  const [name, setName] = useState(project?.name ?? '')
  const [description, setDescription] = useState(project?.description ?? '')
  const [weight, setWeight] = useState(textOf(project?.weight))
  const [urgent, setUrgent] = useState(textOf(project?.urgent_limit))
  const [rows, setRows] = useState<Row[]>(rowsOf(project?.quotas))
  const [defaults, setDefaults] = useState<JobDefaults>(project?.job_defaults ?? {})
  const [code, setCode] = useState(project?.code_max ? sizeText(project.code_max) : '')
  const [ceilings, setCeilings] = useState<PoolCeilings>(project?.ceilings ?? {})
  const row = (i: number, more: Partial<Row>) => setRows((old) => old.map((one, k) => (k === i ? { ...one, ...more } : one)))
  const exists = !project && taken.includes(name.trim())
  const put = () => run(() => call('PUT', '/v1/projects/' + part(name.trim()), {
    ...project, name: name.trim(), description, quotas: quotasOf(rows),
    job_defaults: { ...defaults, time_limit: lengthFor(defaults.time_limit) },
    ceilings: ceilingsFor(ceilings),
    code_max: bytesOf(code) ?? 0, weight: numberOf(weight) ?? 0, urgent_limit: numberOf(urgent),
  })).then((done) => done && !project && void go('/projects/' + part(name.trim())))
  const codeWrong = code.trim() !== '' && bytesOf(code) === undefined
  const act = t(project ? 'projects.save' : 'projects.create')
  return (
    <Dialog title={project ? t('projects.bounds_of', { project: project.name }) : act} close={close} act={act} busy={busy} off={!name.trim() || exists || codeWrong} run={() => void put()}>
      <div className="stack">
        {!project && <Field entry="project" label={t('projects.name')} value={name} change={setName} wrong={exists} autoComplete="off" spellCheck={false} />}
        {exists && <p role="alert" className="tone-bad">{t('projects.taken', { project: name.trim() })}</p>}
        <Field entry="project.description" label={t('projects.description')} value={description} change={setDescription} />
        <h3>{t('projects.quotas')}</h3>
        {rows.map((one, i) => (
          <div className="bar ends" key={i}>
            <Field entry="project.quota" label={t('projects.kind')} width={120} value={one.kind} change={(kind) => row(i, { kind })} placeholder="nvidia/gpu" spellCheck={false} />
            <Field entry="project.quota" label={t('projects.model')} width={110} value={one.model} change={(model) => row(i, { model })} placeholder={t('projects.any')} spellCheck={false} />
            <Field entry="project.quota" label={t('projects.guaranteed')} width={84} value={one.guaranteed} change={(guaranteed) => row(i, { guaranteed })} inputMode="numeric" />
            <Field entry="project.quota" label={t('projects.maximum')} width={84} value={one.maximum} change={(maximum) => row(i, { maximum })} inputMode="numeric" placeholder="∞" />
            <Button small tone="danger" aria-label={t('projects.quota_remove', { kind: one.kind })} onClick={() => setRows((old) => old.filter((_, k) => k !== i))}>{t('people.remove')}</Button>
          </div>
        ))}
        <p><Button small onClick={() => setRows((old) => [...old, { kind: 'nvidia/gpu', model: '', guaranteed: '', maximum: '' }])}>{t('projects.quota_add')}</Button></p>
        <div className="bar ends">
          <Field entry="project.urgent" label={t('projects.urgent')} width={120} value={urgent} change={setUrgent} inputMode="numeric" placeholder="∞" />
          <Field entry="project.weight" label={t('projects.weight')} width={120} value={weight} change={setWeight} inputMode="decimal" placeholder="1" />
          <Field entry="project.code_max" label={t('projects.code_max')} width={120} value={code} change={setCode} wrong={codeWrong} placeholder="512MiB" spellCheck={false} />
        </div>
        <h3>{t('projects.defaults')}</h3>
        <div className="bar ends">
          <Field entry="project.defaults" label={t('projects.pool')} width={120} value={defaults.pool ?? ''} change={(pool) => setDefaults({ ...defaults, pool: pool.trim() })} spellCheck={false} />
          <Choice entry="project.defaults" label={t('projects.priority')} value={defaults.priority ?? ''} change={(priority) => setDefaults({ ...defaults, priority: (priority || undefined) as Priority | undefined })} options={['', 'normal', 'urgent'].map((value) => ({ value, label: value ? t('priority.' + value) : '–' }))} />
          <Field entry="project.defaults" label={t('projects.time_limit')} width={100} value={defaults.time_limit ?? ''} change={(limit) => setDefaults({ ...defaults, time_limit: limit })} placeholder="24h" spellCheck={false} />
          <Field entry="project.defaults" label={t('projects.image')} value={defaults.image ?? ''} change={(image) => setDefaults({ ...defaults, image: image.trim() })} spellCheck={false} />
          <Field entry="project.defaults" label={t('projects.output_storage')} width={120} value={defaults.output_storage ?? ''} change={(storage) => setDefaults({ ...defaults, output_storage: storage.trim() })} spellCheck={false} />
        </div>
        <h3>{t('projects.ceilings')}</h3>
        <CeilingFields entry="project.ceilings" ceilings={ceilings} change={setCeilings} />
        <Refused error={error} />
        <Cli text="nomadlike project apply FILE" />
      </div>
    </Dialog>
  )
}

// Bounds show what a project gives its jobs and lets them have, and who set that.
export function Bounds({ project }: { project: Project }) {
  const { t } = useTranslation()
  const given = project.job_defaults ?? {}
  const most = project.ceilings ?? {}
  const defaults: [string, string][] = [
    ['pool', given.pool ?? ''], ['priority', given.priority ? t('priority.' + given.priority) : ''], ['time_limit', spelled(given.time_limit ?? '')],
    ['image', given.image ?? ''], ['output_storage', given.output_storage ?? ''], ['arguments', project.defaults?.arguments ?? ''],
    ...Object.entries(project.defaults?.env ?? {}).map(([name, value]): [string, string] => ['env', name + '=' + value]),
  ]
  const ceilings: [string, string][] = [
    ...ceilingSpans.map((key): [string, string] => [key, spelled(most[key] ?? '')]), ...ceilingCounts.map((key): [string, string] => [key, textOf(most[key])]),
    ['no_checkpoint', most.no_checkpoint ? t('projects.yes') : ''],
  ]
  const list = (of: [string, string][], none: string) => {
    const said = of.filter(([, value]) => value)
    return said.length ? <dl className="facts">{said.map(([key, value], i) => <div key={key + i} style={{ display: 'contents' }}><dt>{t('projects.' + key)}</dt><dd>{value}</dd></div>)}</dl> : <p className="quiet">{none}</p>
  }
  return (
    <>
      <h3>{t('projects.defaults')}</h3>
      {list(defaults, t('projects.no_defaults'))}
      <h3>{t('projects.ceilings')}</h3>
      {list(ceilings, t('projects.no_ceilings'))}
      {project.bounds_by && <p className="quiet">{t('projects.bounds_by', { by: project.bounds_by, time: dateTime(project.bounds_at) })}</p>}
    </>
  )
}

// ArchiveDialog closes a project for new jobs, or opens it again.
export function ArchiveDialog({ detail: { project, queued, running }, close }: { detail: ProjectDetail; close: () => void }) {
  const { t } = useTranslation()
  const { busy, error, run } = useProjectChange(close)
  const [stop, setStop] = useState(false)
  const live = queued + running
  const back = !!project.archived
  const act = t(back ? 'projects.unarchive' : 'projects.archive')
  return (
    <Dialog title={t(back ? 'projects.unarchive_of' : 'projects.archive_of', { project: project.name })} close={close} act={act} danger={!back} busy={busy} off={!back && live > 0 && !stop}
      run={() => void run(() => call('PUT', `/v1/projects/${part(project.name)}/archive`, back ? {} : { archived: true, ...(stop && { stop_jobs: true }) }))}>
      <div className="stack">
        <p>{t(back ? 'projects.unarchives' : 'projects.archives', { project: project.name })}</p>
        {!back && live > 0 && <><p><strong>{t('projects.has_live', { count: live })}</strong></p><Check entry="project.stop" checked={stop} change={setStop}>{t('projects.stop_jobs')}</Check></>}
        <Refused error={error} />
        <Cli text={`nomadlike project ${back ? 'unarchive' : 'archive'} ${stop ? '-stop-jobs ' : ''}${quote(project.name)}`} />
      </div>
    </Dialog>
  )
}
