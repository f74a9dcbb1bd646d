import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'
import { Link } from 'react-router'
import { get, part } from '../../api'
import { Table } from '../../parts/controls/table'
import { Parallel } from '../../parts/parallel'
import { figureText } from '../../parts/results'
import { Failed, Loading, StateTag } from '../../parts/states'
import type { JobDetail, Trial, TrialList } from '../../types'

// Trials are the trials of a sweep, best first, with their values as lines across the
// axes of its parameters; of a batch, its subjobs.
export default function Trials({ id, detail, live }: { id: string; detail: JobDetail; live: boolean }) {
  const { t } = useTranslation()
  const found = useQuery({ queryKey: ['job', id, 'trials'], placeholderData: keepPreviousData, refetchInterval: live ? 15_000 : false, queryFn: ({ signal }) => get<TrialList>(`/v1/jobs/${part(id)}/trials`, signal) })
  const list = found.data
  const params = (detail.job.sweep?.params ?? []).map((param) => param.name)
  const title = t(params.length ? 'job.trials' : 'job.trials_batch')
  const measured = (list?.trials ?? []).filter((one) => one.metric)
  const last = (one: Trial) => (one.metric ? figureText(one.metric.last.value) : '')
  return (
    <section className="card" aria-label={title}>
      <div className="bar"><h2>{title}</h2>{list?.metric && <span className="quiet">{t('job.trials_by', { metric: list.metric })}</span>}</div>
      {found.error && !list ? <Failed error={found.error} /> : !list ? <Loading /> : (
        <>
          {params.length > 0 && measured.length > 1 && (
            <Parallel names={measured.map((one) => one.name ?? '')} axes={[
              ...params.map((name, i) => ({ name, values: measured.map((one) => one.params?.[i]?.value) })),
              { name: list.metric ?? '', values: measured.map((one) => String(one.metric!.last.value)) },
            ]} />
          )}
          <Table<Trial>
            label={title}
            idOf={(one) => String(one.subjob)}
            page={32}
            least={520}
            rows={list.trials ?? []}
            columns={[
              { title: t('jobs.subjob'), width: 90, cell: (one) => <Link to={{ search: one.subjob ? '?subjob=' + one.subjob : '' }}>{one.subjob}</Link> },
              ...(params.length ? params.map((title, i) => ({ title, cell: (one: Trial) => one.params?.[i]?.value ?? '' })) : [{ title: t('jobs.name'), cell: (one: Trial) => one.name ?? '' }]),
              { title: t('job.status'), cell: (one) => (one.turn ? <span className="quiet">{t('job.trials_turn')}</span> : <StateTag state={one.state} />) },
              ...(list.metric ? [{ title: list.metric, cell: last }] : []),
            ]}
          />
        </>
      )}
    </section>
  )
}
