import { keepPreviousData, useQuery, useQueryClient } from '@tanstack/react-query'
import { useEffect, useMemo, useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useNavigate, useSearchParams } from 'react-router'
import { ApiError, call, get } from '../api'
import { clock, lengthOf, number, quote, size } from '../format'
import { reasonText } from '../i18n'
import { Cli, fileOf } from '../parts/actions'
import { Button, Note } from '../parts/controls'
import { Check, Choice, Count, Field } from '../parts/controls/fields'
import { Scroll, Table } from '../parts/controls/table'
import { Tabs } from '../parts/controls/tabs'
import { Helps, Holders, startText } from '../parts/forecast'
import { changesOf } from '../parts/help_deed'
import { Failed, GuideLink, Loading, StateTag, useTitle, WordTag, errorText, failing } from '../parts/states'
import { dropDraft, keepDraft, readDraft } from '../parts/draft'
import { compose, envText, heredoc, readEnv, readLine, runLine, simple, sizeText, variablesOf, vipChanges, type FileChange } from '../parts/jobfile'
import type { Available, AvailableNode, Error as Failure, Help, Job, JobFormatted, JobOutlook, JobPlan, JobSubmitted, JobValidated, Machine, MachineList, Victim } from '../types'
import { LimitPresets, shortLimit } from '../parts/limit'
import { useRights } from '../rights'
import { RankCommands } from './job/commands'

// useLater returns a value once it has not changed for so many milliseconds, or
// when it is told that nobody is typing.
function useLater<T>(value: T, wait: number): [T, (value: T) => void] {
  const [later, setLater] = useState(value)
  const newest = useRef(value) // a timer that began with an older one must not bring it back
  newest.current = value
  useEffect(() => {
    const timer = setTimeout(() => setLater(newest.current), wait)
    return () => clearTimeout(timer)
  }, [value, wait])
  const atOnce = (now: T) => {
    newest.current = now
    setLater(now)
  }
  return [later, atOnce]
}

// lineOf finds the line that a diagnostic of the server speaks of.
export function lineOf(failure: Failure): number {
  const range = failure.params?.range ?? ''
  const found = failure.params?.line ?? /:(\d+)/.exec(range)?.[1] ?? /(?:^|\s)\S+\.hcl:(\d+)/.exec(failure.message ?? '')?.[1]
  return found ? Number(found) : 0
}

// problemsOf lists what a refusal is made of.
export const problemsOf = (failure: Failure): Failure[] => (failure.details?.length ? failure.details : [failure])

// useGiven is the job file that the address asks for: that of a job to clone,
// or the usual example.
function useGiven(id: string) {
  return useQuery({
    queryKey: ['given', id],
    enabled: id !== '',
    staleTime: Infinity,
    gcTime: 0,
    queryFn: ({ signal }) => fileOf(id, signal),
  })
}

export function Create() {
  const { t } = useTranslation()
  useTitle(t('create.title'))
  const [params] = useSearchParams()
  const clone = params.get('clone') ?? ''
  const given = useGiven(clone)
  if (clone && failing(given)) return <div className="page"><Failed error={given.error} retry={() => void given.refetch()} /></div>
  if (clone && given.data === undefined) return <Loading />
  const step = Number(params.get('step') ?? 0)
  const resume = params.get('resume')
  return <Draft key={clone} place={clone || 'new'} first={given.data ?? compose(simple)} resume={resume ? { job: resume, step: step || undefined } : undefined} vip={params.has('vip')}
    wanted={Number(params.get('nodes')) > 0 ? [{ at: 'nodes', value: Number(params.get('nodes')) }] : []} />
}

interface Resume {
  job: string
  step?: number
}

