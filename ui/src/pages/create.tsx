import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { Alert, Button, Input, InputNumber, Select, Table, Tabs } from 'antd'
import { useEffect, useMemo, useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useLocation, useNavigate } from 'react-router'
import { ApiError, call, get } from '../api'
import { clock, number, quote, size } from '../format'
import { reasonText } from '../i18n'
import { Cli } from '../parts/actions'
import { Helps, Holders, startText } from '../parts/forecast'
import { Failed, Loading, StateTag, useTitle, WordTag, errorText } from '../parts/states'
import { compose, setAttribute, simple, type Simple } from '../parts/jobfile'
import type { Available, AvailableNode, Failure, Help, JobPlan, Machine, Outlook, Validated } from '../types'
import { RankCommands } from './job'

// useLater gives a value once it has not changed for so many milliseconds.
function useLater<T>(value: T, wait: number): T {
  const [later, setLater] = useState(value)
  useEffect(() => {
    const timer = setTimeout(() => setLater(value), wait)
    return () => clearTimeout(timer)
  }, [value, wait])
  return later
}

// lineOf finds the line that a diagnostic of the server speaks of.
export function lineOf(failure: Failure): number {
  const range = failure.params?.range ?? ''
  const found = failure.params?.line ?? /:(\d+)/.exec(range)?.[1] ?? /(?:^|\s)\S+\.hcl:(\d+)/.exec(failure.message ?? '')?.[1]
  return found ? Number(found) : 0
}

// problemsOf lists what a refusal is made of.
export const problemsOf = (failure: Failure): Failure[] => (failure.details?.length ? failure.details : [failure])

export function Create() {
  const { t } = useTranslation()
  useTitle(t('create.title'))
  const go = useNavigate()
  const given = useLocation().state as { source?: string } | null
  const [text, setText] = useState(() => given?.source ?? compose(simple))
  const [error, setError] = useState<unknown>()
  const [busy, setBusy] = useState(false)
  const later = useLater(text, 400)
  const key = useRef(crypto.randomUUID())
  const hcl = { hcl: later }
  const checked = useQuery({ queryKey: ['draft', 'check', later], retry: false, placeholderData: keepPreviousData, queryFn: ({ signal }) => call<Validated>('POST', '/v1/jobs/validate', hcl, signal).catch((failure: unknown) => {
    if (failure instanceof ApiError && failure.status === 400) return { valid: false, problems: problemsOf(failure.failure) } as Validated
    throw failure
  }) })
  const valid = checked.data?.valid === true && !checked.isPlaceholderData
  const outlook = useQuery({ queryKey: ['draft', 'forecast', later], enabled: valid, retry: false, refetchInterval: 20_000, placeholderData: keepPreviousData, queryFn: ({ signal }) => call<Outlook>('POST', '/v1/jobs/forecast', hcl, signal) })
  const problems = checked.data?.problems ?? []
  const submit = async () => {
    setBusy(true)
    setError(undefined)
    try {
      const made = await call<{ job_id: string }>('POST', '/v1/jobs', { hcl: text })
      key.current = crypto.randomUUID()
      void go('/jobs/' + made.job_id)
    } catch (failure) {
      setError(failure)
      setBusy(false)
    }
  }
  const apply = (help: Help) => {
    if (help.kind === 'nodes' && help.nodes) setText(setAttribute(text, 'nodes', String(help.nodes)))
    else if (help.priority) setText(setAttribute(text, 'priority', `"${help.priority}"`))
    else if (help.time_limit) setText(setAttribute(text, 'time_limit', `"${help.time_limit}"`))
  }
  return (
    <div className="page">
      <h1>{t('create.title')}</h1>
      <div className="split">
        <section aria-label={t('create.file')} className="stack">
          <Form set={(values) => setText(compose(values))} />
          <Editor text={text} change={setText} problems={problems} />
          <Problems problems={problems} warnings={checked.data?.warnings} />
        </section>
        <section aria-label={t('forecast.title')} className="stack">
          <div className="card">
            <div className="bar">
              <Button type="primary" size="large" loading={busy} disabled={!text.trim() || problems.length > 0} onClick={() => void submit()}>{t('create.submit')}</Button>
              <div role="status" style={{ flex: 1 }}>
                {checked.error ? <Failed error={checked.error} /> : problems.length > 0 ? <p className="verdict tone-bad">{t('create.problems', { count: problems.length })}</p> : outlook.error ? <Failed error={outlook.error} /> : outlook.data ? <p className="verdict">{startText(t, outlook.data)}</p> : <p className="quiet">{t('states.loading')}</p>}
              </div>
            </div>
            {error !== undefined && <Alert type="error" showIcon title={errorText(error, t)} />}
            {outlook.data && problems.length === 0 && <OutlookView outlook={outlook.data} apply={apply} />}
          </div>
          <Cli text="nomadlike job run job.hcl" />
        </section>
      </div>
      <Tabs
        destroyOnHidden
        items={[
          { key: 'available', label: t('create.available'), children: <AvailableTable hcl={later} valid={valid} /> },
          { key: 'machines', label: t('create.machines'), children: <Machines /> },
          { key: 'plan', label: t('create.plan'), children: <Plan hcl={later} valid={valid} /> },
        ]}
      />
    </div>
  )
}

