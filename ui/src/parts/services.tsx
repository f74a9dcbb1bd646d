import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useId, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { call, get, part } from '../api'
import { dateTime, quote } from '../format'
import type { NewToken, ServiceAccountDetail, ServiceAccountList, Token } from '../types'
import { Cli } from './actions'
import { Button, Note } from './controls'
import { Dialog } from './controls/dialog'
import { Choice, Field, Radios } from './controls/fields'
import { Table } from './controls/table'
import { jobChoices, type Jobs } from './people'
import { errorText, Failed, failing, WordTag } from './states'

type Asks = { what: 'create' } | { what: 'tokens' | 'disable' | 'enable' | 'delete'; name: string }

const roles = ['viewer', 'user', 'project-admin']
const spans = ['7d', '30d', '90d']
const list = (text: string) => text.split(/[\s,]+/).filter(Boolean)
const at = (name: string) => '/v1/service-accounts/' + part(name)

// lastUsed is the newest use of any of the tokens; undefined where there was none.
export const lastUsed = (tokens?: Token[] | null) => (tokens ?? []).map((token) => token.used_at ?? '').sort().at(-1) || undefined

// tokenCommand is the command that makes a token.
export const tokenCommand = (name: string, of: { label: string; ttl: string; verbs: string[]; addresses: string[] }) =>
  ['nomadlike service-account token create', of.label && '-name ' + quote(of.label), '-ttl ' + of.ttl, ...of.verbs.map((verb) => '-verb ' + quote(verb)), ...of.addresses.map((from) => '-from ' + quote(from)), quote(name)].filter(Boolean).join(' ')

// endCommand is the command that takes an account out of use.
export const endCommand = (verb: string, name: string, jobs?: Jobs, to = '') =>
  ['nomadlike service-account ' + verb, jobs && '-jobs ' + jobs.replace('_', '-'), jobs === 'hand_over' && '-to ' + quote(to || 'USER'), quote(name)].filter(Boolean).join(' ')

// Services are the service accounts of the project that requests act in. Whoever may
// makes, ends and gives them tokens here.
export function Services({ project, may }: { project: string; may: boolean }) {
  const { t } = useTranslation()
  const [asks, setAsks] = useState<Asks>()
  const close = () => setAsks(undefined)
  const read = useQuery({ queryKey: ['services', project], refetchInterval: 30_000, queryFn: ({ signal }) => get<ServiceAccountList>('/v1/service-accounts', signal).then((answer) => (answer.accounts ?? []).filter(({ account }) => account.project === project)) })
  const all = read.data ?? []
  const of = asks && 'name' in asks ? all.find(({ account }) => account.name === asks.name) : undefined
  return (
    <section className="card" aria-label={t('services.title')}>
      <div className="bar"><h2>{t('services.title')}</h2><span className="grow" />{may && <Button onClick={() => setAsks({ what: 'create' })}>{t('services.create')}</Button>}</div>
      {failing(read) ? <Failed error={read.error} retry={() => void read.refetch()} /> : all.length === 0 ? <p className="quiet">{t('services.none')}</p> : (
        <Table<ServiceAccountDetail> label={t('services.title')} idOf={({ account }) => account.name} rows={all} page={50} least={may ? 900 : 480} columns={[
          { title: t('services.name'), wide: true, cell: ({ account }) => <>{account.name} {account.description && <span className="quiet">{account.description}</span>}</>, compare: (a, b) => (a.account.name < b.account.name ? -1 : 1) },
          { title: t('people.role'), cell: ({ account }) => t('role.' + account.role) },
          { title: t('people.state'), cell: ({ account }) => (account.disabled ? <WordTag tone="bad" title={t('people.disabled_by', { by: account.disabled_by, time: dateTime(account.disabled_at) })}>{t('people.disabled')}</WordTag> : <WordTag tone="good">{t('people.active')}</WordTag>) },
          { title: t('services.owner'), cell: ({ account }) => account.owner || '–' },
          may && { title: t('services.used'), cell: ({ tokens }) => (lastUsed(tokens) ? dateTime(lastUsed(tokens)) : '–') },
          may && {
            title: <span className="hidden">{t('people.change')}</span>, right: true, cell: ({ account: { name, disabled }, tokens }) => (
              <span className="bar deeds">
                {disabled ? <Button small aria-label={t('services.enable_of', { name })} onClick={() => setAsks({ what: 'enable', name })}>{t('people.enable')}</Button> : (
                  <>
                    <Button small aria-label={t('services.tokens_of', { name })} onClick={() => setAsks({ what: 'tokens', name })}>{t('services.tokens', { count: tokens?.length ?? 0 })}</Button>
                    <Button small tone="danger" aria-label={t('services.disable_of', { name })} onClick={() => setAsks({ what: 'disable', name })}>{t('people.disable')}</Button>
                  </>
                )}
                <Button small tone="danger" aria-label={t('services.delete_of', { name })} onClick={() => setAsks({ what: 'delete', name })}>{t('deed.delete')}</Button>
              </span>
            ),
          },
        ]} />
      )}
      <Cli text="nomadlike service-account list" />
      {asks?.what === 'create' && <CreateDialog all={all} close={close} made={(name) => setAsks({ what: 'tokens', name })} />}
      {of && asks?.what === 'tokens' && <TokensDialog of={of} close={close} />}
      {of && asks?.what === 'enable' && <EnableDialog of={of} close={close} />}
      {of && (asks?.what === 'disable' || asks?.what === 'delete') && <EndDialog of={of} verb={asks.what} close={close} />}
    </section>
  )
}

