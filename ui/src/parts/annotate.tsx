import { useQuery } from '@tanstack/react-query'
import { useId, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { Link } from 'react-router'
import { get, part } from '../api'
import type { Job, JobDetail } from '../types'
import { EntryMark } from './entries'
import { Field } from './controls/fields'
import { Loading } from './states'

export const noteMax = 1000 // characters

export interface Changes {
  add?: string[]
  remove?: string[]
  note?: string
}

const wordsOf = (text: string) => [...new Set(text.split(/[\s,，、]+/).filter(Boolean))]

// changedTags is what has to be added and removed for tags to become what a text says.
export function changedTags(before: string[], text: string): Changes {
  const after = wordsOf(text)
  const add = after.filter((tag) => !before.includes(tag))
  const remove = before.filter((tag) => !after.includes(tag))
  return { ...(add.length > 0 && { add }), ...(remove.length > 0 && { remove }) }
}

// signedTags reads +TAG and -TAG; a word without a sign is added.
export function signedTags(text: string): Changes {
  const words = wordsOf(text)
  const add = words.filter((word) => !word.startsWith('-')).map((word) => word.replace(/^\+/, '')).filter(Boolean)
  const remove = words.filter((word) => word.startsWith('-')).map((word) => word.slice(1)).filter(Boolean)
  return { ...(add.length > 0 && { add }), ...(remove.length > 0 && { remove }) }
}

// AnnotateFields change the tags and the note of one job, or some tags of several.
export function AnnotateFields({ jobs, change }: { jobs: { id: string }[]; change: (changes: Changes) => void }) {
  const { t } = useTranslation()
  const [text, setText] = useState('')
  const single = jobs.length === 1 ? jobs[0]!.id : ''
  const detail = useQuery({ queryKey: ['job', single], enabled: single !== '', queryFn: ({ signal }) => get<JobDetail>('/v1/jobs/' + part(single), signal) })
  if (!single) return <Field entry="tag" label={t('deed.tags_signed')} placeholder="+paper-3 -draft" value={text} change={(next) => { setText(next); change(signedTags(next)) }} />
  return detail.data ? <OneJob key={single} job={detail.data.job} change={change} /> : <Loading />
}

function OneJob({ job, change }: { job: Job; change: (changes: Changes) => void }) {
  const { t } = useTranslation()
  const id = useId()
  const [before] = useState({ tags: job.tags ?? [], note: job.note ?? '' }) // as it was when one began to write
  const [tags, setTags] = useState(before.tags.join(' '))
  const [note, setNote] = useState(before.note)
  const say = (nextTags: string, nextNote: string) => {
    setTags(nextTags)
    setNote(nextNote)
    change({ ...changedTags(before.tags, nextTags), ...(nextNote !== before.note && { note: nextNote }) })
  }
  return (
    <>
      <Field entry="job.tags" label={t('deed.tags')} placeholder="ablation paper-3" value={tags} change={(next) => say(next, note)} />
      <span className="control">
        <span className="named"><label htmlFor={id}>{t('deed.note')}</label><EntryMark entry="job.note" label={t('deed.note')} /></span>
        <textarea id={id} className="field" rows={4} maxLength={noteMax} value={note} onChange={(event) => say(tags, event.target.value)} />
      </span>
    </>
  )
}

// Annotations are what people wrote on a job.
export function Annotations({ job }: { job: Job }) {
  const { t } = useTranslation()
  if (!job.tags?.length && !job.note) return null
  return (
    <div className="annotations">
      {(job.tags ?? []).map((tag) => <Link key={tag} className="label" to={'/jobs?text=' + part('tag:' + tag)} title={t('jobs.find_tag', { tag })}>{tag}</Link>)}
      {job.note && <p className="note-text">✎ {job.note}</p>}
    </div>
  )
}
