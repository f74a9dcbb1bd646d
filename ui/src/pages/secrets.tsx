import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useId, useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { Link } from 'react-router'
import { ApiError, call, get, part } from '../api'
import { dateTime, quote } from '../format'
import { Cli } from '../parts/actions'
import { Button, Note } from '../parts/controls'
import { Dialog } from '../parts/controls/dialog'
import { Field, Radios } from '../parts/controls/fields'
import { Table } from '../parts/controls/table'
import { EntryMark } from '../parts/entries'
import { Keyring } from '../parts/keyring'
import { errorText, Failed, failing, Loading, useTitle } from '../parts/states'
import { operates, useRights } from '../rights'
import { useSession } from '../shell'
import type { SecretChanged, SecretInfo, SecretJob, SecretList } from '../types'

const shownJobs = 3 // of a secret, in the list

// bytesOf are the bytes of a text that somebody typed: one line feed at the end of a
// single line is none of the value, as the command line has it.
export function bytesOf(text: string): Uint8Array {
  const value = /^[^\n]*\n$/.test(text) ? text.slice(0, -1) : text
  return new TextEncoder().encode(value)
}

// base64 spells bytes as the API wants them.
export const base64 = (bytes: Uint8Array) => btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''))

export const nameOK = (name: string) => /^[A-Za-z_][A-Za-z0-9_]*$/.test(name)

const at = ({ name, own }: Pick<SecretInfo, 'name' | 'own'>) => '/v1/secrets/' + part(name) + (own ? '?mine=true' : '')

type Asks = { what: 'set'; of?: SecretInfo } | { what: 'delete'; of: SecretInfo }

// SecretsPage lists the secrets of the project that requests act in and one's own: what
// can be known of them, which is not their values. Administrators see the keys, too.
export function SecretsPage() {
  const { t } = useTranslation()
  useTitle(t('secrets.title'))
  const who = useSession().data
  const acting = who?.acting ?? ''
  const may = useRights()
  const [asks, setAsks] = useState<Asks>()
  const [done, setDone] = useState<{ name: string; changed: SecretChanged }>()
  const mine = may('secrets')
  const read = useQuery({ queryKey: ['secrets', acting], enabled: mine, refetchInterval: 30_000, queryFn: ({ signal }) => get<SecretList>('/v1/secrets', signal).then((list) => list.secrets ?? []) })
  const close = () => setAsks(undefined)
  const all = read.data ?? []
  const own = all.filter((one) => one.own).length
  const used = all.filter((one) => one.jobs?.length).length
  const whose = (one: SecretInfo) => (one.own ? t('secrets.mine') : one.project)
  return (
    <div className="page">
      <div className="bar"><h1>{t('secrets.title')}</h1><span className="grow" />{mine && <Button tone="first" onClick={() => setAsks({ what: 'set' })}>{t('secrets.create')}</Button>}</div>
      {!mine ? <Note tone="info" title={t('secrets.not_yours')} /> : read.isPending ? <Loading /> : failing(read) ? <Failed error={read.error} retry={() => void read.refetch()} /> : (
        <>
          <p className="truth">{t('secrets.truth', { count: all.length - own, project: acting, own })} {used > 0 && t('secrets.truth_used', { count: used })}</p>
          {done && <Set name={done.name} changed={done.changed} close={() => setDone(undefined)} />}
          <section className="card" aria-label={t('secrets.title')}>
            <Table<SecretInfo> label={t('secrets.title')} idOf={(one) => one.name + (one.own ? ' ' : '')} rows={all} page={50} least={760} empty={t('secrets.none')} columns={[
              { title: t('secrets.name'), cell: (one) => <code>{one.name}</code>, compare: (a, b) => (a.name < b.name ? -1 : 1) },
              { title: t('secrets.whose'), cell: whose, compare: (a, b) => Number(a.own) - Number(b.own) },
              { title: t('secrets.version'), right: true, cell: (one) => one.version, compare: (a, b) => a.version - b.version },
              { title: t('secrets.set_by'), cell: (one) => <>{one.updated_by}<br /><span className="quiet">{dateTime(one.updated_at)}</span></>, compare: (a, b) => ((a.updated_at ?? '') < (b.updated_at ?? '') ? -1 : 1) },
              { title: t('secrets.used_by'), cell: (one) => <Users jobs={one.jobs ?? []} />, compare: (a, b) => (a.jobs?.length ?? 0) - (b.jobs?.length ?? 0) },
              {
                title: <span className="hidden">{t('secrets.change')}</span>, right: true, cell: (one) => (
                  <span className="bar deeds">
                    {one.verbs?.includes('write') && <Button small aria-label={t('secrets.replace_of', { name: one.name })} onClick={() => setAsks({ what: 'set', of: one })}>{t('secrets.replace')}</Button>}
                    {one.verbs?.includes('delete') && <Button small tone="danger" aria-label={t('secrets.delete_of', { name: one.name })} onClick={() => { setDone(undefined); setAsks({ what: 'delete', of: one }) }}>{t('deed.delete')}</Button>}
                  </span>
                ),
              },
            ]} />
            <p className="quiet">{t('secrets.about')}</p>
            <Cli text="nomadlike secret list" />
          </section>
        </>
      )}
      {operates(who) && <Keyring />}
      {asks?.what === 'set' && <SetDialog of={asks.of} known={all} project={acting} close={close} done={setDone} />}
      {asks?.what === 'delete' && <DeleteDialog of={asks.of} close={close} />}
    </div>
  )
}

