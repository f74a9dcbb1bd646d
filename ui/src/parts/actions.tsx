import { useQueryClient } from '@tanstack/react-query'
import { App, Button, Input, Modal, Radio } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useNavigate } from 'react-router'
import { call, part } from '../api'
import { quote } from '../format'
import { endedStates, type JobState, type Priority } from '../types'
import { errorText } from './states'

// What one can do to a job. Each shows the command line that does the same.
export type Deed = 'stop' | 'delete' | 'priority' | 'limit' | 'first' | 'last'

export interface Doing {
  deed: Deed
  reason?: string
  priority?: Priority
  limit?: string
}

// commandLine is what does the same on the command line.
export function commandLine(name: string, doing: Doing): string {
  const job = quote(name)
  switch (doing.deed) {
    case 'stop':
      return `nomadlike job stop ${doing.reason ? `-reason ${quote(doing.reason)} ` : ''}${job}`
    case 'delete':
      return `nomadlike job delete ${job}`
    case 'priority':
      return `nomadlike job priority ${job} ${doing.priority ?? 'normal'}`
    case 'limit':
      return `nomadlike job limit ${job} ${doing.limit ? quote(doing.limit) : 'none'}`
    case 'first':
    case 'last':
      return `nomadlike queue move -${doing.deed} ${job}`
  }
}

// perform asks the API for it.
export function perform(id: string, doing: Doing): Promise<unknown> {
  const path = '/v1/jobs/' + part(id)
  switch (doing.deed) {
    case 'stop':
      return call('POST', path + '/stop', { reason: doing.reason || undefined })
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

export function deedsFor(state: JobState): Deed[] {
  if (endedStates.includes(state)) return ['delete']
  if (state === 'queued') return ['stop', 'priority', 'limit', 'first', 'last']
  return ['stop', 'limit']
}

export interface Target {
  id: string
  name: string
  state: JobState
  priority: Priority
}

// Deeds are the buttons of a job.
export function Deeds({ job }: { job: Target }) {
  const { t } = useTranslation()
  const [deed, setDeed] = useState<Deed>()
  return (
    <>
      {deedsFor(job.state).map((one) => (
        <Button key={one} danger={one === 'stop' || one === 'delete'} onClick={() => setDeed(one)}>
          {t('deed.' + one)}
        </Button>
      ))}
      {deed && <DeedDialog key={deed} deed={deed} jobs={[job]} close={() => setDeed(undefined)} />}
    </>
  )
}

// DeedDialog asks once more, for one job or for several.
export function DeedDialog({ deed, jobs, close, done }: { deed: Deed; jobs: Target[]; close: () => void; done?: () => void }) {
  const { t } = useTranslation()
  const { message } = App.useApp()
  const client = useQueryClient()
  const go = useNavigate()
  const [doing, setDoing] = useState<Doing>({ deed, priority: jobs[0]?.priority === 'urgent' ? 'normal' : 'urgent' })
  const [busy, setBusy] = useState(false)
  const run = async () => {
    setBusy(true)
    const results = await Promise.allSettled(jobs.map((job) => perform(job.id, doing)))
    const failed = results.flatMap((result, i) => (result.status === 'rejected' ? [`${jobs[i]!.name}: ${errorText(result.reason, t)}`] : []))
    setBusy(false)
    await client.invalidateQueries({ predicate: (query) => ['jobs', 'job', 'queue'].includes(query.queryKey[0] as string) })
    if (failed.length > 0) {
      void message.error(failed.slice(0, 5).join('\n'), 8)
      if (jobs.length === 1) return
    } else void message.success(t('deed.done_' + deed, { count: jobs.length, name: jobs[0]!.name }))
    close()
    done?.()
    if (deed === 'delete' && jobs.length === 1 && location.pathname.startsWith('/jobs/')) void go('/jobs')
  }
  const names = jobs.length === 1 ? jobs[0]!.name : t('deed.several', { count: jobs.length })
  return (
    <Modal
      open
      title={t('deed.' + deed) + ' · ' + names}
      okText={t('deed.' + deed)}
      cancelText={t('deed.cancel')}
      okButtonProps={{ danger: deed === 'stop' || deed === 'delete', loading: busy }}
      onOk={() => void run()}
      onCancel={close}
    >
      <p>{t('deed.ask_' + deed)}</p>
      {deed === 'stop' && (
        <p>
          <label htmlFor="reason">{t('deed.reason')}</label>
          <Input id="reason" maxLength={200} value={doing.reason} onChange={(e) => setDoing({ ...doing, reason: e.target.value })} />
        </p>
      )}
      {deed === 'priority' && (
        <p>
          <Radio.Group
            aria-label={t('deed.priority')}
            value={doing.priority}
            onChange={(e) => setDoing({ ...doing, priority: e.target.value as Priority })}
            options={(['normal', 'urgent', 'critical'] as Priority[]).map((value) => ({ value, label: t('priority.' + value) }))}
          />
        </p>
      )}
      {deed === 'limit' && (
        <p>
          <label htmlFor="limit">{t('deed.limit_label')}</label>
          <Input id="limit" placeholder="36h" value={doing.limit} onChange={(e) => setDoing({ ...doing, limit: e.target.value })} />
        </p>
      )}
      <Cli text={jobs.slice(0, 3).map((job) => commandLine(job.name, doing)).join('\n') + (jobs.length > 3 ? '\n…' : '')} />
    </Modal>
  )
}

// Cli shows a command line that does the same.
export function Cli({ text }: { text: string }) {
  const { t } = useTranslation()
  return (
    <div>
      <div className="quiet">{t('deed.cli')}</div>
      <pre className="cli">{text}</pre>
    </div>
  )
}
