import { useQuery } from '@tanstack/react-query'
import i18next from 'i18next'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { Link } from 'react-router'
import { get, part, send } from '../../api'
import { clock, dateTime, millis, quote } from '../../format'
import { reasonText } from '../../i18n'
import { Cli } from '../../parts/actions'
import { Button } from '../../parts/controls'
import { Scroll } from '../../parts/controls/table'
import { colour, errorLine, timed, visible } from '../../parts/logs'
import { JobLink } from '../../parts/places'
import { errorText, Failed, failing, Loading, stateTag } from '../../parts/states'
import { useRights } from '../../rights'
import type { Allocation, Attempt, Difference, Event, EventList, JobDetail, JobDiff } from '../../types'

const tail = 60 // lines that are asked for
const shownMost = 10
const behindMost = 2 // of them, behind the error
const differencesFirst = 8

const deviceFault = 'event.alloc.device_fault'

// recognised is what is known of why an attempt failed: of the errors that it printed,
// and what its cards say that it did.
export const recognised = (events: Event[], attempt = 0): string[] => [...new Set(events.flatMap((event) => {
  if (event.attempt !== attempt) return []
  if (event.id.startsWith(deviceFault)) return [reasonText(event)]
  return event.id === 'event.alloc.environment_found' && event.params?.rule?.startsWith('log-') ? [(i18next.language === 'zh' && event.params.text_zh) || event.params.text || ''] : []
}))]

// around are the lines of a log's end that tell why: up to the one that names the
// error and a little behind it, or the last ones where none does.
export function around(lines: string[], named = errorLine(lines)): [number, number] {
  const at = named === undefined ? -1 : lines.lastIndexOf(named)
  const to = at < 0 ? lines.length : Math.min(lines.length, at + 1 + behindMost)
  return [Math.max(0, to - shownMost), to]
}

interface Words {
  stream: 'stderr' | 'stdout'
  lines: { text: string; at?: number }[]
}

// useWords reads the end of what a rank has printed: of its errors, or of the other
// stream when there are none.
function useWords(alloc: Allocation) {
  return useQuery({
    queryKey: ['last words', alloc.id], staleTime: Infinity,
    queryFn: async ({ signal }): Promise<Words> => {
      for (const stream of ['stderr', 'stdout'] as const) {
        const text = await (await send('GET', `/v1/allocations/${part(alloc.id)}/logs?stream=${stream}&tail=${tail}&times=true`, undefined, signal)).text()
        const lines = text.split('\n').map(timed).map(({ text, at }) => ({ at, text: colour(visible(text)).map((span) => span.text).join('') })).filter((line) => line.text.trim())
        if (lines.length) return { stream, lines }
      }
      return { stream: 'stderr', lines: [] }
    },
  })
}

// Cause is why a job failed: the lines of the rank that failed first, what was other
// when it last went well, and what one can do.
export function Cause({ id, detail, alloc, attempt, found, children }: { id: string; detail: JobDetail; alloc: Allocation; attempt?: Attempt; found: string[]; children?: React.ReactNode }) {
  const { t } = useTranslation()
  const words = useWords(alloc)
  const lines = words.data?.lines ?? []
  const texts = lines.map((line) => line.text)
  const named = errorLine(texts)
  const [from, to] = around(texts, named)
  const [copied, setCopied] = useState(false)
  const shown = lines.slice(from, to)
  const copy = () => void navigator.clipboard?.writeText(shown.map((line) => line.text).join('\n')).then(() => setCopied(true), () => {})
  const head = found[0] ?? named?.trim().slice(0, 300) ?? t('cause.exit', { code: alloc.signal ? t('job.signal', { signal: alloc.signal }) : alloc.exit_code })
  return (
    <section className="card cause" aria-label={t('cause.title')}>
      <div className="bar">
        <span className="tag tone-bad"><span aria-hidden="true">! </span>{t('cause.tag')}</span>
        <h2>{t('cause.where', { rank: alloc.rank, node: alloc.node_name })}</h2>
        <span className="grow" />
        {lines.length > 0 && <span className="quiet">{t('cause.lines', { stream: words.data!.stream, count: shown.length })}</span>}
        {shown.length > 0 && navigator.clipboard && <Button small onClick={copy}>{t(copied ? 'cause.copied' : 'cause.copy')}</Button>}
        <Link className="button small" to={`/jobs/${id}/logs`}>{t('cause.all')}</Link>
      </div>
      <p className="verdict tone-bad">{head}</p>
      {found.slice(1).map((text) => <p key={text}><strong>{text}</strong></p>)}
      {words.error ? <p className="quiet">{errorText(words.error, t)}</p> : words.data && shown.length > 0 ? (
        <pre className="logs few" tabIndex={0} aria-label={t('cause.lines_of', { rank: alloc.rank })}>
          {shown.map((line, i) => <div key={i} className={line.text === named ? 'err' : undefined}>{line.at !== undefined && <time dateTime={new Date(line.at).toISOString()}>{dateTime(new Date(line.at).toISOString(), true).slice(11)}</time>}{line.text}</div>)}
        </pre>
      ) : words.data && <p className="quiet">{t('cause.silent')}</p>}
      <div className="cause-split">
        <Differs id={id} detail={detail} alloc={alloc} attempt={attempt} />
        <div>{children}</div>
      </div>
      <Cli text={`nomadlike job logs -rank ${alloc.rank} -stderr ${quote(alloc.job_name)}\nnomadlike job diff ${quote(alloc.job_name)}`} />
    </section>
  )
}

const week = 7 * 24 * 3600e3 // milliseconds before the end of an attempt in which its cards' faults are told
const notice = 600e3 // and behind it: what ended it may be found out a little later
const faultsMost = 3