// Users are the jobs that use a secret, as far as they are shown.
function Users({ jobs }: { jobs: SecretJob[] }) {
  const { t } = useTranslation()
  if (!jobs.length) return <span className="quiet">–</span>
  return (
    <>
      {jobs.slice(0, shownJobs).map((job, i) => <span key={job.id}>{i > 0 && ', '}<Link to={'/jobs/' + part(job.id)}>{job.name}</Link></span>)}
      {jobs.length > shownJobs && ' ' + t('secrets.more', { count: jobs.length - shownJobs })}
    </>
  )
}

// Set says what became of a secret that was set.
function Set({ name, changed, close }: { name: string; changed: SecretChanged; close: () => void }) {
  const { t } = useTranslation()
  const jobs = changed.jobs ?? []
  return (
    <Note tone={changed.unmasked ? 'warning' : 'info'} title={t('secrets.set', { name, version: changed.version })} action={<Button small onClick={close}>{t('controls.close')}</Button>}>
      {jobs.length > 0 && <p>{t('secrets.reaches')} <Users jobs={jobs} /></p>}
      {changed.unmasked && <p>{t('secrets.unmasked')}</p>}
    </Note>
  )
}

function SetDialog({ of, known, project, close, done }: { of?: SecretInfo; known: SecretInfo[]; project: string; close: () => void; done: (done: { name: string; changed: SecretChanged }) => void }) {
  const { t } = useTranslation()
  const client = useQueryClient()
  const value = useId()
  const file = useRef<HTMLInputElement>(null)
  const [name, setName] = useState(of?.name ?? '')
  const [scope, setScope] = useState<'project' | 'mine'>(of?.own ? 'mine' : 'project')
  const [text, setText] = useState('')
  const [shown, setShown] = useState(false)
  const [from, setFrom] = useState<{ name: string; bytes: Uint8Array }>()
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>()
  const own = scope === 'mine'
  const there = of ?? known.find((one) => one.name === name && one.own === own)
  const bytes = from?.bytes ?? bytesOf(text)
  const run = async () => {
    setBusy(true)
    setError(undefined)
    try {
      const changed = await call<SecretChanged>('PUT', at({ name, own }), { value: base64(bytes) })
      setText('')
      setFrom(undefined)
      done({ name, changed })
      await client.invalidateQueries({ queryKey: ['secrets'] })
      close()
    } catch (failure) {
      setError(failure)
      setBusy(false)
    }
  }
  const take = async (chosen?: File) => chosen && setFrom({ name: chosen.name, bytes: new Uint8Array(await chosen.arrayBuffer()) })
  const wrong = name !== '' && !nameOK(name)
  return (
    <Dialog title={of ? t('secrets.replace_of', { name }) : t('secrets.create')} close={close} act={t(there ? 'secrets.replace' : 'secrets.create')} busy={busy} off={!nameOK(name) || bytes.length === 0} run={() => void run()}>
      <div className="stack">
        {!of && <Field entry="secret" label={t('secrets.name')} value={name} change={(next) => setName(next.trim())} wrong={wrong} placeholder="WANDB_API_KEY" autoComplete="off" spellCheck={false} />}
        {wrong && <p role="alert" className="tone-bad">{t('secrets.name_wrong')}</p>}
        {!of && <Radios<'project' | 'mine'> entry="secret.mine" label={t('secrets.whose')} value={scope} change={setScope} options={[{ value: 'project', label: t('secrets.of_project', { project }) }, { value: 'mine', label: t('secrets.of_mine') }]} />}
        {there && <p><strong>{t('secrets.replaces', { name, version: there.version + 1 })}</strong> {there.jobs?.length ? <>{t('secrets.reaches')} <Users jobs={there.jobs} /></> : t('secrets.reaches_none')}</p>}
        <span className="control">
          <span className="named"><label htmlFor={value}>{t('secrets.value')}</label><EntryMark entry="secret" label={t('secrets.value')} /></span>
          {from ? <p>{t('secrets.from', { file: from.name, count: from.bytes.length })} <Button small onClick={() => setFrom(undefined)}>{t('secrets.type')}</Button></p>
            : <textarea id={value} className={shown ? 'field' : 'field hides'} rows={3} value={text} onChange={(event) => setText(event.target.value)} autoComplete="off" autoCapitalize="off" spellCheck={false} />}
        </span>
        {!from && <p className="bar"><Button small onClick={() => setShown(!shown)}>{t(shown ? 'secrets.hide' : 'secrets.show')}</Button> <Button small onClick={() => file.current?.click()}>{t('secrets.file')}</Button><input ref={file} type="file" hidden aria-label={t('secrets.file')} onChange={(event) => void take(event.target.files?.[0])} /></p>}
        <p className="quiet">{t('secrets.once')}</p>
        {error !== undefined && <Note tone="error" title={errorText(error, t)}>{error instanceof ApiError && error.failure.hint}</Note>}
        <Cli text={`nomadlike secret set ${own ? '-mine ' : ''}${from ? `-file ${quote(from.name)} ` : ''}${quote(name || 'NAME')}`} />
      </div>
    </Dialog>
  )
}

