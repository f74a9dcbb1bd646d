import { useQuery } from '@tanstack/react-query'
import { Button, Checkbox, Dropdown, Input, Popover, Select, Table, type InputRef, type TableColumnsType } from 'antd'
import { useCallback, useEffect, useMemo, useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { Link, useNavigate, useSearchParams } from 'react-router'
import { allJobs, get, part } from '../api'
import { clock, dateTime, millis, progress, shortID, since } from '../format'
import { reasonText } from '../i18n'
import { DeedDialog, type Deed } from '../parts/actions'
import { Failed, StateTag, useNow, useTitle, WordTag } from '../parts/states'
import { endedStates, jobStates, type JobState, type JobSummary, type Subjob } from '../types'

export interface Filter {
  text: string
  states: string[]
  user: string
  project: string
  priority: string
  pool: string
}

// keeps tells whether a job passes the filters.
export function keeps(job: JobSummary, filter: Filter): boolean {
  const text = filter.text.trim().toLowerCase()
  return (
    (!text || job.name.toLowerCase().includes(text) || job.id.startsWith(text)) &&
    (filter.states.length === 0 || filter.states.includes(job.state)) &&
    (!filter.user || job.user === filter.user) &&
    (!filter.project || job.project === filter.project) &&
    (!filter.priority || job.priority === filter.priority) &&
    (!filter.pool || job.pool === filter.pool)
  )
}

const readFilter = (params: URLSearchParams): Filter => ({
  text: params.get('text') ?? '',
  states: params.get('state')?.split(',').filter(Boolean) ?? [],
  user: params.get('user') ?? '',
  project: params.get('project') ?? '',
  priority: params.get('priority') ?? '',
  pool: params.get('pool') ?? '',
})

const optional = ['state', 'project', 'user', 'type', 'priority', 'nodes', 'attempt', 'submitted', 'time', 'reason', 'id'] as const
const shownAtFirst = ['state', 'project', 'user', 'nodes', 'submitted', 'time', 'reason']
const keptColumns = 'nomadlike.jobs.columns'
const keptFilters = 'nomadlike.jobs.filters'

function stored<T>(key: string, otherwise: T): T {
  try {
    return (JSON.parse(localStorage.getItem(key) ?? 'null') as T | null) ?? otherwise
  } catch {
    return otherwise
  }
}

export const useJobs = () => useQuery({ queryKey: ['jobs'], queryFn: ({ signal }) => allJobs(signal), refetchInterval: 60_000 })

export function Jobs() {
  const { t } = useTranslation()
  useTitle(t('menu.jobs'))
  const jobs = useJobs()
  const go = useNavigate()
  const [params, setParams] = useSearchParams()
  const filter = useMemo(() => readFilter(params), [params])
  const [columns, setColumns] = useState<string[]>(() => stored(keptColumns, shownAtFirst))
  const [saved, setSaved] = useState<Record<string, string>>(() => stored(keptFilters, {}))
  const [picked, setPicked] = useState<string[]>([])
  const [deed, setDeed] = useState<Deed>()
  const [at, setAt] = useState(-1)
  const search = useRef<InputRef>(null)
  const rows = useMemo(() => (jobs.data ?? []).filter((job) => keeps(job, filter)), [jobs.data, filter])
  const height = useHeight(270)

  const set = (name: string, value: string) => {
    setParams(
      (old) => {
        const next = new URLSearchParams(old)
        if (value) next.set(name, value)
        else next.delete(name)
        return next
      },
      { replace: true },
    )
  }
  const choices = (field: 'user' | 'project' | 'pool') =>
    [...new Set((jobs.data ?? []).map((job) => job[field]).filter((value): value is string => !!value))].sort().map((value) => ({ value, label: value }))

  const keys = useCallback(
    (event: KeyboardEvent) => {
      const target = event.target as HTMLElement
      if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || document.querySelector('.ant-modal-wrap')) return
      if (event.key === '/') search.current?.focus()
      else if (event.key === 'j') setAt((i) => Math.min(i + 1, rows.length - 1))
      else if (event.key === 'k') setAt((i) => Math.max(i - 1, 0))
      else if (event.key === 'x' && rows[at]) setPicked((old) => (old.includes(rows[at]!.id) ? old.filter((id) => id !== rows[at]!.id) : [...old, rows[at]!.id]))
      else if (event.key === 'o' && rows[at]) void go('/jobs/' + rows[at].id)
      else return
      event.preventDefault()
    },
    [rows, at, go],
  )
  useEffect(() => {
    addEventListener('keydown', keys)
    return () => removeEventListener('keydown', keys)
  }, [keys])

  const all: TableColumnsType<JobSummary> = [
    { key: 'name', title: t('jobs.name'), width: 220, ellipsis: true, sorter: (a, b) => a.name.localeCompare(b.name), render: (_, job) => <Link to={'/jobs/' + job.id}>{job.name}</Link> },
    { key: 'state', title: t('jobs.state'), width: 130, sorter: (a, b) => jobStates.indexOf(a.state) - jobStates.indexOf(b.state), render: (_, job) => <><StateTag state={job.state} /> <span className="quiet">{progress(job)}</span></> },
    { key: 'project', title: t('jobs.project'), width: 120, ellipsis: true, dataIndex: 'project', sorter: (a, b) => a.project.localeCompare(b.project) },
    { key: 'user', title: t('jobs.user'), width: 110, ellipsis: true, dataIndex: 'user', sorter: (a, b) => (a.user ?? '').localeCompare(b.user ?? '') },
    { key: 'type', title: t('jobs.type'), width: 110, render: (_, job) => t('type.' + job.type, job.type) },
    { key: 'priority', title: t('jobs.priority'), width: 100, render: (_, job) => <PriorityTag job={job} /> },
    { key: 'nodes', title: t('jobs.nodes'), width: 90, sorter: (a, b) => a.nodes - b.nodes, render: (_, job) => t('short.nodes', { count: job.nodes }) },
    { key: 'attempt', title: t('jobs.attempt'), width: 80, dataIndex: 'attempt' },
    { key: 'submitted', title: t('jobs.submitted'), width: 130, sorter: (a, b) => millis(a.submitted_at) - millis(b.submitted_at), render: (_, job) => <time dateTime={job.submitted_at ?? ''}>{clock(job.submitted_at)}</time> },
    { key: 'time', title: t('jobs.time'), width: 110, render: (_, job) => <RunTime job={job} /> },
    { key: 'reason', title: t('jobs.reason'), ellipsis: true, width: 320, render: (_, job) => <span title={reasonText(job.wait ?? job.reason)}>{job.state === 'queued' ? reasonText(job.wait) : reasonText(job.reason)}</span> },
    { key: 'id', title: t('jobs.id'), width: 100, render: (_, job) => <code>{shortID(job.id)}</code> },
  ]
  const chosen = (jobs.data ?? []).filter((job) => picked.includes(job.id))
  const counts = useMemo(() => {
    const out: Partial<Record<JobState, number>> = {}
    for (const job of jobs.data ?? []) out[job.state] = (out[job.state] ?? 0) + 1
    return out
  }, [jobs.data])

  return (
    <div className="page">
      <div className="bar">
        <h1>{t('menu.jobs')}</h1>
        <span className="quiet" role="status">{t('jobs.count', { shown: rows.length, count: jobs.data?.length ?? 0 })}</span>
        <span className="grow" />
        <Link to="/jobs/new"><Button type="primary" tabIndex={-1}>{t('jobs.new')}</Button></Link>
      </div>
      <div className="bar" role="search" aria-label={t('jobs.filter')}>
        <Input ref={search} allowClear style={{ width: 220 }} aria-label={t('jobs.search')} placeholder={t('jobs.search')} value={filter.text} onChange={(e) => set('text', e.target.value)} />
        <Select mode="multiple" allowClear maxTagCount={2} style={{ minWidth: 180 }} aria-label={t('jobs.state')} placeholder={t('jobs.state')} value={filter.states}
          onChange={(value: string[]) => set('state', value.join(','))}
          options={jobStates.map((state) => ({ value: state, label: `${t('state.' + state)} ${counts[state] ?? 0}` }))} />
        {(['project', 'user', 'pool'] as const).map((field) => (
          <Select key={field} allowClear showSearch style={{ width: 130 }} aria-label={t('jobs.' + field)} placeholder={t('jobs.' + field)} value={filter[field] || undefined} onChange={(value?: string) => set(field, value ?? '')} options={choices(field)} />
        ))}
        <Select allowClear style={{ width: 120 }} aria-label={t('jobs.priority')} placeholder={t('jobs.priority')} value={filter.priority || undefined} onChange={(value?: string) => set('priority', value ?? '')}
          options={['normal', 'urgent', 'critical'].map((value) => ({ value, label: t('priority.' + value) }))} />
        <SavedFilters saved={saved} current={params.toString()} choose={(text) => setParams(text)} change={(next) => { setSaved(next); localStorage.setItem(keptFilters, JSON.stringify(next)) }} />
        <Popover trigger="click" placement="bottomRight" content={
          <Checkbox.Group value={columns} onChange={(value) => { setColumns(value); localStorage.setItem(keptColumns, JSON.stringify(value)) }}>
            <div style={{ display: 'flex', flexDirection: 'column' }}>{optional.map((key) => <Checkbox key={key} value={key}>{t('jobs.' + key)}</Checkbox>)}</div>
          </Checkbox.Group>
        }>
          <Button>{t('jobs.columns')}</Button>
        </Popover>
      </div>
      {picked.length > 0 && (
        <div className="bar card">
          <span>{t('jobs.picked', { count: chosen.length })}</span>
          <Button danger disabled={chosen.every((job) => endedStates.includes(job.state))} onClick={() => setDeed('stop')}>{t('deed.stop')}</Button>
          <Button danger disabled={!chosen.some((job) => endedStates.includes(job.state))} onClick={() => setDeed('delete')}>{t('deed.delete')}</Button>
          <Button type="text" onClick={() => setPicked([])}>{t('jobs.unpick')}</Button>
        </div>
      )}
      {jobs.error && <Failed error={jobs.error} retry={() => void jobs.refetch()} />}
      <Table<JobSummary>
        size="small"
        virtual
        bordered={false}
        aria-label={t('menu.jobs')}
        rowKey="id"
        loading={jobs.isPending}
        columns={all.filter((column) => column.key === 'name' || columns.includes(column.key as string))}
        dataSource={rows}
        pagination={false}
        scroll={{ y: height, x: 900 }}
        rowClassName={(_, i) => (i === at ? 'selected-row' : '')}
        rowSelection={{ selectedRowKeys: picked, onChange: (ids) => setPicked(ids as string[]), columnWidth: 40, getCheckboxProps: (job) => ({ 'aria-label': t('jobs.pick', { name: job.name }) }) as object, columnTitle: (box) => <label><span className="hidden">{t('jobs.pick_all')}</span>{box}</label> }}
        expandable={{ columnWidth: 36, columnTitle: <span className="hidden">{t('jobs.open_batch')}</span>, rowExpandable: (job) => job.subjobs > 1, expandedRowRender: (job) => <Subjobs job={job} /> }}
        locale={{ emptyText: <p>{jobs.data?.length ? t('jobs.none_match') : t('jobs.none')}</p> }}
      />
      <p className="quiet">{t('jobs.keys')}</p>
      {deed && (
        <DeedDialog deed={deed} jobs={chosen.filter((job) => endedStates.includes(job.state) === (deed === 'delete'))} close={() => setDeed(undefined)} done={() => setPicked([])} />
      )}
    </div>
  )
}

