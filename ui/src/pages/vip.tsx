import { useQuery } from '@tanstack/react-query'
import type { TFunction } from 'i18next'
import { useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useSearchParams } from 'react-router'
import { get } from '../api'
import { clock, lengthOf, millis, number, since, span } from '../format'
import { Cli } from '../parts/actions'
import { Button, Note, Pick } from '../parts/controls'
import { Choice, Field, Radios } from '../parts/controls/fields'
import { Table } from '../parts/controls/table'
import { Helps, startText } from '../parts/forecast'
import { changesOf } from '../parts/help_deed'
import { endsText, Progress } from '../parts/jobrow'
import { askChanges, noMachines, simple, vipChanges, vipFile, withoutMachines, type FileChange } from '../parts/jobfile'
import { isLimit, shortLimit } from '../parts/limit'
import { JobLink } from '../parts/places'
import { errorText, Failed, failing, Loading, useNow, useTitle, WordTag } from '../parts/states'
import { cardHours, choicesOf, choose as chooseFor, chosenOf, doneOf, fits, keepOrder, lostOf, type Busy } from '../parts/vip'
import { useRights } from '../rights'
import type { Machine, MachineList, MachineWork, Victim, VIPMachine } from '../types'
import { Plan } from './create'
import { useDraft, useGiven } from './create/draft'
import { CommandLine, Editor, Kept, Problems } from './create/file'
import { Form } from './create/form'

const shownAtOnce = 20 // machines
const askFor = 30 * 60_000 // milliseconds that owners get to answer, unless told

// VipPage makes a job that chooses its machines: which, what becomes of who works
// there, and what the scheduler would do, before anything is done.
export function VipPage() {
  const { t } = useTranslation()
  useTitle(t('vip.title'))
  const [params] = useSearchParams()
  const clone = params.get('clone') ?? ''
  const given = useGiven(clone)
  const allowed = useRights()
  if (!allowed('vip')) return <div className="page"><h1>{t('vip.title')}</h1><Note tone="info" title={t('vip.closed')} /></div>
  if (clone && failing(given)) return <div className="page"><Failed error={given.error} retry={() => void given.refetch()} /></div>
  if (clone && given.data === undefined) return <Loading />
  return <Vip key={clone} place={'vip' + clone} first={given.data ?? vipFile({ ...simple, name: 'vip' })} />
}

