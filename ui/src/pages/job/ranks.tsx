import { useQuery } from '@tanstack/react-query'
import { lazy, Suspense, useEffect, useMemo, useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { Link, useLocation } from 'react-router'
import { inActing } from '../../acting'
import { get, part, send } from '../../api'
import { quote, since } from '../../format'
import { useGuest } from '../../guest'
import { reasonText } from '../../i18n'
import { Cli } from '../../parts/actions'
import { Segments } from '../../parts/controls'
import { Table } from '../../parts/controls/table'
import { colour, endedAlloc, timed, visible } from '../../parts/logs'
import { NodeLink } from '../../parts/places'
import { lineOf } from '../../parts/rank_history'
import { errorText, Failed, failing, Loading, WordTag } from '../../parts/states'
import { measures } from '../../parts/usage'
import type { Allocation, Attempt, Event, JobDetail, JobHistory } from '../../types'
import { RankCommands, usePlan } from './commands'
import { History } from './story'

const LineChart = lazy(() => import('../../parts/line_chart'))

const tones: Record<string, 'good' | 'run' | 'busy' | 'bad' | 'plain'> = { running: 'run', complete: 'good', failed: 'bad', lost: 'bad', killed: 'plain', pending: 'plain', preparing: 'run', prepared: 'run' }

// Ranks lists the ranks of an attempt; each leads to what is known of it.
export function Ranks({ ranks, error, open, failed }: { ranks: Allocation[]; error: unknown; open?: number; failed?: string }) {
  const { t } = useTranslation()
  const { search } = useLocation()
  const guest = useGuest() // they see the job, and not more of its ranks
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
        { title: t('job.rank'), width: 60, cell: (a) => guest ? a.rank : <Link to={{ search, hash: '#rank=' + a.rank }} aria-current={a.rank === open || undefined} aria-label={t('rank.title', { rank: a.rank })} title={a.id === failed ? t('rank.first') : undefined}>{a.rank}{a.id === failed && ' !'}</Link> },
        { title: t('job.node'), cell: (a) => <NodeLink id={a.node_id} name={a.node_name} /> },
        { title: t('job.status'), cell: (a) => <WordTag tone={tones[a.status] ?? 'plain'} title={reasonText(a.cause)}>{t('alloc.' + a.status, a.status)}{a.step && a.status === 'preparing' ? ' · ' + t('step.' + a.step, a.step) : ''}</WordTag> },
        { title: t('job.cards'), cell: (a) => (a.devices?.length ? t('short.cards', { count: a.devices.length }) : t('short.cores', { count: a.spec.cpu })) },
        { title: t('job.exit'), width: 90, cell: (a) => (endedAlloc(a) ? (a.oom_killed ? 'OOM' : a.signal ? t('job.signal', { signal: a.signal }) : neverRan(a) ? '–' : a.exit_code) : '') },
      ]}
    />
  )
}

// neverRan tells whether a rank has no end of its own: its command was not started.
export const neverRan = (a: Allocation) => !a.started_at && !a.exit_code && !a.signal

// rankOf reads which rank a link of the page names: #rank=3.
export function rankOf(hash: string): number | undefined {
  const found = /^#rank=(\d+)$/.exec(hash)
  return found ? Number(found[1]) : undefined
}

const lastLines = 20

// RankPanel is everything that is known of one rank: what happened to it, what it
// runs, what it prints and uses, and what can be taken from it.
export function RankPanel({ id, detail, alloc, attempt, events, logs, env, live }: { id: string; detail: JobDetail; alloc: Allocation; attempt?: Attempt; events: Event[]; logs: boolean; env: boolean; live: boolean }) {
  const { t } = useTranslation()
  const { search } = useLocation()
  const box = useRef<HTMLElement>(null)
  useEffect(() => {
    box.current?.focus({ preventScroll: true })
    box.current?.scrollIntoView?.({ block: 'start' })
  }, [alloc.id])
  const own = events.filter((event) => event.alloc_id === alloc.id)
  const link = (stream: string) => <a className="button small" href={inActing(`/v1/allocations/${part(alloc.id)}/logs?stream=${stream}`)} download={`${alloc.name}.${stream}.log`}>{t('rank.download', { what: stream })}</a>
  return (
    <section className="card rank-panel" aria-label={t('rank.title', { rank: alloc.rank })} tabIndex={-1} ref={box}>
      <div className="bar">
        <h2>{t('rank.title', { rank: alloc.rank })}</h2>
        <span className="quiet">{alloc.name} · <NodeLink id={alloc.node_id} name={alloc.node_name} /> · {t('job.attempt', { number: attempt?.number ?? alloc.attempt })} · {t('alloc.' + alloc.status, alloc.status)}{alloc.started_at && ' · ' + since(alloc.started_at, alloc.finished_at)}</span>
        <span className="grow" />
        {logs && link('stdout')}
        {logs && link('stderr')}
        {logs && <Link className="button small" to={`/jobs/${id}/files`}>{t('files.tab')}</Link>}
        <Link className="button small" to={{ search, hash: '' }}>{t('controls.close')}</Link>
      </div>
      {alloc.cause && <p className="tone-bad">{reasonText(alloc.cause)}</p>}
      <h3>{t('rank.events')}</h3>
      {own.length ? <History events={own} /> : <p className="quiet">{t('rank.no_events')}</p>}
      {logs && <><h3>{t('rank.log')}</h3><RankLog alloc={alloc} live={live} /></>}
      <h3>{t('rank.figures')}</h3>
      <RankUse id={id} alloc={alloc} live={live} />
      {env && <><h3>{t('rank.definition')}</h3><RankDefinition detail={detail} rank={alloc.rank} /></>}
      <Cli text={`nomadlike job logs -rank ${alloc.rank} ${quote(alloc.job_name)}\nnomadlike job figures -rank ${alloc.rank} -attempt ${alloc.attempt} ${quote(alloc.job_name)}`} />
    </section>
  )
}

