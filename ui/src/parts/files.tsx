import { useQuery } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'
import { Link, useSearchParams } from 'react-router'
import { inActing } from '../acting'
import { get, part } from '../api'
import { dateTime, quote, size } from '../format'
import type { Allocation, FileEntry, FileList } from '../types'
import { Cli } from './actions'
import { Choice } from './controls/fields'
import { Table } from './controls/table'
import { Failed, Loading, failing } from './states'

const every = 10_000

// Whose says whose files are meant, and which.
export interface Whose {
  subjob: number
  attempt: number
  rank: number
  path: string
}

// fileQuery asks for them, of one attempt also when another begins meanwhile.
export function fileQuery({ subjob, attempt, rank, path }: Whose): string {
  return `path=${part(path)}&attempt=${attempt}` + (subjob ? `&subjob=${subjob}` : '') + (rank ? `&rank=${rank}` : '')
}

// fileLines is what does the same on the command line: to look, and to copy
// the directory with all below it.
export function fileLines(name: string, { subjob, attempt, rank, path }: Whose, newest: boolean): string {
  const flags = (newest ? '' : `-attempt ${attempt} `) + (rank ? `-rank ${rank} ` : '') + (subjob ? `-subjob ${subjob} ` : '')
  if (!path) return `nomadlike job files ${flags}${quote(name)}`
  return ['files', 'download'].map((verb) => `nomadlike job ${verb} ${flags}${quote(name)} ${quote(path)}`).join('\n')
}

// Files lists what a rank wrote into the output of the job and its logs, from
// the node that holds them. Place and rank stand in the address.
export function Files({ id, name, subjob, allocs, live }: { id: string; name: string; subjob: number; allocs: Allocation[]; live: boolean }) {
  const { t } = useTranslation()
  const [params, setParams] = useSearchParams()
  const attempts = [...new Set(allocs.map((a) => a.attempt))].sort((a, b) => b - a)
  const asked = Number(params.get('attempt'))
  const attempt = attempts.includes(asked) ? asked : (attempts[0] ?? 0)
  const ranks = allocs.filter((a) => a.attempt === attempt).sort((a, b) => a.rank - b.rank)
  const rank = ranks.some((a) => a.rank === Number(params.get('rank'))) ? Number(params.get('rank')) : (ranks[0]?.rank ?? 0)
  const whose = { subjob, attempt, rank, path: params.get('path') ?? '' }
  const query = fileQuery(whose)
  const files = useQuery({
    queryKey: ['job', id, 'files', query],
    enabled: attempt > 0,
    refetchInterval: live ? every : false,
    queryFn: ({ signal }) => get<FileList>(`/v1/jobs/${part(id)}/files?${query}`, signal),
  })
  if (attempt === 0) return <p>{t('job.no_attempt')}</p>
  const at = (path: string) => {
    const next = new URLSearchParams(params)
    if (path) next.set('path', path)
    else next.delete('path')
    return { search: '?' + next.toString() }
  }
  const choose = (more: Record<string, number>) => {
    const next = new URLSearchParams(params)
    for (const [key, value] of Object.entries(more)) next.set(key, String(value))
    setParams(next, { replace: true })
  }
  const steps = whose.path.split('/').filter(Boolean)
  const list = files.data
  const rows = list ? (list.entry.dir ? (list.entries ?? []) : [list.entry]) : []
  const pathOf = (entry: FileEntry) => (list && !list.entry.dir ? whose.path : [...steps, entry.name].join('/'))
  const show = (entry: FileEntry) => {
    if (entry.dir) return <Link to={at(pathOf(entry))}>{entry.name}/</Link>
    if (entry.link) return <>{entry.name} <span className="quiet">{t('files.link')}</span></>
    return <a href={inActing(`/v1/jobs/${part(id)}/files/content?${fileQuery({ ...whose, path: pathOf(entry) })}`)} download={entry.name}>{entry.name}</a>
  }
  const plain = (entry: FileEntry) => !entry.dir && !entry.link
  return (
    <div className="stack">
      <div className="bar">
        <Choice bare label={t('jobs.attempt')} value={attempt} change={(value) => choose({ attempt: value })} options={attempts.map((value) => ({ value, label: t('job.attempt', { number: value }) }))} />
        <Choice bare label={t('job.rank')} value={rank} change={(value) => choose({ rank: value })} options={ranks.map((a) => ({ value: a.rank, label: `${t('logs.rank', { rank: a.rank })} · ${a.node_name}` }))} />
        <nav aria-label={t('files.place')} className="mono">
          <Link to={at('')}>{t('files.all')}</Link>
          {steps.map((step, i) => <span key={i}> / <Link to={at(steps.slice(0, i + 1).join('/'))} aria-current={i === steps.length - 1 ? 'page' : undefined}>{step}</Link></span>)}
        </nav>
      </div>
      {failing(files) ? <Failed error={files.error} retry={() => void files.refetch()} /> : !list ? <Loading /> : (
        <Table<FileEntry>
          label={t('files.tab')}
          idOf={(entry) => entry.name}
          page={100}
          least={440}
          empty={t('files.empty')}
          rows={rows}
          columns={[
            { title: t('jobs.name'), cell: show, compare: (a, b) => (a.name < b.name ? -1 : 1) },
            { title: t('files.size'), width: 100, right: true, cell: (entry) => (plain(entry) ? size(entry.size) : '–'), compare: (a, b) => (plain(a) ? a.size : -1) - (plain(b) ? b.size : -1) },
            { title: t('files.modified'), width: 170, cell: (entry) => dateTime(entry.modified, true), compare: (a, b) => Date.parse(a.modified ?? '') - Date.parse(b.modified ?? '') },
          ]}
        />
      )}
      {list?.more && <p className="tone-busy">{t('files.more', { count: rows.length })}</p>}
      <Cli text={fileLines(name, whose, attempt === attempts[0])} />
    </div>
  )
}