function Vip({ place, first }: { place: string; first: string }) {
  const { t } = useTranslation()
  const now = useNow(10_000)
  const draft = useDraft(place, first)
  const { job, outlook, checked, problems, valid, change } = draft
  const machines = useQuery({ queryKey: ['nodes', 'machines'], refetchInterval: 20_000, queryFn: ({ signal }) => get<MachineList>('/v1/machines', signal).then((m) => m.machines ?? []) })
  const [planned, setPlanned] = useState(false)
  const none = noMachines(draft.text)
  const chosen = none ? [] : (job?.vip?.machines ?? [])
  const asks = chosen.some((m) => m.busy === 'ask')
  const ask = { for: shortLimit(lengthOf(job?.vip?.ask?.for ?? '') || askFor), silence: job?.vip?.ask?.silence ?? 'wait', message: job?.vip?.ask?.message ?? '' }
  // What is asked stands in the file as long as somebody is.
  const choose = (list: VIPMachine[]) => {
    if (list.length === 0) return draft.setText(withoutMachines(draft.text))
    const will = list.some((m) => m.busy === 'ask')
    void change([...(asks && !will ? askChanges() : []), ...vipChanges(list, chosen.length), ...(will && !asks ? askChanges(ask) : [])])
  }
  const askedCount = (machines.data ?? []).filter((m) => chosenOf(chosen, m) === 'ask').flatMap((m) => m.work ?? []).filter((w) => !w.vip && !w.ending).length
  const victims = chosen.length > 0 && valid ? (outlook.data?.victims ?? []) : []
  const ready = chosen.length > 0 && problems.length === 0 && draft.text.trim() !== ''
  return (
    <div className="page vip">
      <div>
        <h1>{t('vip.title')}</h1>
        <p className="truth" role="status">{failing(checked) || failing(outlook) ? '' : truth(t, machines.data ?? [], chosen, ready ? outlook.data && startText(t, outlook.data) : undefined, victims, problems.length, askedCount > 0 ? askedText(t, askedCount, ask) : '')}</p>
      </div>
      <Kept draft={draft} />
      {failing(machines) ? <Failed error={machines.error} retry={() => void machines.refetch()} /> : machines.data ? <Machines machines={machines.data} chosen={chosen} off={!job && !none} now={now} set={choose} /> : <Loading />}
      {asks && <Asking machines={machines.data ?? []} chosen={chosen} ask={ask} off={!job} set={change} />}
      <section className="card" aria-label={t('vip.check')}>
        <h2>{t('vip.check')}</h2>
        {chosen.length === 0 ? <p className="quiet">{t('vip.choose_first')}</p> : problems.length > 0 ? <p className="tone-bad">{t('create.problems', { count: problems.length })}</p> : failing(outlook) ? <Failed error={outlook.error} /> : !outlook.data ? <Loading /> : (
          <>
            <p className="verdict">{startText(t, outlook.data)}</p>
            {victims.length > 0 ? <Victims victims={victims} machines={machines.data ?? []} now={now} /> : askedCount === 0 ? <p>{t('vip.nobody')}</p> : null}
            {askedCount > 0 && <p>{askedText(t, askedCount, ask)}</p>}
            <Waits machines={machines.data ?? []} chosen={chosen} now={now} />
            {(outlook.data.helps ?? []).length > 0 && <><h3>{t('forecast.helps')}</h3><Helps helps={outlook.data.helps} apply={(help) => { const set = changesOf(help); if (set) void change(set) }} /></>}
          </>
        )}
        {draft.error !== undefined && <Note tone="error" title={errorText(draft.error, t)} />}
        <div className="bar apart">
          <Button tone={victims.length > 0 ? 'danger' : 'first'} busy={draft.busy} disabled={!ready} onClick={() => void draft.submit()}>{victims.length > 0 ? t('vip.submit_stops', { count: victims.length }) : t('create.submit')}</Button>
        </div>
      </section>
      <div className="split">
        <section aria-label={t('create.file')} className="stack">
          {none ? <p className="card quiet">{t('vip.form_first')}</p> : <Form draft={draft} nodes={false} />}
          <Editor text={draft.text} change={draft.setText} problems={chosen.length > 0 ? problems : []} />
          {chosen.length > 0 && <Problems problems={problems} warnings={checked.data?.warnings} />}
        </section>
        <section aria-label={t('create.plan')} className="stack">
          <CommandLine text={draft.text} names={draft.names} given={draft.given} set={draft.setGiven} name={job?.name ?? ''} />
          <details className="card" onToggle={(event) => setPlanned(event.currentTarget.open)}><summary>{t('create.plan')}</summary>{planned && <Plan body={draft.asked} valid={valid} />}</details>
        </section>
      </div>
    </div>
  )
}