// RankLog is the end of what a rank has printed.
export function RankLog({ alloc, live, count = lastLines }: { alloc: Allocation; live: boolean; count?: number }) {
  const { t } = useTranslation()
  const [stream, setStream] = useState<'stdout' | 'stderr'>(alloc.status === 'failed' ? 'stderr' : 'stdout')
  const log = useQuery({
    queryKey: ['rank log', alloc.id, stream, count], refetchInterval: live ? 5000 : false, retry: false,
    queryFn: async ({ signal }) => (await (await send('GET', `/v1/allocations/${part(alloc.id)}/logs?stream=${stream}&tail=${count}&times=true`, undefined, signal)).text()).split('\n').filter(Boolean).map(timed),
  })
  return (
    <>
      <Segments label={t('logs.stream')} value={stream} change={setStream} options={(['stdout', 'stderr'] as const).map((value) => ({ value, label: value }))} />
      {log.error ? <p className="quiet">{errorText(log.error, t)}</p> : !log.data ? <Loading /> : (
        <pre className="logs few" tabIndex={0} aria-label={t('rank.log')}>
          {log.data.length === 0 && <div>{t('logs.empty')}</div>}
          {log.data.map((line, i) => <div key={i}>{line.at !== undefined && <time dateTime={new Date(line.at).toISOString()}>{new Date(line.at).toTimeString().slice(0, 8)}</time>}{colour(visible(line.text)).map((span) => span.text).join('')}</div>)}
        </pre>
      )}
    </>
  )
}

// RankUse is what a rank uses, over the time of its attempt.
function RankUse({ id, alloc, live }: { id: string; alloc: Allocation; live: boolean }) {
  const { t } = useTranslation()
  const [shown, setShown] = useState('')
  const past = useQuery({
    queryKey: ['job', id, 'past', alloc.subjob, alloc.attempt, 'rank', alloc.rank], refetchInterval: live ? 60_000 : false, retry: false,
    queryFn: ({ signal }) => get<JobHistory>(`/v1/jobs/${part(id)}/figures/past?subjob=${alloc.subjob}&attempt=${alloc.attempt}&rank=${alloc.rank}&points=240`, signal),
  })
  const lines = useMemo(() => measures.map((one) => ({ one, line: lineOf(past.data, one.value, Infinity) })).filter(({ line }) => line.ranks.size > 0 && line.at.length > 1), [past.data])
  if (failing(past)) return <Failed error={past.error} retry={() => void past.refetch()} />
  if (!past.data) return <Loading />
  const chosen = lines.find(({ one }) => one.key === shown) ?? lines[0]
  if (!chosen) return <p className="quiet">{t('figures.none_kept')}</p>
  return (
    <>
      <Segments label={t('figures.measure')} value={chosen.one.key} change={setShown} options={lines.map(({ one }) => ({ value: one.key, label: t('figures.' + one.key) }))} />
      <Suspense fallback={<Loading />}>
        <LineChart label={t('figures.' + chosen.one.key)} x={chosen.line.at} time height={180} unit={chosen.one.unit ?? ' %'} lines={[...chosen.line.ranks].map(([rank, values]) => ({ name: t('logs.rank', { rank }), values: values.map((v) => (v === null ? null : v * 100)) }))} />
      </Suspense>
    </>
  )
}

// RankDefinition is the final command of a rank with its environment.
function RankDefinition({ detail, rank }: { detail: JobDetail; rank: number }) {
  const { t } = useTranslation()
  const plan = usePlan(detail, rank)
  if (failing(plan)) return <Failed error={plan.error} retry={() => void plan.refetch()} />
  if (!plan.data) return <Loading />
  return <><p className="quiet">{t('job.command_about')}</p><RankCommands plan={plan.data} open={rank} /></>
}
