import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { Choice } from '../../parts/controls/fields'
import { Logs } from '../../parts/logs'
import type { Allocation, Attempt } from '../../types'
import { outcomeText } from './outcome'

// AttemptLogs are the logs of one attempt: the newest, unless another is chosen,
// such as the one that failed before it.
export function AttemptLogs({ attempts, allocs }: { attempts: Attempt[]; allocs: Allocation[] }) {
  const { t } = useTranslation()
  const [chosen, setChosen] = useState(0)
  const attempt = attempts.find((a) => a.number === chosen) ?? attempts.at(-1)
  const ranks = allocs.filter((a) => a.attempt === attempt?.number).sort((a, b) => a.rank - b.rank)
  return (
    <div className="stack">
      {attempts.length > 1 && (
        <div className="bar">
          <Choice bare label={t('jobs.attempt')} value={attempt?.number} change={setChosen}
            options={[...attempts].reverse().map((a) => ({ value: a.number, label: `${t('job.attempt', { number: a.number })} · ${outcomeText(a, t)}` }))} />
        </div>
      )}
      {ranks.length ? <Logs key={attempt?.number} allocs={ranks} attempt={attempt} /> : <p>{t('job.no_attempt')}</p>}
    </div>
  )
}

