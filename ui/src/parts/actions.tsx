import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useNavigate } from 'react-router'
import { call, get, part } from '../api'
import { clock, quote, span, spelled } from '../format'
import { useGuest } from '../guest'
import { useRights } from '../rights'
import type { SavedCheckpoint, JobFormatted, JobDetail, JobState, Priority, Supports } from '../types'
import { AnnotateFields } from './annotate'
import { Button, Drop, Note } from './controls'
import { Dialog } from './controls/dialog'
import { Check, Choice, Count, Field, Radios } from './controls/fields'
import { say } from './controls/messages'
import { deedsFor, type Deed } from './deeds'
import { variablesOf } from './jobfile'
import { LimitField, useElapsed } from './limit'
import { errorText } from './states'

export { deedsFor, type Deed } from './deeds'

// Doing is a deed with what it is told. Each shows the command line that does the
// same.
export interface Doing {
  deed: Deed
  reason?: string
  priority?: Priority
  limit?: string // '0s' is none
  idle?: number // milliseconds that a throttled job stands still in turn; 0 lifts the throttle
  busy?: number
  step?: number // of the checkpoint to resume from; none is the newest
  add?: string[] // tags
  remove?: string[]
  note?: string // none is as it was
}

const busyUsual = 500 // milliseconds, as the server and the command line

// commandLine is what does the same on the command line.
export function commandLine(name: string, doing: Doing): string {
  const job = quote(name)
  const reason = doing.reason ? `-reason ${quote(doing.reason)} ` : ''
  switch (doing.deed) {
    case 'stop':
    case 'finish':
    case 'pause':
    case 'continue':
      return `nomadlike job ${doing.deed} ${reason}${job}`
    case 'throttle':
      return `nomadlike job throttle ${(doing.busy ?? busyUsual) !== busyUsual && doing.idle ? `-busy ${doing.busy}ms ` : ''}${reason}${job} ${doing.idle ? `idle:${doing.idle}` : 'off'}`
    case 'resume':
      return `nomadlike job resume ${doing.step ? `-step ${doing.step} ` : ''}${job}`
    case 'clone':
      return `nomadlike job clone -run ${job}`
    case 'annotate': {
      const tags = [...(doing.add ?? []).map((tag) => '+' + tag), ...(doing.remove ?? []).map((tag) => '-' + tag)]
      return [...(tags.length > 0 ? [`nomadlike job tag ${job} ${tags.map(quote).join(' ')}`] : []), ...(doing.note === undefined ? [] : [`nomadlike job note ${job} ${doing.note === '' ? "''" : quote(doing.note)}`])].join('\n')
    }
    case 'delete':
      return `nomadlike job delete ${job}`
    case 'priority':
      return `nomadlike job priority ${job} ${doing.priority ?? 'normal'}`
    case 'limit':
      return `nomadlike job limit ${job} ${doing.limit && doing.limit !== '0s' ? quote(doing.limit) : 'none'}`
    case 'first':
    case 'last':
      return `nomadlike queue move -${doing.deed} ${job}`
  }
}

// fileOf is the job file of a job that there is.
export async function fileOf(id: string, signal?: AbortSignal): Promise<string> {
  const { job } = await get<JobDetail>('/v1/jobs/' + part(id), signal)
  // A file with variables does not hold their values: it is written anew.
  if (job.source && variablesOf(job.source).length === 0) return job.source
  return (await call<JobFormatted>('POST', '/v1/jobs/format', { job: { ...job, id: undefined, user: undefined, submitted_at: undefined, resume: undefined, source: undefined } }, signal)).hcl
}