function RunTime({ job }: { job: JobSummary }) {
  const now = useNow(job.state === 'running' ? 5000 : 60_000)
  return <>{job.started_at ? since(job.started_at, job.finished_at, now) : job.state === 'queued' ? <span className="quiet">{since(job.submitted_at, null, now)}</span> : '–'}</>
}

export function PriorityTag({ job }: { job: { priority: JobSummary['priority']; vip?: boolean; preemptible?: boolean } }) {
  const { t } = useTranslation()
  return (
    <>
      {job.priority === 'normal' ? <span className="quiet">{t('priority.normal')}</span> : <WordTag tone={job.priority === 'critical' ? 'bad' : 'busy'}>{t('priority.' + job.priority)}</WordTag>}
      {job.vip && <> <WordTag tone="good">VIP</WordTag></>}
      {job.preemptible && <span className="quiet"> {t('jobs.preemptible')}</span>}
    </>
  )
}

// Subjobs are what a batch folds open to.
function Subjobs({ job }: { job: JobSummary }) {
  const { t } = useTranslation()
  const list = useQuery({ queryKey: ['job', job.id, 'subjobs'], queryFn: ({ signal }) => get<{ subjobs: Subjob[] | null }>(`/v1/jobs/${part(job.id)}/subjobs?limit=1000`, signal) })
  if (list.error) return <Failed error={list.error} />
  return (
    <Table<Subjob>
      size="small"
      rowKey="index"
      loading={list.isPending}
      pagination={{ pageSize: 20, hideOnSinglePage: true }}
      dataSource={list.data?.subjobs ?? []}
      columns={[
        { title: t('jobs.subjob'), dataIndex: 'index', width: 80 },
        { title: t('jobs.state'), width: 130, render: (_, s) => <StateTag state={s.state} /> },
        { title: t('jobs.attempt'), dataIndex: 'attempt', width: 90 },
        { title: t('jobs.started'), width: 140, render: (_, s) => dateTime(s.started_at) },
        { title: t('jobs.reason'), render: (_, s) => reasonText(s.state === 'queued' ? s.wait : s.reason) },
      ]}
    />
  )
}