// Asking is how the owners on machines to ask for are asked: for how long, with what
// words, and what no answer means.
function Asking({ machines, chosen, ask, set, off }: { machines: Machine[]; chosen: VIPMachine[]; ask: { for: string; silence: string; message: string }; set: (changes: FileChange[]) => Promise<unknown>; off: boolean }) {
  const { t } = useTranslation()
  const [message, setMessage] = useState<string>()
  const [time, setTime] = useState<string>()
  const asked = machines.filter((m) => chosenOf(chosen, m) === 'ask').flatMap((m) => (m.work ?? []).filter((w) => !w.vip && !w.ending))
  const owners = [...new Set(asked.map((w) => w.job.user || t('queue.hidden')))]
  // Each change is of one setting: two may be on their way to the file at once, and
  // what is chosen is shown until the file says it.
  const [silence, setSilence] = useState<string>()
  const sendTime = () => {
    if (time !== undefined && isLimit(time) && time.trim() !== ask.for) void set([{ at: 'vip.ask.for', value: time.trim() }]).finally(() => setTime(undefined))
    else setTime(undefined)
  }
  const sendMessage = () => {
    if (message !== undefined && message !== ask.message) void set([{ at: 'vip.ask.message', value: message || null }]).finally(() => setMessage(undefined))
    else setMessage(undefined)
  }
  const sendSilence = (value: string) => {
    setSilence(value)
    void set([{ at: 'vip.ask.silence', value }]).finally(() => setSilence(undefined))
  }
  return (
    <section className="card" aria-label={t('vip.ask')}>
      <h2>{t('vip.ask')}</h2>
      <p>{owners.length > 0 ? t('vip.ask_owners', { owners: owners.join(', ') }) : t('vip.ask_nobody')}</p>
      <div className="form">
        <Field entry="vip.for" label={t('vip.ask_for')} off={off} width={90} value={time ?? ask.for} change={setTime} done={sendTime} wrong={time !== undefined && !isLimit(time)} />
        <Field entry="vip.message" label={t('vip.ask_message')} off={off} grow width="100%" maxLength={200} value={message ?? ask.message} change={setMessage} done={sendMessage} />
      </div>
      <p className="quiet">{t('vip.ask_silence')}</p>
      <Radios entry="vip.silence" label={t('vip.ask_silence')} value={silence ?? ask.silence} change={sendSilence} options={(['wait', 'kill'] as const).map((value) => ({ value, label: t('vip.silence_' + value) }))} />
    </section>
  )
}

// askedText says how many owners are asked, and what their silence means.
const askedText = (t: TFunction, count: number, ask: { for: string; silence: string }) => t(ask.silence === 'kill' ? 'vip.asked_kill' : 'vip.asked_wait', { count, time: span(lengthOf(ask.for)) })

// truth is the sentence on top: what there is to choose from, and then when the job
// starts and what it costs others.
function truth(t: TFunction, machines: Machine[], chosen: VIPMachine[], start: string | undefined, victims: Victim[], problems: number, asked: string): string {
  if (chosen.length === 0) return t('vip.none', { free: machines.filter((m) => m.free).length, count: machines.length })
  const names = t('vip.chosen', { count: chosen.length, names: chosen.slice(0, 6).map((m) => m.node).join(', ') + (chosen.length > 6 ? ' …' : '') })
  if (problems > 0) return names + ' ' + t('create.problems', { count: problems })
  if (!start) return names
  const owners = [...new Set(victims.map((v) => v.user || t('queue.hidden')))].join(', ')
  return `${names} ${t('vip.starts', { start })} ${victims.length > 0 ? t('vip.stops', { count: victims.length, owners, lost: sumText(t, victims, machines) }) : asked ? '' : t('vip.stops_none')}${asked && ' ' + asked}`
}

const hoursText = (t: TFunction) => (count: string) => t('vip.card_hours', { hours: count })

function sumText(t: TFunction, victims: Victim[], machines: Machine[]): string {
  const { hours, time } = lostOf(victims, machines)
  return [hours > 0 && cardHours(`${hours}h`, 1, hoursText(t)), (time > 0 || hours === 0) && span(time)].filter(Boolean).join(' + ')
}

