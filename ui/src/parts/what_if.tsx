import { useQuery, useQueryClient } from '@tanstack/react-query'
import type { TFunction } from 'i18next'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { call, get, part } from '../api'
import { difference, quote } from '../format'
import type { Effect, JobSummary, Priority, ProjectList, Quota, QueueEntry, Shift, Row, Change } from '../types'
import { useRights } from '../rights'
import { Cli, perform } from './actions'
import { Button } from './controls'
import { Choice, Count } from './controls/fields'
import { say } from './controls/messages'
import { Table } from './controls/table'
import { startText } from './forecast'
import { poolsQuery } from './rail'
import { errorText, Failed, failing } from './states'

const changesMax = 16
const submitMax = 512
const quotaMax = 100_000_000

// kindOf names what a quota counts as the command line writes it.
const kindOf = (quota: Quota) => (quota.model ? quota.kind + '/' + quota.model : quota.kind)

// quotaOf reads a name that kindOf wrote.
export function quotaOf(name: string, maximum: number): Quota {
  const [vendor, type, ...model] = name.split('/')
  return { kind: type ? `${vendor}/${type}` : vendor!, ...(model.length > 0 && { model: model.join('/') }), maximum }
}

// withQuota puts a quota among those of a project, in the place of the one that
// counts the same: a change of quotas replaces them all. It is the last then.
export function withQuota(quotas: Quota[], quota: Quota): Quota[] {
  const before = quotas.find((one) => kindOf(one) === kindOf(quota))
  return [...quotas.filter((one) => one !== before), { ...quota, ...(before?.guaranteed && { guaranteed: Math.min(before.guaranteed, quota.maximum!) }) }]
}

const tried = (change: Change) => change.quotas!.at(-1)!

// tryLine is the command line of the same what-if.
export function tryLine(changes: Change[], name: (id: string) => string): string {
  const flags = changes.flatMap((c) => {
    switch (c.kind) {
      case 'drain':
        return ['-drain', quote(c.node ?? '')]
      case 'stop':
        return ['-stop', quote(name(c.job_id ?? ''))]
      case 'priority':
        return ['-priority', quote(`${name(c.job_id ?? '')}=${c.priority}`)]
      case 'add':
        return ['-add', String(c.count), '-like', quote(c.node ?? '')]
      case 'submit':
        return ['-clone', quote(`${name(c.job_id ?? '')}=${c.count}`)]
      case 'quota':
        return c.quotas?.length ? ['-quota', quote(`${c.project}=${kindOf(tried(c))}:${tried(c).maximum}`)] : []
      case 'move':
        return ['-move', quote(`${name(c.job_id ?? '')}=${c.last ? 'last' : c.before ? 'before:' + name(c.before) : 'first'}`)]
    }
    return []
  })
  return flags.length ? 'nomadlike queue try ' + flags.join(' ') : ''
}

// unmade are the kinds of changes that are only tried: nodes that are added, jobs like
// another one, and quotas, which administrators change on a page of their own.
const unmade = (change: Change) => change.kind === 'add' || change.kind === 'submit' || change.kind === 'quota'

// doLines are the command lines that make the changes; those that are only tried have
// none.
export function doLines(changes: Change[], name: (id: string) => string): string {
  return changes.flatMap((c) => {
    const job = quote(name(c.job_id ?? ''))
    switch (c.kind) {
      case 'drain':
        return ['nomadlike node drain ' + quote(c.node ?? '')]
      case 'stop':
        return ['nomadlike job stop ' + job]
      case 'priority':
        return [`nomadlike job priority ${job} ${c.priority}`]
      case 'move':
        return [`nomadlike queue move ${c.last ? '-last' : c.before ? '-before ' + quote(name(c.before)) : '-first'} ${job}`]
    }
    return []
  }).join('\n')
}

const kinds = ['drain', 'add', 'stop', 'priority', 'move', 'submit', 'quota'] as const

// whole reports whether a change of an address has what its sentence names.
const whole = (one: Change) => (one.kind !== 'quota' || (!!one.project && !!one.quotas?.length)) && (one.kind !== 'submit' || (!!one.job_id && !!one.count))

// readChanges takes changes out of an address; what is no change is left out.
export function readChanges(text: string): Change[] {
  if (!text) return []
  try {
    const list = JSON.parse(text) as unknown
    return Array.isArray(list) ? (list as Change[]).filter((one) => (kinds as readonly string[]).includes(one?.kind) && whole(one)).slice(0, changesMax) : []
  } catch {
    return []
  }
}