// Form fills in the usual things; the file on its right is what counts.
function Form({ set }: { set: (values: Simple) => void }) {
  const { t } = useTranslation()
  const [values, setValues] = useState<Simple>(simple)
  const change = (next: Partial<Simple>) => {
    const all = { ...values, ...next }
    setValues(all)
    set(all)
  }
  return (
    <details className="card">
      <summary>{t('create.form')}</summary>
      <div className="bar" style={{ marginTop: 8 }}>
        <label>{t('jobs.name')} <Input style={{ width: 150 }} value={values.name} onChange={(e) => change({ name: e.target.value })} /></label>
        <label>{t('jobs.nodes')} <InputNumber min={1} max={4096} style={{ width: 80 }} value={values.nodes} onChange={(v) => change({ nodes: v ?? 1 })} /></label>
        <label>{t('create.mode')} <Select style={{ width: 130 }} aria-label={t('create.mode')} value={values.mode} onChange={(mode) => change({ mode })} options={['single', 'pytorch', 'deepspeed', 'mpi', 'horovod', 'tensorflow', 'mindspore', 'jax'].map((value) => ({ value, label: value }))} /></label>
        <label>{t('create.cards')} <InputNumber min={0} max={64} style={{ width: 70 }} value={values.cards} onChange={(v) => change({ cards: v ?? 0 })} /></label>
        <label>{t('cluster.cpu')} <InputNumber min={0.1} step={1} style={{ width: 80 }} value={values.cpu} onChange={(v) => change({ cpu: v ?? 1 })} /></label>
        <label>{t('cluster.memory')} <Input style={{ width: 90 }} value={values.memory} onChange={(e) => change({ memory: e.target.value })} /></label>
        <label>{t('create.image')} <Input style={{ width: 200 }} value={values.image} onChange={(e) => change({ image: e.target.value })} /></label>
        <label style={{ flex: 1 }}>{t('create.command')} <Input style={{ minWidth: 240 }} value={values.command} onChange={(e) => change({ command: e.target.value })} /></label>
      </div>
    </details>
  )
}

function Editor({ text, change, problems }: { text: string; change: (text: string) => void; problems: Failure[] }) {
  const { t } = useTranslation()
  const wrong = useMemo(() => new Map(problems.map((p) => [lineOf(p), p.message ?? p.id])), [problems])
  const count = text.split('\n').length
  return (
    <div className="editor mono">
      <div className="gutter" aria-hidden="true">{Array.from({ length: count }, (_, i) => <span key={i} className={wrong.has(i + 1) ? 'wrong' : undefined} title={wrong.get(i + 1)}>{i + 1}</span>)}</div>
      <textarea
        id="jobfile"
        className="mono"
        aria-label={t('create.file')}
        aria-invalid={problems.length > 0}
        aria-describedby="problems"
        spellCheck={false}
        rows={count + 1}
        value={text}
        onChange={(event) => change(event.target.value)}
      />
    </div>
  )
}

