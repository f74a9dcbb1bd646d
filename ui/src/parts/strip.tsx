import { keepPreviousData } from '@tanstack/react-query'
import type { TFunction } from 'i18next'
import { useTranslation } from 'react-i18next'
import { get, part } from '../api'
import { jobStates, type JobState, type JobSummary, type Subjob, type SubjobList } from '../types'

const pageSize = 1000
const pagesMax = 10 // a batch has at most 10,000 subjobs

// subjobsQuery reads all subjobs of a batch.
export const subjobsQuery = (id: string) => ({
  queryKey: ['job', id, 'subjobs'],
  placeholderData: keepPreviousData,
  queryFn: async ({ signal }: { signal: AbortSignal }) => {
    const all: Subjob[] = []
    let after = ''
    for (let i = 0; i < pagesMax; i++) {
      const page = await get<SubjobList>(`/v1/jobs/${part(id)}/subjobs?limit=${pageSize}${after && '&after=' + part(after)}`, signal)
      all.push(...(page.subjobs ?? []))
      after = page.next ?? ''
      if (!after) break
    }
    return all
  },
})

// countsText tells how many subjobs are in each state, in words.
export const countsText = (t: TFunction, counts?: Partial<Record<JobState, number>> | null): string =>
  jobStates.filter((state) => counts?.[state]).map((state) => `${counts![state]} ${t('state.' + state)}`).join(' · ')

const linesMax = 4 // of cells in a strip
const perLine = 60 // before the next line is begun

// gridOf says in how many columns and lines so many cells stand.
export function gridOf(count: number): { columns: number; lines: number } {
  const lines = Math.min(linesMax, Math.max(1, Math.ceil(count / perLine)))
  return { columns: Math.max(1, Math.ceil(count / lines)), lines }
}

// SubjobStrip has one small cell for each subjob, in the colour of its state, in the
// order of their numbers, line by line. The words beside it say the same.
export function SubjobStrip({ job, subjobs }: { job: JobSummary; subjobs?: Subjob[] }) {
  const { t } = useTranslation()
  const { columns, lines } = gridOf(job.subjobs)
  const gap = 0.16 // of a cell
  return (
    <svg className="cells" viewBox={`0 0 ${columns} ${lines}`} preserveAspectRatio="none" role="img" aria-label={`${job.name}: ${countsText(t, job.counts)}`} style={{ width: Math.min(600, columns * 10), height: lines === 1 ? 16 : lines * 8 }}>
      {(subjobs ?? []).map((one) => (
        <rect key={one.index} className={'cell-' + one.state} x={(one.index % columns) + gap / 2} y={Math.floor(one.index / columns) + gap / 2} width={1 - gap} height={1 - gap}>
          <title>{`${t('jobs.subjob')} ${one.index} · ${t('state.' + one.state)}`}</title>
        </rect>
      ))}
    </svg>
  )
}