function Draft({ place, first, resume, vip, wanted }: { place: string; first: string; resume?: Resume; vip: boolean; wanted: FileChange[] }) {
  const { t } = useTranslation()
  const go = useNavigate()
  const [before, setBefore] = useState(() => (wanted.length > 0 || resume ? undefined : readDraft(place)))
  const [text, setText] = useState(before?.text ?? first)
  useEffect(() => {
    if (text === first) dropDraft(place)
    else keepDraft(place, text)
  }, [place, text, first])
  const [given, setGiven] = useState<Record<string, string>>({})
  const [error, setError] = useState<unknown>()
  const [busy, setBusy] = useState(false)
  const [sure, setSure] = useState(!resume)
  const key = useRef(crypto.randomUUID())
  const names = useMemo(() => variablesOf(text), [text])
  const variables = Object.fromEntries(names.filter((name) => given[name] !== undefined && given[name] !== '').map((name) => [name, given[name]!]))
  const [body, atOnce] = useLater(JSON.stringify({ hcl: text, variables }), 300)
  const client = useQueryClient()
  const asked = JSON.parse(body) as { hcl: string; variables: Record<string, string> }
  const later = asked.hcl
  const checked = useQuery({ queryKey: ['draft', 'check', body], retry: false, placeholderData: keepPreviousData, queryFn: ({ signal }) => call<JobValidated>('POST', '/v1/jobs/validate', asked, signal).catch((failure: unknown) => {
    if (failure instanceof ApiError && failure.status === 400) return { valid: false, problems: problemsOf(failure.failure) } as JobValidated
    throw failure
  }) })
  const read = useQuery({ queryKey: ['draft', 'read', body], retry: false, placeholderData: keepPreviousData, queryFn: ({ signal }) => call<JobFormatted>('POST', '/v1/jobs/format', asked, signal) })
  const valid = checked.data?.valid === true && !checked.isPlaceholderData
  const outlook = useQuery({ queryKey: ['draft', 'forecast', body], enabled: valid, retry: false, refetchInterval: 20_000, placeholderData: keepPreviousData, queryFn: ({ signal }) => call<JobOutlook>('POST', '/v1/jobs/forecast', asked, signal) })
  const problems = checked.data?.problems ?? []
  const submit = async () => {
    setBusy(true)
    setError(undefined)
    try {
      const made = await call<JobSubmitted>('POST', '/v1/jobs', { hcl: text, variables, resume: resume?.job, resume_step: resume?.step }, undefined, { 'Idempotency-Key': key.current })
      key.current = crypto.randomUUID()
      dropDraft(place)
      void go('/jobs/' + made.job_id)
    } catch (failure) {
      setError(failure)
      setBusy(false)
    }
  }
  // change edits the file on the server, which keeps its comments and what it
  // does not know about; changes are made one after the other. It ends when the
  // form shows what the file says then.
  const newest = useRef(text)
  newest.current = text
  const queue = useRef(Promise.resolve())
  const change = (set: FileChange[]): Promise<void> =>
    (queue.current = queue.current.then(async () => {
      for (;;) {
        const before = newest.current
        try {
          const made = await call<JobFormatted>('POST', '/v1/jobs/format', { hcl: before, variables, set })
          if (newest.current !== before) continue // someone typed meanwhile
          newest.current = made.hcl
          const now = JSON.stringify({ hcl: made.hcl, variables })
          client.setQueryData(['draft', 'read', now], made)
          setText(made.hcl)
          atOnce(now)
          setError(undefined)
        } catch (failure) {
          setError(failure)
        }
        return
      }
    }))
  useEffect(() => {
    if (wanted.length > 0) void change(wanted)
  }, []) // eslint-disable-line react-hooks/exhaustive-deps
  const apply = (help: Help) => {
    const changes = changesOf(help)
    if (changes) void change(changes)
  }
  const allowed = useRights()
  const [tab, setTab] = useState(vip && allowed('vip') ? 'machines' : 'available')
  const job = read.isError ? undefined : read.data?.job
  const resources = (
    <Tabs
      label={t('create.parts')}
      active={tab}
      change={setTab}
      tabs={[
        { key: 'available', label: t('create.available'), children: <AvailableTable hcl={later} body={asked} valid={valid} /> },
        ...(allowed('vip') ? [{ key: 'machines', label: t('create.machines'), children: <Machines job={job} change={change} victims={outlook.data?.victims ?? []} /> }] : []),
        { key: 'plan', label: t('create.plan'), children: <Plan body={asked} valid={valid} /> },
      ]}
    />
  )
  return (
    <div className="page">
      <h1>{vip ? t('create.vip') : t('create.title')}</h1>
      {before && before.text !== first && <Note tone="info" title={t('create.draft', { time: clock(new Date(before.at).toISOString()) })} action={<Button small onClick={() => { setText(first); setBefore(undefined) }}>{t('create.draft_drop')}</Button>} />}
      {resume && <Note tone="info" title={t('create.resume', { job: job?.name ?? resume.job.slice(0, 8), step: resume.step ?? t('job.newest') })}><Check checked={sure} change={setSure}>{t('create.resume_sure')}</Check></Note>}
      {vip && resources}
      <div className="split">
        <section aria-label={t('create.file')} className="stack">
          <Form job={job} defaults={read.data?.defaults ?? []} change={change} open={vip} />
          <Editor text={text} change={setText} problems={problems} />
          <Problems problems={problems} warnings={checked.data?.warnings} />
        </section>
        <section aria-label={t('forecast.title')} className="stack">
          <div className="card">
            <div className="bar">
              <Button tone="first" busy={busy} disabled={!text.trim() || problems.length > 0 || !sure} onClick={() => void submit()}>{t('create.submit')}</Button>
              <div role="status" style={{ flex: 1 }}>
                {failing(checked) ? <Failed error={checked.error} /> : problems.length > 0 ? <p className="verdict tone-bad">{t('create.problems', { count: problems.length })}</p> : failing(outlook) ? <Failed error={outlook.error} /> : outlook.data ? <p className="verdict">{startText(t, outlook.data)}</p> : <p className="quiet">{t('states.loading')}</p>}
              </div>
            </div>
            {error !== undefined && <Note tone="error" title={errorText(error, t)} />}
            {outlook.data && problems.length === 0 && <OutlookView outlook={outlook.data} apply={apply} />}
          </div>
          <CommandLine text={text} names={names} given={given} set={setGiven} resume={resume} name={job?.name ?? ''} />
        </section>
      </div>
      {!vip && resources}
    </div>
  )
}