// sentence says what a change is.
export function sentence(t: TFunction, change: Change, name: (id: string) => string): string {
  return t('whatif.' + change.kind, {
    job: name(change.job_id ?? ''),
    node: change.node,
    count: change.count,
    project: change.project,
    most: change.quotas?.at(-1)?.maximum,
    what: change.quotas?.length ? kindOf(tried(change)) : undefined,
    tier: change.priority && t('priority.' + change.priority),
    place: change.last ? t('whatif.last') : change.before ? t('whatif.before', { job: name(change.before) }) : t('whatif.first'),
  })
}

// carryOut makes the changes of a what-if for real, one by one.
async function carryOut(change: Change, nodes: Row[]) {
  switch (change.kind) {
    case 'drain': {
      const node = nodes.find((row) => row.node === change.node)
      return call('POST', `/v1/nodes/${part(node?.node_id ?? change.node ?? '')}/drain`, {})
    }
    case 'stop':
      return perform(change.job_id!, { deed: 'stop' })
    case 'priority':
      return perform(change.job_id!, { deed: 'priority', priority: change.priority })
    case 'move':
      return call('POST', `/v1/jobs/${part(change.job_id!)}/move`, { before: change.before, last: change.last })
  }
}

// WhatIfPanel tries changes without making them: who would start earlier or
// later. Those that can be made are made from here.
export function WhatIfPanel({ changes, set, queue, jobs, nodes }: { changes: Change[]; set: (changes: Change[]) => void; queue: QueueEntry[]; jobs: JobSummary[]; nodes: Row[] }) {
  const { t } = useTranslation()
  const client = useQueryClient()
  const [kind, setKind] = useState<Change['kind']>('drain')
  const [node, setNode] = useState<string>()
  const [job, setJob] = useState<string>()
  const [tier, setTier] = useState<Priority>('urgent')
  const [count, setCount] = useState(1)
  const [project, setProject] = useState<string>()
  const [what, setWhat] = useState<string>()
  const [busy, setBusy] = useState(false)
  const name = (id: string) => queue.find((e) => e.job_id === id)?.job_name ?? jobs.find((j) => j.id === id)?.name ?? id
  const effect = useQuery({
    queryKey: ['queue', 'what-if', JSON.stringify(changes)],
    enabled: changes.length > 0,
    retry: false,
    queryFn: ({ signal }) => call<Effect>('POST', '/v1/queue/what-if', { changes }, signal),
  })
  const projects = useQuery({ queryKey: ['projects'], enabled: kind === 'quota', retry: false, queryFn: ({ signal }) => get<ProjectList>('/v1/projects', signal).then((list) => list.projects ?? []) }).data ?? []
  const pools = useQuery({ ...poolsQuery, enabled: kind === 'quota', retry: false, staleTime: 30_000 }).data ?? []
  const quotas = changes.findLast((one) => one.kind === 'quota' && one.project === project)?.quotas ?? projects.find((one) => one.project.name === project)?.project.quotas ?? []
  const counted = [...new Set([...quotas.map(kindOf), ...pools.flatMap((pool) => (pool.models ?? []).flatMap((model) => [model.kind, `${model.kind}/${model.model}`])), 'cpu'])]
  const names = [...new Set([...projects.map((one) => one.project.name), ...queue.map((one) => one.project), ...jobs.map((one) => one.project)])].filter(Boolean).sort()
  const waiting = [...new Map(queue.map((e) => [e.job_id, e.job_name])).entries()].map(([value, label]) => ({ value, label }))
  const running = jobs.filter((j) => ['starting', 'running', 'paused', 'queued'].includes(j.state)).map((j) => ({ value: j.id, label: j.name }))
  const change: Change | undefined =
    kind === 'quota' ? (project && what ? { kind, project, quotas: withQuota(quotas, quotaOf(what, count)) } : undefined) : kind === 'submit' ? (job ? { kind, job_id: job, count } : undefined) : kind === 'drain' ? (node ? { kind, node } : undefined) : kind === 'add' ? (node ? { kind, node, count } : undefined) : !job ? undefined : kind === 'priority' ? { kind, job_id: job, priority: tier } : { kind, job_id: job }
  const confirm = async () => {
    setBusy(true)
    try {
      for (const one of changes) await carryOut(one, nodes)
      set([])
      say('good', t('whatif.done'))
    } catch (error) {
      say('bad', errorText(error, t))
    }
    setBusy(false)
    await client.invalidateQueries()
  }
  const allowed = useRights()
  const closed = changes.some((one) => !allowed(one.kind === 'drain' || one.kind === 'move' ? one.kind : 'submit') && !allowed('move')) // what an operator does, or the owner of a job
  const line = tryLine(changes, name)
  const only = changes.some(unmade)
  const made = only ? '' : doLines(changes, name)
  return (
    <section className="card" aria-label={t('whatif.title')}>
      <h2>{t('whatif.title')}</h2>
      <p className="quiet">{t('whatif.about')}</p>
      <div className="bar">
        <Choice bare label={t('whatif.kind')} value={kind} change={setKind} options={kinds.map((value) => ({ value, label: t('whatif.kind_' + value) }))} />
        {(kind === 'drain' || kind === 'add') && <Choice bare label={t('job.node')} empty={t('job.node')} width={180} value={node} change={setNode} options={nodes.map((row) => ({ value: row.node, label: row.node }))} />}
        {kind === 'add' && <Count bare label={t('jobs.nodes')} least={1} most={256} value={count} change={setCount} />}
        {kind === 'quota' && <Choice bare label={t('whatif.project')} empty={t('whatif.project')} width={180} value={project} change={setProject} options={names.map((value) => ({ value, label: value }))} />}
        {kind === 'quota' && <Choice bare label={t('whatif.what')} empty={t('whatif.what')} width={180} value={what} change={setWhat} options={counted.map((value) => ({ value, label: value }))} />}
        {kind === 'quota' && <Count bare label={t('whatif.most')} least={0} most={quotaMax} value={count} change={setCount} />}
        {(kind === 'stop' || kind === 'priority' || kind === 'move' || kind === 'submit') && <Choice bare label={t('jobs.name')} empty={t('jobs.name')} width={220} value={job} change={setJob} options={kind === 'stop' || kind === 'submit' ? running : waiting} />}
        {kind === 'submit' && <Count bare label={t('whatif.how_many')} least={1} most={submitMax} value={count} change={setCount} />}
        {kind === 'priority' && <Choice bare label={t('jobs.priority')} value={tier} change={setTier} options={(['normal', 'urgent', 'critical'] as const).map((value) => ({ value, label: t('priority.' + value) }))} />}
        <Button disabled={!change || changes.length >= changesMax} onClick={() => change && set([...changes, change])}>{t('whatif.try')}</Button>
      </div>
      {changes.length > 0 && (
        <>
          <ul className="problems">
            {changes.map((one, i) => <li key={i}>{sentence(t, one, name)} <Button small tone="bare" onClick={() => set(changes.filter((_, j) => j !== i))}>{t('whatif.without')}</Button></li>)}
          </ul>
          {failing(effect) ? <Failed error={effect.error} /> : effect.data && (
            <>
              <p className="verdict" role="status">{t('whatif.sum', { earlier: effect.data.earlier, later: effect.data.later, same: effect.data.same })}</p>
              <Table<Shift> label={t('whatif.title')} idOf={(s) => `${s.job_id}/${s.subjob}`} page={10} rows={effect.data.shifts ?? []} empty={t('whatif.nothing')} columns={[
                { title: t('jobs.name'), cell: (s) => s.job_name },
                { title: t('whatif.was'), cell: (s) => (s.before ? startText(t, s.before) : '–') },
                { title: t('whatif.would'), cell: (s) => (s.after ? startText(t, s.after) : '–') },
                { title: t('whatif.by'), cell: (s) => (s.by ? difference(s.by) : '–') },
              ]} />
            </>
          )}
          {line && <Cli text={line} />}
          <div className="bar apart">
            <Button tone="danger" busy={busy} disabled={closed || only} title={closed ? t('whatif.closed') : only ? t('whatif.only') : undefined} onClick={() => void confirm()}>{t('whatif.confirm')}</Button>
            <Button onClick={() => set([])}>{t('deed.cancel')}</Button>
          </div>
          {closed ? <p className="quiet">{t('whatif.closed')}</p> : only && <p className="quiet">{t('whatif.only')}</p>}
          {made && !closed && <Cli text={made} />}
        </>
      )}
    </section>
  )
}