// perform asks the API for it.
export function perform(id: string, doing: Doing): Promise<unknown> {
  const path = '/v1/jobs/' + part(id)
  switch (doing.deed) {
    case 'stop':
    case 'finish':
    case 'pause':
    case 'continue':
      return call('POST', path + '/' + doing.deed, { reason: doing.reason || undefined })
    case 'throttle':
      return call('PUT', path + '/throttle', { reason: doing.reason || undefined, busy: `${doing.busy ?? busyUsual}ms`, idle: `${doing.idle ?? 0}ms` })
    case 'resume':
      return Promise.resolve() // the create page submits it, once it is confirmed there
    case 'clone':
      return fileOf(id).then((hcl) => call('POST', '/v1/jobs', { hcl }))
    case 'annotate':
      return call('POST', path + '/annotations', { add: doing.add, remove: doing.remove, note: doing.note })
    case 'delete':
      return call('DELETE', path)
    case 'priority':
      return call('PUT', path + '/priority', { priority: doing.priority })
    case 'limit':
      return call('PUT', path + '/time-limit', { time_limit: doing.limit || '0s' })
    case 'first':
      return call('POST', path + '/move', {})
    case 'last':
      return call('POST', path + '/move', { last: true })
  }
}

const beside = 3 // deeds that are buttons of their own; the others are in a menu

export interface Target {
  id: string
  name: string
  state: JobState
  priority: Priority
  checkpoints?: SavedCheckpoint[]
  throttled?: boolean
  may?: string[] | null // what the reader may do to it, where that is known
  supports?: Supports
}

// Deeds are the buttons of a job.
export function Deeds({ job }: { job: Target }) {
  const { t } = useTranslation()
  const [deed, setDeed] = useState<Deed>()
  const allowed = useRights()
  const can = deedsFor(job.state, job.may, job.supports).filter((one) => one !== 'resume' || (job.checkpoints?.length && allowed('submit')))
  const more = can.length > beside + 1 ? can.slice(beside) : []
  return (
    <>
      {can.slice(0, can.length - more.length).map((one) => (
        <Button key={one} tone={one === 'stop' || one === 'delete' ? 'danger' : 'plain'} onClick={() => setDeed(one)}>
          {t('deed.' + one)}
        </Button>
      ))}
      {more.length > 0 && (
        <Drop label={t('deed.more')}>
          <div className="deed-list">{more.map((one) => <Button key={one} tone="bare" onClick={() => setDeed(one)}>{t('deed.' + one)}</Button>)}</div>
        </Drop>
      )}
      {deed && <DeedDialog key={deed} deed={deed} jobs={[job]} close={() => setDeed(undefined)} />}
    </>
  )
}

