import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useId, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { Link } from 'react-router'
import { call, part } from '../api'
import { dateTime, quote } from '../format'
import { Cli } from '../parts/actions'
import { Button, Note } from '../parts/controls'
import { Dialog } from '../parts/controls/dialog'
import { Choice, Field, Radios } from '../parts/controls/fields'
import { Table } from '../parts/controls/table'
import { changeOf, disableOf, jobChoices, usersQuery, type Jobs } from '../parts/people'
import { errorText, Failed, failing, useTitle, WordTag } from '../parts/states'
import { useRights, useUser } from '../rights'
import type { PasswordChanged, User, UserDetail } from '../types'

type Asks = { what: 'change'; of?: UserDetail } | { what: 'disable' | 'enable' | 'delete' | 'password'; of: UserDetail }

// People are the accounts of the cluster. Operators read them, administrators make,
// change and end them.
export function People() {
  const { t } = useTranslation()
  useTitle(t('menu.people'))
  const may = useRights()
  const self = useUser()
  const users = useQuery(usersQuery)
  const [asks, setAsks] = useState<Asks>()
  const close = () => setAsks(undefined)
  const all = users.data ?? []
  return (
    <div className="page">
      <div className="bar"><h1>{t('menu.people')}</h1><span className="grow" /><Link to="/audit">{t('audit.title')}</Link> {may('user_write') && <Button tone="first" onClick={() => setAsks({ what: 'change' })}>{t('people.create')}</Button>}</div>
      {failing(users) ? <Failed error={users.error} retry={() => void users.refetch()} /> : (
        <section className="card" aria-label={t('people.accounts')}>
          <Table<UserDetail> label={t('people.accounts')} idOf={({ user }) => user.name} loading={users.isPending} rows={all} page={100} least={900} empty={t('people.none')} columns={[
            { title: t('people.name'), cell: ({ user }) => user.name, compare: (a, b) => (a.user.name < b.user.name ? -1 : 1) },
            { title: t('people.display_name'), cell: ({ user }) => user.display_name || '–' },
            { title: t('people.state'), cell: ({ user }) => (user.disabled ? <WordTag tone="bad" title={t('people.disabled_by', { by: user.disabled_by, time: dateTime(user.disabled_at) })}>{t('people.disabled')}</WordTag> : <WordTag tone="good">{t('people.active')}</WordTag>), compare: (a, b) => Number(!!a.user.disabled) - Number(!!b.user.disabled) },
            { title: t('people.cluster_role'), cell: ({ user }) => (user.role ? t('role.' + user.role) : '–'), compare: (a, b) => ((a.user.role ?? '') < (b.user.role ?? '') ? 1 : -1) },
            { title: t('people.projects'), cell: ({ memberships }) => (memberships ?? []).map(({ project, role }) => t('people.in', { project, role: t('role.' + role) })).join(t('people.and')) || '–' },
            { title: t('people.live'), right: true, cell: ({ live }) => live, compare: (a, b) => a.live - b.live },
            may('user_write') && {
              title: <span className="hidden">{t('people.change')}</span>, right: true, cell: (of) => (
                <span className="bar deeds">
                  <Button small aria-label={t('people.change_of', { user: of.user.name })} onClick={() => setAsks({ what: 'change', of })}>{t('people.change')}</Button>
                  {!of.user.disabled && of.user.name !== self && <Button small aria-label={t('people.password_of', { user: of.user.name })} onClick={() => setAsks({ what: 'password', of })}>{t('people.password')}</Button>}
                  {of.user.disabled ? (
                    <>
                      <Button small aria-label={t('people.enable_of', { user: of.user.name })} onClick={() => setAsks({ what: 'enable', of })}>{t('people.enable')}</Button>
                      <Button small tone="danger" aria-label={t('people.delete_of', { user: of.user.name })} onClick={() => setAsks({ what: 'delete', of })}>{t('deed.delete')}</Button>
                    </>
                  ) : of.user.name !== self && <Button small tone="danger" aria-label={t('people.disable_of', { user: of.user.name })} onClick={() => setAsks({ what: 'disable', of })}>{t('people.disable')}</Button>}
                </span>
              ),
            },
          ]} />
          <Cli text="nomadlike user list" />
        </section>
      )}
      {asks?.what === 'change' && <ChangeDialog of={asks.of} all={all} close={close} />}
      {asks?.what === 'disable' && <DisableDialog of={asks.of} all={all} close={close} />}
      {asks?.what === 'password' && <PasswordDialog of={asks.of} close={close} />}
      {asks?.what === 'enable' && <EnableDialog of={asks.of} close={close} />}
      {asks?.what === 'delete' && <DeleteDialog of={asks.of} close={close} />}
    </div>
  )
}