// CommandLine is the same submission on a command line. Values of variables
// may be changed in it or beside it.
function CommandLine({ text, names, given, set, resume, name }: { text: string; names: string[]; given: Record<string, string>; set: (given: Record<string, string>) => void; resume?: Resume; name: string }) {
  const { t } = useTranslation()
  const line = runLine(names, given, resume && { name, step: resume.step })
  const [typed, setTyped] = useState<string>()
  const shown = typed ?? line
  return (
    <div className="card stack">
      {names.length > 0 && (
        <div className="form">
          {names.map((one) => <Field key={one} label={one} width={130} value={given[one] ?? ''} placeholder={t('create.default')} change={(value) => set({ ...given, [one]: value })} />)}
        </div>
      )}
      <Field label={t('deed.cli')} id="cli" className="mono" width="100%" spellCheck={false} value={shown} readOnly={names.length === 0}
        change={(value) => { setTyped(value); set(readLine(value, names)) }} done={() => setTyped(undefined)} />
      <details>
        <summary>{t('create.with_file')}</summary>
        <pre className="cli" tabIndex={0}>{heredoc(text) + line}</pre>
      </details>
    </div>
  )
}

const modes = ['single', 'none', 'pytorch', 'deepspeed', 'mpi', 'horovod', 'tensorflow', 'mindspore', 'jax']

