import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useNavigate } from 'react-router'
import { part } from '../../api'
import { dateTime, quote, since } from '../../format'
import { reasonText } from '../../i18n'
import { useRights } from '../../rights'
import { Cli } from '../../parts/actions'
import { Button } from '../../parts/controls'
import { Check } from '../../parts/controls/fields'
import { Scroll, Table } from '../../parts/controls/table'
import { endedAlloc } from '../../parts/logs'
import { JobLink } from '../../parts/places'
import { endedStates, useNow } from '../../parts/states'
import type { Allocation, Attempt, JobDetail, SavedCheckpoint, Subjob } from '../../types'
import { outcomeText } from './outcome'
import { neverRan } from './ranks'

export function Attempts({ attempts, allocs }: { attempts: Attempt[]; allocs: Allocation[] }) {
  const { t } = useTranslation()
  const now = useNow(5000)
  return (
    <Table<Attempt>
      label={t('job.attempts')}
      idOf={(a) => a.number}
      least={960}
      rows={[...attempts].reverse()}
      columns={[
        { title: t('jobs.attempt'), width: 80, cell: (a) => a.number },
        { title: t('job.outcome'), cell: (a) => outcomeText(a, t) },
        { title: t('job.placed'), cell: (a) => dateTime(a.placed_at, true) },
        { title: t('job.prepared'), cell: (a) => since(a.placed_at, a.running_at ?? a.ending_at, now) },
        { title: t('job.ran'), cell: (a) => (a.running_at ? since(a.running_at, a.ending_at, now) : '–') },
        { title: t('job.stopped_in'), cell: (a) => (a.ending_at ? since(a.ending_at, a.ended_at, now) : '–') },
        { title: t('job.checkpoint'), cell: (a) => dateTime(a.checkpoint_at) },
        { title: t('jobs.nodes'), cell: (a) => allocs.filter((one) => one.attempt === a.number && one.subjob === a.subjob).map((one) => one.node_name).join(', ') },
        { title: t('job.cause'), cell: (a) => reasonText(a.cause) },
      ]}
    />
  )
}

const comparedMax = 6 // attempts beside one another

// SideBySide shows attempts as columns, so that what differs stands out.
export function SideBySide({ attempts, allocs }: { attempts: Attempt[]; allocs: Allocation[] }) {
  const { t } = useTranslation()
  const now = useNow(5000)
  const [differ, setDiffer] = useState(false)
  if (attempts.length < 2) return null
  const shown = attempts.slice(-comparedMax)
  const gang = (a: Attempt) => allocs.filter((one) => one.attempt === a.number && one.subjob === a.subjob).sort((x, y) => x.rank - y.rank)
  const ranks = Math.min(16, Math.max(...shown.map((a) => gang(a).length)))
  const rows: [string, (a: Attempt) => string][] = [
    [t('job.outcome'), (a) => outcomeText(a, t)],
    [t('job.cause'), (a) => reasonText(a.cause)],
    [t('job.first_failed'), (a) => { const first = gang(a).find((one) => one.id === a.first_failed || one.name === a.first_failed); return first ? t('logs.rank', { rank: first.rank }) + ' · ' + first.node_name : '' }],
    [t('job.exit_code'), (a) => (a.ended_at ? (gang(a).length > 0 && gang(a).every(neverRan) ? '–' : String(a.exit_code)) : '')],
    [t('job.prepared'), (a) => since(a.placed_at, a.running_at ?? a.ending_at, now)],
    [t('job.ran'), (a) => (a.running_at ? since(a.running_at, a.ending_at, now) : '–')],
    [t('job.stopped_in'), (a) => (a.ending_at ? since(a.ending_at, a.ended_at, now) : '–')],
    [t('job.checkpoint'), (a) => dateTime(a.checkpoint_at)],
    [t('job.spec'), (a) => String(a.spec + 1)],
    ...Array.from({ length: ranks }, (_, rank): [string, (a: Attempt) => string] => [
      t('logs.rank', { rank }),
      (a) => { const one = gang(a).find((r) => r.rank === rank); return one ? `${one.node_name} · ${t('alloc.' + one.status)}${endedAlloc(one) ? ` · ${one.oom_killed ? 'OOM' : one.signal ? t('job.signal', { signal: one.signal }) : neverRan(one) ? '–' : one.exit_code}` : ''}${one.cause ? ' · ' + reasonText(one.cause) : ''}` : '' },
    ]),
  ]
  return (
    <section className="card" aria-label={t('job.side_by_side')}>
      <div className="bar"><h2>{t('job.side_by_side')}</h2><Check checked={differ} change={setDiffer}>{t('job.difference')}</Check></div>
      <Scroll label={t('job.side_by_side')}>
        <table className="plain">
          <thead><tr><td /><>{shown.map((a) => <th key={a.number} scope="col">{t('job.attempt', { number: a.number })}</th>)}</></tr></thead>
          <tbody>
            {rows.map(([name, text]) => {
              const cells = shown.map(text)
              const same = cells.every((cell) => cell === cells[0])
              if (differ && same || cells.every((cell) => !cell || cell === '–')) return null
              return <tr key={name} className={same ? undefined : 'differs'}><th scope="row">{name}</th>{cells.map((cell, i) => <td key={i}>{cell}</td>)}</tr>
            })}
          </tbody>
        </table>
      </Scroll>
    </section>
  )
}

// Checkpoints are what the job may go on from.
export function Checkpoints({ detail, standing }: { detail: JobDetail; standing?: Subjob }) {
  const { t } = useTranslation()
  const go = useNavigate()
  const list = [...(standing?.checkpoints ?? [])].reverse()
  const id = detail.job.id ?? ''
  const ended = endedStates.includes(detail.state)
  const mayResume = useRights()('submit') && (!detail.may || detail.may.includes('clone'))
  return (
    <section className="card" aria-label={t('job.checkpoints')}>
      <h2>{t('job.checkpoints')}</h2>
      {detail.job.resume && <p>{t('job.resumed', { path: detail.job.resume.path, step: detail.job.resume.step ?? '–' })} <JobLink id={detail.job.resume.job_id} /></p>}
      {list.length === 0 ? <p className="quiet">{t('job.no_checkpoints')}</p> : (
        <>
          <Table<SavedCheckpoint> label={t('job.checkpoints')} idOf={(c) => c.path + c.saved_at} least={640} rows={list} columns={[
            { title: t('job.step'), width: 90, cell: (c) => <>{c.step ?? '–'}{c === list[0] && <span className="quiet"> {t('job.newest')}</span>}</> },
            { title: t('job.path'), cell: (c) => <code>{c.path}</code> },
            { title: t('job.saved_at'), width: 150, cell: (c) => dateTime(c.saved_at, true) },
            { title: t('jobs.attempt'), width: 80, cell: (c) => c.attempt },
            { title: t('job.rank'), width: 70, cell: (c) => c.rank },
            { title: <span className="hidden">{t('job.resume_from')}</span>, width: 150, cell: (c) => ended && mayResume && detail.job.type !== 'batch' && (c === list[0] || c.step) && <Button small onClick={() => void go(`/jobs/new?clone=${part(id)}&resume=${part(id)}${c === list[0] ? '' : `&step=${c.step}`}`)}>{t('job.resume_from')}</Button> },
          ]} />
          <Cli text={`nomadlike job resume ${quote(detail.job.name)}`} />
        </>
      )}
    </section>
  )
}

