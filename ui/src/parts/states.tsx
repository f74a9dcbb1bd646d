import type { TFunction } from 'i18next'
import { useEffect, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { Link, useRouteError } from 'react-router'
import { MissingPart } from '../again'
import { ApiError } from '../api'
import { useGuest } from '../guest'
import type { Error as Failure, JobState, Priority } from '../types'
import { Button, Note } from './controls'

// endedStates are those that no job leaves by itself.
export const endedStates: JobState[] = ['succeeded', 'failed', 'stopped', 'expired']

// StateTag is the word of a job's state with its colour and a sign of its own,
// so that the colour is never all there is.
const signs: Record<JobState, string> = {
  queued: '◌', starting: '◔', running: '●', paused: '‖', stopping: '◒', succeeded: '✓', failed: '✕', stopped: '■', expired: '◷',
}

export function StateTag({ state }: { state: JobState }) {
  const { t } = useTranslation()
  return stateTag(state, t)
}

// stateTag is the same for whoever has the words at hand, as lists have.
export function stateTag(state: JobState, t: TFunction) {
  return (
    <span className={'tag state-' + state}>
      <span aria-hidden="true">{signs[state]} </span>
      {t('state.' + state)}
    </span>
  )
}

// WordTag is a word with one of the colours good, run, busy, bad and plain.
export function WordTag({ tone, children, title }: { tone: 'good' | 'run' | 'busy' | 'bad' | 'plain'; children: React.ReactNode; title?: string }) {
  return <span className={'tag tone-' + tone} title={title || undefined}>{children}</span>
}

interface Urgency {
  priority: Priority
  vip?: boolean
  preemptible?: boolean
}

export function PriorityTag({ job }: { job: Urgency }) {
  const { t } = useTranslation()
  return priorityTag(job, t)
}

export function priorityTag(job: Urgency, t: TFunction) {
  return (
    <>
      {job.priority === 'normal' ? <span className="quiet">{t('priority.normal')}</span> : <WordTag tone={job.priority === 'critical' ? 'bad' : 'busy'}>{t('priority.' + job.priority)}</WordTag>}
      {job.vip && <> <WordTag tone="good">VIP</WordTag></>}
      {job.preemptible && <span className="quiet"> {t('jobs.preemptible')}</span>}
    </>
  )
}

export function Loading() {
  const { t } = useTranslation()
  return (
    <div className="loading" role="status">
      <span className="spin" aria-hidden="true" /> <span>{t('states.loading')}</span>
    </div>
  )
}

// errorText is what a person should read of a failure.
export function errorText(error: unknown, t: TFunction): string {
  if (error instanceof ApiError) {
    if (error.failure.id.startsWith('ui.')) return t('errors.' + error.failure.id.slice(3), error.failure.params ?? {})
    return error.message
  }
  if (error instanceof MissingPart) return t('errors.part')
  return t('errors.page', { reason: error instanceof Error ? error.message : String(error) })
}

export const details = (error: unknown): Failure[] => (error instanceof ApiError ? (error.failure.details ?? []) : [])

// passing tells a failure that ends by itself, such as servers that are away,
// from a refusal.
export const passing = (error: unknown) => error instanceof ApiError && (error.status === 0 || error.status === 429 || error.status >= 500)

// failing is what to show in the place of an answer. Where there was one before,
// it stays while servers are away: the header says how old it is.
export const failing = ({ error, data }: { error: Error | null; data?: unknown }): Error | null => (data !== undefined && passing(error) ? null : error)

// answered reports whether there is an answer, or was a refusal: also while it is asked for again.
export const answered = ({ data, isFetched }: { data?: unknown; isFetched: boolean }): boolean => data !== undefined || isFetched

// GuideLink leads to what the guides say of a failure that has a cure: one page has
// them all, by the id that programs get.
export function GuideLink({ failure }: { failure: Failure }) {
  const { t, i18n } = useTranslation()
  if (!failure.hint || failure.id.startsWith('ui.')) return null
  return <a className="guide" href={`/docs/${i18n.language === 'zh' ? 'zh' : 'en'}/reference/errors#${failure.id.replaceAll('.', '')}`} target="_blank" rel="noreferrer">{t('states.guide')}</a>
}

export function Failed({ error, retry }: { error: unknown; retry?: () => void }) {
  const { t } = useTranslation()
  const hint = error instanceof ApiError ? error.failure.hint : undefined
  return (
    <Alert
      text={errorText(error, t)}
      more={hint && error instanceof ApiError ? <>{hint} <GuideLink failure={error.failure} /></> : hint}
      action={retry && <Button onClick={retry}>{t('states.retry')}</Button>}
    />
  )
}

// Alert says what went wrong, to those who hear the page as well.
export function Alert({ text, more, action }: { text: string; more?: React.ReactNode; action?: React.ReactNode }) {
  return <Note tone="error" title={text} action={action}>{more}</Note>
}

// Broken is shown when drawing a page failed: a defect of ours, or a newer
// agent whose page is not the one that is open.
export function Broken() {
  const { t } = useTranslation()
  const error = useRouteError()
  useReloadWhenBack(error instanceof MissingPart)
  return (
    <main className="alone">
      <div className="narrow stack">
        <h1>nomadlike</h1>
        <Failed error={error} />
        <p><Button tone="first" onClick={() => location.reload()}>{t('states.reload')}</Button></p>
      </div>
    </main>
  )
}

// useReloadWhenBack loads the page again once an agent that was away answers.
function useReloadWhenBack(wanted: boolean) {
  useEffect(() => {
    if (!wanted) return
    let away = false
    const timer = setInterval(() => {
      fetch('/v1/agent/health').then((answer) => { if (away && answer.ok) location.reload() }, () => { away = true })
    }, 2000)
    return () => clearInterval(timer)
  }, [wanted])
}

export function NoPage() {
  const { t } = useTranslation()
  return (
    <div className="page">
      <h1>{t('states.no_page')}</h1>
      {useGuest() ? <p>{t('share.only')}</p> : <p><Link to="/jobs">{t('menu.jobs')}</Link></p>}
    </div>
  )
}

// useNow is the time, again every so often, for spans that grow.
export function useNow(every = 1000): number {
  const [now, setNow] = useState(Date.now())
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), every)
    return () => clearInterval(timer)
  }, [every])
  return now
}

export function useTitle(title: string) {
  useEffect(() => {
    document.title = title ? title + ' · nomadlike' : 'nomadlike'
  }, [title])
}