// Form shows what the file says and changes it there; what it has no field
// for stays as it is. While the file cannot be read, nothing can be changed.
function Form({ job, defaults, change, open }: { job?: Job; defaults: { path: string }[]; change: (set: FileChange[]) => Promise<void>; open: boolean }) {
  const { t } = useTranslation()
  const left = (path: string) => defaults.some((d) => d.path === path)
  const specs = job?.resources ?? []
  const mode = job?.distributed.mode ?? 'single'
  const off = !job
  return (
    <details className="card" open={open || undefined}>
      <summary>{t('create.form')}</summary>
      {off && <p className="quiet" role="status">{t('create.form_off')}</p>}
      <div className="form">
        <SentField label={t('jobs.name')} off={off} width={150} value={job?.name ?? ''} set={(value) => change([{ at: '#', value }])} />
        <SentCount label={t('jobs.nodes')} off={off} least={1} value={job?.nodes ?? 1} set={(value) => change([{ at: 'nodes', value }])} />
        <Choice label={t('create.mode')} off={off} width={130} value={mode} change={(value) => void change([{ at: 'distributed#', value }])} options={modes.map((value) => ({ value, label: value }))} />
        <Choice label={t('jobs.priority')} off={off} width={120} value={job?.priority ?? 'normal'} change={(value) => void change([{ at: 'priority', value: value === 'normal' ? null : value }])} options={(['normal', 'urgent', 'critical'] as const).map((value) => ({ value, label: t('priority.' + value) }))} />
        <SentField label={t('jobs.pool')} off={off} width={110} value={left('placement.pool') ? '' : (job?.placement?.pool ?? '')} set={(value) => change([{ at: 'placement.pool', value: value || null }])} />
        <SentField label={t('job.limit')} off={off} width={90} value={job?.time_limit && job.time_limit !== '0s' && !left('time_limit') ? shortLimit(lengthOf(job.time_limit)) : ''} hint="36h" set={(value) => change([{ at: 'time_limit', value: value || null }])} />
        <LimitPresets off={off} value={job?.time_limit && !left('time_limit') && lengthOf(job.time_limit) ? shortLimit(lengthOf(job.time_limit)) : ''} set={(value) => change([{ at: 'time_limit', value }])} />
        <Check off={off} checked={job?.preemptible ?? false} change={(checked) => void change([{ at: 'preemptible', value: checked || null }])}>{t('jobs.preemptible')}</Check>
      </div>
      <Scroll label={t('create.specs')}><table className="table specs">
        <caption className="hidden">{t('create.specs')}</caption>
        <thead><tr><th scope="col">{t('job.spec')}</th><th scope="col">{t('cluster.cpu')}</th><th scope="col">{t('cluster.memory')}</th><th scope="col">{t('create.kind')}</th><th scope="col">{t('create.cards')}</th><th scope="col">{t('node.model')}</th><th scope="col"><span className="hidden">{t('deed.delete')}</span></th></tr></thead>
        <tbody>
          {specs.map((spec, i) => {
            const at = `resources[${i}]`
            const device = spec.devices?.[0]
            const aria = (name: string) => `${name} ${i + 1}`
            return (
              <tr key={i}>
                <th scope="row"><SentField bare label={aria(t('job.spec'))} width={90} value={spec.label ?? ''} set={(value) => change([{ at: at + '#', value }])} hint={String(i + 1)} /></th>
                <td><SentCount bare label={aria(t('cluster.cpu'))} least={0.01} value={spec.cpu} set={(value) => change([{ at: at + '.cpu', value }])} /></td>
                <td><SentField bare label={aria(t('cluster.memory'))} width={90} value={sizeText(spec.memory)} set={(value) => change([{ at: at + '.memory', value }])} /></td>
                <td><SentField bare label={aria(t('create.kind'))} width={110} value={device?.kind ?? ''} hint="nvidia/gpu" set={(value) => change([{ at: at + '.device#', value: value || null }])} /></td>
                <td><SentCount bare label={aria(t('create.cards'))} least={0} value={device ? (device.count ?? 1) : 0} set={(value) => change(value === 0 ? [{ at: at + '.device#', value: null }] : [...(device ? [] : [{ at: at + '.device#', value: 'nvidia/gpu' }]), { at: at + '.device.count', value }])} /></td>
                <td><SentField bare label={aria(t('node.model'))} width={90} value={device?.model ?? ''} off={!device} set={(value) => change([{ at: at + '.device.model', value: value || null }])} /></td>
                <td>{specs.length > 1 && <Button small aria-label={`${t('create.remove_spec')} ${i + 1}`} onClick={() => change([{ at: at + '#', value: null }])}>✕</Button>}</td>
              </tr>
            )
          })}
        </tbody>
      </table></Scroll>
      <p><Button small disabled={off || specs.length === 0} onClick={() => change([{ at: `resources[${specs.length}]#`, value: `spec-${specs.length + 1}` }, { at: `resources[${specs.length}].cpu`, value: specs.at(-1)?.cpu ?? 1 }, { at: `resources[${specs.length}].memory`, value: sizeText(specs.at(-1)?.memory ?? 0) }])}>{t('create.add_spec')}</Button></p>
      <div className="form">
        <SentField label={t('create.image')} off={off} width={200} value={job?.task.image ?? ''} set={(value) => change([{ at: 'task.image', value: value || null }, { at: 'task.driver', value: value ? 'docker' : 'exec' }])} />
        <SentField label={t('create.command')} off={off} width={420} grow value={job?.task.command ?? ''} set={(value) => change([{ at: 'task.command', value }])} />
        <SentField label={t('create.env')} off={off} width={260} grow value={envText(job?.task.env)} hint="A=1 B=2" set={(value) => { const env = readEnv(value); return change([{ at: 'task.env', value: Object.keys(env).length ? env : null }]) }} />
      </div>
    </details>
  )
}

