import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { useEffect, useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { get } from '../api'
import { dateTime, quote, size, spelled } from '../format'
import { causeText } from '../i18n'
import { Cli } from '../parts/actions'
import { Button, Note } from '../parts/controls'
import { Check, Choice, Field } from '../parts/controls/fields'
import { Table } from '../parts/controls/table'
import { errorText, Failed, failing, useTitle, WordTag } from '../parts/states'
import { useRights } from '../rights'
import type { AuditCheck, AuditList, AuditRecord } from '../types'

export interface Filter {
  user: string
  object: string
  action: string
  since: string
  refused: boolean
}

const none: Filter = { user: '', object: '', action: '', since: '24h', refused: false }
const spans = ['1h', '24h', '168h', '720h', '']
const exportMost = 10_000 // records of one file

// askOf is the query of a filter; commandOf is the command line that asks the same.
export const askOf = (filter: Filter, limit: number, after = '') => new URLSearchParams(Object.entries({ user: filter.user, object: filter.object, action: filter.action, since: filter.since, refused: filter.refused ? 'true' : '', limit: String(limit), after }).filter(([, value]) => value)).toString()
export const commandOf = (filter: Filter, json = false) =>
  ['nomadlike audit list', ...(['user', 'object', 'action', 'since'] as const).filter((key) => filter[key].trim()).map((key) => `-${key} ${quote(filter[key].trim())}`), filter.refused && '-refused', json && '-json'].filter(Boolean).join(' ')

const idOf = (record: AuditRecord) => record.server + '/' + record.seq

// objectOf names what a record is about.
export const objectOf = ({ object }: AuditRecord) => [object?.kind, object?.id].filter(Boolean).join(' ') || '–'

// AuditPage is who did what to which object, from where, and what became of it.
export function AuditPage() {
  const { t } = useTranslation()
  useTitle(t('audit.title'))
  const may = useRights()('operator_read')
  const [typed, setTyped] = useState<Filter>(none)
  const [filter, setFilter] = useState<Filter>(none)
  const set = (more: Partial<Filter>) => setTyped((old) => ({ ...old, ...more }))
  useEffect(() => { // what is typed is asked for when the keys rest
    const timer = setTimeout(() => setFilter(typed), 300)
    return () => clearTimeout(timer)
  }, [typed])
  const read = useInfiniteQuery({
    queryKey: ['audit', filter], enabled: may, initialPageParam: '', retry: false,
    queryFn: ({ pageParam, signal }) => get<AuditList>('/v1/audit?' + askOf(filter, 100, pageParam), signal),
    getNextPageParam: (page) => page.next || undefined,
  })
  const end = useRef<HTMLParagraphElement>(null)
  const { hasNextPage, isFetching, fetchNextPage } = read
  useEffect(() => {
    if (!end.current || !hasNextPage || isFetching) return
    const watch = new IntersectionObserver(([seen]) => seen?.isIntersecting && void fetchNextPage(), { rootMargin: '200px' })
    watch.observe(end.current)
    return () => watch.disconnect()
  }, [hasNextPage, isFetching, fetchNextPage])
  if (!may) return <div className="page"><h1>{t('audit.title')}</h1><Note tone="info" title={t('audit.not_yours')} /></div>
  const pages = read.data?.pages ?? []
  const records = pages.flatMap((page) => page.records ?? [])
  const last = pages.at(-1)
  const names = new Map((pages[0]?.servers ?? []).map((server) => [server.id, server.name || server.id.slice(0, 8)]))
  const away = (pages[0]?.servers ?? []).filter((server) => !server.answered)
  return (
    <div className="page">
      <div className="bar"><h1>{t('audit.title')}</h1><span className="grow" /><Export filter={filter} /></div>
      <p className="truth">{t('audit.about')}</p>
      <Chain />
      <section className="card" aria-label={t('audit.title')}>
        <div className="bar ends" role="search" aria-label={t('audit.filters')}>
          <Field label={t('audit.user')} width={130} value={typed.user} change={(user) => set({ user: user.trim() })} autoComplete="off" spellCheck={false} />
          <Field label={t('audit.object')} width={180} value={typed.object} change={(object) => set({ object: object.trim() })} placeholder="job/4f2a" autoComplete="off" spellCheck={false} />
          <Field label={t('audit.action')} width={150} value={typed.action} change={(action) => set({ action: action.trim() })} placeholder="jobs.stop" autoComplete="off" spellCheck={false} />
          <Choice label={t('audit.since')} value={typed.since} change={(since) => set({ since })} options={spans.map((value) => ({ value, label: value ? t('audit.back', { span: spelled(value) }) : t('audit.ever') }))} />
          <Check checked={typed.refused} change={(refused) => set({ refused })}>{t('audit.only_refused')}</Check>
        </div>
        {away.length > 0 && <Note tone="warning" title={t('audit.copies', { servers: away.map((server) => names.get(server.id)).join(t('people.and')) })} />}
        {failing(read) ? <Failed error={read.error} retry={() => void read.refetch()} /> : (
          <Table<AuditRecord> label={t('audit.title')} idOf={idOf} loading={read.isPending} rows={records} least={760} empty={t('audit.none')} unfold={(record) => <Details record={record} server={names.get(record.server)} />} columns={[
            { title: t('audit.time'), width: 180, cell: (record) => dateTime(record.time, true) },
            { title: t('audit.user'), cell: (record) => record.actor?.user || record.actor?.kind || t('audit.nobody') },
            { title: t('audit.action'), cell: (record) => <>{record.action}{!!record.count && record.count > 1 && <span className="quiet"> × {record.count}</span>}</> },
            { title: t('audit.object'), cell: objectOf },
            { title: t('audit.outcome'), cell: (record) => <WordTag tone={record.outcome === 'allowed' ? 'good' : record.outcome === 'refused' ? 'bad' : 'busy'}>{t('audit.' + record.outcome)}</WordTag> },
            { title: t('audit.address'), cell: (record) => record.address || '–' },
          ]} />
        )}
        <p ref={end} className="quiet" role="status">{isFetching && records.length > 0 ? t('audit.older_coming') : !hasNextPage && records.length > 0 ? t(last?.until ? 'audit.until' : 'audit.all', { time: dateTime(last?.until) }) : ''}</p>
        {hasNextPage && !isFetching && <Button onClick={() => void fetchNextPage()}>{t('audit.older')}</Button>}
        <Cli text={commandOf(filter)} />
      </section>
    </div>
  )
}

// Details are everything that a record says.
function Details({ record, server }: { record: AuditRecord; server?: string }) {
  const { t } = useTranslation()
  const facts: [string, string | undefined][] = [
    ['role', record.actor?.role], ['method', record.actor?.method], ['token', record.actor?.token_id], ['project', record.object?.project],
    ['owner', record.object?.owner], ['part', record.object?.part], ['reason', record.reason && causeText(record.reason)],
    ['status', record.status ? String(record.status) : ''], ['request', record.request], ['node', record.node], ['said', record.said], ['sent', record.sent ? size(record.sent) : ''], ['received', record.received ? size(record.received) : ''],
    ['took', record.took && spelled(record.took)], ['index', record.index ? String(record.index) : ''], ['server', server ?? record.server], ['line', String(record.seq)], ['prev', record.prev],
  ]
  return <dl className="facts">{facts.filter(([, value]) => value).map(([key, value]) => <div key={key} style={{ display: 'contents' }}><dt>{t('audit.' + key)}</dt><dd>{value}</dd></div>)}</dl>
}

// Chain says whether the records on every server's disk are whole.
function Chain() {
  const { t } = useTranslation()
  const check = useQuery({ queryKey: ['audit', 'verify'], staleTime: 60_000, retry: false, queryFn: ({ signal }) => get<AuditCheck>('/v1/audit/verify', signal) })
  if (check.isPending) return <p className="quiet" role="status">{t('audit.verifying')}</p>
  if (check.error) return <Note tone="warning" title={errorText(check.error, t)} />
  const names = check.data.names ?? {}
  const name = (id: string) => names[id] || id.slice(0, 8)
  const broken = (check.data.chains ?? []).filter((chain) => chain.broken)
  const again = <Button small onClick={() => void check.refetch()} busy={check.isFetching}>{t('audit.verify')}</Button>
  if (check.data.whole) return <p><WordTag tone="good">{t('audit.whole')}</WordTag> <span className="quiet">{t('audit.whole_of', { lines: (check.data.chains ?? []).filter((chain) => chain.holder === chain.server).reduce((sum, chain) => sum + chain.lines, 0) })}</span> {again}</p>
  return (
    <Note tone={broken.length ? 'error' : 'warning'} title={t(broken.length ? 'audit.broken' : 'audit.not_all')} action={again}>
      {broken.map((chain, i) => <p key={i}>{t('audit.broken_at', { server: name(chain.server), holder: name(chain.holder), file: chain.file, line: chain.line })}</p>)}
      {(check.data.away ?? []).map((id) => <p key={id}>{t('audit.away', { server: name(id) })}</p>)}
    </Note>
  )
}

// linesOf fetches what a filter finds, as JSON lines, the newest first; and whether
// there was more than fits in one file.
export async function linesOf(filter: Filter, most = exportMost, fetchPage = (path: string) => get<AuditList>(path)): Promise<{ text: string; count: number; more: boolean }> {
  const records: AuditRecord[] = []
  let after = ''
  do {
    const page = await fetchPage('/v1/audit?' + askOf(filter, 1000, after))
    records.push(...(page.records ?? []))
    after = page.next ?? ''
  } while (after && records.length < most)
  return { text: records.map((record) => JSON.stringify(record) + '\n').join(''), count: records.length, more: after !== '' }
}

// Export saves what is found as a file of JSON lines.
function Export({ filter }: { filter: Filter }) {
  const { t } = useTranslation()
  const [busy, setBusy] = useState(false)
  const [said, setSaid] = useState('')
  const save = async () => {
    setBusy(true)
    setSaid('')
    try {
      const { text, count, more } = await linesOf(filter)
      const link = document.createElement('a')
      link.href = URL.createObjectURL(new Blob([text], { type: 'application/x-ndjson' }))
      link.download = 'audit.jsonl'
      link.click()
      setTimeout(() => URL.revokeObjectURL(link.href), 10_000)
      setSaid(t(more ? 'audit.exported_some' : 'audit.exported', { count, command: commandOf(filter, true) }))
    } catch (error) {
      setSaid(errorText(error, t))
    } finally {
      setBusy(false)
    }
  }
  return <>{said && <span className="quiet" role="status">{said}</span>}<Button busy={busy} onClick={() => void save()}>{t('audit.export')}</Button></>
}
