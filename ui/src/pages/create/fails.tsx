import type { TFunction } from 'i18next'
import { useTranslation } from 'react-i18next'
import { lengthOf } from '../../format'
import { Button } from '../../parts/controls'
import type { Option } from '../../parts/controls/fields'
import type { FileChange } from '../../parts/jobfile'
import { shortLimit } from '../../parts/limit'
import type { Job } from '../../types'
import { Amount, One, Part, Text, useFilling, Yes } from './fields'
import { listOf, Words } from './what'

const time = (value?: string) => (value && lengthOf(value) ? shortLimit(lengthOf(value)) : '')

// againOf is what the job does after a failure of its own: nothing, restart, or go on
// from what it saved. The two exclude each other.
export const againOf = (job?: Job): 'none' | 'restart' | 'resume' => (job?.checkpoint ? 'resume' : job?.restart ? 'restart' : 'none')

export const againChanges = (again: string): FileChange[] => [
  ...(again === 'restart' ? [] : [{ at: 'restart#', value: null }]),
  ...(again === 'resume' ? [] : [{ at: 'checkpoint#', value: null }]),
  ...(again === 'restart' ? [{ at: 'restart.max_restarts', value: 3 }] : again === 'resume' ? [{ at: 'checkpoint.max_resumes', value: 3 }] : []),
]

// failsText says in a line what happens when something fails.
function failsText(t: TFunction, job?: Job): string {
  if (!job) return ''
  const again = againOf(job)
  return [
    again === 'none' ? t('create.again_none') : t('create.again_said_' + again, { count: (again === 'restart' ? job.restart?.max_restarts : job.checkpoint?.max_resumes) ?? 0 }),
    job.elastic && t('create.elastic_said', { nodes: job.elastic.min_nodes }), job.debug?.hold && lengthOf(job.debug.hold) ? t('create.hold_said', { time: time(job.debug.hold) }) : '',
  ].filter(Boolean).join(' · ')
}

// Fails is the fifth part: what happens when something goes wrong.
export function Fails() {
  const { t } = useTranslation()
  const { job, left } = useFilling()
  const again = againOf(job)
  const watch: Option<string>[] = ['alert', 'reschedule'].map((value) => ({ value, label: t('create.watch_' + value) }))
  const { checkpoint, restart, elastic } = job ?? {}
  const performance = checkpoint?.performance
  return (
    <Part folds title={t('create.part_fails')} said={failsText(t, job)} heads={['restart', 'checkpoint', 'elastic', 'hang', 'debug', 'stop_grace', 'fencing']}>
      <div className="form">
        <One at="restart" entry="job.restart" label={t('create.again')} width={200} value={again} options={(['none', 'restart', 'resume'] as const).map((value) => ({ value: value as string, label: t('create.again_' + value) }))} write={againChanges} />
        {again === 'restart' && <Amount at="restart.max_restarts" entry="job.max_restarts" label={t('create.max_restarts')} least={0} most={1000} value={restart?.max_restarts ?? 0} />}
        {again === 'restart' && <Text at="restart.delay" entry="job.restart_delay" label={t('create.delay')} width={80} value={time(restart?.delay)} hint="10s" />}
        {again === 'resume' && <Amount at="checkpoint.max_resumes" entry="job.max_resumes" label={t('create.max_resumes')} least={0} most={1000} value={checkpoint?.max_resumes ?? 0} />}
        {again === 'resume' && <Text at="checkpoint.grace" entry="job.grace" label={t('create.grace')} width={80} value={left('checkpoint.grace') ? '' : time(checkpoint?.grace)} hint={time(checkpoint?.grace) || '5m'} />}
        {again === 'resume' && <One at="checkpoint.signal" entry="job.signal" label={t('create.signal')} width={110} value={checkpoint?.signal ?? 'SIGTERM'} usual="" options={['SIGTERM', 'SIGUSR1', 'SIGUSR2', 'SIGINT'].map((value) => ({ value, label: value }))} />}
      </div>
      {again === 'resume' && (
        <div className="form">
          <Text at="checkpoint.dir" entry="job.checkpoint_dir" label={t('create.checkpoint_dir')} grow value={checkpoint?.dir ?? ''} hint="/workspace/outputs" />
          <Text at="checkpoint.pattern" entry="job.checkpoint_pattern" label={t('create.checkpoint_pattern')} width={130} value={checkpoint?.pattern ?? ''} hint="step-*.pt" />
          <Yes at="checkpoint.precheck" entry="job.precheck" label={t('create.precheck')} value={checkpoint?.precheck ?? false} />
        </div>
      )}
      {again === 'resume' && (
        <div className="form">
          <Yes at="checkpoint.performance" entry="job.performance" label={t('create.performance')} value={!!performance} write={(now) => [now ? { at: 'checkpoint.performance.threshold', value: 0.7 } : { at: 'checkpoint.performance#', value: null }]} />
          {performance && <Amount at="checkpoint.performance.threshold" entry="job.threshold" label={t('create.threshold')} least={0} most={1e9} value={performance.threshold} />}
          {performance && <One at="checkpoint.performance.compare" entry="job.compare" label={t('create.compare')} width={110} value={performance.compare ?? 'gt'} usual="" options={['lt', 'gt'].map((value) => ({ value, label: t('create.compare_' + value) }))} />}
          {performance && <Amount at="checkpoint.performance.times" entry="job.times" label={t('create.times')} least={1} most={1000} value={performance.times ?? 3} />}
          {performance && <One at="checkpoint.performance.action" entry="job.action" label={t('create.action')} width={180} value={performance.action ?? 'alert'} usual="" options={watch} />}
        </div>
      )}
      <div className="form">
        <Yes at="elastic" entry="job.elastic" label={t('create.elastic')} value={!!elastic} write={(now) => [now ? { at: 'elastic.min_nodes', value: Math.max(1, Math.floor((job?.nodes ?? 1) / 2)) } : { at: 'elastic#', value: null }]} />
        {elastic && <Amount at="elastic.min_nodes" entry="job.min_nodes" label={t('create.min_nodes')} least={1} most={10_000} value={elastic.min_nodes} />}
        {elastic && <One at="elastic.by" entry="job.elastic_by" label={t('create.elastic_by')} width={150} value={elastic.by ?? 'restart'} usual="" options={['restart', 'torchrun'].map((value) => ({ value, label: t('create.by_' + value) }))} />}
        {elastic && <Yes at="elastic.allow_resize" entry="job.allow_resize" label={t('create.allow_resize')} value={elastic.allow_resize ?? false} />}
      </div>
      <div className="form">
        <One at="hang.action" entry="job.hang" label={t('create.hang')} width={200} value={left('hang.action') ? '' : (job?.hang?.action ?? '')} usual="" options={[{ value: '', label: t('create.hang_usual') }, ...watch]} write={(now) => [now ? { at: 'hang.action', value: now } : { at: 'hang#', value: null }]} />
        <Text at="debug.hold" entry="job.hold" label={t('create.hold')} width={90} value={left('debug.hold') ? '' : time(job?.debug?.hold)} hint={time(job?.debug?.hold) || '2h'} write={(now) => [now ? { at: 'debug.hold', value: now } : { at: 'debug#', value: null }]} />
        {again !== 'resume' && <Text at="stop_grace" entry="job.stop_grace" label={t('create.stop_grace')} width={90} value={left('stop_grace') ? '' : time(job?.stop_grace)} hint={time(job?.stop_grace)} />}
        <One at="fencing" entry="job.fencing" label={t('create.fencing')} width={150} value={job?.fencing ?? 'commit'} usual="commit" options={['commit', 'strict'].map((value) => ({ value, label: t('create.fencing_' + value) }))} />
      </div>
    </Part>
  )
}

