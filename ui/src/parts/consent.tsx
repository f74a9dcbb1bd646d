import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { call, part } from '../api'
import { clock, millis, quote, since, span } from '../format'
import type { Answered, Asked, AskedList } from '../types'
import { Cli } from './actions'
import { Button, Note } from './controls'
import { Dialog } from './controls/dialog'
import { Field } from './controls/fields'
import { say } from './controls/messages'
import { Table } from './controls/table'
import { JobLink } from './places'
import { errorText, useNow, WordTag } from './states'

type Answer = 'yes' | 'no'

// consentLine is the command line of an answer.
export const consentLine = (job: string, to: string, answer: Answer, reason: string) => `nomadlike job consent -to ${quote(to)} ${reason ? `-reason ${quote(reason)} ` : ''}${quote(job)} ${answer}`

// Questions are what VIP jobs ask the owner of a job, with the time that is left, and
// the ways to answer.
export function Questions({ id, name, asked, may, saved }: { id: string; name: string; asked?: Asked[]; may: boolean; saved?: string | null }) {
  const { t } = useTranslation()
  const now = useNow(10_000)
  const [answering, setAnswering] = useState<{ to: Asked; answer: Answer }>()
  const one = (asked ?? []).filter((a, i, all) => all.findIndex((b) => b.to.id === a.to.id) === i) // the subjobs of a batch are asked together
  return (
    <>
      {one.map((a) => {
        const left = millis(a.until) - now
        const title = a.answer ? (a.answer === 'yes' ? 'consent.agreed' : 'consent.declined') : 'consent.asks'
        return (
          <Note key={a.to.id} tone={a.answer === 'no' ? 'info' : 'warning'} title={<>{t(title, { user: a.to.user ?? t('queue.hidden'), by: a.by, machines: (a.machines ?? []).join(', ') })} <JobLink id={a.to.id} name={a.to.name} /> (VIP)</>}>
            {a.message && <p>{t('consent.says', { message: a.message })}</p>}
            {!a.answer && <p>{left > 0 ? t('consent.left', { time: clock(a.until, now), left: span(left) }) : t('consent.passed', { time: clock(a.until, now) })} {t(a.silence === 'kill' ? 'consent.silence_kill' : 'consent.silence_wait')}</p>}
            <p className="quiet">{saved ? t('consent.saved', { age: since(saved, null, now) }) : t('consent.unsaved')}</p>
            {may && (
              <p className="bar">
                {a.answer !== 'yes' && <Button small onClick={() => setAnswering({ to: a, answer: 'yes' })}>{t('consent.agree')}</Button>}
                {a.answer !== 'no' && <Button small onClick={() => setAnswering({ to: a, answer: 'no' })}>{t('consent.decline')}</Button>}
              </p>
            )}
          </Note>
        )
      })}
      {answering && <AnswerDialog id={id} name={name} asked={answering.to} answer={answering.answer} close={() => setAnswering(undefined)} />}
    </>
  )
}

function AnswerDialog({ id, name, asked, answer, close }: { id: string; name: string; asked: Asked; answer: Answer; close: () => void }) {
  const { t } = useTranslation()
  const client = useQueryClient()
  const [reason, setReason] = useState('')
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>()
  const run = async () => {
    setBusy(true)
    setError(undefined)
    try {
      await call<AskedList>('POST', `/v1/jobs/${part(id)}/consent`, { to: asked.to.id, answer, ...(reason.trim() && { reason: reason.trim() }) })
      say('good', t(answer === 'yes' ? 'consent.did_agree' : 'consent.did_decline', { job: asked.to.name }))
      await client.invalidateQueries({ predicate: (query) => ['job', 'jobs', 'queue'].includes(query.queryKey[0] as string) })
      close()
    } catch (failure) {
      setError(failure)
      setBusy(false)
    }
  }
  return (
    <Dialog title={t(answer === 'yes' ? 'consent.agree_title' : 'consent.decline_title', { job: name })} close={close} act={t(answer === 'yes' ? 'consent.agree' : 'consent.decline')} danger={answer === 'yes'} busy={busy} run={() => void run()}>
      <div className="stack">
        <p>{t(answer === 'yes' ? 'consent.agree_about' : 'consent.decline_about', { job: asked.to.name })}</p>
        <Field entry="consent" label={t('consent.reason')} maxLength={120} value={reason} change={setReason} />
        <Cli text={consentLine(name, asked.to.name ?? asked.to.id, answer, reason.trim())} />
        {error !== undefined && <Note tone="error" title={errorText(error, t)} />}
      </div>
    </Dialog>
  )
}

// Answers are what owners were asked for a VIP job, and said.
export function Answers({ answers, silence }: { answers?: Answered[]; silence?: string }) {
  const { t } = useTranslation()
  const now = useNow(10_000)
  if (!answers?.length) return null
  const standing = (a: Answered) => {
    if (a.answer) return <><WordTag tone={a.answer === 'yes' ? 'good' : 'bad'}>{t('consent.' + a.answer)}</WordTag> <span className="quiet">{a.by} {clock(a.at, now)}</span></>
    if (a.over) return <WordTag tone="plain">{t('consent.over')}</WordTag>
    const left = millis(a.until) - now
    return <><WordTag tone="busy">{t('consent.open')}</WordTag> <span className="quiet">{left > 0 ? t('consent.left', { time: clock(a.until, now), left: span(left) }) : t('consent.passed', { time: clock(a.until, now) })}</span></>
  }
  return (
    <section className="card" aria-label={t('consent.title')}>
      <h2>{t('consent.title')}</h2>
      <Table<Answered> label={t('consent.title')} idOf={(a) => a.of.id + (a.of.subjob ?? 0) + a.asked_at} rows={answers} page={10} columns={[
        { title: t('jobs.name'), cell: (a) => (a.of.name ? <JobLink id={a.of.id} name={a.of.name} /> : t('queue.hidden')) },
        { title: t('jobs.user'), cell: (a) => a.of.user || '–' },
        { title: t('consent.answer'), cell: standing },
      ]} />
      {answers.some((a) => !a.answer && !a.over) && <p className="quiet">{t(silence === 'kill' ? 'consent.silence_kill' : 'consent.silence_wait')}</p>}
    </section>
  )
}