// cardFaults are the events of a node that say of cards of a rank that they were not
// well, in the week before its attempt ended; the newest first.
export function cardFaults(events: Event[], alloc: Allocation, ended: number): Event[] {
  return events
    .filter((event) => ['event.node.device_suspect', 'event.node.device_unwell', 'event.node.device_gone'].includes(event.id) && alloc.devices?.includes(event.params?.device ?? ''))
    .filter((event) => millis(event.time) > ended - week && millis(event.time) <= ended + notice)
    .sort((a, b) => millis(b.time) - millis(a.time))
}

// CardFaults tells them, where there are any: a success had other cards, or the same
// when they were well.
function CardFaults({ alloc, attempt }: { alloc: Allocation; attempt?: Attempt }) {
  const { t } = useTranslation()
  const events = useQuery({ queryKey: ['node', alloc.node_id, 'events'], staleTime: 60_000, retry: false, enabled: !!alloc.devices?.length, queryFn: ({ signal }) => get<EventList>(`/v1/nodes/${part(alloc.node_id)}/events`, signal).then((e) => e.events ?? []) })
  const faults = cardFaults(events.data ?? [], alloc, millis(attempt?.ended_at ?? alloc.finished_at) || Date.now())
  if (faults.length === 0) return null
  return (
    <>
      <h3>{t('diff.cards')}</h3>
      <ul>{faults.slice(0, faultsMost).map((event) => (
        <li key={event.seq}><time dateTime={event.time ?? undefined}>{clock(event.time)}</time> · <Link to={'/nodes/' + alloc.node_id}>{alloc.node_name}</Link>, {t('cluster.card', { index: event.params?.number ?? '?' })}: {reasonText(event.cause) || reasonText(event)}</li>
      ))}</ul>
      {faults.length > faultsMost && <p className="quiet">{t('diff.cards_more', { count: faults.length - faultsMost })}</p>}
    </>
  )
}

// Differs is in what a job differs from the last of its lineage that succeeded.
function Differs({ id, detail, alloc, attempt }: { id: string; detail: JobDetail; alloc: Allocation; attempt?: Attempt }) {
  const { t } = useTranslation()
  const diff = useQuery({ queryKey: ['diff', detail.job.id], staleTime: 60_000, retry: false, queryFn: ({ signal }) => get<JobDiff>(`/v1/jobs/${part(id)}/diff`, signal) })
  if (failing(diff)) return <div><h3>{t('diff.title')}</h3><Failed error={diff.error} retry={() => void diff.refetch()} /></div>
  if (!diff.data) return <div><h3>{t('diff.title')}</h3><Loading /></div>
  return <div><Differences diff={diff.data} /><CardFaults alloc={alloc} attempt={attempt} /></div>
}

// Differences is a table of what two jobs do not have in common.
export function Differences({ diff }: { diff: JobDiff }) {
  const { t } = useTranslation()
  const [all, setAll] = useState(false)
  const { before, after } = diff
  if (!before) return <div><h3>{t('diff.title')}</h3><p className="quiet">{t('diff.none', { name: after.name })}</p></div>
  const rows: Difference[] = [...(diff.differences ?? []), ...(diff.found ?? []).map((one) => ({ ...one, path: t('diff.found.' + one.path, one.path) }))]
  const shown = all ? rows : rows.slice(0, differencesFirst)
  const same = before.name === after.name
  const names = same ? [clock(before.submitted_at), clock(after.submitted_at)] : [before.name, after.name]
  return (
    <div>
      <h3>{t('diff.title')} <JobLink id={before.id} name={before.name} /> {stateTag(before.state, t)} <span className="quiet">{clock(before.finished_at)}</span></h3>
      {rows.length === 0 ? <p className="quiet">{t('diff.same')}</p> : (
        <Scroll label={t('diff.title')}>
          <table className="plain differences">
            <thead><tr><th scope="col">{t('diff.what')}</th><th scope="col">{names[0]}</th><th scope="col">{names[1]}</th></tr></thead>
            <tbody>{shown.map((one) => <tr key={one.path}><th scope="row"><code>{one.path}</code></th><td><Value text={one.before} /></td><td><strong><Value text={one.after} /></strong></td></tr>)}</tbody>
          </table>
        </Scroll>
      )}
      {rows.length > shown.length && <Button small onClick={() => setAll(true)}>{t('diff.more', { count: rows.length - shown.length })}</Button>}
      {diff.hidden && <p className="quiet">{t('diff.hidden')}</p>}
    </div>
  )
}

const longValue = 160 // characters

function Value({ text }: { text: string }) {
  if (!text) return <>–</>
  if (text.length <= longValue) return <>{text}</>
  return <details><summary>{text.slice(0, longValue)}…</summary>{text}</details>
}

// CanDo are the ways on from a failure.
export function CanDo({ id, full, alloc, may }: { id: string; full: string; alloc: Allocation; may: (verb: string) => boolean }) {
  const { t } = useTranslation()
  const allowed = useRights()
  return (
    <>
      <h3>{t('job.you_can')}</h3>
      <ul className="deeds">
        <li><span>{t('job.can_read', { rank: alloc.rank })}</span><Link className="button" to={`/jobs/${id}/logs`}>{t('job.logs')}</Link></li>
        {may('clone') && allowed('submit') && <li><span>{t('job.can_clone')}</span><Link className="button" to={'/jobs/new?clone=' + part(full)}>{t('job.clone')}</Link></li>}
        {alloc.hold && !alloc.hold.over && <li><span>{t('job.can_enter', { rank: alloc.rank, until: clock(alloc.hold.until) })}</span><Link className="button" to={`/jobs/${id}/terminal`}>{t('job.terminal')}</Link></li>}
      </ul>
    </>
  )
}
