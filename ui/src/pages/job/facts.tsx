import { useTranslation } from 'react-i18next'
import { dateTime, devicesOf, size, spelled } from '../../format'
import { JobLink } from '../../parts/places'
import type { JobDetail } from '../../types'
import { Code } from './code'

export function Facts({ detail }: { detail: JobDetail }) {
  const { t } = useTranslation()
  const job = detail.job
  const specs = (job.resources ?? []).map((r) => [r.label, t('short.cores', { count: r.cpu }), size(r.memory), ...(r.devices ?? []).map((d) => `${d.count === -1 ? t('job.all_cards') : t('short.cards', { count: d.count ?? 1 })} ${d.model ?? d.models?.join('|') ?? d.kind}`)].filter(Boolean).join(' · '))
  const facts: [string, React.ReactNode][] = [
    [t('jobs.id'), <code key="id">{job.id}</code>],
    [t('job.number'), job.number],
    [t('jobs.project'), job.project],
    [t('jobs.user'), job.user],
    [t('jobs.type'), t('type.' + job.type, job.type)],
    [t('job.mode'), job.distributed.mode],
    [t('jobs.nodes'), t('short.nodes', { count: job.nodes }) + (devicesOf(job.resources?.[0]) ? ' ' + t('short.cards', { count: devicesOf(job.resources?.[0]) }) : '')],
    [t('job.spec'), specs.map((text, i) => <div key={i}>{text}</div>)],
    [t('jobs.pool'), job.placement?.pool],
    [t('job.driver'), [job.task.driver, job.task.image].filter(Boolean).join(' · ')],
    [t('code.title'), job.workdir?.tree && <Code key="code" workdir={job.workdir} />],
    [t('job.after'), detail.after?.length && detail.after.map((a) => <div key={a.id + a.called + a.when}>{a.id ? <JobLink id={a.id} name={a.called} /> : a.called} {t('after.' + a.when)}{a.state && ' · ' + t('state.' + a.state)}</div>)],
    [t('job.followers'), detail.followers?.length && detail.followers.map((f) => <div key={f.id}><JobLink id={f.id} name={f.name} /></div>)],
    [t('job.limit'), job.time_limit && spelled(job.time_limit)],
    [t('jobs.submitted'), dateTime(job.submitted_at, true)],
    [t('jobs.started'), dateTime(detail.started_at, true)],
    [t('job.finished'), dateTime(detail.finished_at, true)],
    [t('job.description'), job.description],
  ]
  return <dl className="facts">{facts.filter(([, value]) => value && value !== '–').map(([name, value]) => [<dt key={name}>{name}</dt>, <dd key={name + '='}>{value}</dd>])}</dl>
}

