import type { TFunction } from 'i18next'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useMemo, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { Link } from 'react-router'
import { useAddress } from '../address'
import { get, part } from '../api'
import { since } from '../format'
import { reasonText } from '../i18n'
import { Cli, Deeds } from '../parts/actions'
import { Choice } from '../parts/controls/fields'
import { Pick } from '../parts/controls'
import { Table } from '../parts/controls/table'
import { ForecastCard, Holders, startText } from '../parts/forecast'
import { answered, Failed, useNow, useTitle, WordTag, PriorityTag, failing } from '../parts/states'
import { Gantt } from '../parts/timeline'
import { Windows, windowsQuery } from '../parts/maintenance'
import { readChanges, WhatIfPanel } from '../parts/what_if'
import { useRights } from '../rights'
import type { Change, JobDetail, JobForecast, Queue, QueueEntry, Timeline } from '../types'
import { useJobs } from '../parts/lists'

export function QueuePage() {
  const { t } = useTranslation()
  useTitle(t('menu.queue'))
  const now = useNow(30_000)
  // What is looked at and tried is in the address, so that it can be shared.
  const [params, put] = useAddress()
  const pool = params.get('pool') ?? ''
  const setPool = (value: string) => put('pool', value)
  const hours = [6, 24, 72, 168].find((h) => String(h) === params.get('hours')) ?? 24
  const setHours = (value: number) => put('hours', value === 24 ? '' : String(value))
  const tried = params.get('try') ?? ''
  const changes = useMemo(() => readChanges(tried), [tried])
  const setChanges = (next: Change[]) => put('try', next.length ? JSON.stringify(next) : '')
  const [dragged, setDragged] = useState<QueueEntry>()
  const allowed = useRights()
  const jobs = useJobs()
  const queue = useQuery({
    queryKey: ['queue'],
    refetchInterval: 15_000,
    queryFn: ({ signal }) => get<Queue>('/v1/queue?forecast=true&limit=1000', signal).then((q) => q.entries ?? []),
  })
  const timeline = useQuery({
    queryKey: ['queue', 'timeline', pool, hours],
    refetchInterval: 30_000,
    placeholderData: keepPreviousData,
    queryFn: ({ signal }) => get<Timeline>(`/v1/queue/timeline?hours=${hours}${pool && '&pool=' + part(pool)}`, signal),
  })
  const windows = useQuery({ ...windowsQuery, retry: false })
  // What is below waits for the height of what is above, so that nothing moves under a reader.
  const drawn = answered(queue) && answered(timeline)
  const pools = useMemo(() => [...new Set((timeline.data?.rows ?? []).map((row) => row.pool))].sort(), [timeline.data])
  return (
    <div className="page">
      <div className="bar">
        <h1>{queue.data ? sentence(queue.data, now, t) : t('menu.queue')}</h1>
      </div>
      {failing(queue) && <Failed error={queue.error} retry={() => void queue.refetch()} />}
      <section className="card" aria-label={t('menu.queue')}>
      <Table<QueueEntry>
        label={t('menu.queue')}
        idOf={(entry) => `${entry.job_id}/${entry.subjob}`}
        loading={queue.isPending}
        rows={queue.data ?? []}
        page={50}
        least={1060}
        unfold={(entry) => <Entry entry={entry} />}
        empty={t('queue.empty')}
        rowProps={(entry) => ({
          draggable: allowed('what_if') && (queue.data?.length ?? 0) > 1,
          onDragStart: () => setDragged(entry),
          onDragOver: (event) => event.preventDefault(),
          // Nothing is moved yet: the panel below says who would start when.
          onDrop: () => {
            if (dragged && dragged.job_id !== entry.job_id) setChanges([{ kind: 'move', job_id: dragged.job_id, before: entry.job_id }])
          },
        })}
        columns={[
          { title: t('queue.position'), width: 48, cell: (e) => <>{e.position}{e.moved && <span title={t('queue.moved')}> ↕</span>}</> },
          { title: t('jobs.name'), cell: (e) => <><Link to={'/jobs/' + e.job_id}>{e.job_name}</Link>{e.subjob > 0 && <span className="quiet"> #{e.subjob}</span>}<span className="narrow">{e.forecast && startText(t, e.forecast, now)}<br /><span className="quiet">{reasonText(e.wait)}</span></span></> },
          { wide: true, title: t('jobs.project'), cell: (e) => [e.project, e.user].filter(Boolean).join(' / ') },
          { wide: true, title: t('jobs.priority'), cell: (e) => <PriorityTag job={e} /> },
          { wide: true, title: t('queue.asks'), cell: (e) => t('short.nodes', { count: e.nodes }) + (e.devices ? ' ' + t('short.cards', { count: e.devices }) : '') },
          { wide: true, title: t('queue.waits'), cell: (e) => since(e.queued_at, null, now) },
          { wide: true, title: t('queue.starts'), cell: (e) => (e.forecast ? <WordTag tone={e.forecast.verdict === 'now' ? 'good' : e.forecast.verdict === 'later' ? 'plain' : e.forecast.verdict === 'never' ? 'bad' : 'busy'}>{startText(t, e.forecast, now)}</WordTag> : '–') },
          { wide: true, title: t('queue.reason'), width: 300, cell: (e) => reasonText(e.wait) },
          { wide: true, title: t('queue.holders'), cell: (e) => <Holders holders={e.holders?.length ? e.holders : e.awaits} /> },
        ]}
      />
      </section>
      {drawn && allowed('what_if') && <WhatIfPanel changes={changes} set={setChanges} queue={queue.data ?? []} jobs={jobs.data ?? []} nodes={timeline.data?.rows ?? []} />}
      {drawn && <section className="card" aria-label={t('queue.timeline')}>
        <div className="bar">
          <h2>{t('queue.timeline')}</h2>
          <Choice bare label={t('queue.hours')} value={hours} change={setHours} options={[6, 24, 72, 168].map((value) => ({ value, label: t('queue.next_hours', { count: value }) }))} />
          {(pools.length > 1 || pool) && <Pick label={t('jobs.pool')} value={pool} change={setPool} options={pools.map((value) => ({ value, label: value }))} width={140} />}
        </div>
        {failing(timeline) && <Failed error={timeline.error} retry={() => void timeline.refetch()} />}
        {timeline.data && <Gantt timeline={timeline.data} windows={windows.data} move={allowed('what_if') ? (change) => setChanges([change]) : undefined} />}
        {allowed('what_if') && <p className="quiet">{t('queue.drag')}</p>}
        <Cli text={`nomadlike queue timeline -hours ${hours}${pool && ' -pool ' + pool}`} />
      </section>}
      {drawn && <Windows />}
    </div>
  )
}

// sentence is how many wait, and when the first of them starts, as people say it.
export function sentence(entries: QueueEntry[], now: number, t: TFunction): string {
  const count = t('queue.count', { count: entries.length })
  const starts = entries.flatMap((entry) => (entry.forecast?.verdict === 'now' ? [now] : entry.forecast?.verdict === 'later' && entry.forecast.p50 ? [Date.parse(entry.forecast.p50)] : []))
  if (entries.length === 0) return t('queue.empty')
  if (starts.length === 0) return t('queue.truth_unknown', { count })
  const first = Math.min(...starts)
  return first - now < 60_000 ? t('queue.truth_now', { count }) : t('queue.truth_in', { count, time: since(new Date(now).toISOString(), new Date(first).toISOString()) })
}

// Entry is what a row of the queue opens to: why, what would help, and what
// one may do about it.
function Entry({ entry }: { entry: QueueEntry }) {
  const job = useQuery({ queryKey: ['job', entry.job_id], queryFn: ({ signal }) => get<JobDetail>('/v1/jobs/' + part(entry.job_id), signal) })
  const forecast = useQuery({ queryKey: ['job', entry.job_id, 'forecast'], queryFn: ({ signal }) => get<JobForecast>(`/v1/jobs/${part(entry.job_id)}/forecast`, signal) })
  if (!job.data) return null
  return (
    <>
      <div className="bar"><Deeds job={{ id: entry.job_id, name: entry.job_name, state: 'queued', priority: entry.priority, may: job.data.may }} /></div>
      <ForecastCard id={entry.job_id} spec={job.data.job} forecast={forecast.data} holders={entry.holders} subjob={entry.subjob} />
    </>
  )
}