function DeleteDialog({ of, close }: { of: SecretInfo; close: () => void }) {
  const { t } = useTranslation()
  const client = useQueryClient()
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>()
  const jobs = of.jobs ?? []
  const run = async () => {
    setBusy(true)
    setError(undefined)
    try {
      await call('DELETE', at(of))
      await client.invalidateQueries({ queryKey: ['secrets'] })
      close()
    } catch (failure) {
      setError(failure)
      setBusy(false)
    }
  }
  return (
    <Dialog title={t('secrets.delete_of', { name: of.name })} close={close} act={t('deed.delete')} danger busy={busy} run={() => void run()}>
      <div className="stack">
        <p>{t(of.own ? 'secrets.deletes_mine' : 'secrets.deletes', { name: of.name, project: of.project })}</p>
        {jobs.length > 0 ? (
          <Note tone="warning" title={t('secrets.breaks', { count: jobs.length })}><ul className="plain">{jobs.map((job) => <li key={job.id}><Link to={'/jobs/' + part(job.id)}>{job.name}</Link> <span className="quiet">{job.user}</span></li>)}</ul></Note>
        ) : <p>{t('secrets.unused')}</p>}
        {error !== undefined && <Note tone="error" title={errorText(error, t)} />}
        <Cli text={`nomadlike secret delete ${of.own ? '-mine ' : ''}${quote(of.name)}`} />
      </div>
    </Dialog>
  )
}
