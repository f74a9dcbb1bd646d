import { useQueries } from '@tanstack/react-query'
import { lazy, Suspense, useCallback, useEffect, useMemo, useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { Link, useNavigate, useSearchParams } from 'react-router'
import { again } from '../again'
import { get, part } from '../api'
import { clock, millis, progress, shortID, since } from '../format'
import { causeText, reasonText, withTexts } from '../i18n'
import type { Deed } from '../parts/actions'
import { fitting } from '../parts/deeds'
import { useRights, useUser } from '../rights'
import { Button, Drop, Pick, Segments } from '../parts/controls'
import { keeps, readFilter, valuesOf, type ChosenField } from '../parts/filters'
import { Grid, sorted, twoLines, useHeight, type Column } from '../parts/grid'
import { secondLine } from '../parts/jobrow'
import { typing } from '../parts/keys'
import { useJobsSoon } from '../parts/lists'
import { figureIn, figureText, useResults, type Results } from '../parts/results'
import { endedStates, Failed, priorityTag, StateTag, stateTag, useNow, useTitle } from '../parts/states'
import { countsText, SubjobStrip, subjobsQuery } from '../parts/strip'
import { columnsOf, encodeColumns, figureOf, keepViews, linkOf, paramsOf, readViews, type Views } from '../parts/views'
import { type JobDetail, type JobState, jobStates, type JobSummary, type Subjob } from '../types'

const DeedDialog = lazy(() => again(() => Promise.all([import('../parts/actions'), withTexts()])).then(([m]) => ({ default: m.DeedDialog })))
const ViewMenu = lazy(() => again(() => import('../parts/listmenu')).then((m) => ({ default: m.ViewMenu })))
const ColumnMenu = lazy(() => again(() => import('../parts/listmenu')).then((m) => ({ default: m.ColumnMenu })))

const optional = ['state', 'project', 'user', 'type', 'priority', 'nodes', 'attempt', 'submitted', 'time', 'reason', 'tags', 'note', 'code', 'spec', 'output', 'id'] as const
const shownAtFirst = ['state', 'project', 'user', 'nodes', 'submitted', 'time']
const keptColumns = 'nomadlike.jobs.columns'
const viewChips = 3 // saved views that are buttons of their own
const comparedMax = 8 // jobs side by side

function stored<T>(key: string, otherwise: T): T {
  try {
    return (JSON.parse(localStorage.getItem(key) ?? 'null') as T | null) ?? otherwise
  } catch {
    return otherwise
  }
}

// A row is a job, one of the subjobs of a batch that is folded open, or the strip of
// states of all of them.
interface Row {
  id: string
  job: JobSummary
  subjob?: Subjob
  strip?: { subjobs?: Subjob[]; rows: boolean }
  heads?: { group: Group; count: number } // those that follow; the job is the first of them
}

// A batch folds open to its strip first, and to its rows second.
type Opened = ReadonlyMap<string, 'strip' | 'rows'>

// The list is read in three parts: what runs, what waits, and what is over.
const groups = ['running', 'waiting', 'ended'] as const
type Group = (typeof groups)[number]

export const groupOf = (job: JobSummary): Group => (endedStates.includes(job.state) ? 'ended' : job.state === 'queued' ? 'waiting' : 'running')

// grouped puts rows in their groups, each behind its heading, in the order in which
// they are within it.
export function grouped<R extends { job: JobSummary }>(rows: R[]): { group: Group; rows: R[] }[] {
  return groups.map((group) => ({ group, rows: rows.filter((row) => groupOf(row.job) === group) })).filter((one) => one.rows.length > 0)
}

export function Jobs() {
  const { t } = useTranslation()
  useTitle(t('menu.jobs'))
  const { jobs, partial, error, retry } = useJobsSoon()
  const go = useNavigate()
  const [params, setParams] = useSearchParams()
  const filter = useMemo(() => readFilter(params), [params])
  const order = params.get('sort') ?? ''
  const [ours, setOurs] = useState<string[]>(() => stored(keptColumns, shownAtFirst))
  const named = params.get('columns')
  const chosen = useMemo(() => columnsOf(named, optional) ?? columnsOf(encodeColumns(ours), optional)!, [named, ours])
  const [saved, setSaved] = useState<Views>(readViews)
  const [picked, setPicked] = useState<ReadonlySet<string>>(new Set())
  const [opened, setOpened] = useState<Opened>(new Map())
  const [deed, setDeed] = useState<Deed>()
  const [at, setAt] = useState(-1)
  const stands = useRef(-1) // the same for keys that follow each other faster than the page is drawn
  const all = jobs ?? none
  const shown = useMemo(() => all.filter((job) => keeps(job, filter)), [all, filter])
  const toggle = useCallback((id: string, to: 'strip' | 'rows' = 'strip') => setOpened((old) => {
    const next = new Map(old)
    if (to === 'strip' ? old.has(id) : old.get(id) === 'rows') next.delete(id)
    if (to === 'rows') next.set(id, old.get(id) === 'rows' ? 'strip' : 'rows')
    else if (!old.has(id)) next.set(id, 'strip')
    return next
  }), [])
  const figures = useMemo(() => chosen.flatMap((key) => figureOf(key) ?? []), [chosen])
  const results = useResults(shown, figures.map((figure) => figure.name), figures.length > 0)
  const search = useRef<HTMLInputElement>(null)
  const find = useCallback((tag: string) => set('text', 'tag:' + tag), [setParams]) // eslint-disable-line react-hooks/exhaustive-deps
  const columns = useColumns(chosen, opened, toggle, results, find)
  const inOrder = useMemo(() => {
    const plain = shown.map((job): Row => ({ id: job.id, job }))
    if (order) return sorted(plain, columns, order)
    return grouped(plain).flatMap(({ group, rows }) => [{ id: 'head-' + group, job: rows[0]!.job, heads: { group, count: rows.length } }, ...rows])
  }, [shown, columns, order])
  const rows = useOpened(inOrder, opened)
  const height = useHeight(340)
  const comparing = useMemo(() => {
    const ids = all.filter((job) => picked.has(job.id))
    const enough = ids.length > 1 || (ids[0]?.subjobs ?? 0) > 1
    return enough && ids.length <= comparedMax ? '/compare?job=' + ids.map((job) => job.id).join(',') : ''
  }, [all, picked])

  const set = (name: string, value: string) => {
    setParams(
      (old) => {
        const next = new URLSearchParams(old)
        if (value) next.set(name, value)
        else next.delete(name)
        next.delete('view') // it is another one now
        return next
      },
      { replace: true },
    )
  }
  const choose = (next: string[]) => {
    if (named !== null) set('columns', encodeColumns(next))
    else {
      setOurs(next)
      localStorage.setItem(keptColumns, JSON.stringify(next))
    }
  }

  const keys = useCallback(
    (event: KeyboardEvent) => {
      if (typing(event)) return
      if (event.key === '/') search.current?.focus()
      else if (event.key === 'j') setAt((stands.current = beside(rows, stands.current, 1)))
      else if (event.key === 'k') setAt((stands.current = beside(rows, stands.current, -1)))
      else if (event.key === 'x' && rows[stands.current]) setPicked((old) => turned(old, rows[stands.current]!.job.id))
      else if (event.key === 'o' && rows[stands.current]) void go('/jobs/' + rows[stands.current]!.job.id)
      else if (event.key === 'f' && (rows[stands.current]?.job.subjobs ?? 0) > 1) toggle(rows[stands.current]!.job.id)
      else if (event.key === 'c' && comparing) void go(comparing)
      else return
      event.preventDefault()
    },
    [rows, go, toggle, comparing],
  )
  useEffect(() => {
    addEventListener('keydown', keys)
    return () => removeEventListener('keydown', keys)
  }, [keys])

  const may = useRights()
  const targets = useTargets(all, picked)
  const counts = useMemo(() => {
    const out: Partial<Record<JobState, number>> = {}
    for (const job of all) out[job.state] = (out[job.state] ?? 0) + 1
    return out
  }, [all])
  const lead = useMemo(() => ({
    width: 36,
    head: <input type="checkbox" aria-label={t('jobs.pick_all')} checked={shown.length > 0 && shown.every((job) => picked.has(job.id))} onChange={(event) => setPicked(new Set(event.target.checked ? shown.map((job) => job.id) : []))} />,
    cell: ({ job, subjob }: Row) => !subjob && <input type="checkbox" aria-label={t('jobs.pick', { name: job.name })} checked={picked.has(job.id)} onChange={() => setPicked((old) => turned(old, job.id))} />,
  }), [t, shown, picked])
  const headingOf = useCallback(({ heads, strip, job }: Row) => {
    if (heads) return <><strong>{t('jobs.group_' + heads.group)}</strong> <span className="quiet">{heads.count}</span></>
    if (!strip) return undefined
    return (
      <span className="substrip">
        <SubjobStrip job={job} subjobs={strip.subjobs} />
        <span className="quiet">{countsText(t, job.counts)}</span>
        <button type="button" className="link" aria-expanded={strip.rows} onClick={() => toggle(job.id, 'rows')}>{t(strip.rows ? 'jobs.no_rows' : 'jobs.rows')}</button>
      </span>
    )
  }, [t, toggle])
  const user = useUser()
  const pick = (field: ChosenField, width?: number) => <Filter key={field} field={field} value={filter[field]} jobs={all} set={set} width={width} />
  const more = (['tag', 'pool', 'code', 'spec'] as const).filter((field) => filter[field]).length + (filter.output ? 1 : 0)
  const current = paramsOf(params, chosen)
  const viewed = params.get('view') ?? ''
  const changeViews = (next: Views) => { setSaved(next); keepViews(next) }
  const names = Object.keys(saved).sort()

  return (
    <div className="page">
      <div className="bar">
        <h1>{t('menu.jobs')}</h1>
        <span className="quiet" role="status">{partial ? t('states.loading') : t('jobs.count', { shown: shown.length, count: all.length })}</span>
        <span className="grow" />
        {may('vip') && <Link to="/vip" className="button">{t('jobs.new_vip')}</Link>}
        {may('submit') && <Link to="/jobs/new" className="button first">{t('jobs.new')}</Link>}
      </div>
      <div className="bar" role="search" aria-label={t('jobs.filter')}>
        {names.slice(0, viewChips).map((name) => (
          <button key={name} type="button" className="chip" aria-pressed={saved[name] === current} title={t('jobs.view', { name })} onClick={() => setParams(linkOf(name, saved[name]!).split('?')[1])}><span aria-hidden="true">☆</span> {name}</button>
        ))}
        {viewed && !(viewed in saved) && <span className="chip">{t('jobs.view_sent', { name: viewed })} <Button tone="bare" small onClick={() => changeViews({ ...saved, [viewed]: current })}>{t('jobs.view_keep')}</Button></span>}
        {user && <Segments<'' | 'mine'> label={t('jobs.whose')} value={filter.user === user ? 'mine' : filter.user ? 'other' : ''} change={(value) => set('user', value && user)} options={[{ value: 'mine', label: t('jobs.whose_mine') }, { value: '', label: t('jobs.whose_all') }]} />}
        {chips.map(({ key, states }) => {
          const on = filter.states.join() === states.join()
          return <button key={key} type="button" className="chip" aria-pressed={on} onClick={() => set('state', on ? '' : states.join(','))}>{t('jobs.chip_' + key)} <b>{states.reduce((sum, state) => sum + (counts[state] ?? 0), 0)}</b></button>
        })}
        <input ref={search} className="field" type="search" style={{ width: 200 }} aria-label={t('jobs.search')} placeholder={t('jobs.search_words')} title={t('jobs.search_help')} value={filter.text} onChange={(event) => set('text', event.target.value)} />
        <Drop className={filter.states.length ? 'chosen' : ''} name={t('jobs.state')} label={filter.states.length ? filter.states.map((state) => t('state.' + state)).join(', ') : t('jobs.state')}>
          {jobStates.map((state) => (
            <label key={state} className="tick">
              <input type="checkbox" checked={filter.states.includes(state)} onChange={(event) => set('state', jobStates.filter((one) => (one === state ? event.target.checked : filter.states.includes(one))).join(','))} />
              <StateTag state={state} /> <span className="quiet">{counts[state] ?? 0}</span>
            </label>
          ))}
        </Drop>
        <span className="bar only-wide">{pick('project')}{pick('user')}{pick('priority', 100)}{pick('cause', 170)}</span>
        <Drop className={more ? 'chosen' : ''} label={t('jobs.more_filters') + (more ? ` (${more})` : '')}>
          <div className="stack">
            <div className="stack only-narrow">{pick('project', 240)}{pick('user', 240)}{pick('priority', 240)}{pick('cause', 240)}</div>
            {pick('tag', 240)}
            {pick('pool', 240)}
            {pick('code', 240)}
            {pick('spec', 240)}
            <input className="field" type="search" style={{ width: 240 }} aria-label={t('jobs.output')} placeholder={t('jobs.output')} value={filter.output} onChange={(event) => set('output', event.target.value)} />
          </div>
        </Drop>
        <Drop label={t('jobs.saved')}>
          <Suspense><ViewMenu saved={saved} current={current} choose={(name) => setParams(linkOf(name, saved[name]!).split('?')[1])} change={changeViews} /></Suspense>
        </Drop>
        <Drop label={t('jobs.columns')}>
          <Suspense><ColumnMenu optional={optional} chosen={chosen} choose={choose} jobs={shown} /></Suspense>
        </Drop>
        {params.size > 0 && <Button tone="bare" onClick={() => setParams('', { replace: true })}>{t('jobs.no_filter')}</Button>}
      </div>
      {targets.length > 0 && (
        <div className="bar card">
          <span>{t('jobs.picked', { count: targets.length })}</span>
          {may('what_if') && bulk.map((one) => <Button key={one} tone={one === 'stop' || one === 'delete' ? 'danger' : 'plain'} disabled={fitting(one, targets).length === 0} title={fitting(one, targets).length === 0 ? t('jobs.none_fit') : undefined} onClick={() => setDeed(one)}>{t('deed.' + one)}</Button>)}
          <Button disabled={!comparing} title={comparing ? undefined : t('jobs.compare_some', { count: comparedMax })} onClick={() => void go(comparing)}>{t('jobs.compare')}</Button>
          <Button tone="bare" onClick={() => setPicked(new Set())}>{t('jobs.unpick')}</Button>
        </div>
      )}
      {error && <Failed error={error} retry={retry} />}
      <Grid<Row>
        label={t('menu.jobs')}
        rows={rows}
        columns={columns}
        idOf={(row) => row.id}
        height={height}
        order={order}
        setOrder={(value) => set('sort', value)}
        at={at}
        lead={lead}
        rowHeight={twoLines}
        headingOf={headingOf}
        go={(path) => void go(path)}
        empty={<p>{partial ? t('states.loading') : all.length ? t('jobs.none_match') : t('jobs.none')}</p>}
      />
      <p className="quiet">{t('jobs.keys')}</p>
      {deed && (
        <Suspense>
          <DeedDialog deed={deed} jobs={fitting(deed, targets)} close={() => setDeed(undefined)} done={() => setPicked(new Set())} />
        </Suspense>
      )}
    </div>
  )
}

const none: JobSummary[] = []

// beside is the next row that is a job, up or down of a place, which may be one that
// a filter has taken away; where there is none it is the last or the first.
export function beside(rows: { heads?: unknown; strip?: unknown }[], at: number, way: 1 | -1): number {
  const jobs = rows.flatMap((row, i) => (row.heads || row.strip ? [] : [i]))
  return (way > 0 ? (jobs.find((i) => i > at) ?? jobs.at(-1)) : (jobs.findLast((i) => i < at) ?? jobs[0])) ?? -1
}
const askedMax = 100 // ticked jobs; of more the server decides

// The usual questions to the list, each with how many jobs answer it.
const chips: { key: string; states: JobState[] }[] = [
  { key: 'running', states: ['starting', 'running', 'paused', 'stopping'] },
  { key: 'waiting', states: ['queued'] },
  { key: 'failed', states: ['failed'] },
  { key: 'ended', states: [...endedStates] },
]

// What can be done to several jobs at once.
const bulk = ['stop', 'pause', 'continue', 'finish', 'throttle', 'delete', 'clone', 'annotate'] as const

function turned(set: ReadonlySet<string>, id: string): ReadonlySet<string> {
  const next = new Set(set)
  if (!next.delete(id)) next.add(id)
  return next
}

// useTargets are the jobs that are ticked, each with what the reader may do to it.
function useTargets(all: JobSummary[], picked: ReadonlySet<string>): (JobSummary & { may?: string[] | null })[] {
  const chosen = useMemo(() => all.filter((job) => picked.has(job.id)), [all, picked])
  const may = useQueries({
    queries: chosen.slice(0, askedMax).map(({ id }) => ({ queryKey: ['job', id, 'may'], staleTime: 60_000, retry: false, queryFn: ({ signal }: { signal: AbortSignal }) => get<JobDetail>('/v1/jobs/' + part(id), signal).then((job) => job.may ?? null) })),
    combine: (results) => results.map((result) => result.data ?? undefined),
  })
  return useMemo(() => chosen.map((job, i) => ({ ...job, may: may[i] })), [chosen, may])
}

// useOpened puts the strips of opened batches behind them, and the rows of those that
// are open to their rows.
function useOpened(rows: Row[], opened: Opened): Row[] {
  const ids = [...opened.keys()]
  const lists = useQueries({
    queries: ids.map(subjobsQuery),
    combine: (results) => new Map(results.map((result, i) => [ids[i]!, result.data])),
  })
  return useMemo(() => {
    if (opened.size === 0) return rows
    return rows.flatMap((row): Row[] => {
      const how = row.heads ? undefined : opened.get(row.id)
      if (!how) return [row]
      const subjobs = lists.get(row.id)
      const strip: Row = { id: row.id + '/strip', job: row.job, strip: { subjobs, rows: how === 'rows' } }
      return [row, strip, ...(how === 'rows' ? (subjobs ?? []).map((subjob): Row => ({ id: `${row.id}/${subjob.index}`, job: row.job, subjob })) : [])]
    })
  }, [rows, opened, lists])
}

const text = (row: Row, value?: string) => (row.subjob ? '' : (value ?? ''))

// useColumns are the columns of the list; those that people chose, and the name.
function useColumns(chosen: string[], opened: Opened, toggle: (id: string) => void, results: Results, find: (tag: string) => void): Column<Row>[] {
  const { t } = useTranslation()
  const now = useNow(5000)
  return useMemo(() => {
    const why = ({ job, subjob }: Row) => {
      const one = subjob ?? job
      return reasonText(one.state === 'queued' ? one.wait : one.reason)
    }
    const ran = ({ job, subjob }: Row) => {
      const one = subjob ?? job
      if (one.started_at) return since(one.started_at, one.finished_at, now)
      return one.state === 'queued' ? <span className="quiet">{since(job.submitted_at, null, now)}</span> : '–'
    }
    const columns: Column<Row>[] = [
      {
        key: 'name', title: t('jobs.name'), width: innerWidth < 800 ? 176 : 260, grows: true, compare: (a, b) => a.job.name.localeCompare(b.job.name),
        cell: ({ job, subjob }) => {
          if (subjob) return <span className="two sub"><a href={`/jobs/${job.id}?subjob=${subjob.index}`}>{t('jobs.subjob')} {subjob.index}</a><br /><small title={why({ id: '', job, subjob })}>{why({ id: '', job, subjob })}</small></span>
          const link = <><a href={'/jobs/' + job.id}>{job.name}</a>{job.vip && <> <span className="tag tone-good">VIP</span></>}{tagsOf(job, find, t)}</>
          const line = [secondLine(t, job), job.note && '✎ ' + job.note.replaceAll('\n', ' ')].filter(Boolean).join(' · ')
          const second = <><br /><small className="quiet" title={line}>{line}</small></>
          return job.subjobs > 1 ? <span className="two"><button type="button" className="fold" aria-expanded={opened.has(job.id)} aria-label={t('jobs.open_batch')} onClick={() => toggle(job.id)}>{opened.has(job.id) ? '▾' : '▸'}</button>{link}{second}</span> : <span className="two">{link}{second}</span>
        },
      },
      { key: 'state', title: t('jobs.state'), width: 156, compare: (a, b) => jobStates.indexOf(a.job.state) - jobStates.indexOf(b.job.state), cell: ({ job, subjob }) => <>{stateTag((subjob ?? job).state, t)}{!subjob && job.subjobs > 1 && <span className="quiet"> {progress(job)}</span>}</> },
      { key: 'project', title: t('jobs.project'), width: 110, compare: (a, b) => a.job.project.localeCompare(b.job.project), cell: (row) => text(row, row.job.project) },
      { key: 'user', title: t('jobs.user'), width: 100, compare: (a, b) => (a.job.user ?? '').localeCompare(b.job.user ?? ''), cell: (row) => text(row, row.job.user) },
      { key: 'type', title: t('jobs.type'), width: 100, cell: (row) => text(row, t('type.' + row.job.type, row.job.type)) },
      { key: 'priority', title: t('jobs.priority'), width: 120, cell: ({ job, subjob }) => !subjob && priorityTag(job, t) },
      { key: 'nodes', title: t('jobs.nodes'), width: 80, compare: (a, b) => a.job.nodes - b.job.nodes, cell: (row) => text(row, t('short.nodes', { count: row.job.nodes })) },
      { key: 'attempt', title: t('jobs.attempt'), width: 80, cell: ({ job, subjob }) => (subjob ?? job).attempt },
      { key: 'submitted', title: t('jobs.submitted'), width: 160, compare: (a, b) => millis(a.job.submitted_at) - millis(b.job.submitted_at), cell: (row) => text(row, clock(row.job.submitted_at)) },
      { key: 'time', title: t('jobs.time'), width: 120, cell: ran },
      { key: 'reason', title: t('jobs.reason'), width: 260, cell: (row) => <span title={why(row)}>{why(row)}</span> },
      { key: 'tags', title: t('jobs.tags'), width: 160, compare: (a, b) => (a.job.tags ?? []).join().localeCompare((b.job.tags ?? []).join()), known: (row) => !!row.job.tags?.length, cell: (row) => text(row, row.job.tags?.join(' ')) },
      { key: 'note', title: t('jobs.note'), width: 220, cell: (row) => <span title={row.job.note}>{text(row, row.job.note)}</span> },
      { key: 'code', title: t('jobs.code'), width: 160, cell: (row) => text(row, row.job.code?.join(', ')) },
      { key: 'spec', title: t('jobs.spec'), width: 130, cell: (row) => text(row, row.job.specs?.join(', ')) },
      { key: 'output', title: t('jobs.output'), width: 160, cell: (row) => text(row, row.job.output) },
      { key: 'id', title: t('jobs.id'), width: 90, cell: ({ job, subjob }) => !subjob && <code>{shortID(job.id)}</code> },
    ]
    for (const figure of chosen.flatMap((key) => figureOf(key) ?? [])) {
      const value = (row: Row) => (row.subjob ? undefined : figureIn(results, row.job.id, figure))
      columns.push({
        key: figure.key, title: t('jobs.figure_' + figure.kind, { name: figure.name }), width: 130,
        compare: (a, b) => value(a)! - value(b)!, known: (row) => value(row) !== undefined, cell: (row) => figureText(value(row)),
      })
    }
    return columns.filter((column) => column.key === 'name' || chosen.includes(column.key))
  }, [t, now, chosen, opened, toggle, results, find])
}

const tagsShown = 3

// tagsOf are the first tags of a job, each of which looks for jobs that have it.
function tagsOf(job: JobSummary, find: (tag: string) => void, t: ReturnType<typeof useTranslation>['t']) {
  const tags = job.tags ?? []
  return (
    <>
      {tags.slice(0, tagsShown).map((tag) => <button key={tag} type="button" className="label" title={t('jobs.find_tag', { tag })} onClick={() => find(tag)}>{tag}</button>)}
      {tags.length > tagsShown && <span className="quiet" title={tags.join(' ')}> +{tags.length - tagsShown}</span>}
    </>
  )
}

// Filter chooses among what the jobs that are there say.
function Filter({ field, value, jobs, set, width }: { field: ChosenField; value: string; jobs: JobSummary[]; set: (name: string, value: string) => void; width?: number }) {
  const { t } = useTranslation()
  const options = useMemo(() => {
    const values = field === 'priority' ? ['normal', 'urgent', 'critical'] : [...new Set(jobs.flatMap((job) => valuesOf(job, field)))].sort()
    return values.map((one) => ({ value: one, label: field === 'priority' ? t('priority.' + one) : field === 'cause' ? causeText(one) : one }))
  }, [field, jobs, t])
  return <Pick label={t('jobs.' + field)} value={value} change={(next) => set(field, next)} options={options} width={width} />
}
