import { type UseQueryResult } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'
import { Note } from '../../parts/controls'
import { Table } from '../../parts/controls/table'
import { dateTime, millis } from '../../format'
import { JobLink, NodeLink } from '../../parts/places'
import { Failed, failing, Loading, StateTag, WordTag } from '../../parts/states'
import type { DataCopy, DataUse, DataUser } from '../../types'

// Used says which jobs use an object or did, and where copies of it lie.
export function Used({ used }: { used: UseQueryResult<DataUse> }) {
  const { t } = useTranslation()
  if (failing(used)) return <Failed error={used.error} retry={() => void used.refetch()} />
  if (!used.data) return <Loading />
  const { jobs, more, hidden, storage, copies, unknown } = used.data
  return (
    <div className="stack">
      {hidden > 0 && <p className="quiet">{t('data.hidden', { count: hidden })}</p>}
      <Table<DataUser>
        label={t('data.used_by')}
        idOf={(job) => job.id + job.version}
        page={50}
        least={620}
        empty={t('data.used_by_none')}
        rows={jobs ?? []}
        columns={[
          { title: t('jobs.name'), cell: (job) => <JobLink id={job.id} name={job.name} />, compare: (a, b) => a.name.localeCompare(b.name) },
          { title: t('jobs.state'), cell: (job) => <StateTag state={job.state} /> },
          { title: t('data.version'), cell: (job) => <>{job.version}{job.asked && <span className="quiet"> ({job.asked})</span>}</>, compare: (a, b) => a.version - b.version },
          { title: t('jobs.user'), cell: (job) => job.user },
          { title: t('jobs.project'), cell: (job) => job.project },
          { title: t('jobs.submitted'), cell: (job) => dateTime(job.submitted_at), compare: (a, b) => millis(a.submitted_at) - millis(b.submitted_at) },
        ]}
      />
      {more && <p className="quiet">{t('data.used_more', { count: jobs?.length ?? 0 })}</p>}
      <section className="card" aria-label={t('data.lies')}>
        <h2>{t('data.lies')}</h2>
        {storage.nodes?.length ? <p>{t('data.on_storage', { storage: storage.name, count: storage.nodes.length })} <span className="quiet">{storage.nodes.slice(0, shownNodes).join(', ')}{storage.nodes.length > shownNodes && ' …'}</span></p> : <Note tone="warning" title={t('data.storage_away', { storage: storage.name })} />}
        <Table<DataCopy>
          label={t('data.copies')}
          idOf={(copy) => copy.node_id + '/' + copy.version}
          page={50}
          empty={t('data.no_copies')}
          rows={copies ?? []}
          columns={[
            { title: t('data.node'), cell: (copy) => <NodeLink id={copy.node_id} name={copy.node} />, compare: (a, b) => a.node.localeCompare(b.node) },
            { title: t('data.version'), cell: (copy) => copy.version, compare: (a, b) => a.version - b.version },
            { title: t('data.state'), cell: (copy) => <WordTag tone={copy.away ? 'busy' : 'good'}>{t(copy.away ? 'data.node_away' : 'data.node_here')}</WordTag> },
          ]}
        />
        {unknown && <p className="quiet">{t('data.copies_unknown')}</p>}
      </section>
    </div>
  )
}
const shownNodes = 8