// useChange runs what a dialog asks for, and has what it was refused for.
function useChange() {
  const client = useQueryClient()
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>()
  const run = async (act: () => Promise<unknown>, then?: () => void) => {
    setBusy(true)
    setError(undefined)
    try {
      await act()
      await client.invalidateQueries({ predicate: ({ queryKey }) => ['services', 'jobs'].includes(queryKey[0] as string) })
      then?.()
    } catch (failure) {
      setError(failure)
    } finally {
      setBusy(false)
    }
  }
  return { busy, error, run }
}

function CreateDialog({ all, close, made }: { all: ServiceAccountDetail[]; close: () => void; made: (name: string) => void }) {
  const { t } = useTranslation()
  const { busy, error, run } = useChange()
  const [name, setName] = useState('')
  const [description, setDescription] = useState('')
  const [role, setRole] = useState('user')
  const says = useId()
  const taken = all.some(({ account }) => account.name === name)
  return (
    <Dialog title={t('services.create')} close={close} act={t('services.create')} busy={busy} off={!name || taken} run={() => void run(() => call('PUT', at(name), { description, role }), () => made(name))}>
      <div className="stack">
        <p>{t('services.creates')}</p>
        <Field entry="service" label={t('services.name')} value={name} change={(value) => setName(value.trim())} wrong={taken} autoComplete="off" spellCheck={false} aria-describedby={taken ? says : undefined} />
        {taken && <p id={says} role="alert" className="tone-bad">{t('services.taken', { name })}</p>}
        <Field entry="service.description" label={t('services.description')} value={description} change={setDescription} />
        <Choice entry="service.role" label={t('people.role')} value={role} change={setRole} options={roles.map((value) => ({ value, label: t('role.' + value) }))} />
        {error !== undefined && <Note tone="error" title={errorText(error, t)} />}
        <Cli text={['nomadlike service-account create', '-role ' + role, description && '-description ' + quote(description), quote(name || 'NAME')].filter(Boolean).join(' ')} />
      </div>
    </Dialog>
  )
}