// useChange runs what a dialog asks for, closes it when that is done, and has what it
// was refused for.
function useChange(close: () => void) {
  const client = useQueryClient()
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>()
  const run = async (act: () => Promise<unknown>) => {
    setBusy(true)
    setError(undefined)
    try {
      await act()
      await client.invalidateQueries({ predicate: ({ queryKey }) => ['users', 'projects', 'jobs', 'session'].includes(queryKey[0] as string) })
      close()
    } catch (failure) {
      setError(failure)
      setBusy(false)
    }
  }
  return { busy, error, run }
}

const at = (name: string) => '/v1/users/' + part(name)

function ChangeDialog({ of, all, close }: { of?: UserDetail; all: UserDetail[]; close: () => void }) {
  const { t } = useTranslation()
  const { busy, error, run } = useChange(close)
  const [user, setUser] = useState<User>(of?.user ?? { name: '' })
  const says = useId()
  const set = (more: Partial<User>) => setUser((old) => ({ ...old, ...more }))
  const taken = !of && all.some((one) => one.user.name === user.name)
  const act = t(of ? 'people.change' : 'people.create')
  return (
    <Dialog title={of ? t('people.change_of', { user: user.name }) : act} close={close} act={act} busy={busy} off={!user.name || taken} run={() => void run(() => call('PUT', at(user.name), user))}>
      <div className="stack">
        {!of && <Field entry="user.name" label={t('people.name')} value={user.name} change={(name) => set({ name: name.trim() })} wrong={taken} autoComplete="off" spellCheck={false} aria-describedby={taken ? says : undefined} />}
        {taken && <p id={says} role="alert" className="tone-bad">{t('people.taken', { user: user.name })}</p>}
        <Field entry="user.display_name" label={t('people.display_name')} value={user.display_name ?? ''} change={(display_name) => set({ display_name })} />
        <Field entry="user.email" label={t('people.email')} type="email" value={user.email ?? ''} change={(email) => set({ email })} />
        <Choice entry="user.role" label={t('people.cluster_role')} value={user.role ?? ''} change={(role) => set({ role })} options={['', 'operator', 'admin'].map((value) => ({ value, label: value ? t('role.' + value) : t('people.no_role') }))} />
        <Field entry="user.home" label={t('people.home')} value={user.project ?? ''} change={(project) => set({ project: project.trim() })} />
        {error !== undefined && <Note tone="error" title={errorText(error, t)} />}
        {!of && <p className="quiet">{t('people.then')}</p>}
        <Cli text={changeOf(user, of?.user)} />
      </div>
    </Dialog>
  )
}

