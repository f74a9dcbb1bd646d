import { useTranslation } from 'react-i18next'
import { clock, dateTime } from '../../format'
import { reasonText } from '../../i18n'
import { Failed } from '../../parts/states'
import type { Event } from '../../types'

// History is the story of a job, the newest first, with what is routine folded.
export function History({ events, error }: { events: Event[]; error?: unknown }) {
  const { t } = useTranslation()
  if (error) return <Failed error={error} />
  if (events.length === 0) return <p className="quiet">{t('job.no_events')}</p>
  return (
    <ol className="history" tabIndex={0} aria-label={t('job.history')}>
      {folded(events).reverse().map((one) => ('id' in one ? <Happened key={`${one.index}.${one.seq}`} event={one} /> : (
        <li key={`${one.details[0]!.index}.${one.details[0]!.seq}`} className="folded">
          <time dateTime={one.time ?? ''} title={dateTime(one.time, true)}>{clock(one.time)}</time>
          <details>
            <summary>{t('job.told', { count: one.details.length })}</summary>
            <ol>{one.details.map((event) => <Happened key={`${event.index}.${event.seq}`} event={event} />)}</ol>
          </details>
        </li>
      )))}
    </ol>
  )
}

function Happened({ event }: { event: Event }) {
  const { t } = useTranslation()
  return (
    <li className={event.severity}>
      <time dateTime={event.time ?? ''} title={dateTime(event.time, true)}>{clock(event.time)}</time>
      <span>{reasonText(event)}{event.cause && ': ' + reasonText(event.cause)}{event.by && event.by !== 'server' && !/^[0-9a-f]{32}$/.test(event.by) && <span className="quiet"> {t('job.by', { by: event.by })}</span>}</span>
    </li>
  )
}

// What every rank tells whenever it starts: true, and read only when something is
// looked for.
const routine = ['event.alloc.environment', 'event.alloc.prechecked', 'event.alloc.image_coming']
const perRank = ['event.alloc.running', 'event.alloc.complete', 'event.alloc.checkpoint'] // the same once they are many
const ranksTold = 4

interface Folded {
  time: Event['time']
  details: Event[]
}

// folded puts what is routine of an attempt together, where the last of it
// stands. Warnings never fold.
export function folded(events: Event[]): (Event | Folded)[] {
  const key = (event: Event) => `${event.job_id ?? ''}/${event.subjob ?? 0}/${event.attempt ?? 0}`
  const many = new Map<string, number>()
  for (const event of events) many.set(event.id + key(event), (many.get(event.id + key(event)) ?? 0) + 1)
  const folds = (event: Event) => (!event.severity || event.severity === 'info') && (routine.includes(event.id) || (perRank.includes(event.id) && many.get(event.id + key(event))! > ranksTold))
  const groups = new Map<string, Event[]>()
  for (const event of events) if (folds(event)) groups.set(key(event), [...(groups.get(key(event)) ?? []), event])
  return events.flatMap((event): (Event | Folded)[] => {
    if (!folds(event)) return [event]
    const group = groups.get(key(event))!
    return group.at(-1) === event ? [{ time: event.time, details: group }] : []
  })
}

