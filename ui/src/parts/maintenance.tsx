import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { Link, useSearchParams } from 'react-router'
import { call, get, part } from '../api'
import { clock, dateTime, quote, shortID } from '../format'
import { useRights } from '../rights'
import type { MaintenanceChanged, MaintenanceDetail, MaintenanceList } from '../types'
import { Cli } from './actions'
import { Button, Note } from './controls'
import { Dialog } from './controls/dialog'
import { Check, Field } from './controls/fields'
import { Table } from './controls/table'
import { errorText, Failed, failing } from './states'

// windowsQuery asks for the windows of maintenance that have not ended.
export const windowsQuery = { queryKey: ['maintenance'], refetchInterval: 30_000, queryFn: ({ signal }: { signal: AbortSignal }) => get<MaintenanceList>('/v1/maintenance', signal).then((list) => list.windows ?? []) }

// coverOf says what a window closes, in a few words: its nodes by name, or its pool.
export function coverOf(window: MaintenanceDetail, t: (key: string, values?: Record<string, unknown>) => string): string {
  if (window.all) return t('maintenance.all')
  if (window.pool) return t('maintenance.of_pool', { pool: window.pool })
  const names = window.names ?? []
  return names.length > 3 ? `${names.slice(0, 3).join(', ')} … (${names.length})` : names.join(', ')
}

// Windows lists the windows of maintenance, and lets operators add and end them.
export function Windows() {
  const { t } = useTranslation()
  const may = useRights()('drain')
  const windows = useQuery(windowsQuery)
  const [params, setParams] = useSearchParams()
  const [asked, setAdding] = useState(false)
  const adding = asked || (may && params.has('maintain')) // the palette asks by the address
  const [ending, setEnding] = useState<MaintenanceDetail>()
  const all = windows.data ?? []
  if (!may && all.length === 0) return failing(windows) ? <Failed error={windows.error} /> : null
  return (
    <section className="card" aria-label={t('maintenance.title')}>
      <div className="bar"><h2>{t('maintenance.title')}</h2><span className="grow" />{may && <Button onClick={() => setAdding(true)}>{t('maintenance.add')}</Button>}</div>
      {failing(windows) && <Failed error={windows.error} retry={() => void windows.refetch()} />}
      {all.length === 0 ? <p className="quiet">{t('maintenance.none')}</p> : (
        <Table<MaintenanceDetail> label={t('maintenance.title')} idOf={(w) => w.id} least={700} rows={all} columns={[
          { title: t('maintenance.nodes'), cell: (w) => coverOf(w, t) },
          { title: t('queue.from'), cell: (w) => (w.begun ? t('maintenance.begun', { time: clock(w.start) }) : clock(w.start)) },
          { title: t('queue.to'), cell: (w) => clock(w.end) },
          { title: t('maintenance.reason'), cell: (w) => w.reason || '–' },
          { title: t('maintenance.by'), cell: (w) => w.by || '–' },
          { title: t('maintenance.running'), cell: (w) => <>{(w.running ?? []).slice(0, 3).map((job, i) => <span key={job.job_id + job.subjob}>{i > 0 && ', '}<Link to={'/jobs/' + job.job_id}>{job.job_name}</Link></span>)}{(w.running ?? []).length > 3 && ` … (${w.running!.length})`}{w.others ? ` + ${w.others}` : ''}{!w.running?.length && !w.others && '–'}</> },
          { title: <span className="hidden">{t('maintenance.end')}</span>, cell: (w) => may && <Button small tone="danger" onClick={() => setEnding(w)}>{t(w.begun ? 'maintenance.end' : 'maintenance.remove')}</Button> },
        ]} />
      )}
      <Cli text="nomadlike maintenance list" />
      {adding && <AddDialog close={() => { setAdding(false); setParams((old) => { old.delete('maintain'); return old }, { replace: true }) }} />}
      {ending && <EndDialog window={ending} close={() => setEnding(undefined)} />}
    </section>
  )
}

function useChange(close: () => void): { busy: boolean; error: unknown; run: (act: () => Promise<unknown>) => Promise<void> } {
  const client = useQueryClient()
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>()
  const run = async (act: () => Promise<unknown>) => {
    setBusy(true)
    setError(undefined)
    try {
      await act()
      await client.invalidateQueries({ predicate: (query) => ['maintenance', 'nodes', 'node', 'queue'].includes(query.queryKey[0] as string) })
      close()
    } catch (failure) {
      setError(failure)
      setBusy(false)
    }
  }
  return { busy, error, run }
}

