import { useQuery } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'
import { call } from '../../api'
import { quote } from '../../format'
import { reasonText } from '../../i18n'
import { Cli } from '../../parts/actions'
import { Failed, Loading, failing } from '../../parts/states'
import type { JobDetail, JobPlan } from '../../types'

// usePlan is what the ranks of a job would run if it were placed now, or one of them.
export function usePlan(detail: JobDetail, rank?: number) {
  const { source, ...rest } = detail.job
  const job = { ...rest, id: undefined, user: undefined, submitted_at: undefined }
  void source // the plan is of the job itself
  return useQuery({ queryKey: ['plan', detail.job.id, rank], staleTime: 60_000, queryFn: ({ signal }) => call<JobPlan>('POST', '/v1/jobs/plan', { job, rank }, signal) })
}

export function Commands({ detail }: { detail: JobDetail }) {
  const { t } = useTranslation()
  const plan = usePlan(detail)
  if (failing(plan)) return <Failed error={plan.error} retry={() => void plan.refetch()} />
  if (!plan.data) return <Loading />
  return <><p className="quiet">{t('job.command_about')}</p><RankCommands plan={plan.data} /><Cli text={`nomadlike job plan ${quote(detail.job.name)}.hcl`} /></>
}

// RankCommands shows the final command and environment of every rank.
export function RankCommands({ plan, open = 0 }: { plan: JobPlan; open?: number }) {
  const { t } = useTranslation()
  return (
    <>
      {(plan.ranks ?? []).map((rank) => (
        <details key={rank.rank} open={rank.rank === open} className="card">
          <summary>{t('logs.rank', { rank: rank.rank })} · {rank.name}{rank.node && ' · ' + rank.node}</summary>
          <pre className="cli">{rank.hold ? t('job.holds') : (rank.command ?? []).map(quote).join(' ')}</pre>
          <details>
            <summary>{t('job.environment', { count: Object.keys(rank.env ?? {}).length })}</summary>
            <pre className="cli">{Object.entries(rank.env ?? {}).sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, value]) => `${name}=${value}`).join('\n')}</pre>
          </details>
        </details>
      ))}
      {(plan.later ?? []).length > 0 && (
        <details>
          <summary>{t('job.known_later')}</summary>
          <ul>{plan.later!.map((reason) => <li key={reason.id}>{reasonText(reason)}</li>)}</ul>
        </details>
      )}
    </>
  )
}
