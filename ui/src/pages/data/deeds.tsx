import { useQueryClient } from '@tanstack/react-query'
import { useId, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { ApiError, call } from '../../api'
import { quote, size } from '../../format'
import { Cli } from '../../parts/actions'
import { Note } from '../../parts/controls'
import { Dialog } from '../../parts/controls/dialog'
import { Check, Field, Radios } from '../../parts/controls/fields'
import { addressOf, flagsOf, labelsOf, linesOf, refOf } from '../../parts/data'
import { JobLink } from '../../parts/places'
import { errorText } from '../../parts/states'
import { useRights } from '../../rights'
import type { DataDetail, DataRequest, DataUse, DataVersion } from '../../types'

const accesses = ['private', 'project', 'cluster'] as const
type Access = (typeof accesses)[number]

// useDeed does one thing to an object, and has the pages read it again.
function useDeed(close: () => void) {
  const client = useQueryClient()
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>()
  const run = async (deed: () => Promise<unknown>, then?: () => void) => {
    setBusy(true)
    setError(undefined)
    try {
      await deed()
      then?.()
      await client.invalidateQueries({ queryKey: ['data'] })
      close()
    } catch (failure) {
      setError(failure)
      setBusy(false)
    }
  }
  return { busy, error, run }
}

function Refused({ error }: { error: unknown }) {
  const { t } = useTranslation()
  if (error === undefined) return null
  return <Note tone="error" title={errorText(error, t)}>{error instanceof ApiError && error.failure.hint}</Note>
}

// changesOf are what differs from what is known, undefined where nothing does.
export function changesOf({ object }: DataDetail, now: { description: string; labels: string; access: string; published: boolean }): DataRequest | undefined {
  const request: DataRequest = {}
  if (now.description !== (object.description ?? '')) request.description = now.description
  const labels = labelsOf(now.labels)
  if (labels && linesOf(labels) !== linesOf(object.labels)) request.labels = labels
  if (now.access !== object.access) request.access = now.access
  if (now.published !== (object.published ?? false)) request.published = now.published
  return Object.keys(request).length ? request : undefined
}

// labelFlags set what has changed of labels, and take away what is gone.
const labelFlags = (old: Record<string, string>, now?: Record<string, string> | null): string[] =>
  now ? [...Object.entries(now).filter(([key, value]) => old[key] !== value).map(([key, value]) => `${key}=${value}`), ...Object.keys(old).filter((key) => !(key in now)).map((key) => key + '=')] : []

// updateLine is what changes the same on the command line.
export function updateLine(detail: DataDetail, request: DataRequest | undefined, acting: string): string {
  const flags = [
    request?.access && `-access ${request.access}`,
    request?.description !== undefined && request.description !== null && `-description ${quote(request.description)}`,
    ...labelFlags(detail.object.labels ?? {}, request?.labels).map((text) => `-label ${quote(text)}`),
    request?.published !== undefined && request.published !== null && (request.published ? '-publish' : '-publish=false'),
  ].filter(Boolean).join(' ')
  return `nomadlike data update ${flagsOf(refOf(detail), acting)}${flags && flags + ' '}${quote(detail.object.name)}`
}

// EditDialog changes what an object says of itself.
export function EditDialog({ detail, owns, acting, close }: { detail: DataDetail; owns: boolean; acting: string; close: () => void }) {
  const { t } = useTranslation()
  const may = useRights()
  const { object } = detail
  const [description, setDescription] = useState(object.description ?? '')
  const [labels, setLabels] = useState(linesOf(object.labels))
  const [access, setAccess] = useState(object.access as Access)
  const [published, setPublished] = useState(object.published ?? false)
  const says = useId()
  const lines = useId()
  const { busy, error, run } = useDeed(close)
  const wrong = labelsOf(labels) === undefined
  const request = changesOf(detail, { description, labels, access, published })
  return (
    <Dialog title={t('data.edit_of', { name: object.name })} close={close} act={t('data.save')} busy={busy} off={!request || wrong} run={() => void run(() => call('PUT', addressOf(refOf(detail)), request))}>
      <div className="stack">
        <span className="control"><span className="named"><label htmlFor={says}>{t('data.description')}</label></span><textarea id={says} className="field" rows={4} maxLength={4000} value={description} onChange={(event) => setDescription(event.target.value)} /></span>
        <span className="control"><span className="named"><label htmlFor={lines}>{t('data.labels_lines')}</label></span><textarea id={lines} className={wrong ? 'field mono wrong' : 'field mono'} rows={3} placeholder="team=vision" spellCheck={false} aria-invalid={wrong || undefined} value={labels} onChange={(event) => setLabels(event.target.value)} /></span>
        {owns ? <Radios<Access> entry="data.access" label={t('data.access')} value={access} change={setAccess} options={accesses.map((value) => ({ value, label: t('data.access_long.' + value) }))} /> : <p className="quiet">{t('data.access_owner', { owner: object.owner })}</p>}
        {may('keys_rotate') && <Check entry="data.published" checked={published} change={setPublished}>{t('data.publish')}</Check>}
        <Refused error={error} />
        <Cli text={updateLine(detail, request, acting)} />
      </div>
    </Dialog>
  )
}

// TagDialog sets the tag of a version, or takes it away.
export function TagDialog({ detail, version, acting, close }: { detail: DataDetail; version: DataVersion; acting: string; close: () => void }) {
  const { t } = useTranslation()
  const [tag, setTag] = useState(version.tag ?? '')
  const { busy, error, run } = useDeed(close)
  const { object } = detail
  const wrong = tag !== '' && (!/^[a-z][a-z0-9._-]*$/.test(tag) || tag === 'latest')
  const other = object.versions?.find((one) => one.tag === tag && tag !== '' && one.number !== version.number && one.state !== 'uploading')
  const name = `${quote(object.name)}@${version.number}`
  return (
    <Dialog title={t('data.tag_of', { version: version.number })} close={close} act={t(tag ? 'data.tag_set' : 'data.tag_none')} busy={busy} off={wrong || tag === (version.tag ?? '')} run={() => void run(() => call('PUT', addressOf(refOf(detail), '/tag'), { version: version.number, tag }))}>
      <div className="stack">
        <Field entry="data.tag" label={t('data.tag')} value={tag} change={(next) => setTag(next.trim())} wrong={wrong} placeholder="stable" autoComplete="off" spellCheck={false} />
        {wrong && <p role="alert" className="tone-bad">{t('data.tag_wrong')}</p>}
        {other && <p>{t('data.tag_moves', { version: other.number })}</p>}
        <p className="quiet">{t('data.tag_about')}</p>
        <Refused error={error} />
        <Cli text={`nomadlike data tag ${flagsOf(refOf(detail), acting)}${name} ${tag ? quote(tag) : "''"}`} />
      </div>
    </Dialog>
  )
}

// RemoveDialog removes a version, or the object with all of them. What jobs that have not
// ended use stays: they are named instead.
export function RemoveDialog({ detail, version, used, acting, close, gone }: { detail: DataDetail; version?: DataVersion; used?: DataUse; acting: string; close: () => void; gone: () => void }) {
  const { t } = useTranslation()
  const { busy, error, run } = useDeed(close)
  const { object } = detail
  const live = (used?.jobs ?? []).filter((job) => !job.finished_at && (!version || job.version === version.number))
  const title = version ? t('data.remove_version', { name: object.name, version: version.number }) : t('data.remove_object', { name: object.name })
  const bytes = version ? (version.bytes ?? 0) : detail.all_bytes
  const registered = version ? version.state === 'registered' : !!object.versions?.some(({ state }) => state === 'registered')
  return (
    <Dialog title={title} close={close} act={t('data.remove')} danger busy={busy} off={live.length > 0} run={() => void run(() => call('DELETE', addressOf(refOf(detail), '', version ? { version: version.number } : {})), version ? undefined : gone)}>
      <div className="stack">
        {live.length > 0 ? (
          <Note tone="warning" title={t('data.in_use', { count: live.length })}><ul className="plain">{live.map((job) => <li key={job.id}><JobLink id={job.id} name={job.name} /> <span className="quiet">{job.user}, {t('data.version_of', { version: job.version })}</span></li>)}</ul></Note>
        ) : <p>{t(version ? 'data.removes_version' : 'data.removes', { count: detail.count, size: size(bytes) })} {registered && t('data.removes_registered')} <strong>{t('data.forever')}</strong></p>}
        <Refused error={error} />
        <Cli text={`nomadlike data rm ${flagsOf(refOf(detail), acting)}${quote(object.name)}${version ? '@' + version.number : ''}`} />
      </div>
    </Dialog>
  )
}