// DeedDialog asks once more, for one job or for several.
export function DeedDialog({ deed, jobs, close, done, first }: { deed: Deed; jobs: Target[]; close: () => void; done?: () => void; first?: Partial<Doing> }) {
  const { t } = useTranslation()
  const client = useQueryClient()
  const go = useNavigate()
  const [doing, setDoing] = useState<Doing>({ deed, priority: jobs[0]?.priority === 'urgent' ? 'normal' : 'urgent', idle: deed === 'throttle' ? 100 : undefined, busy: busyUsual, ...first })
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState('')
  const [sure, setSure] = useState(false)
  const ran = useElapsed(jobs[0]?.id ?? '', deed === 'limit' && jobs.length > 0)
  const limit = doing.limit ?? ran.limit
  const over = deed === 'limit' && ran.over(limit ?? '')
  const given = deed === 'limit' ? { ...doing, limit } : doing
  const run = async () => {
    if (deed === 'resume') { // what will run is shown there, and may be changed
      close()
      void go(`/jobs/new?clone=${part(jobs[0]!.id)}&resume=${part(jobs[0]!.id)}${doing.step ? `&step=${doing.step}` : ''}`)
      return
    }
    setBusy(true)
    setError('')
    const results = await Promise.allSettled(jobs.map((job) => perform(job.id, given)))
    const failed = results.flatMap((result, i) => (result.status === 'rejected' ? [`${jobs[i]!.name}: ${errorText(result.reason, t)}`] : []))
    setBusy(false)
    await client.invalidateQueries({ predicate: (query) => ['jobs', 'job', 'queue'].includes(query.queryKey[0] as string) })
    if (failed.length > 0) {
      if (jobs.length === 1) return setError(failed[0]!)
      say('bad', failed.slice(0, 5).join('\n'))
    } else say('good', t('deed.done_' + deed, { count: jobs.length, name: jobs[0]!.name }))
    close()
    done?.()
    if (deed === 'delete' && jobs.length === 1 && location.pathname.startsWith('/jobs/')) void go('/jobs')
  }
  const names = jobs.length === 1 ? jobs[0]!.name : t('deed.several', { count: jobs.length })
  return (
    <Dialog
      title={t('deed.' + deed) + ' · ' + names}
      close={close}
      act={t('deed.' + deed)}
      run={() => void run()}
      danger={deed === 'stop' || deed === 'delete'}
      busy={busy}
      off={(deed === 'annotate' && !doing.add?.length && !doing.remove?.length && doing.note === undefined) || deed === 'limit' && (!ran.ready || !ran.changes(limit ?? '') || (over && !sure))}
    >
      <p>{t('deed.ask_' + deed)}</p>
      {(deed === 'stop' || deed === 'finish' || deed === 'pause' || deed === 'continue' || deed === 'throttle') && (
        <Field entry="reason" label={t('deed.reason')} maxLength={200} value={doing.reason ?? ''} change={(reason) => setDoing({ ...doing, reason })} />
      )}
      {deed === 'throttle' && (
        <>
          <Count entry="throttle" label={t('deed.idle')} width="100%" least={0} most={60_000} step={50} value={doing.idle ?? 0} change={(idle) => setDoing((old) => ({ ...old, idle }))} />
          <Count entry="throttle.busy" label={t('deed.busy')} width="100%" least={10} most={60_000} step={50} value={doing.busy ?? busyUsual} change={(busy) => setDoing((old) => ({ ...old, busy }))} />
        </>
      )}
      {deed === 'resume' && (
        <Choice entry="resume" label={t('deed.from')} width="100%" value={doing.step ?? 0} change={(step) => setDoing({ ...doing, step: step || undefined })}
            options={[...(jobs[0]?.checkpoints ?? [])].reverse().map((saved, i) => ({ value: i === 0 ? 0 : (saved.step ?? -i), off: i > 0 && !saved.step, label: t('deed.saved', { step: saved.step ?? '–', time: clock(saved.saved_at), path: saved.path }) }))} />
      )}
      {deed === 'priority' && (
        <Radios entry="priority" label={t('deed.priority')} value={doing.priority} change={(priority) => setDoing({ ...doing, priority })}
          options={(['normal', 'urgent', 'critical'] as Priority[]).map((value) => ({ value, label: t('priority.' + value) }))} />
      )}
      {deed === 'limit' && ran.ready && (
        <div className="stack">
          <p className="quiet">{ran.limit === '0s' ? t('limit.none_now') : t('limit.now', { limit: spelled(ran.limit!) })}{ran.elapsed > 0 && ' ' + t('limit.elapsed', { time: span(ran.elapsed) })}</p>
          <LimitField value={limit!} set={(value) => setDoing({ ...doing, limit: value })} none />
          {over && <Note tone="warning" title={t('limit.over', { time: span(ran.elapsed) })}><Check checked={sure} change={setSure}>{t('limit.sure')}</Check></Note>}
        </div>
      )}
      {deed === 'annotate' && <AnnotateFields jobs={jobs} change={(changes) => setDoing((old) => ({ ...old, add: undefined, remove: undefined, note: undefined, ...changes }))} />}
      <Cli text={jobs.slice(0, 3).map((job) => commandLine(job.name, given)).join('\n') + (jobs.length > 3 ? '\n…' : '')} />
      {error && <Note tone="error" title={error} />}
    </Dialog>
  )
}

// Cli shows a command line that does the same.
export function Cli({ text }: { text: string }) {
  const { t } = useTranslation()
  if (useGuest()) return null // whoever has no token has no command line either
  return (
    <div>
      <div className="quiet">{t('deed.cli')}</div>
      <pre className="cli">{text}</pre>
    </div>
  )
}
