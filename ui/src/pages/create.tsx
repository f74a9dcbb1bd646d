import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { Link, Navigate, useSearchParams } from 'react-router'
import { call } from '../api'
import { number, quote, size } from '../format'
import { reasonText } from '../i18n'
import { Cli } from '../parts/actions'
import { Button, Note } from '../parts/controls'
import { Check, Choice } from '../parts/controls/fields'
import { Table } from '../parts/controls/table'
import { Tabs } from '../parts/controls/tabs'
import { Most } from '../parts/ceilings'
import { Helps, Holders, startText } from '../parts/forecast'
import { changesOf } from '../parts/help_deed'
import { compose, simple, sweep, type FileChange } from '../parts/jobfile'
import { Failed, Loading, StateTag, useTitle, WordTag, errorText, failing } from '../parts/states'
import { useRights } from '../rights'
import { useSession } from '../shell'
import type { Available, AvailableNode, Help, JobOutlook, JobPlan } from '../types'
import { useBegin } from './create/begin'
import { useDraft, useGiven, type Resume } from './create/draft'
import { CommandLine, Editor, Kept, Problems } from './create/file'
import { Form } from './create/form'
import { RankCommands } from './job/commands'

export function Create() {
  const { t } = useTranslation()
  useTitle(t('create.title'))
  const [params] = useSearchParams()
  const clone = params.get('clone') ?? ''
  const given = useGiven(clone)
  if (params.has('vip')) return <Navigate replace to={'/vip' + (clone && '?clone=' + encodeURIComponent(clone))} />
  if (clone && failing(given)) return <div className="page"><Failed error={given.error} retry={() => void given.refetch()} /></div>
  if (clone && given.data === undefined) return <Loading />
  const step = Number(params.get('step') ?? 0)
  const resume = params.get('resume')
  const batch = params.get('kind') === 'batch'
  return <Draft key={clone + batch} place={clone || (batch ? 'batch' : 'new')} first={given.data ?? (batch ? sweep : compose(simple))} resume={resume ? { job: resume, step: step || undefined } : undefined}
    wanted={Number(params.get('nodes')) > 0 ? [{ at: 'nodes', value: Number(params.get('nodes')) }] : []} />
}

function Draft({ place, first, resume, wanted }: { place: string; first: string; resume?: Resume; wanted: FileChange[] }) {
  const { t } = useTranslation()
  const draft = useDraft(place, first, { resume, fresh: wanted.length > 0 || !!resume })
  const [sure, setSure] = useState(!resume)
  const { change, job, outlook, checked, problems, valid } = draft
  useEffect(() => {
    if (wanted.length > 0) void change(wanted)
  }, []) // eslint-disable-line react-hooks/exhaustive-deps
  const begin = useBegin(draft)
  const unsaid = Object.keys(draft.refused).length
  const apply = (help: Help) => {
    const changes = changesOf(help)
    if (changes) void change(changes)
  }
  const allowed = useRights()
  const acting = useSession().data?.acting ?? ''
  const [tab, setTab] = useState('available')
  return (
    <div className="page">
      <div className="bar"><h1>{t('create.title')}</h1>{begin.bar}<span className="grow" />{allowed('vip') && <Link to="/vip">{t('vip.title')}</Link>}</div>
      <Kept draft={draft} />
      {begin.note}
      {resume && <Note tone="info" title={t('create.resume', { job: job?.name ?? resume.job.slice(0, 8), step: resume.step ?? t('job.newest') })}><Check checked={sure} change={setSure}>{t('create.resume_sure')}</Check></Note>}
      <div className="split create">
        <Form draft={draft} />
        <div className="told-beside stack">
        <section aria-label={t('forecast.title')} className="stack ahead">
          <div className="card">
            <div className="bar">
              <Button tone="first" busy={draft.busy} disabled={!draft.text.trim() || problems.length > 0 || unsaid > 0 || !sure} onClick={() => void draft.submit()}>{t(draft.held ? 'create.submit_after' : 'create.submit')}</Button>
              <div role="status" style={{ flex: 1 }}>
                {failing(checked) ? <Failed error={checked.error} /> : problems.length + unsaid > 0 ? <p className="verdict tone-bad">{t('create.problems', { count: problems.length + unsaid })}</p> : failing(outlook) ? <Failed error={outlook.error} /> : outlook.data ? <p className="verdict">{startText(t, outlook.data)}</p> : <p className="quiet">{t('states.loading')}</p>}
              </div>
            </div>
            {draft.error !== undefined && <Note tone="error" title={errorText(draft.error, t)} />}
            {outlook.data && problems.length === 0 && <OutlookView outlook={outlook.data} apply={apply} />}
          </div>
          {unsaid > 0 && <Note tone="error" title={t('create.refused')}>{Object.entries(draft.refused).map(([at, one]) => <div key={at}>{one.message || one.id}</div>)}</Note>}
          <Problems problems={problems} warnings={checked.data?.warnings} />
          <Most acting={acting} job={job} />
        </section>
        <section aria-label={t('create.file')} className="stack">
          <Editor text={draft.text} change={draft.setText} problems={problems} />
          <CommandLine text={draft.text} names={draft.names} given={draft.given} set={draft.setGiven} resume={resume} name={job?.name ?? ''} />
        </section>
        </div>
      </div>
      <Tabs
        label={t('create.parts')}
        active={tab}
        change={setTab}
        tabs={[
          { key: 'available', label: t('create.available'), children: <AvailableTable hcl={draft.later} body={draft.asked} valid={valid} /> },
          { key: 'plan', label: t('create.plan'), children: <Plan body={draft.asked} valid={valid} /> },
        ]}
      />
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

// Plan is what every rank of the job would run.
export function Plan({ body, valid }: { body: object; valid: boolean }) {
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
