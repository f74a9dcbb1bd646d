import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import type { TFunction } from 'i18next'
import { useEffect, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { Link } from 'react-router'
import { call, get, part } from '../api'
import { dateTime, lengthOf } from '../format'
import { Cli } from '../parts/actions'
import { Button, Note } from '../parts/controls'
import { Dialog } from '../parts/controls/dialog'
import { Choice, Count, Field } from '../parts/controls/fields'
import { Table } from '../parts/controls/table'
import { errorText, Failed, failing, Loading, useTitle } from '../parts/states'
import { useSession } from '../shell'
import type { NotificationInfo, NotificationList, NotifyChannelChanged, NotifyChannelInfo, NotifyDelivery, NotifyRule, NotifyStatus, NotifyTested } from '../types'

const bell = 'bell'

// toggled is the choice with one kind told, or not told, at one channel.
export function toggled(on: NotifyRule[], kind: string, channel: string, told: boolean): NotifyRule[] {
  const before = on.find((rule) => rule.kind === kind)?.channels ?? []
  const channels = told ? [...before.filter((one) => one !== channel), channel] : before.filter((one) => one !== channel)
  const rest = on.filter((rule) => rule.kind !== kind)
  return channels.length ? [...rest, { kind, channels }] : rest
}

// minutesOf reads a time of day as minutes after midnight, and clockOf writes it.
export const minutesOf = (text: string) => Number(text.slice(0, 2)) * 60 + Number(text.slice(3, 5))
export const clockOf = (minutes: number) => String(Math.floor(minutes / 60)).padStart(2, '0') + ':' + String(minutes % 60).padStart(2, '0')

// deliveryText says how a message fared at a channel.
export function deliveryText(d: NotifyDelivery | undefined, t: TFunction): string {
  if (!d) return '–'
  if (d.sent_at) return t('told.sent', { at: dateTime(d.sent_at) })
  if (d.next_at) return t('told.again', { problem: d.problem, at: dateTime(d.next_at) })
  return t('told.given_up', { problem: d.problem })
}

// ToldPage is the bell, and what whoever is signed in wants to be told.
export function ToldPage() {
  const { t, i18n } = useTranslation()
  useTitle(t('told.title'))
  const client = useQueryClient()
  const acting = useSession().data?.acting ?? ''
  const list = useQuery({ queryKey: ['self', 'notifications', i18n.language], refetchInterval: 10_000, queryFn: ({ signal }) => get<NotificationList>('/v1/self/notifications', signal) })
  const status = useQuery({ queryKey: ['self', 'notify', acting, i18n.language], queryFn: ({ signal }) => get<NotifyStatus>('/v1/self/notify', signal) })
  // What is open here is seen; which of it was new stays marked until it is left.
  const [fresh, setFresh] = useState<Set<string>>(new Set())
  const [saved, setSaved] = useState(false)
  const unseen = list.data?.unseen ?? 0
  const through = list.data?.through ?? 0
  useEffect(() => {
    if (!unseen) return
    setFresh((old) => new Set([...old, ...(list.data?.notifications ?? []).filter((one) => !one.seen).map((one) => one.id)]))
    call('POST', '/v1/self/notifications/seen', { through }).catch(() => {}) // then it is news again
  }, [unseen, through]) // eslint-disable-line react-hooks/exhaustive-deps
  if (list.isPending || status.isPending) return <Loading />
  const again = () => client.invalidateQueries({ queryKey: ['self', 'notify'] })
  const told = list.data?.notifications ?? []
  return (
    <div className="page">
      <h1>{t('told.title')}</h1>
      {failing(list) ? <Failed error={list.error} retry={() => void list.refetch()} /> : (
        <section className="card" aria-label={t('told.recent')}>
          <h2>{t('told.recent')}</h2>
          {!told.length && <p className="quiet">{t('told.none')}</p>}
          <ul className="menu-list wide">
            {told.map((one) => <Message key={one.id} one={one} fresh={!one.seen || fresh.has(one.id)} />)}
          </ul>
          <Cli text="nomadlike notify list" />
        </section>
      )}
      {failing(status) || !status.data ? <Failed error={status.error} retry={() => void status.refetch()} /> : (
        <>
          <Wishes key={status.data.version} status={status.data} saved={saved} done={() => void again().then(() => setSaved(true))} />
          <Channels status={status.data} done={() => void again()} />
        </>
      )}
    </div>
  )
}

function Message({ one, fresh }: { one: NotificationInfo; fresh: boolean }) {
  const { t } = useTranslation()
  return (
    <li>
      <div className="bar">
        {one.job_id ? <Link to={'/jobs/' + part(one.job_id)}>{fresh ? <strong>{one.title}</strong> : one.title}</Link> : fresh ? <strong>{one.title}</strong> : <span>{one.title}</span>}
        <span className="grow" />
        <span className="quiet">{dateTime(one.time)}</span>
      </div>
      {(one.what ?? []).map((line, i) => <p key={i} className="quiet">{line}</p>)}
      {(one.lines?.length ?? 0) > 0 && <pre className="logs few" tabIndex={0} aria-label={t('told.lines')}>{one.lines!.join('\n')}</pre>}
      {one.do && <p className="quiet">{one.do.split('`').map((text, i) => (i % 2 ? <code key={i}>{text}</code> : text))}</p>}
    </li>
  )
}

// Wishes are the kinds of happenings by the channels that they go to.
function Wishes({ status, saved, done }: { status: NotifyStatus; saved: boolean; done: () => void }) {
  const { t } = useTranslation()
  const [on, setOn] = useState<NotifyRule[]>(status.on ?? [])
  const [wait, setWait] = useState(lengthOf(status.wait_longer) / 60_000)
  const [expire, setExpire] = useState(lengthOf(status.expire_in) / 60_000)
  const [quiet, setQuiet] = useState(status.quiet)
  const save = useMutation({
    mutationFn: () => call('PUT', '/v1/self/notify', { on, wait_longer: wait + 'm', expire_in: expire + 'm', quiet }),
    onSuccess: done,
  })
  const channels = [bell, ...(status.channels ?? []).map((one) => one.name)]
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone
  return (
    <section className="card" aria-label={t('told.choose')}>
      <h2>{t('told.choose')}</h2>
      {!status.chosen && <p className="quiet">{t('told.default')}</p>}
      <Table<string> label={t('told.choose')} idOf={(kind) => kind} rows={status.kinds ?? []} page={20} least={300} columns={[
        { title: t('told.when'), cell: (kind) => t('told.on.' + kind) },
        ...channels.map((channel) => ({
          title: channel === bell ? t('told.bell') : channel,
          cell: (kind: string) => <input type="checkbox" aria-label={t('told.on.' + kind) + ': ' + (channel === bell ? t('told.bell') : channel)} checked={!!on.find((rule) => rule.kind === kind)?.channels?.includes(channel)} onChange={(event) => setOn(toggled(on, kind, channel, event.target.checked))} />,
        })),
      ]} />
      <div className="stack">
        <Count entry="notify" label={t('told.wait')} value={wait} change={setWait} least={1} most={43_200} />
        <Count entry="notify" label={t('told.expire')} value={expire} change={setExpire} least={1} most={43_200} />
        <label className="check"><input type="checkbox" checked={!!quiet} onChange={(event) => setQuiet(event.target.checked ? { from: 22 * 60, to: 8 * 60, zone } : undefined)} /> <span>{t('told.quiet')}</span></label>
        {quiet && (
          <div className="bar">
            <Field entry="notify" type="time" label={t('told.from')} value={clockOf(quiet.from)} change={(text) => text && setQuiet({ ...quiet, from: minutesOf(text) })} />
            <Field entry="notify" type="time" label={t('told.to')} value={clockOf(quiet.to)} change={(text) => text && setQuiet({ ...quiet, to: minutesOf(text) })} />
            <Field entry="notify" label={t('told.zone')} value={quiet.zone} change={(text) => setQuiet({ ...quiet, zone: text })} />
          </div>
        )}
        {save.isError && <Note tone="error" title={errorText(save.error, t)} />}
        <div className="bar"><Button tone="first" busy={save.isPending} onClick={() => save.mutate()}>{t('told.save')}</Button>{saved && !save.isPending && <span role="status" className="quiet">{t('told.saved')}</span>}</div>
      </div>
      <Cli text="nomadlike notify status" />
    </section>
  )
}

// Channels are the ways to reach whoever is signed in beside the page.
function Channels({ status, done }: { status: NotifyStatus; done: () => void }) {
  const { t } = useTranslation()
  const [asks, setAsks] = useState<NotifyChannelInfo | 'new'>()
  const [tested, setTested] = useState<NotifyTested & { name: string }>()
  const test = useMutation({
    mutationFn: (name: string) => call<NotifyTested>('POST', `/v1/self/notify/channels/${part(name)}/test`).then((said) => ({ ...said, name })),
    onSuccess: setTested, onMutate: () => setTested(undefined),
  })
  const close = () => setAsks(undefined)
  return (
    <section className="card" aria-label={t('told.channels')}>
      <div className="bar"><h2>{t('told.channels')}</h2><span className="grow" /><Button onClick={() => setAsks('new')}>{t('told.make')}</Button></div>
      <p className="quiet">{t('told.channels_about')}</p>
      <Table<NotifyChannelInfo> label={t('told.channels')} idOf={(one) => one.name} rows={status.channels ?? []} page={20} least={420} empty={t('told.no_channels')} columns={[
        { title: t('told.channel'), cell: (one) => one.name },
        { title: t('told.kind'), cell: (one) => t('told.sort.' + one.kind, { address: status.email }) },
        { title: t('told.leads'), cell: (one) => one.host || '–' },
        { title: t('told.last'), cell: (one) => deliveryText(one.last, t) },
        {
          title: <span className="hidden">{t('told.test')}</span>, right: true, cell: (one) => (
            <span className="bar deeds">
              <Button small busy={test.isPending && test.variables === one.name} aria-label={t('told.test_of', { channel: one.name })} onClick={() => test.mutate(one.name)}>{t('told.test')}</Button>
              <Button small tone="danger" aria-label={t('told.remove_of', { channel: one.name })} onClick={() => setAsks(one)}>{t('told.remove')}</Button>
            </span>
          ),
        },
      ]} />
      {test.isError && <Note tone="error" title={errorText(test.error, t)} />}
      {tested && <Note tone={tested.sent ? 'info' : 'error'} title={t(tested.sent ? 'told.tested' : 'told.not_tested', { channel: tested.name, problem: tested.problem })} />}
      <Cli text="nomadlike notify channel set team -kind dingtalk" />
      {asks === 'new' && <MakeChannel status={status} close={close} done={done} />}
      {asks && asks !== 'new' && <RemoveChannel name={asks.name} close={close} done={done} />}
    </section>
  )
}

function RemoveChannel({ name, close, done }: { name: string; close: () => void; done: () => void }) {
  const { t } = useTranslation()
  const remove = useMutation({ mutationFn: () => call('DELETE', '/v1/self/notify/channels/' + part(name)), onSuccess: () => { done(); close() } })
  return (
    <Dialog title={t('told.remove_of', { channel: name })} close={close} act={t('told.remove')} danger busy={remove.isPending} run={() => remove.mutate()}>
      <p>{t('told.removes', { channel: name })}</p>
      {remove.isError && <Note tone="error" title={errorText(remove.error, t)} />}
    </Dialog>
  )
}

// MakeChannel asks where a channel leads. The secret of a webhook that was drawn is shown
// before it closes: nobody is told it again.
function MakeChannel({ status, close, done }: { status: NotifyStatus; close: () => void; done: () => void }) {
  const { t } = useTranslation()
  const mail = status.mail && !!status.email
  const hosts = status.allowed ?? []
  const kinds = [...(hosts.length ? ['webhook', 'dingtalk', 'feishu', 'wecom'] : []), ...(mail ? ['email'] : [])]
  const [said, setSaid] = useState({ name: '', kind: kinds[0] ?? 'webhook', url: '', secret: '' })
  const set = (name: keyof typeof said) => (value: string) => setSaid((old) => ({ ...old, [name]: value }))
  const [drawn, setDrawn] = useState('')
  const make = useMutation({
    mutationFn: () => call<NotifyChannelChanged>('PUT', '/v1/self/notify/channels/' + part(said.name), said.kind === 'email' ? { kind: said.kind } : { kind: said.kind, url: said.url, secret: said.secret }),
    onSuccess: (changed) => {
      done()
      if (changed.secret) setDrawn(changed.secret)
      else close()
    },
  })
  if (drawn) return <Dialog title={t('told.make')} close={close}><p role="status">{t('told.drawn')}</p><pre>{drawn}</pre></Dialog>
  return (
    <Dialog title={t('told.make')} close={close} act={kinds.length ? t('told.make') : undefined} busy={make.isPending} off={!said.name || !kinds.length || (said.kind !== 'email' && !said.url)} run={() => make.mutate()}>
      <div className="stack">
        {!hosts.length ? <Note tone="info" title={t('told.not_allowed')} /> : <p className="quiet">{t('told.allowed', { hosts: hosts.join(', ') })}</p>}
        {!mail && <p className="quiet">{t('told.no_mail')}</p>}
        {kinds.length > 0 && <>
          <Field entry="notify" label={t('told.name')} value={said.name} change={set('name')} />
          <Choice entry="notify" label={t('told.kind')} value={said.kind} change={set('kind')} options={kinds.map((value) => ({ value, label: t('told.sort.' + value, { address: status.email }) }))} />
          {said.kind !== 'email' && <Field entry="notify" type="password" autoComplete="off" label={t('told.address')} value={said.url} change={set('url')} />}
          {(said.kind !== 'email' && said.kind !== 'wecom') && <Field entry="notify" type="password" autoComplete="off" label={t(said.kind === 'webhook' ? 'told.secret_webhook' : 'told.secret')} value={said.secret} change={set('secret')} />}
        </>}
        {make.isError && <Note tone="error" title={errorText(make.error, t)} />}
      </div>
    </Dialog>
  )
}
