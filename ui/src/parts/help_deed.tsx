import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useNavigate } from 'react-router'
import { call, part } from '../api'
import { millis, quote } from '../format'
import { reasonText } from '../i18n'
import type { Forecast, Help, Job, JobFormatted, JobOutlook, JobSubmitted, When } from '../types'
import { Cli, DeedDialog, fileOf } from './actions'
import { Note } from './controls'
import { Dialog } from './controls/dialog'
import type { FileChange } from './jobfile'
import { startText } from './starts'
import { errorText, Loading } from './states'

// inPlace tells whether a change can be made to a job that waits, which keeps its
// place. All others are made by submitting it again.
export const inPlace = (help: Help) => help.kind === 'priority' || help.kind === 'preemptible' || help.kind === 'time_limit'

// changesOf is what a change that would help is in the job file; undefined for one
// that no values of it make, such as turning a script into a distributed one.
export function changesOf(help: Help): FileChange[] | undefined {
  switch (help.kind) {
    case 'nodes':
      return help.nodes ? [{ at: 'nodes', value: help.nodes }] : undefined
    case 'elastic':
      return help.min_nodes ? [{ at: 'elastic.min_nodes', value: help.min_nodes }] : undefined
    case 'spec':
      return help.model ? [{ at: 'resources.device.models', value: null }, { at: 'resources.device.model', value: help.model }] : undefined
    case 'pool':
      return help.pool ? [{ at: 'placement.pool', value: help.pool }] : undefined
    case 'devices':
      return help.devices ? [{ at: 'resources.device.count', value: help.devices }] : undefined
    case 'driver_version':
      return [{ at: 'placement.driver_version', value: null }]
    case 'any_node':
      return [{ at: 'placement.nodes', value: null }]
    case 'no_rdma':
      return [{ at: 'resources.rdma', value: null }]
    case 'resources':
      return help.cpu && help.params?.memory ? [{ at: 'resources.cpu', value: help.cpu }, { at: 'resources.memory', value: help.params.memory }] : undefined
    case 'priority':
    case 'preemptible':
      return help.priority ? [{ at: 'priority', value: help.priority }] : undefined
    case 'time_limit':
      return help.time_limit ? [{ at: 'time_limit', value: help.time_limit }] : undefined
  }
  return undefined
}

// againLine is what does the same on the command line.
export const againLine = (name: string, changes: FileChange[]) =>
  `nomadlike job stop ${quote(name)}\nnomadlike job clone ${changes.map((change) => `-set ${quote(`${change.at}=${change.value === null ? 'null' : String(change.value)}`)} `).join('')}-run ${quote(name)}`

// sooner tells whether one start is foreseen before another one.
export function sooner(a: When | undefined, b: When | Pick<Forecast, 'p50'> | undefined): boolean {
  if (!a || a.verdict === 'never' || a.verdict === 'unknown' || a.beyond === 'p50') return false
  if (a.verdict === 'now') return true
  return !b?.p50 || millis(a.p50) < millis(b.p50)
}

// HelpDialog makes a change that would help, once it is confirmed.
export function HelpDialog({ id, job, help, start, close }: { id: string; job: Job; help: Help; start?: When; close: () => void }) {
  if (inPlace(help)) return <DeedDialog deed={help.kind === 'time_limit' ? 'limit' : 'priority'} first={{ priority: help.priority, limit: help.time_limit }} jobs={[{ id, name: job.name, state: 'queued', priority: job.priority }]} close={close} />
  return <AgainDialog id={id} job={job} help={help} start={start} close={close} />
}

// AgainDialog submits a job that waits again, with a change. What the change does at
// the job's own place in the queue it need not do at the end: that is tried first.
function AgainDialog({ id, job, help, start, close }: { id: string; job: Job; help: Help; start?: When; close: () => void }) {
  const { t } = useTranslation()
  const client = useQueryClient()
  const go = useNavigate()
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>()
  const changes = changesOf(help) ?? []
  const tried = useQuery({
    queryKey: ['job', id, 'again', changes],
    retry: false,
    queryFn: async ({ signal }) => {
      const { hcl } = await call<JobFormatted>('POST', '/v1/jobs/format', { hcl: await fileOf(id, signal), set: changes }, signal)
      return { hcl, outlook: await call<JobOutlook>('POST', '/v1/jobs/forecast', { hcl }, signal) }
    },
  })
  const good = sooner(tried.data?.outlook, start)
  const run = async () => {
    setBusy(true)
    setError(undefined)
    try {
      await call('POST', `/v1/jobs/${part(id)}/stop`, { reason: t('help.reason') })
      const made = await call<JobSubmitted>('POST', '/v1/jobs', { hcl: tried.data!.hcl })
      await client.invalidateQueries({ predicate: (query) => ['jobs', 'job', 'queue'].includes(query.queryKey[0] as string) })
      close()
      void go('/jobs/' + made.job_id)
    } catch (failure) {
      setError(failure)
      setBusy(false)
    }
  }
  return (
    <Dialog title={t('help.again') + ' · ' + job.name} close={close} act={t('help.again')} run={() => void run()} busy={busy} off={!good}>
      <p>{reasonText(help)}</p>
      <p>{t('help.ask')}</p>
      {tried.error ? <Note tone="error" title={errorText(tried.error, t)} /> : !tried.data ? <Loading /> : (
        <p><strong>{t(good ? 'help.then' : 'help.no_use', { start: startText(t, tried.data.outlook) })}</strong></p>
      )}
      <Cli text={againLine(job.name, changes)} />
      {error !== undefined && <Note tone="error" title={errorText(error, t)} />}
    </Dialog>
  )
}