// Machines are what there is to choose from: free ones first, then those where least
// would be lost; of each, who works there.
function Machines({ machines, chosen, set, off, now }: { machines: Machine[]; chosen: VIPMachine[]; set: (chosen: VIPMachine[]) => void; off: boolean; now: number }) {
  const { t } = useTranslation()
  const [text, setText] = useState('')
  const [pool, setPool] = useState('')
  const [shown, setShown] = useState(shownAtOnce)
  const order = useRef<string[]>([])
  const list = keepOrder(machines, order.current)
  order.current = list.map((m) => m.id)
  const pools = [...new Set(machines.map((m) => m.pool))].sort()
  const found = list.filter((m) => (!pool || m.pool === pool) && fits(m, text))
  return (
    <section className="card" aria-label={t('vip.machines')}>
      <div className="bar">
        <h2>{t('vip.machines')}</h2><span className="grow" />
        <Field bare label={t('vip.find')} placeholder={t('vip.find')} width={200} value={text} change={setText} />
        {pools.length > 1 && <Pick label={t('jobs.pool')} value={pool} change={setPool} options={pools.map((value) => ({ value, label: value }))} />}
      </div>
      <p className="quiet">{t('vip.about')}</p>
      {machines.length === 0 && <p className="quiet">{t('vip.no_machines')}</p>}
      {machines.length > 0 && found.length === 0 && <p className="quiet">{t('vip.none_found')}</p>}
      <ul className="picks">{found.slice(0, shown).map((m) => <Row key={m.id} machine={m} busy={chosenOf(chosen, m)} off={off} now={now} set={(busy) => set(chooseFor(chosen, m, busy))} />)}</ul>
      {found.length > shown && <Button onClick={() => setShown(shown + 5 * shownAtOnce)}>{t('vip.more', { count: found.length - shown })}</Button>}
      <Cli text={pool ? `nomadlike node machines -pool ${pool}` : 'nomadlike node machines'} />
    </section>
  )
}

function Row({ machine, busy, set, off, now }: { machine: Machine; busy: Busy; set: (busy: Busy) => void; off: boolean; now: number }) {
  const { t } = useTranslation()
  const work = machine.work ?? []
  return (
    <li className={busy ? 'pick taken' : 'pick'}>
      <div className="pick-head">
        <Choice bare small width={172} off={off} label={t('vip.choice', { machine: machine.name })} value={busy} change={set}
          options={choicesOf(machine).map((value) => ({ value, label: t(value === 'wait' && work.length === 0 ? 'vip.busy_free' : 'vip.busy_' + (value || 'none')) }))} />
        <strong>{machine.name}</strong>
        <Standing machine={machine} />
        <span className="quiet">{[machine.pool, ...(machine.devices ?? []).map((d) => `${d.model} ${d.used}/${d.total}`), `${number(machine.cpu_used)}/${number(machine.cpu)} ${t('cluster.cpu')}`].join(' · ')}</span>
      </div>
      {work.length > 0 && <ul className="works">{work.map((w, i) => <Work key={(w.job.id ?? '') + i} work={w} now={now} />)}</ul>}
    </li>
  )
}

function Standing({ machine }: { machine: Machine }) {
  const { t } = useTranslation()
  if (machine.status !== 'ready') return <WordTag tone="bad">{t('node_status.' + machine.status)}</WordTag>
  if (machine.eligibility !== 'eligible') return <WordTag tone="plain">{t('eligibility.' + machine.eligibility)}</WordTag>
  if (machine.claim) return <WordTag tone="busy">{t('vip.promised', { job: machine.claim.name || t('queue.hidden') })}</WordTag>
  return <WordTag tone={machine.free ? 'good' : 'busy'}>{machine.free ? t('wall.free') : t('wall.held')}</WordTag>
}

// savedText is how old the last checkpoint of a gang is.
const savedText = (t: TFunction, work: { checkpoint_at?: string | null; checkpoint_step?: number }, now: number) =>
  work.checkpoint_at ? t(work.checkpoint_step ? 'vip.saved_step' : 'vip.saved', { age: since(work.checkpoint_at, null, now), step: work.checkpoint_step }) : t('vip.unsaved')