const moments = ['prestart', 'poststart', 'prestop', 'poststop'] as const
const happenings = ['started', 'succeeded', 'failed', 'expired'] as const

// More is the last part: scripts beside the command, who is told, and how one gets in.
export function More() {
  const { t } = useTranslation()
  const { job, change } = useFilling()
  const hooks = job?.task.hooks ?? []
  const said = [hooks.length > 0 && t('create.hooks_said', { count: hooks.length }), job?.notify && t('create.notify_said', { to: job.notify.to }), t('create.terminal_said')].filter(Boolean).join(' · ')
  return (
    <Part folds title={t('create.part_more')} said={said} heads={['task.hook', 'notify', 'metrics', 'note']}>
      <p className="quiet">{t('create.terminal')}</p>
      <fieldset className="rows-of">
        <legend>{t('create.hooks')}</legend>
        {hooks.map((hook, i) => {
          const at = `task.hook[${i}]`
          return (
            <div key={i} className="form">
              <One at={at + '#'} label={t('create.when')} width={150} value={hook.when} options={moments.map((value) => ({ value: value as string, label: t('create.' + value) }))} write={(value) => [{ at: at + '#', value }]} />
              <Text at={at + '.command'} label={t('create.command')} grow value={hook.command} write={(value) => [{ at: at + '.command', value }]} />
              <Text at={at + '.timeout'} label={t('create.timeout')} width={80} value={time(hook.timeout)} hint="5m" />
              <Button small aria-label={t('create.remove', { name: t('create.' + hook.when) })} onClick={() => void change([{ at: at + '#', value: null }])}>✕</Button>
            </div>
          )
        })}
        <div className="form"><Text at={`task.hook[${hooks.length}].command`} entry="job.hook" label={t('create.add_hook')} grow value="" hint="sh check.sh" write={(value) => (value ? [{ at: `task.hook[${hooks.length}]#`, value: 'prestart' }, { at: `task.hook[${hooks.length}].command`, value }] : [])} /></div>
      </fieldset>
      <div className="form">
        <Text at="notify.to" entry="job.notify" label={t('create.notify')} width={130} value={job?.notify?.to ?? ''} hint="bell" write={(value) => (value ? [{ at: 'notify.to', value }, ...(job?.notify ? [] : [{ at: 'notify.on', value: ['failed', 'expired'] }])] : [{ at: 'notify#', value: null }])} />
        {job?.notify && <Text at="notify.on" label={t('create.notify_on')} width={220} value={(job.notify.on ?? []).join(', ')} hint={happenings.join(', ')} write={(value) => [{ at: 'notify.on', value: listOf(value) }]} />}
        <Text at="metrics.events" entry="job.metrics_events" label={t('create.metrics_events')} grow value={job?.metrics?.events ?? ''} hint="/workspace/outputs/tb" write={(value) => (value ? [{ at: 'metrics.events', value }] : [{ at: 'metrics.events', value: null }])} />
      </div>
      <Words />
    </Part>
  )
}