// useSent is what a field shows while its value is typed and on its way to the
// file. A value is sent once, though confirming a field and leaving it both send: a
// second time would write over what was typed into the file meanwhile.
function useSent<T>(value: T, set: (value: T) => Promise<void>) {
  const [, redraw] = useState(0)
  const typed = useRef<T>(undefined)
  const sent = useRef<T>(undefined)
  const type = (now: T | undefined) => {
    typed.current = now
    redraw((n) => n + 1)
  }
  const send = () => {
    const now = typed.current
    if (now === undefined || now === sent.current) return
    if (now === value && sent.current === undefined) return type(undefined)
    sent.current = now
    void set(now).finally(() => {
      if (sent.current === now) sent.current = undefined
      if (typed.current === now) type(undefined)
    })
  }
  return { shown: typed.current ?? value, type, send }
}

// SentField is a text that is carried into the file when it is left or confirmed.
function SentField({ label, value, set, width, off, hint, bare, grow }: { label: string; value: string; set: (value: string) => Promise<void>; width: number; off?: boolean; hint?: string; bare?: boolean; grow?: boolean }) {
  const { shown, type, send } = useSent(value, set)
  return <Field label={label} bare={bare} grow={grow} width={width} placeholder={hint} off={off} value={shown} change={type} done={send} />
}

// SentCount is a number that is carried into the file when it is left or confirmed,
// or with each step of its arrows.
function SentCount({ label, value, set, least, off, bare }: { label: string; value: number; set: (value: number) => Promise<void>; least: number; off?: boolean; bare?: boolean }) {
  const { shown, type, send } = useSent(value, set)
  return <Count label={label} bare={bare} width={80} least={least} most={4096} off={off} value={shown} change={type} done={send} />
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
          {p.hint && <div className="quiet">{p.hint} <GuideLink failure={p} /></div>}
        </li>
      ))}
    </ul>
  )
  return (
    <div id="problems" aria-live="polite">
      {problems.length > 0 && <Note tone="error" title={t('create.problems', { count: problems.length })}>{list(problems)}</Note>}
      {warnings && warnings.length > 0 && <Note tone="warning" title={t('create.warnings')}>{list(warnings)}</Note>}
    </div>
  )
}

function OutlookView({ outlook, apply }: { outlook: JobOutlook; apply: (help: Help) => void }) {
  const { t } = useTranslation()
  return (
    <>
      {outlook.verdict !== 'now' && outlook.verdict !== 'never' && <p>{t('forecast.position', { position: outlook.position, pool: outlook.pool })}</p>}
      {outlook.wait && <p>{t('forecast.because', { reason: reasonText(outlook.wait) })} <Holders holders={outlook.holders} /></p>}
      {(outlook.specs ?? []).length > 1 && (
        <Table label={t('create.specs')} idOf={(s) => s.spec} rows={outlook.specs ?? []} columns={[
          { title: t('job.spec'), cell: (s) => s.label || s.spec + 1 },
          { title: t('queue.starts'), cell: (s) => startText(t, s) },
          { title: t('queue.reason'), cell: (s) => reasonText(s.wait) },
        ]} />
      )}
      {(outlook.victims ?? []).length > 0 && <Note tone="warning" title={t('create.victims', { names: (outlook.victims ?? []).map((v) => v.job_name || t('queue.hidden')).join(', ') })} />}
      {outlook.verdict !== 'now' && <><h2>{t('forecast.helps')}</h2><Helps helps={outlook.helps} apply={apply} /></>}
    </>
  )
}