// TokensDialog shows the tokens of an account, revokes them, and makes one, which it
// shows this once.
function TokensDialog({ of: { account, tokens, user }, close }: { of: ServiceAccountDetail; close: () => void }) {
  const { t } = useTranslation()
  const { busy, error, run } = useChange()
  const [label, setLabel] = useState('')
  const [ttl, setTtl] = useState('30d')
  const [verbs, setVerbs] = useState('')
  const [addresses, setAddresses] = useState('')
  const [made, setMade] = useState<NewToken>()
  const { name } = account
  const asked = { label, ttl, verbs: list(verbs), addresses: list(addresses) }
  const make = async () => setMade(await call<NewToken>('POST', at(name) + '/tokens', { name: label, ttl: Number.parseInt(ttl) * 24 + 'h', verbs: asked.verbs, addresses: asked.addresses }))
  const revoke = (what: object) => void run(() => call('POST', at(name) + '/revoke', what))
  const all = tokens ?? []
  return (
    <Dialog title={t('services.tokens_of', { name })} close={close} act={t(made ? 'people.done' : 'services.make')} busy={busy} run={made ? close : () => void run(make)}>
      <div className="stack">
        <p className="quiet">{t('services.called', { user })}</p>
        {made && <><p role="status">{t('services.made', { until: dateTime(made.token.expires_at) })}</p><pre className="cli">{made.secret}</pre></>}
        {all.length > 0 && (
          <Table<Token> label={t('services.tokens_of', { name })} idOf={(token) => token.id} rows={all} least={520} columns={[
            { title: t('services.token'), cell: (token) => <>{token.name || token.id} {(token.verbs || token.addresses) && <span className="quiet">{[...(token.verbs ?? []), ...(token.addresses ?? [])].join(', ')}</span>}</> },
            { title: t('services.ends'), cell: (token) => dateTime(token.expires_at) },
            { title: t('services.used'), cell: (token) => (token.used_at ? t('services.used_from', { time: dateTime(token.used_at), from: token.used_from }) : '–') },
            { title: <span className="hidden">{t('services.revoke')}</span>, right: true, cell: (token) => <Button small tone="danger" disabled={busy} aria-label={t('services.revoke_of', { name: token.name || token.id })} onClick={() => revoke({ token: token.id })}>{t('services.revoke')}</Button> },
          ]} />
        )}
        {all.length > 1 && <p><Button small tone="danger" disabled={busy} onClick={() => revoke({ all: true })}>{t('services.revoke_all')}</Button></p>}
        {!made && (
          <>
            <Field entry="service.token" label={t('services.token_name')} value={label} change={setLabel} autoComplete="off" />
            <Choice entry="service.ttl" label={t('services.ttl')} value={ttl} change={setTtl} options={spans.map((value) => ({ value, label: t('services.days', { count: Number.parseInt(value) }) }))} />
            <Field entry="service.verb" label={t('services.verbs')} value={verbs} change={setVerbs} placeholder={t('services.all_verbs')} autoComplete="off" spellCheck={false} />
            <Field entry="service.from" label={t('services.addresses')} value={addresses} change={setAddresses} placeholder={t('services.any_address')} autoComplete="off" spellCheck={false} />
          </>
        )}
        {error !== undefined && <Note tone="error" title={errorText(error, t)} />}
        {!made && <Cli text={tokenCommand(name, asked)} />}
      </div>
    </Dialog>
  )
}

function EnableDialog({ of: { account: { name } }, close }: { of: ServiceAccountDetail; close: () => void }) {
  const { t } = useTranslation()
  const { busy, error, run } = useChange()
  return (
    <Dialog title={t('services.enable_of', { name })} close={close} act={t('people.enable')} busy={busy} run={() => void run(() => call('PUT', at(name) + '/state', {}), close)}>
      <div className="stack">
        <p>{t('services.enables', { name })}</p>
        {error !== undefined && <Note tone="error" title={errorText(error, t)} />}
        <Cli text={'nomadlike service-account enable ' + quote(name)} />
      </div>
    </Dialog>
  )
}

// EndDialog disables an account or deletes it. What becomes of its jobs is asked where it
// has any; of one that is deleted they cannot run on.
function EndDialog({ of: { account: { name }, live }, verb, close }: { of: ServiceAccountDetail; verb: 'disable' | 'delete'; close: () => void }) {
  const { t } = useTranslation()
  const { busy, error, run } = useChange()
  const [jobs, setJobs] = useState<Jobs>()
  const [to, setTo] = useState('')
  const ready = !live || (!!jobs && (jobs !== 'hand_over' || to !== ''))
  const chosen = live ? jobs : undefined
  const query = chosen ? `?jobs=${chosen}${chosen === 'hand_over' ? '&to=' + part(to) : ''}` : ''
  const act = () => (verb === 'delete' ? call('DELETE', at(name) + query) : call('PUT', at(name) + '/state', { disabled: true, jobs: chosen, ...(chosen === 'hand_over' && { to }) }))
  return (
    <Dialog title={t(`services.${verb}_of`, { name })} close={close} act={t(verb === 'delete' ? 'deed.delete' : 'people.disable')} danger busy={busy} off={!ready} run={() => void run(act, close)}>
      <div className="stack">
        <p>{t(`services.${verb}s`, { name })}</p>
        {live > 0 && (
          <>
            <p><strong>{t('people.has_live', { count: live, user: name })}</strong></p>
            <Radios<Jobs> entry="user.jobs" label={t('people.jobs')} value={jobs} change={setJobs} options={jobChoices.filter((value) => verb === 'disable' || value !== 'run_on').map((value) => ({ value, label: t('people.jobs_' + value) }))} />
          </>
        )}
        {chosen === 'hand_over' && <Field entry="user.to" label={t('people.heir')} value={to} change={(value) => setTo(value.trim())} autoComplete="off" spellCheck={false} />}
        {error !== undefined && <Note tone="error" title={errorText(error, t)} />}
        <Cli text={endCommand(verb, name, chosen, to)} />
      </div>
    </Dialog>
  )
}
