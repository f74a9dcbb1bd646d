import { useQuery } from '@tanstack/react-query'
import { lazy, Suspense, useMemo, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { again } from '../again'
import { Link, useNavigate } from 'react-router'
import { ApiError, get, part } from '../api'
import { clock, dateTime, lengthOf, millis, since, span } from '../format'
import { reasonText, withTexts } from '../i18n'
import { JobRow, endsText } from '../parts/jobrow'
import { Button, Pick } from '../parts/controls'
import { cardsQuery, nodesQuery, outlookQuery, timelineQuery } from '../parts/lists'
import { Load } from '../parts/load'
import { endsOf, liveOf, needsOf, type Ends, type Live, type Need } from '../parts/mine'
import { freeOf, poolsQuery } from '../parts/rail'
import { EntryLink, type Entry } from '../parts/entries'
import { Failed, failing, Loading, useNow, useTitle, WordTag } from '../parts/states'
import { cellsOf, groupsOf } from '../parts/cells'
import { Wall } from '../parts/wall'
import { operates, useRights } from '../rights'
import { useSession } from '../shell'
import type { AutopilotHealth, JobList, JobSummary, NodeSummary, Outlook, ProjectDetail, Queue, Startable } from '../types'

const newest = 200 // of one's jobs, the page looks at as many
const rowsMax = 8
const needsMax = 5
const wallMax = 48 // nodes

// mineOf asks for the newest jobs of somebody, and for those of the states that do
// not end, however old they are. Without a user it is everybody's.
async function mineOf(user: string, signal?: AbortSignal): Promise<JobSummary[]> {
  const of = user && '&user=' + part(user)
  const page = await get<JobList>(`/v1/jobs?limit=${newest}&trends=true${of}`, signal)
  if (!page.next) return page.jobs ?? []
  const live = await Promise.all(['queued', 'starting', 'running', 'paused', 'stopping'].map((state) => get<JobList>(`/v1/jobs?limit=${newest}&state=${state}${of}`, signal)))
  const first = new Map((page.jobs ?? []).map((job) => [job.id, job]))
  return [...new Map([...first, ...live.flatMap((one) => one.jobs ?? []).map((job): [string, JobSummary] => [job.id, { ...job, trend: first.get(job.id)?.trend }])]).values()]
}

// Home says what of mine needs me, what happens next, what is free, and how the
// next hours look.
export function Home() {
  const { t } = useTranslation()
  useTitle(t('menu.home'))
  const session = useSession().data
  const user = session?.user ?? ''
  const may = useRights()
  const now = useNow(5000)
  const jobs = useQuery({ queryKey: ['jobs', 'mine', user], refetchInterval: 30_000, queryFn: ({ signal }) => mineOf(user, signal) })
  const timeline = useQuery(timelineQuery)
  const outlook = useQuery(outlookQuery)
  const [pool, setPool] = useState('')
  const queue = useQuery({ queryKey: ['queue'], refetchInterval: 15_000, queryFn: ({ signal }) => get<Queue>('/v1/queue?forecast=true&limit=1000', signal).then((q) => q.entries ?? []) })
  const nodes = useQuery({ ...nodesQuery, refetchInterval: 30_000 })
  const live = useMemo(() => liveOf(jobs.data ?? [], timeline.data, queue.data), [jobs.data, timeline.data, queue.data])
  const project = session?.acting || 'default'
  const near = nearlyUsed(useProject(project).data?.quotas ?? [])
  const ends = useMemo(() => endsOf(timeline.data), [timeline.data])
  const needs = useMemo(() => needsOf(jobs.data ?? [], now, ends), [jobs.data, now, ends])
  if (failing(jobs)) return <div className="page"><Failed error={jobs.error} retry={() => void jobs.refetch()} /></div>
  if (!jobs.data) return <Loading />
  const running = live.filter(({ job }) => job.state !== 'queued')
  const waiting = live.filter(({ job }) => job.state === 'queued')
  const ended = jobs.data.filter((job) => job.finished_at).sort((a, b) => millis(b.finished_at) - millis(a.finished_at))
  const rows = [...live, ...ended.slice(0, Math.max(0, 3 - live.length)).map((job): Live => ({ job }))]
  const trends = rows.slice(0, rowsMax).some(({ job }) => job.trend)
  return (
    <div className="page home">
      <div>
        <h1>{t('home.truth', { running: t('home.running', { count: running.length }), waiting: t('home.waiting', { count: waiting.length }) })}{needs.length > 0 && ' ' + t('home.needs', { count: needs.length })}</h1>
        <p className="truth quiet">{leadText(t, running, waiting, needs, now)}</p>
      </div>
      <div className="keycards">
        <Running running={running} now={now} />
        <Waiting waiting={waiting} now={now} />
        <CouldStart outlook={outlook.data} nodes={nodes.data} />
        <Quota project={project} />
      </div>
      <div className="home-split">
        <div className="home-column">
          <section className="card home-mine" aria-label={t('home.mine')}>
            <header className="bar"><h2>{t(user ? 'home.mine' : 'home.all')}</h2><span className="grow" /><Link to={user ? '/jobs?user=' + part(user) : '/jobs'}>{t('home.all_jobs')}</Link></header>
            {rows.length === 0 ? <Lesson may={may('submit')} /> : <ul className={trends ? 'jobrows trends' : 'jobrows'}>{rows.slice(0, rowsMax).map((one) => <JobRow key={one.job.id} live={one} now={now} trends={trends} />)}</ul>}
            {rows.length > rowsMax && <p className="quiet">{t('home.more', { count: rows.length - rowsMax })}</p>}
          </section>
          <section className="card home-load" aria-label={t('home.load')}>
            <header className="bar"><h2>{t('home.load')}</h2><span className="grow" />{(outlook.data?.pools?.length ?? 0) > 1 && <Pick label={t('home.load_all')} value={pool} change={setPool} options={outlook.data!.pools!.map((one) => ({ value: one.pool, label: one.pool }))} />}<Link to="/queue">{t('menu.queue')}</Link></header>
            {failing(outlook) ? <Failed error={outlook.error} retry={() => void outlook.refetch()} /> : outlook.data ? <Load outlook={outlook.data} pool={pool} /> : <div className="load-room" />}
          </section>
        </div>
        <div className="home-column">
          <section className="card home-needs" aria-label={t('home.needs_you')}>
            <h2>{t('home.needs_you')}</h2>
            {needs.length + near.length === 0 && <p className="quiet">{t('home.needs_none')}</p>}
            {needs.slice(0, needsMax).map(({ job, need }) => <NeedOf key={job.id} job={job} need={need} now={now} ends={ends.get(job.id)} />)}
            {needs.length > needsMax && <p className="quiet">{t('home.more', { count: needs.length - needsMax })}</p>}
            {near.map((quota) => <div className="need" key={quota.kind + quota.model}><p><WordTag tone="busy">{t('home.quota_near')}</WordTag> {t('home.quota_most', { held: quota.held ?? 0, most: mostOf(quota), kind: quota.model || quota.kind })}</p></div>)}
            {operates(session) && <ClusterNeeds nodes={nodes.data} />}
          </section>
          <section className="card home-wall" aria-label={t('menu.cluster')}>
            <header className="bar"><h2>{t('menu.cluster')}</h2><span className="grow" /><Link to="/cluster">{t('home.nodes', { count: nodes.data?.length ?? 0 })}</Link></header>
            {failing(nodes) ? <Failed error={nodes.error} /> : <Small nodes={nodes.data ?? []} mine={user ? jobs.data : undefined} />}
          </section>
        </div>
      </div>
    </div>
  )
}

type T = ReturnType<typeof useTranslation>['t']

// leadText is the second sentence: the next thing that happens, and the newest bad news.
function leadText(t: T, running: Live[], waiting: Live[], needs: { job: JobSummary; need: Need }[], now: number): string {
  const out: string[] = []
  const ends = running.find((one) => one.ends?.p50)
  const starts = waiting.find((one) => one.starts && (one.starts.verdict === 'now' || one.starts.p50))
  if (starts && (!ends || millis(starts.starts!.p50) <= ends.ends!.p50)) out.push(t(starts.starts!.verdict === 'now' ? 'home.next_now' : 'home.next_start', { name: starts.job.name, time: clock(starts.starts!.p50, now) }))
  else if (ends) out.push(t('home.next_end', { name: ends.job.name, time: clockOf(ends.ends!.p50, now) }))
  const bad = needs.find(({ need }) => need === 'failed')
  if (bad) out.push(t('home.bad', { name: bad.job.name, time: since(bad.job.finished_at, null, now), reason: reasonText(bad.job.reason) }))
  return out.join(' ') || t('home.nothing_next')
}

const clockOf = (ms: number, now: number) => clock(new Date(ms).toISOString(), now)

function Running({ running, now }: { running: Live[]; now: number }) {
  const { t } = useTranslation()
  const next = running.find((one) => one.ends?.p50)
  return (
    <section className="card key" aria-label={t('home.card_running')}>
      <h2>{t('home.card_running')}</h2>
      <p className="big">{running.length} <small>{t('home.jobs', { count: running.length })} · {t('short.nodes', { count: running.reduce((sum, { job }) => sum + job.nodes, 0) })}</small></p>
      <p className="quiet">{next ? t('home.next_to_end', { name: next.job.name, ends: endsText(t, next.ends!, now) }) : running.length ? t('home.ends_unknown') : t('home.nothing_runs')}</p>
    </section>
  )
}

function Waiting({ waiting, now }: { waiting: Live[]; now: number }) {
  const { t } = useTranslation()
  const next = waiting.find((one) => one.starts?.p50)
  const at = next?.starts
  return (
    <section className="card key" aria-label={t('home.card_waiting')}>
      <h2>{t('home.card_waiting')}</h2>
      {at ? <p className="big">{clock(at.p50, now)} {!at.beyond && at.p90 && clock(at.p90, now) !== clock(at.p50, now) && <small>– {clock(at.p90, now)}</small>}</p> : <p className="big">{waiting.length} <small>{t('home.jobs', { count: waiting.length })}</small></p>}
      <p className="quiet">{next ? t('home.starts', { name: next.job.name, place: next.place, count: waiting.length }) : waiting.length ? reasonText(waiting[0]!.job.wait) : t('home.nothing_waits')}</p>
    </section>
  )
}

// CouldStart is what would start at once, as the scheduler tried it: on one node, and
// of each model with whole nodes, half nodes and single cards. Without cards it is
// the nodes that stand idle, and where nobody could try it, the cards that do.
function CouldStart({ outlook, nodes }: { outlook?: Outlook; nodes?: NodeSummary[] }) {
  const { t } = useTranslation()
  const tried = outlook?.could_start
  const free = useMemo(() => freeCards(nodes ?? []), [nodes])
  const best = bestOf(tried ?? [])
  return (
    <section className="card key" aria-label={t(tried?.length ? 'home.could_start' : 'home.card_free')}>
      {!!tried?.length && <span className="quiet aside">{t('menu.free', { count: tried.reduce((sum, one) => sum + one.free, 0) })}</span>}
      <h2>{t(tried?.length ? 'home.could_start' : 'home.card_free')}</h2>
      {best ? (
        <>
          <p className="big">{best.most} <small>{best.most ? t('home.on_one_node', { model: best.model }) : t('home.cards', { count: 0 })}</small></p>
          {best.most ? tried!.slice(0, 3).map((one) => <p className="quiet" key={one.kind + one.model}>{sizesText(t, one)}</p>) : <p className="quiet">{t('home.starts_none')}</p>}
        </>
      ) : free.cards ? (
        <>
          <p className="big">{free.most.count} <small>{t('home.on_one_node', { model: free.most.model })}</small></p>
          <p className="quiet">{free.models.map(([model, count]) => `${count} × ${model}`).join(' · ') || t('home.all_held')}</p>
        </>
      ) : (
        <>
          <p className="big">{free.nodes} <small>{t('home.free_nodes', { count: free.nodes })}</small></p>
          <p className="quiet">{nodes ? t('home.no_cards') : ''}</p>
        </>
      )}
    </section>
  )
}

// bestOf is the model of which one job would get most cards on one node.
export const bestOf = (list: Startable[]): Startable | undefined => list.reduce<Startable | undefined>((best, one) => (!best || one.most > best.most ? one : best), undefined)

// sizesText is what could start of a model: whole nodes, half nodes, single cards.
export function sizesText(t: T, one: Startable): string {
  const jobs = (count: number) => `${count}${one.more && count >= 512 ? '+' : ''}`
  if (!one.single) return t('home.sizes_none', { model: one.model })
  const sizes = [t('home.sizes_single', { jobs: jobs(one.single) })]
  if (one.half) sizes.unshift(t('home.sizes', { jobs: jobs(one.half), cards: Math.floor(one.node / 2) }))
  if (one.whole && one.node > 1) sizes.unshift(t('home.sizes', { jobs: jobs(one.whole), cards: one.node }))
  return t('home.sizes_of', { model: one.model, sizes: sizes.join(t('home.sizes_or')) })
}

// freeCards counts the cards that a job could be given as far as nodes go: well,
// held by nobody, and on a node that takes jobs.
export function freeCards(nodes: NodeSummary[]): { cards: boolean; most: { model: string; count: number }; models: [string, number][]; nodes: number } {
  const models = new Map<string, number>()
  let most = { model: '', count: 0 }
  let cards = false
  let whole = 0
  for (const node of nodes) {
    cards ||= (node.devices ?? []).length > 0
    if (node.status !== 'ready' || node.eligibility !== 'eligible') continue
    if (node.used.allocs === 0) whole++
    const here = new Map<string, number>()
    for (const device of node.devices ?? []) if (device.healthy && !node.used.devices?.[device.id]) here.set(device.model, (here.get(device.model) ?? 0) + 1)
    for (const [model, count] of here) {
      models.set(model, (models.get(model) ?? 0) + count)
      if (count > most.count) most = { model, count }
    }
  }
  return { cards, most, models: [...models].sort((a, b) => b[1] - a[1]), nodes: whole }
}

// A project that nobody has written down holds nothing yet.
const nothing = { quotas: [], held: {} } as unknown as ProjectDetail

// heldCards are the cards that a project holds, by model; cores and memory are held too.
const heldCards = (held: ProjectDetail['held']) => Object.entries(held ?? {}).reduce((sum, [kind, count]) => sum + (kind.includes('/') ? count : 0), 0)

// useProject reads what a project may hold and holds.
const useProject = (project: string) =>
  useQuery({ queryKey: ['projects', project], retry: false, refetchInterval: 60_000, queryFn: ({ signal }) => get<ProjectDetail>('/v1/projects/' + part(project), signal).catch((error: unknown) => { if (error instanceof ApiError && error.status === 404) return nothing; throw error }) })

const nearly = 0.9

// nearlyUsed are the quotas of which little is left.
export const nearlyUsed = (quotas: ProjectDetail['quotas']) => (quotas ?? []).filter((quota) => mostOf(quota) > 0 && (quota.held ?? 0) >= nearly * mostOf(quota))

const mostOf = (quota: { maximum?: number | null; guaranteed?: number }) => quota.maximum ?? quota.guaranteed ?? 0

function Quota({ project }: { project: string }) {
  const { t } = useTranslation()
  const read = useProject(project)
  const pools = useQuery({ ...poolsQuery, retry: false, staleTime: 30_000 }).data ?? []
  const all = pools.reduce((sum, pool) => sum + pool.devices, 0)
  const free = pools.reduce((sum, pool) => sum + freeOf(pool.models ?? []), 0)
  const quotas = read.data?.quotas ?? []
  return (
    <section className="card key" aria-label={t('home.card_project', { project })}>
      <h2>{t('home.card_project', { project })}</h2>
      {quotas.slice(0, 2).map((quota) => {
        const most = quota.maximum || quota.guaranteed || quota.held || 1
        return (
          <div key={quota.kind + quota.model}>
            <div className="meter" role="img" aria-label={`${quota.held} / ${most}`}><i style={{ width: `${Math.min(100, (100 * quota.held) / most)}%` }} /></div>
            <p className="quiet">{t(quota.guaranteed ? 'home.quota' : 'home.quota_most', { held: quota.held, guaranteed: quota.guaranteed, most: quota.maximum ?? '–', kind: quota.model || quota.kind })}</p>
          </div>
        )
      })}
      {read.data && quotas.length === 0 && (
        <>
          <p className="big">{heldCards(read.data.held)} <small>{t('home.held', { count: heldCards(read.data.held) })}</small></p>
          <p className="quiet">{t('home.no_quota', { free, count: all })}</p>
        </>
      )}
      {read.isError && !read.data && <p className="quiet">{t('home.no_project')}</p>}
    </section>
  )
}

const DeedDialog = lazy(() => again(() => Promise.all([import('../parts/actions'), withTexts()])).then(([m]) => ({ default: m.DeedDialog })))

const needTones: Record<Need, string> = { failed: 'failed', expired: 'expired', never: 'failed', paused: 'paused', idle: 'paused', held: 'held', limit: 'paused', asked: 'paused' }

const day = 24 * 3_600_000

// longerLimit is the limit of a job that is given longer: as long again as it has, and
// a day more at most.
export function longerLimit(job: JobSummary): { text: string; until: number } {
  const limit = lengthOf(job.time_limit ?? '')
  const hours = Math.ceil((limit + Math.min(limit, day)) / 3_600_000)
  return { text: `${hours}h`, until: millis(job.limit_at) + hours * 3_600_000 - limit }
}

// whyText is the sentence about what is wrong with a job.
function whyText(t: T, job: JobSummary, need: Need, now: number, ends?: Ends): string {
  if (need === 'idle') return t('home.why_idle', { time: since(job.idle_since, null, now) })
  if (need === 'held') return t('home.why_held', { time: clock(job.held_until, now), span: span(millis(job.held_until) - now), reason: reasonText(job.reason) })
  if (need === 'limit') return t('home.why_limit', { time: clock(job.limit_at, now), ends: ends ? endsText(t, ends, now) : '' })
  if (need === 'asked' && job.asked) return t(job.asked.silence === 'kill' ? 'home.why_asked_kill' : 'home.why_asked', { user: job.asked.to.user ?? t('queue.hidden'), name: job.asked.to.name, time: clock(job.asked.until, now) })
  return reasonText(need === 'never' ? job.wait : job.reason)
}

function NeedOf({ job, need, now, ends }: { job: JobSummary; need: Need; now: number; ends?: Ends }) {
  const { t } = useTranslation()
  const may = useRights()
  const [deed, setDeed] = useState<'limit' | 'stop'>()
  const why = whyText(t, job, need, now, ends)
  const longer = longerLimit(job)
  return (
    <div className="need">
      <p><span className={'tag state-' + needTones[need]}>{t('home.need_' + need)}</span> <Link to={'/jobs/' + job.id}><strong>{job.name}</strong></Link> <span className="quiet" title={dateTime(job.finished_at)}>{job.finished_at && t('home.ago', { time: since(job.finished_at, null, now) })}</span></p>
      {why && <p className="quiet">{why}</p>}
      <p className="bar">
        {(need === 'failed' || need === 'expired') && <Link className="button" to={`/jobs/${job.id}/logs`}>{t('home.last_lines')}</Link>}
        {need === 'never' && <Link className="button" to={'/jobs/' + job.id}>{t('home.what_helps')}</Link>}
        {need === 'asked' && <Link className="button" to={'/jobs/' + job.id}>{t('home.answer')}</Link>}
        {need === 'limit' && may('submit') && <Button small onClick={() => setDeed('limit')}>{t('home.extend', { time: clockOf(longer.until, now) })}</Button>}
        {(need === 'paused' || need === 'idle' || need === 'held' || need === 'limit') && <Link className="button" to={'/jobs/' + job.id}>{t('home.open')}</Link>}
        {need === 'idle' && may('submit') && <Button small onClick={() => setDeed('stop')}>{t('deed.stop')}</Button>}
        {(need === 'failed' || need === 'expired' || need === 'never') && may('submit') && <Link className="button" to={'/jobs/new?clone=' + job.id}>{t('deed.clone')}</Link>}
      </p>
      {deed && <Suspense><DeedDialog deed={deed} jobs={[job]} close={() => setDeed(undefined)} first={deed === 'limit' ? { limit: longer.text } : undefined} /></Suspense>}
    </div>
  )
}

// ClusterNeeds is what operators should know first: nodes that are gone or not well,
// cards at fault, servers whose loss would stop the cluster, versions that differ.
function ClusterNeeds({ nodes }: { nodes?: NodeSummary[] }) {
  const { t } = useTranslation()
  const health = useQuery({ queryKey: ['servers', 'health'], retry: false, refetchInterval: 15_000, queryFn: ({ signal }) => get<AutopilotHealth>('/v1/operator/autopilot', signal) }).data
  const notes = useMemo(() => (nodes ? notesOf(nodes, health) : []), [nodes, health])
  return (
    <>
      <h2 className="apart">{t('home.cluster')}</h2>
      {notes.length === 0 && <p className="quiet">{t('home.cluster_well')}</p>}
      {notes.map(({ id, tone, to, names, count, cure }) => (
        <div className="need" key={id}>
          <p><WordTag tone={tone}>{t('home.note_' + id, { count })}</WordTag> <Link to={to}>{names.slice(0, 3).join(', ')}{names.length > 3 && ' …'}</Link></p>
          {cure && <p className="quiet">{t('home.cure_' + id, { time: cure.at && clock(cure.at, Date.now()) })} <EntryLink entry={cure.entry} /></p>}
        </div>
      ))}
    </>
  )
}

export interface Note {
  id: 'lost' | 'unfit' | 'cards' | 'servers' | 'quorum' | 'backup' | 'disk' | 'certificates' | 'versions'
  tone: 'bad' | 'busy'
  to: string
  names: string[]
  count: number
  cure?: { entry: Entry; at?: string | null }
}

const namedOf = 2 // agents of a version that are named

// notesOf lists what an operator looks at first.
export function notesOf(nodes: NodeSummary[], health?: AutopilotHealth): Note[] {
  const out: Note[] = []
  const add = (id: Note['id'], tone: Note['tone'], to: string, names: string[], count = names.length, cure?: Note['cure']) => {
    if (count > 0) out.push({ id, tone, to, names, count, ...(cure && { cure }) })
  }
  const servers = health?.servers ?? []
  add('servers', 'bad', '/servers', servers.filter((one) => !one.healthy).map((one) => one.name || one.id))
  if (health && servers.filter((one) => one.voter).length > 1 && health.failure_tolerance === 0) add('quorum', 'bad', '/servers', servers.filter((one) => one.voter).map((one) => one.name || one.id))
  add('disk', 'bad', '/servers', servers.filter((one) => one.disk_full).map((one) => one.name || one.id))
  add('backup', 'busy', '/servers', servers.filter((one) => one.backup_failed).map((one) => one.name || one.id))
  add('lost', 'bad', '/cluster?show=fault', nodes.filter((node) => node.status !== 'ready').map((node) => node.name))
  add('unfit', 'bad', '/cluster?show=fault', nodes.filter((node) => node.status === 'ready' && (node.faults ?? []).some((fault) => fault.unfit)).map((node) => node.name))
  const sick = nodes.filter((node) => node.status === 'ready' && (node.devices ?? []).some((device) => !device.healthy))
  add('cards', 'bad', '/cluster?show=fault', sick.map((node) => node.name), sick.reduce((sum, node) => sum + (node.devices ?? []).filter((device) => !device.healthy).length, 0))
  const soon = health?.certificates ?? []
  add('certificates', 'bad', '/servers', soon.map((one) => one.name || one.id), soon.length, { entry: 'certificates', at: soon[0]?.ends_at })
  const versions = health?.versions ?? []
  if (versions.length > 1) add('versions', 'busy', '/servers', versions.map(({ version, agents, names }) => `${version}: ${(names ?? []).slice(0, namedOf).join(', ')}${agents > namedOf ? ' …' : ''}`), versions.length, { entry: 'upgrade' })
  return out
}

function Lesson({ may }: { may: boolean }) {
  const { t } = useTranslation()
  return (
    <div className="stack">
      <p className="quiet">{t('home.lesson')}</p>
      {may && <p><Link className="button first" to="/jobs/new">{t('jobs.new')}</Link></p>}
      {may && <pre className="cli" tabIndex={0}>nomadlike job init &gt; job.hcl{'\n'}nomadlike job run job.hcl</pre>}
    </div>
  )
}

function Small({ nodes, mine }: { nodes: NodeSummary[]; mine?: JobSummary[] }) {
  const cards = useQuery(cardsQuery).data?.nodes
  const groups = useMemo(() => {
    const ids = new Set(mine?.map((job) => job.id))
    return groupsOf(cellsOf(nodes.slice(0, wallMax), cards ?? []).map((tile) => ({ ...tile, cells: tile.cells.map((cell) => ({ ...cell, user: ids.has(cell.owner) ? 'mine' : '' })) })), 'model')
  }, [nodes, cards, mine])
  const go = useNavigate()
  return <Wall groups={groups} height={380} plain colour={mine && 'whose'} choose={(node) => void go('/nodes/' + node)} />
}
