import { useQuery } from '@tanstack/react-query'
import { lazy, Suspense, useEffect, useMemo } from 'react'
import { useTranslation } from 'react-i18next'
import { useNavigate, useParams, useSearchParams } from 'react-router'
import { get, part } from '../api'
import { dateTime, quote } from '../format'
import { useGuest } from '../guest'
import { Cli, Deeds } from '../parts/actions'
import { Annotations } from '../parts/annotate'
import { Answers, Questions } from '../parts/consent'
import { Button, Note } from '../parts/controls'
import { Choice } from '../parts/controls/fields'
import { Tabs } from '../parts/controls/tabs'
import { usePointing } from '../parts/cursor'
import { FailedHere, useMissed } from '../parts/elsewhere'
import { Files } from '../parts/files'
import { Holders } from '../parts/forecast'
import { endsText } from '../parts/jobrow'
import { timelineQuery } from '../parts/lists'
import { endsOf, type Ends } from '../parts/mine'
import { JobLink } from '../parts/places'
import { ShareButton } from '../parts/share'
import { countsText } from '../parts/strip'
import { endedStates, Failed, failing, Loading, PriorityTag, StateTag, useNow, useTitle } from '../parts/states'
import { Training } from '../parts/training'
import { Figures } from '../parts/usage'
import { useRights } from '../rights'
import type { Allocation, AllocationList, Attempt, AttemptList, EventList, JobDetail, JobForecast, JobMetrics, JobState, Subjob } from '../types'
import { AttemptLogs } from './job/attemptlogs'
import { Attempts, Checkpoints, SideBySide } from './job/attempts'
import { Commands } from './job/commands'
import { Keys } from './job/keys'
import { Overview } from './job/overview'
import { stepOf, truth } from './job/truth'

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
  const timeline = useQuery({ ...timelineQuery, enabled: (runs || job.data?.state === 'queued') && !shared, retry: false })
  const foreseen = useMemo(() => endsOf(timeline.data), [timeline.data])
  const ends = runs ? foreseen.get(full) : undefined
  usePointing(full)
  const reread = job.refetch
  useEffect(() => { // events name the id: a page that has the name in its address hears none of them
    if (id !== full) void reread()
  }, [id, full, events.dataUpdatedAt, reread])
  useTitle(job.data?.job.name ?? t('menu.jobs'))
  const missed = useMissed(id, job)
  if (!job.data) return <div className="page"><h1>{t('menu.jobs')}</h1>{missed ? <FailedHere error={missed} retry={() => void job.refetch()} /> : <Loading />}</div>

  const detail = job.data
  const spec = detail.job
  const standing = (detail.subjobs ?? []).find((s) => s.index === subjob)
  const mine = (attempts.data ?? []).filter((a) => a.subjob === subjob)
  const newest = mine.at(-1)
  // What happened to the job as a whole, and to the subjob that is looked at.
  const told = (events.data ?? []).filter((e) => (!e.attempt && !e.subjob) || (e.subjob ?? 0) === subjob)
  const ranks = (allocs.data ?? []).filter((a) => a.subjob === subjob && a.attempt === newest?.number).sort((a, b) => a.rank - b.rank)
  const may = (verb: string) => !detail.may || detail.may.includes(verb)

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
      {!shared && <Questions id={full} name={spec.name} asked={detail.asked} may={may('consent')} saved={newest?.checkpoint_at} />}
      <Annotations job={spec} />
      {!shared && <Answers answers={detail.answers} silence={spec.vip?.ask?.silence} />}
      {runs && !shared && <Keys id={full} detail={detail} standing={standing} newest={newest} subjob={subjob} ends={ends} logs={may('logs')} may={may} />}
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
            children: <Overview id={id} full={full} detail={detail} subjob={subjob} standing={standing} attempts={mine} newest={newest} ranks={ranks} events={told} forecast={forecast.data} ends={ends} holderEnds={foreseen} shared={shared} may={may} env={may('env') && allowed('submit')} live={!endedStates.includes(detail.state)} errors={{ allocs: failing(allocs), events: failing(events) }} />,
          },
          { key: 'figures', label: t('figures.tab'), children: <Figures id={full} name={spec.name} subjob={subjob} live={detail.state === 'running' || detail.state === 'starting' || detail.state === 'paused'} /> },
          { key: 'curves', label: t('training.tab'), children: <Training id={full} name={spec.name} subjob={subjob} attempt={newest?.number} ranks={ranks} live={!endedStates.includes(detail.state)} /> },
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

function Truth({ detail, standing, ranks, newest, forecast, ends, step }: { detail: JobDetail; standing?: Subjob; ranks: Allocation[]; newest?: Attempt; forecast?: JobForecast; ends?: Ends; step?: number }) {
  const { t } = useTranslation()
  const now = useNow()
  const start = forecast?.starts?.find((one) => one.subjob === (standing?.index ?? 0)) ?? forecast?.starts?.[0]
  return (
    <p className="truth">
      {(detail.subjobs ?? []).length > 1 && t('truth.counts', { counts: countsText(t, detail.counts as Partial<Record<JobState, number>> | null) })}
      {truth(t, detail, standing, ranks, newest, now, step, start)}
      {ends?.p50 ? <> <strong>{t('truth.ends', { ends: endsText(t, ends, now) })}</strong></> : null}
    </p>
  )
}
