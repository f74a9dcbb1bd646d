import { useQuery } from '@tanstack/react-query'
import i18next, { type TFunction } from 'i18next'
import { lazy, Suspense, useMemo, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { Link, useNavigate, useParams, useSearchParams } from 'react-router'
import { call, get, part } from '../api'
import { clock, dateTime, devicesOf, millis, quote, since, size, span, spelled } from '../format'
import { reasonText } from '../i18n'
import { Cli, Deeds } from '../parts/actions'
import { Annotations } from '../parts/annotate'
import { Button, Note } from '../parts/controls'
import { Check, Choice } from '../parts/controls/fields'
import { Scroll, Table } from '../parts/controls/table'
import { Tabs } from '../parts/controls/tabs'
import { Figures } from '../parts/usage'
import { Files } from '../parts/files'
import { ForecastCard, Holders, startText } from '../parts/forecast'
import { endsText } from '../parts/jobrow'
import { timelineQuery } from '../parts/lists'
import { endedAlloc, LastWords, Logs } from '../parts/logs'
import { endsOf, type Ends } from '../parts/mine'
import { JobLink, NodeLink } from '../parts/places'
import { endedStates, Failed, Loading, StateTag, useNow, useTitle, WordTag, PriorityTag, failing } from '../parts/states'
import { ShareButton } from '../parts/share'
import { useGuest } from '../guest'
import { useRights } from '../rights'
import { Training } from '../parts/training'
import type { Allocation, AllocationList, Attempt, AttemptList, Event, EventList, JobDetail, JobForecast, JobMetrics, JobPlan, SavedCheckpoint, Subjob } from '../types'

const Shell = lazy(() => import('../parts/terminal'))

const needs: Record<string, string> = { curves: 'logs', logs: 'logs', files: 'logs', terminal: 'exec', command: 'env' } // verbs, where seeing the job is not enough
const seenByGuests = ['overview', 'figures', 'attempts'] // the rest may hold what was not meant for them

export function JobPage() {
  const { t } = useTranslation()
  const { id = '', tab = 'overview' } = useParams()
  const go = useNavigate()
  const [params, setParams] = useSearchParams()
  const shared = useGuest()
  const allowed = useRights()
  const subjob = Number(params.get('subjob') ?? 0) || 0
  const setSubjob = (index: number) => setParams(index ? { subjob: String(index) } : {}, { replace: true })
  const job = useQuery({ queryKey: ['job', id], queryFn: ({ signal }) => get<JobDetail>('/v1/jobs/' + part(id), signal), refetchInterval: 30_000 })
  const full = job.data?.job.id ?? id // id may be a name: events name the full id
  const ready = !!job.data
  const path = '/v1/jobs/' + part(full)
  const attempts = useQuery({ queryKey: ['job', full, 'attempts'], enabled: ready, queryFn: ({ signal }) => get<AttemptList>(path + '/attempts', signal).then((a) => a.attempts ?? []) })
  const allocs = useQuery({ queryKey: ['job', full, 'allocs'], enabled: ready, queryFn: ({ signal }) => get<AllocationList>(path + '/allocations', signal).then((a) => a.allocations ?? []) })
  const events = useQuery({ queryKey: ['job', full, 'events'], enabled: ready, queryFn: ({ signal }) => get<EventList>(path + '/events', signal).then((e) => e.events ?? []) })
  const forecast = useQuery({ queryKey: ['job', full, 'forecast'], enabled: job.data?.state === 'queued' && !shared, refetchInterval: 20_000, queryFn: ({ signal }) => get<JobForecast>(path + '/forecast', signal) })
  const metrics = useQuery({ queryKey: ['job', full, 'step', subjob], enabled: job.data?.state === 'running' && !shared, refetchInterval: 15_000, retry: false, queryFn: ({ signal }) => get<JobMetrics>(`${path}/metrics?subjob=${subjob}&points=2`, signal) })
  const runs = job.data?.state === 'running' || job.data?.state === 'paused'
  const timeline = useQuery({ ...timelineQuery, enabled: runs && !shared, retry: false })
  const ends = useMemo(() => (runs ? endsOf(timeline.data).get(full) : undefined), [runs, timeline.data, full])
  useTitle(job.data?.job.name ?? t('menu.jobs'))
  if (job.isPending) return <Loading />
  if (!job.data) return <div className="page"><Failed error={job.error} retry={() => void job.refetch()} /></div>

  const detail = job.data
  const spec = detail.job
  const standing = (detail.subjobs ?? []).find((s) => s.index === subjob)
  const mine = (attempts.data ?? []).filter((a) => a.subjob === subjob)
  const newest = mine.at(-1)
  // What happened to the job as a whole, and to the subjob that is looked at.
  const told = (events.data ?? []).filter((e) => (!e.attempt && !e.subjob) || (e.subjob ?? 0) === subjob)
  const ranks = (allocs.data ?? []).filter((a) => a.subjob === subjob && a.attempt === newest?.number).sort((a, b) => a.rank - b.rank)
  const queued = detail.state === 'queued'
  const may = (verb: string) => !detail.may || detail.may.includes(verb)
  const failedFirst = detail.state === 'failed' ? (ranks.find((a) => a.id === newest?.first_failed) ?? ranks.find((a) => a.status === 'failed')) : undefined

  return (
    <div className="page">
      <div className="bar">
        <h1>{spec.name}</h1>
        <StateTag state={detail.state} />
        <PriorityTag job={{ ...spec, vip: !!spec.vip }} />
        {(detail.subjobs ?? []).length > 1 && (
          <Choice bare label={t('jobs.subjob')} value={subjob} change={setSubjob}
            options={(detail.subjobs ?? []).map((s) => ({ value: s.index, label: `${t('jobs.subjob')} ${s.index} · ${t('state.' + s.state)}` }))} />
        )}
        <span className="grow" />
        {!shared && <Deeds job={{ id: full, name: spec.name, state: detail.state, priority: spec.priority, checkpoints: standing?.checkpoints, may: detail.may, supports: spec.supports }} />}
        {!shared && may('clone') && allowed('submit') && <Button onClick={() => void go('/jobs/new?clone=' + part(full))}>{t('job.clone')}</Button>}
        {!shared && may('share') && <ShareButton name={spec.name} path={path + '/shares'} />}
      </div>
      <Truth detail={detail} standing={standing} ranks={ranks} newest={newest} forecast={forecast.data} ends={ends} step={stepOf(metrics.data, newest)} />
      <Annotations job={spec} />
      {(detail.awaits ?? []).length > 0 && <Note tone="info" title={<>{t('job.awaits')} <Holders holders={detail.awaits} /></>} />}
      {(detail.yielded ?? []).filter((y) => y.subjob === subjob).map((y) => (
        <Note key={y.attempt} tone="warning" title={<>{t('job.yielded', { attempt: y.attempt, time: dateTime(y.at), user: y.to.user ?? t('queue.hidden') })} {y.to.name ? <JobLink id={y.to.id} name={y.to.name} /> : t('queue.hidden')}{y.to.vip && ' (VIP)'}</>} />
      ))}
      <Tabs
        label={t('job.parts')}
        active={tab}
        change={(key) => void go(`/jobs/${id}/${key}${subjob ? `?subjob=${subjob}` : ''}`, { replace: true })}
        tabs={[
          {
            key: 'overview',
            label: t('job.overview'),
            children: (
              <div className="stack">
                {!shared && failedFirst && may('logs') && (
                  <LastWords key={failedFirst.id} alloc={failedFirst} found={recognised(told, newest?.number)}>
                    <h3>{t('job.you_can')}</h3>
                    <ul className="deeds">
                      <li><span>{t('job.can_read', { rank: failedFirst.rank })}</span><Link className="button" to={`/jobs/${id}/logs`}>{t('job.logs')}</Link></li>
                      {may('clone') && allowed('submit') && <li><span>{t('job.can_clone')}</span><Link className="button" to={'/jobs/new?clone=' + part(full)}>{t('job.clone')}</Link></li>}
                      {failedFirst.hold && <li><span>{t('job.can_enter', { rank: failedFirst.rank, until: clock(failedFirst.hold.until) })}</span><Link className="button" to={`/jobs/${id}/terminal`}>{t('job.terminal')}</Link></li>}
                    </ul>
                  </LastWords>
                )}
                <section className="card" aria-label={t('job.timeline')}><h2>{t('job.timeline')}</h2><Strip detail={detail} attempts={mine} events={told} queuedAt={standing?.queued_at} ends={ends} /></section>
                {queued && !shared && <ForecastCard id={full} spec={spec} forecast={forecast.data} holders={forecast.data?.holders} subjob={subjob} />}
                <div className="cards">
                  <section className="card" aria-label={t('job.ranks')}><h2>{t('job.ranks')}</h2><Ranks ranks={ranks} error={failing(allocs)} /></section>
                  <section className="card" aria-label={t('job.history')}><h2>{t('job.history')}</h2><History events={told} error={failing(events)} /></section>
                </div>
                <section className="card" aria-label={t('job.facts')}><h2>{t('job.facts')}</h2><Facts detail={detail} /></section>
              </div>
            ),
          },
          { key: 'figures', label: t('figures.tab'), children: <Figures id={full} name={spec.name} subjob={subjob} live={detail.state === 'running' || detail.state === 'starting' || detail.state === 'paused'} /> },
          { key: 'curves', label: t('training.tab'), children: <Training id={full} name={spec.name} subjob={subjob} live={!endedStates.includes(detail.state)} /> },
          { key: 'logs', label: t('job.logs'), children: <AttemptLogs attempts={mine} allocs={(allocs.data ?? []).filter((a) => a.subjob === subjob)} /> },
          { key: 'files', label: t('files.tab'), children: allocs.data ? <Files id={full} name={spec.name} subjob={subjob} allocs={allocs.data.filter((a) => a.subjob === subjob)} live={!endedStates.includes(detail.state)} /> : allocs.error ? <Failed error={allocs.error} /> : <Loading /> },
          { key: 'attempts', label: t('job.attempts'), children: <div className="stack"><Attempts attempts={mine} allocs={allocs.data ?? []} /><SideBySide attempts={mine} allocs={allocs.data ?? []} />{!shared && <Checkpoints detail={detail} standing={standing} />}</div> },
          { key: 'command', label: t('job.command'), children: <Commands detail={detail} /> },
          { key: 'terminal', label: t('job.terminal'), children: <Suspense fallback={<Loading />}><Shell allocs={ranks} job={spec.name} /></Suspense> },
          { key: 'file', label: t('job.file'), children: <><pre className="cli">{spec.source || JSON.stringify(spec, null, 2)}</pre><Cli text={`nomadlike job inspect ${quote(spec.name)}`} /></> },
        ].filter((one) => (shared ? seenByGuests.includes(one.key) : may(needs[one.key] ?? 'read') && (one.key !== 'command' || allowed('submit'))))}
      />
    </div>
  )
}

// recognised is what is known of the errors that an attempt printed.
export const recognised = (events: Event[], attempt = 0): string[] => [...new Set(events.filter((event) => event.id === 'event.alloc.environment_found' && event.attempt === attempt && event.params?.rule?.startsWith('log-')).map((event) => (i18next.language === 'zh' && event.params?.text_zh) || event.params?.text || ''))]

// stepOf is how far an attempt has come, by what its ranks print of themselves.
export function stepOf(metrics: JobMetrics | undefined, attempt: Attempt | undefined): number | undefined {
  const steps = (metrics?.ranks ?? []).filter((rank) => rank.attempt === attempt?.number).flatMap((rank) => (rank.series ?? []).flatMap((series) => (series.points ?? []).map((point) => point.step)))
  return steps.length ? Math.max(...steps) : undefined
}

// truth says in one sentence how a job stands.
export function truth(t: TFunction, detail: JobDetail, standing: Subjob | undefined, ranks: Allocation[], newest: Attempt | undefined, now: number, step?: number): string {
  const nodes = t('short.nodes', { count: ranks.length || detail.job.nodes })
  const cards = ranks.reduce((sum, rank) => sum + (rank.devices?.length ?? 0), 0)
  const where = cards ? nodes + ' ' + t('short.cards', { count: cards }) : nodes
  const faults = (standing?.restarts ?? 0) + (standing?.infra_losses ?? 0)
  const tail = faults ? t('truth.faults', { restarts: standing?.restarts ?? 0, losses: standing?.infra_losses ?? 0 }) : ''
  const reason = reasonText(detail.reason)
  switch (detail.state) {
    case 'queued':
      return t('truth.queued', { time: since(standing?.queued_at ?? detail.job.submitted_at, null, now), reason: (detail.wait?.id === 'scheduler.restart_delay' && detail.reason ? [reasonText(detail.wait), reasonText(detail.reason)].join(': ') : reasonText(detail.wait)) || t('truth.no_reason') }) + tail
    case 'starting': {
      const steps = ranks.filter((rank) => rank.step && rank.status === 'preparing').map((rank) => rank.step!)
      return t('truth.starting', { where, attempt: newest?.number ?? detail.attempt, step: steps[0] ? t('step.' + steps[0], steps[0]) : t('step.barrier') }) + tail
    }
    case 'running': {
      const throttle = detail.control?.idle && detail.control.idle !== '0s' ? t('truth.throttled', { busy: detail.control.busy, idle: detail.control.idle }) : ''
      const limit = detail.job.time_limit && newest?.running_at ? t('truth.limit', { limit: spelled(detail.job.time_limit) }) : ''
      const saved = newest?.checkpoint_at ? t('truth.checkpoint', { time: since(newest.checkpoint_at, null, now) }) : ''
      return t('truth.running', { time: since(detail.started_at, null, now), where, attempt: newest?.number ?? detail.attempt }) + (step === undefined ? '' : t('truth.step', { step })) + saved + limit + throttle + (tail || t('truth.no_faults'))
    }
    case 'paused':
    case 'stopping':
      return t('truth.' + detail.state, { reason, where }) + tail
    default:
      return (
        t('truth.' + detail.state, { time: clock(detail.finished_at, now), took: since(detail.started_at, detail.finished_at, now), code: detail.exit_code }) +
        (reason && detail.state !== 'succeeded' ? t('truth.because', { reason }) : '') + tail
      )
  }
}

function Truth({ detail, standing, ranks, newest, forecast, ends, step }: { detail: JobDetail; standing?: Subjob; ranks: Allocation[]; newest?: Attempt; forecast?: JobForecast; ends?: Ends; step?: number }) {
  const { t } = useTranslation()
  const now = useNow()
  const start = forecast?.starts?.[0]
  return (
    <p className="truth">
      {truth(t, detail, standing, ranks, newest, now, step)}
      {start && <> <strong>{startText(t, start)}</strong></>}
      {ends?.p50 ? <> <strong>{t('truth.ends', { ends: endsText(t, ends, now) })}</strong></> : null}
    </p>
  )
}

interface Segment {
  kind: 'queued' | 'precheck' | 'data' | 'image' | 'preparing' | 'running' | 'resumed' | 'stopping'
  from: number
  to: number
  attempt: number
  outcome?: string
  cause?: string
}

// steps are what nodes tell of the preparation of an attempt when they are through
// with it, in the order in which they do it.
const steps: Record<string, Segment['kind']> = { 'event.alloc.prechecked': 'precheck', 'event.alloc.data_prepared': 'data', 'event.alloc.image_pulled': 'image' }

// stepEnds tells when the last rank of an attempt was through with each step.
function stepEnds(attempt: number, events: Event[]) {
  const ends = new Map<Segment['kind'], number>()
  for (const e of events) {
    const step = steps[e.id]
    if (step && e.attempt === attempt) ends.set(step, Math.max(ends.get(step) ?? 0, millis(e.time)))
  }
  return Object.values(steps).filter((step) => ends.has(step)).map((step) => [step, ends.get(step)!] as const)
}

// segments part the life of a subjob into what it did when. An attempt after one
// that registered a checkpoint is resumed from that; saved tells that the job
// began with one of another job.
export function segments(submitted: number, attempts: Attempt[], ended: boolean, now: number, events: Event[] = [], saved = false): Segment[] {
  const out: Segment[] = []
  let at = submitted
  const add = (kind: Segment['kind'], to: number, attempt: number, more: Partial<Segment> = {}) => {
    if (to > at) out.push({ kind, from: at, to, attempt, ...more })
    at = Math.max(at, to)
  }
  for (const a of attempts) {
    add('queued', millis(a.placed_at), a.number)
    const end = millis(a.ended_at) || now
    const ending = millis(a.ending_at) || end
    const ready = Math.min(millis(a.running_at) || ending, ending)
    for (const [step, until] of stepEnds(a.number, events)) add(step, Math.min(until, ready), a.number)
    add('preparing', ready, a.number)
    const why = { outcome: a.outcome, cause: reasonText(a.cause) }
    add(saved ? 'resumed' : 'running', ending, a.number, why)
    saved ||= !!a.checkpoint_at
    add('stopping', end, a.number, why)
  }
  if (!ended && (attempts.length === 0 || attempts.at(-1)!.ended_at)) add('queued', now, (attempts.at(-1)?.number ?? 0) + 1)
  return out
}

// Strip is the life of a subjob in scale: solid what was, hatched what is foreseen.
function Strip({ detail, attempts, events, queuedAt, ends }: { detail: JobDetail; attempts: Attempt[]; events: Event[]; queuedAt?: string | null; ends?: Ends }) {
  const { t } = useTranslation()
  const now = useNow(5000)
  const parts = segments(millis(detail.job.submitted_at) || millis(queuedAt), attempts, endedStates.includes(detail.state), now, events, !!detail.job.resume)
  const left = ends?.p50 ? Math.max(0, ends.p50 - now) : 0
  const total = parts.reduce((sum, p) => sum + p.to - p.from, left) || 1
  const runs = (p: Segment) => p.kind === 'running' || p.kind === 'resumed'
  const look = (p: Segment) => (runs(p) && (p.outcome === 'failed' || p.outcome === 'lost') ? 'fault' : runs(p) && p.outcome === 'succeeded' ? 'done' : p.kind)
  const text = (p: Segment) => `${t('segment.' + p.kind)} ${span(p.to - p.from)}` + (p.kind !== 'queued' ? ` · ${t('job.attempt', { number: p.attempt })}` : '') + (p.outcome ? ` · ${t('outcome.' + p.outcome, p.outcome)}` : '') + (p.cause ? ` · ${p.cause}` : '')
  if (parts.length === 0) return <p className="quiet">{t('job.no_attempt')}</p>
  return (
    <>
      <div className="strip" aria-hidden="true">
        {parts.map((p, i) => <span key={i} className={'seg-' + look(p)} style={{ flex: Math.max((p.to - p.from) / total, 0.004) }} title={text(p)} />)}
        {left > 0 && <span className="seg-foreseen" style={{ flex: Math.max(left / total, 0.004) }} title={endsText(t, ends!, now)} />}
      </div>
      <ul className="legend">
        {parts.slice(-12).map((p, i) => <li key={i}><i className={'seg-' + look(p)} />{clock(new Date(p.from).toISOString())} {text(p)}</li>)}
        {left > 0 && <li><i className="seg-foreseen" />{t('segment.foreseen')} {endsText(t, ends!, now)}</li>}
      </ul>
    </>
  )
}

// AttemptLogs are the logs of one attempt: the newest, unless another is chosen,
// such as the one that failed before it.
export function AttemptLogs({ attempts, allocs }: { attempts: Attempt[]; allocs: Allocation[] }) {
  const { t } = useTranslation()
  const [chosen, setChosen] = useState(0)
  const attempt = attempts.find((a) => a.number === chosen) ?? attempts.at(-1)
  const ranks = allocs.filter((a) => a.attempt === attempt?.number).sort((a, b) => a.rank - b.rank)
  return (
    <div className="stack">
      {attempts.length > 1 && (
        <div className="bar">
          <Choice bare label={t('jobs.attempt')} value={attempt?.number} change={setChosen}
            options={[...attempts].reverse().map((a) => ({ value: a.number, label: `${t('job.attempt', { number: a.number })} · ${a.outcome ? t('outcome.' + a.outcome) : t('attempt.' + a.state)}` }))} />
        </div>
      )}
      {ranks.length ? <Logs key={attempt?.number} allocs={ranks} attempt={attempt} /> : <p>{t('job.no_attempt')}</p>}
    </div>
  )
}

const tones: Record<string, 'good' | 'busy' | 'bad' | 'plain'> = { running: 'good', complete: 'good', failed: 'bad', lost: 'bad', killed: 'plain', pending: 'plain', preparing: 'busy', prepared: 'busy' }

function Ranks({ ranks, error }: { ranks: Allocation[]; error: unknown }) {
  const { t } = useTranslation()
  if (error) return <Failed error={error} />
  if (ranks.length === 0) return <p className="quiet">{t('job.no_attempt')}</p>
  return (
    <Table<Allocation>
      label={t('job.ranks')}
      idOf={(a) => a.id}
      page={32}
      least={520}
      rows={ranks}
      columns={[
        { title: t('job.rank'), width: 60, cell: (a) => a.rank },
        { title: t('job.node'), cell: (a) => <NodeLink id={a.node_id} name={a.node_name} /> },
        { title: t('job.status'), cell: (a) => <WordTag tone={tones[a.status] ?? 'plain'} title={reasonText(a.cause)}>{t('alloc.' + a.status, a.status)}{a.step && a.status === 'preparing' ? ' · ' + t('step.' + a.step, a.step) : ''}</WordTag> },
        { title: t('job.cards'), cell: (a) => (a.devices?.length ? t('short.cards', { count: a.devices.length }) : t('short.cores', { count: a.spec.cpu })) },
        { title: t('job.exit'), width: 90, cell: (a) => (endedAlloc(a) ? (a.oom_killed ? 'OOM' : a.signal ? t('job.signal', { signal: a.signal }) : neverRan(a) ? '–' : a.exit_code) : '') },
      ]}
    />
  )
}

// neverRan reports whether a rank has no end of its own: its command was not started.
const neverRan = (a: Allocation) => !a.started_at && !a.exit_code && !a.signal
export function History({ events, error }: { events: Event[]; error?: unknown }) {
  const { t } = useTranslation()
  if (error) return <Failed error={error} />
  if (events.length === 0) return <p className="quiet">{t('job.no_events')}</p>
  return (
    <ol className="history" tabIndex={0} aria-label={t('job.history')}>
      {folded(events).reverse().map((one) => ('id' in one ? <Happened key={`${one.index}.${one.seq}`} event={one} /> : (
        <li key={`${one.details[0]!.index}.${one.details[0]!.seq}`} className="folded">
          <time dateTime={one.time ?? ''} title={dateTime(one.time, true)}>{clock(one.time)}</time>
          <details>
            <summary>{t('job.told', { count: one.details.length })}</summary>
            <ol>{one.details.map((event) => <Happened key={`${event.index}.${event.seq}`} event={event} />)}</ol>
          </details>
        </li>
      )))}
    </ol>
  )
}

function Happened({ event }: { event: Event }) {
  const { t } = useTranslation()
  return (
    <li className={event.severity}>
      <time dateTime={event.time ?? ''} title={dateTime(event.time, true)}>{clock(event.time)}</time>
      <span>{reasonText(event)}{event.cause && ': ' + reasonText(event.cause)}{event.by && event.by !== 'server' && !/^[0-9a-f]{32}$/.test(event.by) && <span className="quiet"> {t('job.by', { by: event.by })}</span>}</span>
    </li>
  )
}

// What every rank tells whenever it starts: true, and read only when something is
// looked for.
const routine = ['event.alloc.environment', 'event.alloc.prechecked', 'event.alloc.image_coming']
const perRank = ['event.alloc.running', 'event.alloc.complete'] // the same once many ranks say it
const ranksTold = 4

interface Folded {
  time: Event['time']
  details: Event[]
}

// folded puts what is routine of an attempt together, where the last of it
// stands. Warnings never fold.
export function folded(events: Event[]): (Event | Folded)[] {
  const key = (event: Event) => `${event.job_id ?? ''}/${event.subjob ?? 0}/${event.attempt ?? 0}`
  const many = new Map<string, number>()
  for (const event of events) many.set(event.id + key(event), (many.get(event.id + key(event)) ?? 0) + 1)
  const folds = (event: Event) => (!event.severity || event.severity === 'info') && (routine.includes(event.id) || (perRank.includes(event.id) && many.get(event.id + key(event))! > ranksTold))
  const groups = new Map<string, Event[]>()
  for (const event of events) if (folds(event)) groups.set(key(event), [...(groups.get(key(event)) ?? []), event])
  return events.flatMap((event): (Event | Folded)[] => {
    if (!folds(event)) return [event]
    const group = groups.get(key(event))!
    return group.at(-1) === event ? [{ time: event.time, details: group }] : []
  })
}

function Facts({ detail }: { detail: JobDetail }) {
  const { t } = useTranslation()
  const job = detail.job
  const specs = (job.resources ?? []).map((r) => [r.label, t('short.cores', { count: r.cpu }), size(r.memory), ...(r.devices ?? []).map((d) => `${d.count === -1 ? t('job.all_cards') : t('short.cards', { count: d.count ?? 1 })} ${d.model ?? d.models?.join('|') ?? d.kind}`)].filter(Boolean).join(' · '))
  const facts: [string, React.ReactNode][] = [
    [t('jobs.id'), <code key="id">{job.id}</code>],
    [t('jobs.project'), job.project],
    [t('jobs.user'), job.user],
    [t('jobs.type'), t('type.' + job.type, job.type)],
    [t('job.mode'), job.distributed.mode],
    [t('jobs.nodes'), t('short.nodes', { count: job.nodes }) + (devicesOf(job.resources?.[0]) ? ' ' + t('short.cards', { count: devicesOf(job.resources?.[0]) }) : '')],
    [t('job.spec'), specs.map((text, i) => <div key={i}>{text}</div>)],
    [t('jobs.pool'), job.placement?.pool],
    [t('job.driver'), [job.task.driver, job.task.image].filter(Boolean).join(' · ')],
    [t('job.limit'), job.time_limit && spelled(job.time_limit)],
    [t('jobs.submitted'), dateTime(job.submitted_at, true)],
    [t('jobs.started'), dateTime(detail.started_at, true)],
    [t('job.finished'), dateTime(detail.finished_at, true)],
    [t('job.description'), job.description],
  ]
  return <dl className="facts">{facts.filter(([, value]) => value && value !== '–').map(([name, value]) => [<dt key={name}>{name}</dt>, <dd key={name + '='}>{value}</dd>])}</dl>
}

function Attempts({ attempts, allocs }: { attempts: Attempt[]; allocs: Allocation[] }) {
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
        { title: t('job.outcome'), cell: (a) => (a.outcome ? t('outcome.' + a.outcome) : t('attempt.' + a.state)) },
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
function SideBySide({ attempts, allocs }: { attempts: Attempt[]; allocs: Allocation[] }) {
  const { t } = useTranslation()
  const now = useNow(5000)
  const [differ, setDiffer] = useState(false)
  if (attempts.length < 2) return null
  const shown = attempts.slice(-comparedMax)
  const gang = (a: Attempt) => allocs.filter((one) => one.attempt === a.number && one.subjob === a.subjob).sort((x, y) => x.rank - y.rank)
  const ranks = Math.min(16, Math.max(...shown.map((a) => gang(a).length)))
  const rows: [string, (a: Attempt) => string][] = [
    [t('job.outcome'), (a) => (a.outcome ? t('outcome.' + a.outcome) : t('attempt.' + a.state))],
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
function Checkpoints({ detail, standing }: { detail: JobDetail; standing?: Subjob }) {
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
            { title: <span className="hidden">{t('job.resume_from')}</span>, width: 150, cell: (c) => ended && mayResume && !detail.job.batch && (c === list[0] || c.step) && <Button small onClick={() => void go(`/jobs/new?clone=${part(id)}&resume=${part(id)}${c === list[0] ? '' : `&step=${c.step}`}`)}>{t('job.resume_from')}</Button> },
          ]} />
          <Cli text={`nomadlike job resume ${quote(detail.job.name)}`} />
        </>
      )}
    </section>
  )
}

