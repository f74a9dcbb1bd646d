import { useTranslation } from 'react-i18next'
import { lengthOf } from '../../format'
import { LimitPresets, shortLimit } from '../../parts/limit'
import { useSession } from '../../shell'
import { Amount, Lines, One, Part, Text, useFilling, Yes } from './fields'

const categories = ['debug', 'inference', 'training', 'special'] as const
const rights = ['read-write', 'read-only', 'none'] as const

// listOf reads words apart by commas or blanks.
export const listOf = (typed: string): string[] => [...new Set(typed.split(/[\s,，]+/).filter(Boolean))]

// What is the first part: what the job is called, whose it is, and who sees it.
export function What() {
  const { t } = useTranslation()
  const { job, left, change } = useFilling()
  const projects = [...new Set((useSession().data?.memberships ?? []).map((one) => one.project))]
  const limit = job?.time_limit && job.time_limit !== '0s' && !left('time_limit') && lengthOf(job.time_limit) ? shortLimit(lengthOf(job.time_limit)) : ''
  const batch = job?.type === 'batch'
  return (
    <Part title={t('create.part_what')} heads={['name', 'project', 'type', 'batch', 'category', 'description', 'access', 'priority', 'preemptible', 'time_limit', 'expected_runtime', 'tags', 'note']}>
      <div className="form">
        <Text at="#" entry="job.name" label={t('jobs.name')} width={180} value={job?.name ?? ''} write={(value) => [{ at: '#', value }]} />
        <Text at="project" entry="job.project" label={t('jobs.project')} width={130} value={left('project') ? '' : (job?.project ?? '')} hint={job?.project} options={projects.map((value) => ({ value, label: value }))} />
        <One at="category" entry="job.category" label={t('create.category')} usual="" value={job?.category ?? ''} options={[{ value: '', label: t('create.not_said') }, ...categories.map((value) => ({ value: value as string, label: t('create.category_' + value) }))]} />
        <One at="access" entry="job.access" label={t('create.access')} width={190} value={left('access') ? '' : (job?.access ?? '')} usual="" options={[{ value: '', label: t('create.access_usual', { access: t('create.access_' + (job?.access ?? 'none').replace('-', '_')) }) }, ...rights.map((value) => ({ value: value as string, label: t('create.access_' + value.replace('-', '_')) }))]} />
        <One at="priority" entry="job.priority" label={t('jobs.priority')} width={120} value={job?.priority ?? 'normal'} usual="normal" options={(['normal', 'urgent', 'critical'] as const).map((value) => ({ value: value as string, label: t('priority.' + value) }))} />
        <One at="type" entry="job.type" label={t('create.type')} value={job?.type ?? 'training'} options={[{ value: 'training', label: t('create.type_training') }, { value: 'batch', label: t('create.type_batch') }]}
          write={(value) => (value === 'batch' ? [{ at: 'type', value }, { at: 'batch.count', value: 4 }] : [{ at: 'type', value: null }, { at: 'batch#', value: null }])} />
        {batch && !job?.sweep && <Amount at="batch.count" entry="job.batch" label={t('create.batch_count')} least={1} most={10_000} value={job?.batch?.count ?? 1} />}
      </div>
      <div className="form">
        <Text at="time_limit" entry="job.time_limit" label={t('job.limit')} width={90} value={limit} hint={left('time_limit') && job?.time_limit && lengthOf(job.time_limit) ? shortLimit(lengthOf(job.time_limit)) : '36h'} />
        <LimitPresets off={!job} value={limit} set={(value) => void change([{ at: 'time_limit', value }])} />
        <Text at="expected_runtime" entry="job.expected_runtime" label={t('create.expected')} width={110} value={job?.expected_runtime && lengthOf(job.expected_runtime) ? shortLimit(lengthOf(job.expected_runtime)) : ''} hint="6h30m" />
        <Yes at="preemptible" entry="job.preemptible" label={t('jobs.preemptible')} value={job?.preemptible ?? false} />
      </div>
      {batch && <p className="quiet">{t('create.batch_said')}</p>}
      <div className="form">
        <Text at="description" entry="job.description" label={t('create.description')} grow value={job?.description ?? ''} />
        <Text at="tags" entry="job.tags" label={t('create.tags')} width={200} value={(job?.tags ?? []).join(', ')} write={(value) => [{ at: 'tags', value: listOf(value).length ? listOf(value) : null }]} />
      </div>
    </Part>
  )
}

// Words are what somebody wants to keep with the job.
export function Words() {
  const { t } = useTranslation()
  const { job } = useFilling()
  return <Lines at="note" entry="job.note" label={t('create.note')} value={job?.note ?? ''} />
}