// heldText says which cards of a node are held by what: "train 0–3, 6". What may
// not be named is called hidden.
export function heldText(cards: AvailableNode['cards'], hidden: string): string {
  const by = new Map<string, number[]>()
  const others: string[] = [] // not well
  for (const card of cards ?? []) {
    const job = card.job || (card.used ? hidden : '')
    if (job && card.healthy) by.set(job, [...(by.get(job) ?? []), card.index])
    else if (card.used || !card.healthy) others.push(card.text)
  }
  const runs = (list: number[]) => list.sort((a, b) => a - b).reduce<[number, number][]>((all, i) => {
    const last = all.at(-1)
    if (last && last[1] + 1 === i) last[1] = i
    else all.push([i, i])
    return all
  }, []).map(([from, to]) => (from === to ? String(from) : `${from}–${to}`)).join(', ')
  return [...[...by].map(([job, list]) => `${job} ${runs(list)}`), ...others].join(' · ')
}

// ofModel keeps the nodes that have cards of a model, and the specs that could
// stand there, as nomadlike node available -model does.
export function ofModel(found: Available, model: string) {
  const nodes = (found.nodes ?? []).filter((n) => !model || (n.devices ?? []).some((d) => d.model === model))
  const specs = (found.specs ?? []).map((s) => (model ? { ...s, nodes: nodes.filter((n) => n.specs?.includes(s.spec)).length, idle: nodes.filter((n) => n.now?.includes(s.spec)).length } : s))
  return { nodes, specs: specs.filter((s) => !model || s.nodes > 0), models: (found.models ?? []).filter((m) => !model || m.model === model) }
}

// AvailableTable is which nodes could hold a rank: 空闲 when it has room now,
// 紧张 when something of what is asked for is held.
function AvailableTable({ hcl, body, valid }: { hcl: string; body: object; valid: boolean }) {
  const { t } = useTranslation()
  const [model, setModel] = useState('')
  const available = useQuery({ queryKey: ['nodes', 'available', hcl], enabled: valid, retry: false, placeholderData: keepPreviousData, queryFn: ({ signal }) => call<Available>('POST', '/v1/nodes/available', body, signal) })
  if (failing(available)) return <Failed error={available.error} />
  if (!available.data) return <p className="quiet">{t('create.fix_first')}</p>
  const { nodes, specs, models } = ofModel(available.data, model)
  const all = available.data.models ?? []
  return (
    <>
      {all.length > 0 && (
        <p><Choice label={t('create.of_model')} value={model} change={setModel}
          options={[{ value: '', label: t('create.all_models') }, ...all.map((m) => ({ value: m.model, label: t('create.wanted', { model: m.model, used: m.used, total: m.total, wanted: m.wanted }) }))]} /></p>
      )}
      {specs.map((s) => <p key={s.spec}>{t('create.spec_room', { spec: s.label || s.spec + 1, idle: s.idle, nodes: s.nodes, need: s.need })}</p>)}
      {models.length > 0 && <p className="quiet">{models.map((m) => t('create.wanted', { model: m.model, used: m.used, total: m.total, wanted: m.wanted })).join(' · ')}</p>}
      <Table<AvailableNode> label={t('create.available')} idOf={(n) => n.id} rows={nodes} page={20} least={1200} empty={t('create.no_nodes')} columns={[
        { title: t('job.node'), width: 120, cell: (n) => n.name },
        { title: t('job.status'), width: 90, cell: (n) => <WordTag tone={n.state === 'idle' ? 'good' : 'busy'}>{t('create.' + n.state)}</WordTag> },
        { title: t('create.os'), cell: (n) => [n.os, n.kernel].filter(Boolean).join(' · ') },
        { title: t('cluster.memory'), width: 170, cell: (n) => `${size(n.memory_used)} / ${size(n.memory)}` },
        { title: t('cluster.cpu'), width: 90, cell: (n) => `${number(n.cpu_used)} / ${number(n.cpu)}` },
        { title: t('cluster.cards'), cell: (n) => (n.devices ?? []).map((d) => `${d.model} ${d.used}/${d.total}`).join(' · ') || '–' },
        { title: t('node.driver'), width: 110, cell: (n) => n.driver_versions?.join(', ') ?? '–' },
        { title: t('create.specs'), width: 90, cell: (n) => (n.specs ?? []).map((s) => specs.find((one) => one.spec === s)?.label || s + 1).join(', ') },
        { title: t('create.use'), cell: (n) => heldText(n.cards, t('queue.hidden')) || '–' },
      ]} />
    </>
  )
}