// jump puts the cursor at the beginning of a line of the job file.
function jump(line: number) {
  const area = document.getElementById('jobfile') as HTMLTextAreaElement
  const at = area.value.split('\n').slice(0, line - 1).join('\n').length + (line > 1 ? 1 : 0)
  area.focus()
  area.setSelectionRange(at, at)
}

function Problems({ problems, warnings }: { problems: Failure[]; warnings?: Failure[] }) {
  const { t } = useTranslation()
  const list = (items: Failure[]) => (
    <ul className="problems">
      {items.map((p, i) => (
        <li key={i}>
          {lineOf(p) > 0 && <button type="button" onClick={() => jump(lineOf(p))}>{t('create.line', { line: lineOf(p) })}</button>} {p.message || p.id}
          {p.hint && <div className="quiet">{p.hint}</div>}
        </li>
      ))}
    </ul>
  )
  return (
    <div id="problems" aria-live="polite">
      {problems.length > 0 && <Alert type="error" showIcon title={t('create.problems', { count: problems.length })} description={list(problems)} />}
      {warnings && warnings.length > 0 && <Alert type="warning" showIcon title={t('create.warnings')} description={list(warnings)} />}
    </div>
  )
}

function OutlookView({ outlook, apply }: { outlook: Outlook; apply: (help: Help) => void }) {
  const { t } = useTranslation()
  return (
    <>
      {outlook.verdict !== 'now' && outlook.verdict !== 'never' && <p>{t('forecast.position', { position: outlook.position, pool: outlook.pool })}</p>}
      {outlook.wait && <p>{t('forecast.because', { reason: reasonText(outlook.wait) })} <Holders holders={outlook.holders} /></p>}
      {(outlook.specs ?? []).length > 1 && (
        <Table size="small" rowKey="spec" pagination={false} dataSource={outlook.specs ?? []} columns={[
          { title: t('job.spec'), render: (_, s) => s.label || s.spec + 1 },
          { title: t('queue.starts'), render: (_, s) => startText(t, s) },
          { title: t('queue.reason'), render: (_, s) => reasonText(s.wait) },
        ]} />
      )}
      {(outlook.victims ?? []).length > 0 && <Alert type="warning" showIcon title={t('create.victims', { names: (outlook.victims ?? []).map((v) => v.job_name || '?').join(', ') })} />}
      {outlook.verdict !== 'now' && <><h3>{t('forecast.helps')}</h3><Helps helps={outlook.helps} apply={apply} /></>}
    </>
  )
}

// AvailableTable is which nodes could hold a rank: 空闲 when it has room now,
// 紧张 when something of what is asked for is held.
function AvailableTable({ hcl, valid }: { hcl: string; valid: boolean }) {
  const { t } = useTranslation()
  const available = useQuery({ queryKey: ['nodes', 'available', hcl], enabled: valid, retry: false, placeholderData: keepPreviousData, queryFn: ({ signal }) => call<Available>('POST', '/v1/nodes/available', { hcl }, signal) })
  if (available.error) return <Failed error={available.error} />
  if (!available.data) return <p className="quiet">{t('create.fix_first')}</p>
  const specs = available.data.specs ?? []
  const models = available.data.models ?? []
  return (
    <>
      {specs.map((s) => <p key={s.spec}>{t('create.spec_room', { spec: s.label || s.spec + 1, idle: s.idle, nodes: s.nodes, need: s.need })}</p>)}
      {models.length > 0 && <p className="quiet">{models.map((m) => t('create.wanted', { model: m.model, used: m.used, total: m.total, wanted: m.wanted })).join(' · ')}</p>}
      <Table<AvailableNode> size="small" rowKey="id" dataSource={available.data.nodes ?? []} pagination={{ pageSize: 20, hideOnSinglePage: true }} scroll={{ x: 1000 }} locale={{ emptyText: <p>{t('create.no_nodes')}</p> }} columns={[
        { title: t('job.node'), dataIndex: 'name' },
        { title: t('job.status'), render: (_, n) => <WordTag tone={n.state === 'idle' ? 'good' : 'busy'}>{t('create.' + n.state)}</WordTag> },
        { title: t('create.os'), render: (_, n) => [n.os, n.kernel].filter(Boolean).join(' · ') },
        { title: t('cluster.memory'), render: (_, n) => `${size(n.memory_used)} / ${size(n.memory)}` },
        { title: t('cluster.cpu'), render: (_, n) => `${number(n.cpu_used)} / ${number(n.cpu)}` },
        { title: t('cluster.cards'), render: (_, n) => (n.devices ?? []).map((d) => `${d.model} ${d.used}/${d.total}`).join(' · ') || '–' },
        { title: t('node.driver'), render: (_, n) => n.driver_versions?.join(', ') ?? '–' },
        { title: t('create.specs'), render: (_, n) => n.specs.map((s) => specs.find((one) => one.spec === s)?.label || s + 1).join(', ') },
        { title: t('create.use'), render: (_, n) => (n.cards ?? []).filter((c) => c.used || !c.healthy).map((c) => c.text).join(' ') || '–' },
      ]} />
    </>
  )
}

