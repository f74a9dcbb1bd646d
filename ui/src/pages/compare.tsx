import { useQueries, useQuery } from '@tanstack/react-query'
import { lazy, Suspense, useMemo, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { Link, useSearchParams } from 'react-router'
import { again } from '../again'
import { get, part } from '../api'
import { since } from '../format'
import { comparedOf, curvesOf, metricNames, subjobResults, type Compared } from '../parts/compare'
import { Pick, Segments } from '../parts/controls'
import { Scroll } from '../parts/controls/table'
import { Parallel, scaleOf, type Axis } from '../parts/parallel'
import { figureText } from '../parts/results'
import { answered, endedStates, Failed, Loading, StateTag, useNow, useTitle } from '../parts/states'
import { subjobsQuery } from '../parts/strip'
import { figureKinds, type FigureKind } from '../parts/views'
import type { JobDetail, JobDiff, JobMetrics, JobResults, JobState, MetricResult } from '../types'

const LineChart = lazy(() => again(() => import('../parts/line_chart')))

const sidesMax = 8
const subjobsMax = 64 // of a batch, as many as its metrics come of in one answer
const shownMetrics = 6 // columns of results
const every = 15_000

// A Side is one job, or one subjob of a batch, that is compared.
interface Side {
  key: string
  name: string
  link: string
  state: JobState
  started?: string | null
  finished?: string | null
  results: Map<string, MetricResult>
}

// Compare puts ticked jobs side by side, or the subjobs of one batch.
export function Compare() {
  const { t } = useTranslation()
  const [params, setParams] = useSearchParams()
  const text = params.get('job') ?? ''
  const ids = useMemo(() => [...new Set(text.split(',').filter(Boolean))].slice(0, sidesMax), [text])
  useTitle(t('compare.title'))
  const details = useQueries({ queries: ids.map((id) => ({ queryKey: ['job', id], queryFn: ({ signal }: { signal: AbortSignal }) => get<JobDetail>('/v1/jobs/' + part(id), signal) })) })
  const jobs = useMemo(() => details.flatMap((one) => one.data ?? []), [details])
  const list = jobs.map((job) => part(job.job.id ?? '')).join(',') // the address may have names
  const batch = ids.length === 1 && jobs[0]?.job.type === 'batch' ? jobs[0] : undefined
  const live = jobs.some((job) => !endedStates.includes(job.state))
  const diffs = useQueries({ queries: ids.slice(1).map((id) => ({ queryKey: ['job', id, 'diff', ids[0]], queryFn: ({ signal }: { signal: AbortSignal }) => get<JobDiff>(`/v1/jobs/${part(id)}/diff?with=${part(ids[0]!)}`, signal) })) })
  const fields = useMemo(() => comparedOf(diffs.map((one) => one.data)), [diffs])
  const found = useQuery({ queryKey: ['results', '', list], enabled: jobs.length > 0 && jobs.length === ids.length && !batch, refetchInterval: live ? every : false, queryFn: ({ signal }) => get<JobResults>('/v1/job-results?job=' + list, signal) })
  const own = useQuery({ queryKey: ['job', batch?.job.id ?? '', 'results'], enabled: !!batch, refetchInterval: live ? every : false, queryFn: ({ signal }) => get<JobMetrics>(`/v1/jobs/${part(batch!.job.id ?? '')}/metrics?points=1`, signal) })
  const subjobs = useQuery({ ...subjobsQuery(batch?.job.id ?? ''), enabled: !!batch })
  const sides = useMemo((): Side[] => {
    if (batch) {
      const results = subjobResults(own.data)
      const id = batch.job.id ?? ''
      return (subjobs.data ?? []).slice(0, subjobsMax).map((one) => ({ key: String(one.index), name: `${t('jobs.subjob')} ${one.index}`, link: `/jobs/${id}?subjob=${one.index}`, state: one.state, started: one.started_at, finished: one.finished_at, results: results.get(one.index) ?? new Map() }))
    }
    const results = new Map((found.data?.jobs ?? []).map((job) => [job.job_id, new Map((job.metrics ?? []).map((one) => [one.name, one]))]))
    return jobs.map((job) => ({ key: job.job.id ?? '', name: job.job.name, link: '/jobs/' + (job.job.id ?? ''), state: job.state, started: job.started_at, finished: job.finished_at, results: results.get(job.job.id ?? '') ?? new Map() }))
  }, [batch, own.data, subjobs.data, found.data, jobs, t])
  const names = useMemo(() => metricNames(sides.map((side) => side.results)), [sides])
  const failed = [...details, ...diffs].find((one) => one.error)?.error
  // Shown when all of it is here: a row that comes later would move what is below it.
  const ready = failed || (jobs.length === ids.length && (batch ? subjobs.data && answered(own) : answered(found) && diffs.every((one) => one.data)))
  if (ids.length === 0) return <div className="page"><h1>{t('compare.title')}</h1><p>{t('compare.none')} <Link to="/jobs">{t('menu.jobs')}</Link></p></div>
  const drop = (key: string) => setParams({ job: ids.filter((id) => id !== key).join(',') }, { replace: true })
  return (
    <div className="page">
      <div className="bar">
        <h1>{batch ? t('compare.of_subjobs', { name: batch.job.name }) : t('compare.title')}</h1>
        {!batch && <span className="quiet">{t('compare.of_jobs', { count: ids.length })}</span>}
        {batch && (subjobs.data?.length ?? 0) > sides.length && <span className="quiet">{t('compare.more', { count: sides.length, total: subjobs.data!.length })}</span>}
      </div>
      {failed && <Failed error={failed} retry={() => [...details, ...diffs].forEach((one) => void one.refetch())} />}
      {!ready && <Loading />}
      {ready && sides.length > 0 && (
        <>
          <Results sides={sides} names={names} away={(batch ? own.data?.away : found.data?.away) ?? []} drop={batch || sides.length < 3 ? undefined : drop} />
          {!batch && names.length > 0 && <Curves ids={sides.map((side) => side.key)} sides={sides} names={names} live={live} />}
          {!batch && <Differences fields={fields} sides={sides} />}
          <Sweep fields={fields} sides={sides} names={names} />
        </>
      )}
    </div>
  )
}

const valueOf = (one: MetricResult | undefined, kind: FigureKind) => (one ? (kind === 'last' ? one.last.value : one[kind]) : undefined)

function useKind(): [FigureKind, React.ReactNode] {
  const { t } = useTranslation()
  const [kind, setKind] = useState<FigureKind>('last')
  return [kind, <Segments<FigureKind> key="kind" label={t('compare.results')} value={kind} change={setKind} options={figureKinds.map((value) => ({ value, label: t('jobs.kind_' + value) }))} />]
}

// Results is the table of how each ended, and where its metrics stand.
function Results({ sides, names, away, drop }: { sides: Side[]; names: string[]; away: string[]; drop?: (key: string) => void }) {
  const { t } = useTranslation()
  const now = useNow(5000)
  const [kind, choose] = useKind()
  const shown = names.slice(0, shownMetrics)
  return (
    <section className="card" aria-label={t('compare.results')}>
      <div className="bar"><h2>{t('compare.results')}</h2><span className="grow" />{shown.length > 0 && choose}</div>
      <Scroll label={t('compare.title')}>
        <table className="plain whole">
          <thead><tr><th scope="col">{t('jobs.name')}</th><th scope="col">{t('jobs.state')}</th><th scope="col">{t('compare.ran')}</th>{shown.map((name) => <th key={name} scope="col">{name}</th>)}{drop && <td />}</tr></thead>
          <tbody>
            {sides.map((side) => (
              <tr key={side.key}>
                <th scope="row"><Link to={side.link}>{side.name}</Link></th>
                <td><StateTag state={side.state} /></td>
                <td>{side.started ? since(side.started, side.finished, now) : '–'}</td>
                {shown.map((name) => <td key={name}>{figureText(valueOf(side.results.get(name), kind)) || '–'}</td>)}
                {drop && <td><button type="button" className="link" aria-label={t('compare.drop', { name: side.name })} onClick={() => drop(side.key)}>✕</button></td>}
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
      {shown.length === 0 && <p className="quiet">{t('compare.no_results')}</p>}
      {away.length > 0 && <p className="quiet">{t('compare.away', { nodes: away.join(', ') })}</p>}
    </section>
  )
}

// Curves draws one metric of all jobs over one axis of steps.
function Curves({ ids, sides, names, live }: { ids: string[]; sides: Side[]; names: string[]; live: boolean }) {
  const { t } = useTranslation()
  const [chosen, setChosen] = useState('')
  const name = names.includes(chosen) ? chosen : names[0]!
  const metrics = useQueries({ queries: ids.map((id) => ({ queryKey: ['job', id, 'curve', name], refetchInterval: live ? every : (false as const), retry: false, queryFn: ({ signal }: { signal: AbortSignal }) => get<JobMetrics>(`/v1/jobs/${part(id)}/metrics?points=500&name=${part(name)}`, signal) })) })
  const { x, lines } = curvesOf(sides.map((side, i) => ({ name: side.name, metrics: metrics[i]?.data })), name)
  return (
    <section className="card" aria-label={t('compare.curves')}>
      <div className="bar"><h2>{t('compare.curves')}</h2><span className="grow" /><Pick label={t('compare.metric')} value={name} change={setChosen} options={names.map((value) => ({ value, label: value }))} width={180} /></div>
      {x.length > 0 ? <Suspense fallback={<div style={{ minHeight: 240 }}><Loading /></div>}><LineChart label={name} x={x} lines={lines} /></Suspense> : metrics.some((one) => !answered(one)) ? <div style={{ minHeight: 240 }}><Loading /></div> : <p className="quiet">{t('compare.no_curves')}</p>}
    </section>
  )
}

// Differences are the settings that are not the same, in the words of the job file;
// what differs from the first is marked.
function Differences({ fields, sides }: { fields: Compared[]; sides: Side[] }) {
  const { t } = useTranslation()
  return (
    <section className="card" aria-label={t('compare.differences')}>
      <h2>{t('compare.differences')}</h2>
      {fields.length === 0 ? <p className="quiet">{t('compare.same')}</p> : (
        <Scroll label={t('compare.title')}>
          <table className="plain sides">
            <thead><tr><th scope="col">{t('compare.field')}</th>{sides.map((side) => <th key={side.key} scope="col">{side.name}</th>)}</tr></thead>
            <tbody>
              {fields.map((field) => (
                <tr key={field.path}>
                  <th scope="row"><code>{field.path}</code></th>
                  {field.values.map((value, i) => <td key={sides[i]?.key ?? i} className={value !== field.values[0] ? 'other' : undefined}>{value || t('compare.nothing')}</td>)}
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      )}
    </section>
  )
}

const axesMax = 8 // beside the result
const linesLeast = 3

// Sweep draws parallel coordinates: from the settings that differ, and the other
// figures that the jobs print, such as a learning rate, to one result.
function Sweep({ fields, sides, names }: { fields: Compared[]; sides: Side[]; names: string[] }) {
  const { t } = useTranslation()
  const [chosen, setChosen] = useState('')
  const [kind, choose] = useKind()
  const name = names.includes(chosen) ? chosen : names[0]
  const axes = useMemo((): Axis[] => {
    if (!name) return []
    const figure = (of: string, as: FigureKind): Axis => ({ name: of, values: sides.map((side) => { const value = valueOf(side.results.get(of), as); return value === undefined ? undefined : String(value) }) })
    const settings = fields.map((field) => ({ name: field.path.replace(/^task\.(env|command|arguments)/, '').replace(/^\["(.*)"\]$/, '$1').trim() || field.path, values: field.values }))
    return [...[...settings, ...names.filter((one) => one !== name).map((one) => figure(one, 'last'))].filter((axis) => scaleOf(axis.values)).slice(0, axesMax), figure(name, kind)]
  }, [fields, sides, names, name, kind])
  if (sides.length < linesLeast || axes.length < 2) return null
  return (
    <section className="card" aria-label={t('compare.parallel')}>
      <div className="bar"><h2>{t('compare.parallel')}</h2><span className="grow" /><Pick label={t('compare.axis')} value={name!} change={setChosen} options={names.map((value) => ({ value, label: value }))} width={180} />{choose}</div>
      <Parallel axes={axes} names={sides.map((side) => side.name)} />
    </section>
  )
}