// Work is a gang on a machine: whose, how far, what ending it would lose, and when
// it ends by itself.
function Work({ work, now }: { work: MachineWork; now: number }) {
  const { t } = useTranslation()
  const done = doneOf(work, now)
  return (
    <li className="work">
      <div className="name">
        {work.job.name ? <JobLink id={work.job.id} name={work.job.name} /> : t('queue.hidden')}{work.job.user && <span className="quiet"> · {work.job.user}</span>}
        {work.vip && <> <WordTag tone="good">VIP</WordTag></>}
        <p className="quiet">{t('short.nodes', { count: work.nodes })}{(work.gang_devices ?? 0) > 0 && ` · ${t('vip.cards', { count: work.gang_devices })}`}{work.preemptible && ` · ${t('jobs.preemptible')}`}</p>
      </div>
      <div className="far"><p className="quiet">{done === undefined ? t('vip.runs', { time: since(work.running_at ?? work.since, null, now) }) : t('home.by_time', { share: Math.round(done * 100) })}</p><Progress done={done} /></div>
      <div><p>{work.vip ? t('vip.never') : work.ending ? t('vip.ending') : savedText(t, work, now)}</p>{!work.vip && !work.ending && <p className="quiet">{t('vip.loses', { lost: cardHours(work.lost, work.gang_devices, hoursText(t)) })}</p>}</div>
      <div className="when">{work.p50 ? endsText(t, { p50: millis(work.p50), p90: millis(work.p90) }, now) : work.ends_by ? t('vip.at_latest', { time: clock(work.ends_by, now) }) : t('home.end_unknown')}</div>
    </li>
  )
}

// Victims are the gangs that the scheduler would stop for the job.
function Victims({ victims, machines, now }: { victims: Victim[]; machines: Machine[]; now: number }) {
  const { t } = useTranslation()
  const works = machines.flatMap((m) => m.work ?? [])
  const cards = (v: Victim) => works.find((w) => w.job.id === v.job_id && (w.job.subjob ?? 0) === v.subjob)?.gang_devices
  const names = new Map(machines.map((m) => [m.id, m.name]))
  return (
    <>
      <h3>{t('vip.stopped')}</h3>
      <Table<Victim> label={t('vip.stopped')} idOf={(v) => v.job_id + v.subjob + v.nodes?.join()} rows={victims} page={10} least={640} columns={[
        { title: t('jobs.name'), cell: (v) => (v.job_id ? <JobLink id={v.job_id} name={v.job_name} /> : t('queue.hidden')) },
        { title: t('jobs.user'), cell: (v) => v.user || '–' },
        { title: t('vip.on'), cell: (v) => (v.nodes ?? []).slice(0, 4).map((id) => names.get(id) ?? id.slice(0, 8)).join(', ') + ((v.nodes ?? []).length > 4 ? ' …' : '') },
        { title: t('vip.checkpoint'), cell: (v) => savedText(t, v, now) },
        { title: t('vip.lost'), cell: (v) => cardHours(v.lost, cards(v), hoursText(t)) },
        { title: t('vip.grace'), cell: (v) => span(lengthOf(v.grace)) },
      ]} />
    </>
  )
}

// Waits says for whom the job waits, and until when.
function Waits({ machines, chosen, now }: { machines: Machine[]; chosen: VIPMachine[]; now: number }) {
  const { t } = useTranslation()
  const waited = machines.filter((m) => ['wait', 'ask'].includes(chosenOf(chosen, m))).flatMap((m) => (m.work ?? []).map((w) => ({ machine: m.name, w, asked: chosenOf(chosen, m) === 'ask' && !w.vip && !w.ending })))
  if (waited.length === 0) return null
  return (
    <>
      <h3>{t('vip.waited')}</h3>
      <ul className="problems">
        {waited.slice(0, 10).map(({ machine, w, asked }, i) => (
          <li key={i}>{machine}: {w.job.name ? <JobLink id={w.job.id} name={w.job.name} /> : t('queue.hidden')}{w.job.user && <span className="quiet"> ({w.job.user})</span>} · {w.p50 ? endsText(t, { p50: millis(w.p50), p90: millis(w.p90) }, now) : t('home.end_unknown')}{asked && <> · <WordTag tone="busy">{t('vip.is_asked')}</WordTag></>}</li>
        ))}
      </ul>
      {waited.length > 10 && <p className="quiet">{t('home.more', { count: waited.length - 10 })}</p>}
    </>
  )
}