function Commands({ detail }: { detail: JobDetail }) {
  const { t } = useTranslation()
  const { source, ...rest } = detail.job
  const job = { ...rest, id: undefined, user: undefined, submitted_at: undefined }
  void source // the plan is of the job itself
  const plan = useQuery({ queryKey: ['job', detail.job.id, 'plan'], queryFn: ({ signal }) => call<JobPlan>('POST', '/v1/jobs/plan', { job }, signal) })
  if (failing(plan)) return <Failed error={plan.error} retry={() => void plan.refetch()} />
  if (!plan.data) return <Loading />
  return <><p className="quiet">{t('job.command_about')}</p><RankCommands plan={plan.data} /><Cli text={`nomadlike job plan ${quote(detail.job.name)}.hcl`} /></>
}

// RankCommands shows the final command and environment of every rank.
export function RankCommands({ plan }: { plan: JobPlan }) {
  const { t } = useTranslation()
  return (
    <>
      {(plan.ranks ?? []).map((rank) => (
        <details key={rank.rank} open={rank.rank === 0} className="card">
          <summary>{t('logs.rank', { rank: rank.rank })} · {rank.name}{rank.node && ' · ' + rank.node}</summary>
          <pre className="cli">{rank.hold ? t('job.holds') : (rank.command ?? []).map(quote).join(' ')}</pre>
          <details>
            <summary>{t('job.environment', { count: Object.keys(rank.env ?? {}).length })}</summary>
            <pre className="cli">{Object.entries(rank.env ?? {}).sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, value]) => `${name}=${value}`).join('\n')}</pre>
          </details>
        </details>
      ))}
      {(plan.later ?? []).length > 0 && (
        <details>
          <summary>{t('job.known_later')}</summary>
          <ul>{plan.later!.map((reason) => <li key={reason.id}>{reasonText(reason)}</li>)}</ul>
        </details>
      )}
    </>
  )
}
