import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { Link } from 'react-router'
import { get, part } from '../api'
import { number, since } from '../format'
import { Cli } from '../parts/actions'
import { Ceilings } from '../parts/ceilings'
import { Segments } from '../parts/controls'
import { Table } from '../parts/controls/table'
import { Days, zone } from '../parts/days'
import { QuotaBars } from '../parts/quotas'
import { Failed, failing, Loading, useTitle } from '../parts/states'
import { useSession } from '../shell'
import type { IdleUse, JobUse, SelfUse } from '../types'

// UsePage is what whoever is signed in has and used: what runs and waits, what is left
// of the project's quotas, cards that do nothing, and the hours of the last days.
export function UsePage() {
  const { t } = useTranslation()
  useTitle(t('use.title'))
  const acting = useSession().data?.acting ?? ''
  const [days, setDays] = useState('7')
  const read = useQuery({
    queryKey: ['self', 'usage', acting, days], refetchInterval: 30_000, placeholderData: keepPreviousData,
    queryFn: ({ signal }) => get<SelfUse>(`/v1/self/usage?days=${days}&zone=${zone()}`, signal),
  })
  if (read.isPending) return <Loading />
  const use = read.data
  const idle = use?.idle ?? []
  const jobs = use?.jobs ?? []
  return (
    <div className="page">
      <h1>{t('use.title')}</h1>
      {failing(read) || !use ? <Failed error={read.error} retry={() => void read.refetch()} /> : (
        <>
          <p className="truth">{t('use.truth', { running: use.running, queued: use.queued, hours: number(use.use.device_hours), days })}{idle.length > 0 && ' ' + t('use.truth_idle', { count: idle.reduce((sum, one) => sum + one.devices, 0) })}</p>
          <section className="card" aria-label={t('use.hours')}>
            <div className="bar"><h2>{t('use.hours')}</h2><span className="grow" /><Segments label={t('use.range')} value={days} change={setDays} options={['7', '14', '31'].map((value) => ({ value, label: t('use.days', { count: Number(value) }) }))} /></div>
            <Days use={use.use} label={t('use.hours')} />
            {jobs.length > 0 && (
              <>
                <h3>{t('use.by_job')}</h3>
                <Table<JobUse> label={t('use.by_job')} idOf={(job) => job.job_id} rows={jobs} page={20} least={420} columns={[
                  { title: t('use.job'), cell: (job) => (job.forgotten ? <>{job.name} <span className="quiet">{t('use.forgotten_job')}</span></> : <Link to={'/jobs/' + part(job.job_id)}>{job.name}</Link>), compare: (a, b) => a.name.localeCompare(b.name) },
                  { title: t('acting.title'), cell: (job) => job.project, compare: (a, b) => a.project.localeCompare(b.project) },
                  { title: t('use.card_hours'), right: true, cell: (job) => number(job.device_hours), compare: (a, b) => a.device_hours - b.device_hours },
                  { title: t('use.core_hours'), right: true, cell: (job) => number(job.cpu_hours), compare: (a, b) => a.cpu_hours - b.cpu_hours },
                ]} />
                {!!use.more && <p className="quiet">{t('use.more', { count: use.more })}</p>}
              </>
            )}
            <Cli text={days === '7' ? 'nomadlike usage' : 'nomadlike usage -days ' + days} />
          </section>
          <section className="card" aria-label={t('use.left')}>
            <h2>{t('use.left_of', { project: use.project })}</h2>
            {use.quotas?.length ? <QuotaBars quotas={use.quotas} /> : <p className="quiet">{t('projects.no_quota')}</p>}
          </section>
          <section className="card" aria-label={t('limits.most')}>
            <h2>{t('limits.most')}</h2>
            <p className="quiet">{t('use.in_pool', { pool: use.pool })} <Link to="/limits">{t('limits.all')}</Link></p>
            <Ceilings ceilings={use.effective ?? []} />
          </section>
          <section className="card" aria-label={t('use.idle')}>
            <h2>{t('use.idle')}</h2>
            <Table<IdleUse> label={t('use.idle')} idOf={(one) => one.job_id + one.rank} rows={idle} page={20} least={420} empty={t('use.idle_none')} columns={[
              { title: t('use.job'), cell: (one) => <Link to={'/jobs/' + part(one.job_id)}>{one.rank}</Link> },
              { title: t('use.node'), cell: (one) => one.node },
              { title: t('use.cards'), right: true, cell: (one) => one.devices, compare: (a, b) => a.devices - b.devices },
              { title: t('use.idle_for'), right: true, cell: (one) => since(one.since, undefined) },
            ]} />
          </section>
        </>
      )}
    </div>
  )
}