// Machines is what a VIP job chooses from: free ones first, then what would
// have to be waited for or ended.
function Machines({ job, change, victims }: { job?: Job; change: (set: FileChange[]) => void; victims: Victim[] }) {
  const { t } = useTranslation()
  const machines = useQuery({ queryKey: ['nodes', 'machines'], refetchInterval: 20_000, queryFn: ({ signal }) => get<MachineList>('/v1/machines', signal).then((m) => m.machines ?? []) })
  if (failing(machines)) return <Failed error={machines.error} />
  const chosen = job?.vip?.machines ?? []
  const of = (m: Machine) => chosen.find((one) => one.node === m.name || one.node === m.id)
  const choose = (m: Machine, busy: string) => change(vipChanges([...chosen.filter((one) => one !== of(m)), ...(busy ? [{ node: m.name, busy }] : [])]))
  const asked = (machines.data ?? []).filter((m) => of(m)?.busy === 'kill').flatMap((m) => (m.work ?? []).map((w) => ({ machine: m.name, ...w })))
  const owners = [...new Set(asked.map((w) => w.job.user ?? t('queue.hidden')))]
  return (
    <>
      <p className="quiet">{t('create.machines_about')}</p>
      {chosen.length > 0 && <p className="verdict" role="status">{t('create.chosen', { count: chosen.length })}</p>}
      {(asked.length > 0 || victims.length > 0) && (
        <Note tone="warning" title={t('create.ask_owners', { owners: owners.join(', ') })}>
          <pre className="cli">{asked.map((w) => t('create.ask_text', { owner: w.job.user ?? '', job: w.job.name ?? t('queue.hidden'), machine: w.machine, saved: w.checkpoint_at ? clock(w.checkpoint_at) : t('create.unsaved') })).join('\n')}</pre>
        </Note>
      )}
      <Table<Machine> label={t('create.machines')} idOf={(m) => m.id} loading={machines.isPending} rows={machines.data ?? []} page={20} least={1100} columns={[
        { title: t('create.choice'), width: 170, cell: (m) => (
          <Choice bare small width={150} off={!job} label={`${t('create.choice')} ${m.name}`} value={of(m) ? (of(m)!.busy ?? 'wait') : ''} change={(busy) => choose(m, busy)}
            options={['', 'wait', 'kill'].map((value) => ({ value, label: t('create.busy_' + (value || 'none')) }))} />
        ) },
        { title: t('job.node'), cell: (m) => m.name },
        { title: t('job.status'), cell: (m) => <WordTag tone={m.free ? 'good' : 'busy'}>{m.free ? t('wall.free') : m.claim ? t('create.promised', { job: m.claim.name || t('queue.hidden') }) : t('wall.held')}</WordTag> },
        { title: t('jobs.pool'), cell: (m) => m.pool },
        { title: t('cluster.cards'), cell: (m) => (m.devices ?? []).map((d) => `${d.model} ${d.used}/${d.total}`).join(' · ') || '–' },
        { title: t('cluster.cpu'), cell: (m) => `${number(m.cpu_used)} / ${number(m.cpu)}` },
        { title: t('node.work'), cell: (m) => (m.work ?? []).map((w, i) => <div key={i}>{w.job.name || t('queue.hidden')}{w.job.user && ` (${w.job.user})`} · {t('create.since', { time: clock(w.since) })} · {w.checkpoint_at ? t('create.saved', { time: clock(w.checkpoint_at) }) : t('create.unsaved')}{w.vip && ' · VIP'}</div>) },
      ]} />
      <Cli text="nomadlike node machines" />
    </>
  )
}

function Plan({ body, valid }: { body: object; valid: boolean }) {
  const { t } = useTranslation()
  const plan = useQuery({ queryKey: ['draft', 'plan', JSON.stringify(body)], enabled: valid, retry: false, queryFn: ({ signal }) => call<JobPlan>('POST', '/v1/jobs/plan', body, signal) })
  if (failing(plan)) return <Failed error={plan.error} />
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