// localTime is a moment as a field for dates and times writes it, in this zone.
export function localTime(at: Date): string {
  const two = (n: number) => String(n).padStart(2, '0')
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}T${two(at.getHours())}:${two(at.getMinutes())}`
}

// requestOf is what the dialog asks for: names separated by commas or spaces, or
// pool:NAME, or * for all nodes.
export function requestOf(nodes: string, start: string, end: string, reason: string, keep: boolean) {
  const pool = /^pool:(\S+)$/.exec(nodes.trim())?.[1]
  return {
    ...(nodes.trim() === '*' ? { all: true } : pool ? { pool } : { nodes: nodes.split(/[\s,]+/).filter(Boolean) }),
    start: new Date(start).toISOString(), end: new Date(end).toISOString(), ...(reason.trim() && { reason: reason.trim() }), ...(keep && { keep_running: true }),
  }
}

const lineOf = (request: ReturnType<typeof requestOf>, start: string, end: string) =>
  ['nomadlike maintenance add', 'all' in request ? '-all' : 'pool' in request ? '-pool ' + quote(request.pool!) : '-nodes ' + quote((request.nodes ?? []).join(',')), `-start ${quote(start.replace('T', ' '))}`, `-end ${quote(end.replace('T', ' '))}`, request.reason && '-reason ' + quote(request.reason), request.keep_running && '-keep-running'].filter(Boolean).join(' ')

function AddDialog({ close }: { close: () => void }) {
  const { t } = useTranslation()
  const [nodes, setNodes] = useState('')
  const [start, setStart] = useState(localTime(new Date(Math.ceil((Date.now() + 3600e3) / 1800e3) * 1800e3)))
  const [end, setEnd] = useState(localTime(new Date(Math.ceil((Date.now() + 5 * 3600e3) / 1800e3) * 1800e3)))
  const [reason, setReason] = useState('')
  const [keep, setKeep] = useState(false)
  const { busy, error, run } = useChange(close)
  const ready = !!nodes.trim() && !!start && !!end
  const request = ready ? requestOf(nodes, start, end, reason, keep) : undefined
  return (
    <Dialog title={t('maintenance.add')} close={close} act={t('maintenance.add')} off={!ready} busy={busy} run={() => void run(() => call<MaintenanceChanged>('POST', '/v1/maintenance', request))}>
      <div className="stack">
        <p>{t('maintenance.about')}</p>
        <Field entry="maintenance.nodes" label={t('maintenance.which')} placeholder="gpu-03, gpu-04" value={nodes} change={setNodes} />
        <div className="bar">
          <Field entry="maintenance.start" label={t('queue.from')} type="datetime-local" value={start} change={setStart} />
          <Field entry="maintenance.end" label={t('queue.to')} type="datetime-local" value={end} change={setEnd} />
        </div>
        <Field entry="maintenance.reason" label={t('maintenance.reason')} maxLength={80} value={reason} change={setReason} />
        <Check entry="maintenance.keep" checked={keep} change={setKeep}>{t('maintenance.keep_running')}</Check>
        {request && <Cli text={lineOf(request, start, end)} />}
        {error !== undefined && <Note tone="error" title={errorText(error, t)} />}
      </div>
    </Dialog>
  )
}

function EndDialog({ window, close }: { window: MaintenanceDetail; close: () => void }) {
  const { t } = useTranslation()
  const { busy, error, run } = useChange(close)
  const act = t(window.begun ? 'maintenance.end' : 'maintenance.remove')
  return (
    <Dialog title={`${act} · ${coverOf(window, t)}`} close={close} act={act} danger busy={busy} run={() => void run(() => call('DELETE', '/v1/maintenance/' + part(window.id)))}>
      <p>{t(window.begun ? 'maintenance.ask_end' : 'maintenance.ask_remove', { time: dateTime(window.end) })}</p>
      <Cli text={'nomadlike maintenance end ' + shortID(window.id)} />
      {error !== undefined && <Note tone="error" title={errorText(error, t)} />}
    </Dialog>
  )
}