function SavedFilters({ saved, current, choose, change }: { saved: Record<string, string>; current: string; choose: (text: string) => void; change: (next: Record<string, string>) => void }) {
  const { t } = useTranslation()
  const [name, setName] = useState('')
  const items = Object.keys(saved).sort().map((key) => ({ key, label: key, onClick: () => choose(saved[key]!) }))
  return (
    <Dropdown
      trigger={['click']}
      menu={{ items: items.length ? items : [{ key: '', label: t('jobs.no_saved'), disabled: true }] }}
      popupRender={(menu) => (
        <div className="card">
          {menu}
          <div className="bar">
            <Input style={{ width: 150 }} aria-label={t('jobs.filter_name')} placeholder={t('jobs.filter_name')} value={name} onChange={(e) => setName(e.target.value)} />
            <Button disabled={!name || !current} onClick={() => { change({ ...saved, [name]: current }); setName('') }}>{t('jobs.save_filter')}</Button>
            {name in saved && <Button danger onClick={() => { const next = { ...saved }; delete next[name]; change(next); setName('') }}>{t('deed.delete')}</Button>}
          </div>
        </div>
      )}
    >
      <Button>{t('jobs.saved')}</Button>
    </Dropdown>
  )
}

// useHeight is what is left of the window below so many pixels.
function useHeight(above: number): number {
  const [height, setHeight] = useState(Math.max(240, innerHeight - above))
  useEffect(() => {
    const change = () => setHeight(Math.max(240, innerHeight - above))
    addEventListener('resize', change)
    return () => removeEventListener('resize', change)
  }, [above])
  return height
}