function DisableDialog({ of: { user, live }, all, close }: { of: UserDetail; all: UserDetail[]; close: () => void }) {
  const { t } = useTranslation()
  const { busy, error, run } = useChange(close)
  const [jobs, setJobs] = useState<Jobs | undefined>(live ? undefined : 'run_on')
  const [to, setTo] = useState('')
  const list = useId()
  const heirs = all.filter((one) => one.user.name !== user.name && !one.user.disabled).map((one) => one.user.name)
  const ready = !!jobs && (jobs !== 'hand_over' || to !== '')
  return (
    <Dialog title={t('people.disable_of', { user: user.name })} close={close} act={t('people.disable')} danger busy={busy} off={!ready} run={() => void run(() => call('PUT', at(user.name) + '/state', { disabled: true, jobs, ...(jobs === 'hand_over' && { to }) }))}>
      <div className="stack">
        <p>{t('people.disables', { user: user.name })}</p>
        <p><strong>{t('people.has_live', { count: live, user: user.name })}</strong></p>
        {live > 0 && <Radios<Jobs> entry="user.jobs" label={t('people.jobs')} value={jobs} change={setJobs} options={jobChoices.map((value) => ({ value, label: t('people.jobs_' + value) }))} />}
        {jobs === 'hand_over' && <><Field entry="user.to" label={t('people.heir')} value={to} change={(value) => setTo(value.trim())} list={list} autoComplete="off" spellCheck={false} /><datalist id={list}>{heirs.map((name) => <option key={name} value={name} />)}</datalist></>}
        {error !== undefined && <Note tone="error" title={errorText(error, t)} />}
        <Cli text={disableOf(user.name, live ? jobs : undefined, to)} />
      </div>
    </Dialog>
  )
}

// PasswordDialog draws a first password, and shows it this once.
function PasswordDialog({ of: { user }, close }: { of: UserDetail; close: () => void }) {
  const { t } = useTranslation()
  const [drawn, setDrawn] = useState<PasswordChanged>()
  const { busy, error, run } = useChange(() => {})
  const draw = async () => setDrawn(await call<PasswordChanged>('POST', at(user.name) + '/password', { reset: true }))
  return (
    <Dialog title={t('people.password_of', { user: user.name })} close={close} act={t(drawn ? 'people.done' : 'people.draw')} busy={busy && !drawn} run={drawn ? close : () => void run(draw)}>
      <div className="stack">
        {drawn ? <><p role="status">{t('people.drawn', { user: user.name, until: dateTime(drawn.until) })}</p><pre className="cli">{drawn.first}</pre></> : <p>{t('people.draws', { user: user.name })}</p>}
        {error !== undefined && <Note tone="error" title={errorText(error, t)} />}
        <Cli text={'nomadlike user password ' + quote(user.name) + ' -reset'} />
      </div>
    </Dialog>
  )
}

function EnableDialog({ of: { user }, close }: { of: UserDetail; close: () => void }) {
  const { t } = useTranslation()
  const { busy, error, run } = useChange(close)
  return (
    <Dialog title={t('people.enable_of', { user: user.name })} close={close} act={t('people.enable')} busy={busy} run={() => void run(() => call('PUT', at(user.name) + '/state', {}))}>
      <div className="stack">
        <p>{t('people.enables', { user: user.name })}</p>
        {error !== undefined && <Note tone="error" title={errorText(error, t)} />}
        <Cli text={'nomadlike user enable ' + quote(user.name)} />
      </div>
    </Dialog>
  )
}

function DeleteDialog({ of: { user, live }, close }: { of: UserDetail; close: () => void }) {
  const { t } = useTranslation()
  const { busy, error, run } = useChange(close)
  return (
    <Dialog title={t('people.delete_of', { user: user.name })} close={close} act={t('deed.delete')} danger busy={busy} off={live > 0} run={() => void run(() => call('DELETE', at(user.name)))}>
      <div className="stack">
        <p>{t('people.deletes', { user: user.name })}</p>
        {live > 0 && <Note tone="warning" title={t('people.has_live', { count: live, user: user.name })}>{t('people.delete_later')}</Note>}
        {error !== undefined && <Note tone="error" title={errorText(error, t)} />}
        <Cli text={'nomadlike user delete ' + quote(user.name)} />
      </div>
    </Dialog>
  )
}