// Machines is what a VIP job may choose from: free ones first, then what
// would have to be waited for or ended.
function Machines() {
  const { t } = useTranslation()
  const machines = useQuery({ queryKey: ['nodes', 'machines'], refetchInterval: 20_000, queryFn: ({ signal }) => get<{ machines: Machine[] | null }>('/v1/machines', signal).then((m) => m.machines ?? []) })
  if (machines.error) return <Failed error={machines.error} />
  return (
    <>
      <p className="quiet">{t('create.machines_about')}</p>
      <Table<Machine> size="small" rowKey="id" loading={machines.isPending} dataSource={machines.data ?? []} pagination={{ pageSize: 20, hideOnSinglePage: true }} scroll={{ x: 900 }} columns={[
        { title: t('job.node'), dataIndex: 'name' },
        { title: t('job.status'), render: (_, m) => <WordTag tone={m.free ? 'good' : 'busy'}>{m.free ? t('wall.free') : m.claim ? t('create.promised', { job: m.claim.name ?? '?' }) : t('wall.held')}</WordTag> },
        { title: t('jobs.pool'), dataIndex: 'pool' },
        { title: t('cluster.cards'), render: (_, m) => (m.devices ?? []).map((d) => `${d.model} ${d.used}/${d.total}`).join(' · ') || '–' },
        { title: t('cluster.cpu'), render: (_, m) => `${number(m.cpu_used)} / ${number(m.cpu)}` },
        { title: t('node.work'), render: (_, m) => (m.work ?? []).map((w, i) => <div key={i}>{w.job.name || t('queue.hidden')}{w.job.user && ` (${w.job.user})`} · {t('create.since', { time: clock(w.since) })} · {w.checkpoint_at ? t('create.saved', { time: clock(w.checkpoint_at) }) : t('create.unsaved')}{w.vip && ' · VIP'}</div>) },
      ]} />
      <Cli text="nomadlike node machines" />
    </>
  )
}

function Plan({ hcl, valid }: { hcl: string; valid: boolean }) {
  const { t } = useTranslation()
  const plan = useQuery({ queryKey: ['draft', 'plan', hcl], enabled: valid, retry: false, queryFn: ({ signal }) => call<JobPlan>('POST', '/v1/jobs/plan', { hcl }, signal) })
  if (plan.error) return <Failed error={plan.error} />
  if (!valid) return <p className="quiet">{t('create.fix_first')}</p>
  if (!plan.data) return <Loading />
  return (
    <>
      <p>{plan.data.starts_now ? t('forecast.now') : <><StateTag state="queued" /> {reasonText(plan.data.wait)}</>}</p>
      <RankCommands plan={plan.data} />
      <Cli text={`nomadlike job plan ${quote('job.hcl')}`} />
    </>
  )
}
