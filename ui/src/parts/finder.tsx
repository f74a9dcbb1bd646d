import { useQuery, useQueryClient } from '@tanstack/react-query'
import { lazy, Suspense, useEffect, useMemo, useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useNavigate } from 'react-router'
import { get, part } from '../api'
import { chooseLanguage } from '../i18n'
import { useLook } from '../look'
import { useRights, type Who } from '../rights'
import { sessionQuery } from '../shell'
import { opens } from './rail'
import type { JobList, JobSummary, NodeList, NodeSummary } from '../types'
import { listQuery, pageOf, refOf } from './data'
import { deedsOf, nodeDeedsOf, settings, type NodeDeed } from './commands'
import type { Deed } from './deeds'
import { entryAt } from './entries'

interface Command {
  key: string
  label: string
  hint?: string
  id?: string // may be begun in the place of a word
  asks?: boolean // it asks once more, in a dialog
  also?: string // is looked at for words as the label is, and not shown
  run: () => void
}

const shownMax = 12
const askedMax = 12 // of each kind
const guidesMax = 4
const pause = 150 // milliseconds without a key, before servers are asked

const actedMax = 200 // jobs and nodes that something is offered to be done to

interface Doing {
  deed: Deed | NodeDeed
  job?: JobSummary
  node?: NodeSummary
}

// newest are jobs that deeds are offered for: those that are not over first.
const newest = (jobs: JobSummary[]): JobSummary[] =>
  [...new Map(jobs.map((job) => [job.id, job])).values()].sort((a, b) => Number(!!a.finished_at) - Number(!!b.finished_at)).slice(0, actedMax)

// What asks once more is fetched when something is to be done.
const DeedDialog = lazy(() => import('./actions').then((actions) => ({ default: actions.DeedDialog })))
const NodeDialog = lazy(() => import('./nodedeeds').then((deeds) => ({ default: deeds.NodeDialog })))

const wordsOf = (text: string) => text.toLowerCase().split(/\s+/).filter(Boolean)

// matching keeps the commands that hold every word of the text, those first
// that begin with it. What stands twice is shown once.
export function matching<T extends { label: string; id?: string; key?: string; also?: string }>(commands: T[], text: string): T[] {
  const words = wordsOf(text)
  const seen = new Set<string>()
  const begins = (command: T) => (words[0] && command.label.toLowerCase().startsWith(words[0]) ? 0 : 1)
  return commands
    .filter((command) => words.every((word) => command.label.toLowerCase().includes(word) || command.also?.toLowerCase().includes(word) || command.id?.startsWith(word)))
    .filter(({ key }) => !key || (!seen.has(key) && seen.add(key)))
    .sort((a, b) => begins(a) - begins(b))
    .slice(0, shownMax)
}

// asks is the word of a text that servers look for, which is the longest one;
// the others are looked for in what they answer.
export const asks = (text: string) => wordsOf(text).reduce((longest, word) => (word.length > longest.length ? word : longest), '')

// useFound asks the servers for jobs and nodes, whatever pages have loaded.
function useFound(open: boolean, text: string): { jobs: JobSummary[]; nodes: NodeSummary[]; busy: boolean } {
  const [word, setWord] = useState('')
  useEffect(() => {
    const timer = setTimeout(() => setWord(asks(text)), pause)
    return () => clearTimeout(timer)
  }, [text])
  const found = useQuery({
    queryKey: ['found', word],
    enabled: open && word !== '',
    staleTime: 5000,
    retry: false,
    queryFn: async ({ signal }) => {
      const query = `limit=${askedMax}&text=${part(word)}`
      const [jobs, nodes] = await Promise.all([get<JobList>('/v1/jobs?' + query, signal), get<NodeList>('/v1/nodes?' + query, signal)])
      return { jobs: jobs.jobs ?? [], nodes: nodes.nodes ?? [] }
    },
  })
  return { jobs: found.data?.jobs ?? [], nodes: found.data?.nodes ?? [], busy: word !== asks(text) || found.isFetching }
}

interface Guide {
  url: string // below the guides of the language
  title: string
  head: string
}

// useGuides looks through the guides that the agent serves beside these pages, with
// the search that they have themselves.
function useGuides(open: boolean, text: string, language: string): Guide[] {
  const word = text.trim()
  const found = useQuery({
    queryKey: ['guides', language, word],
    enabled: open && word.length > 1,
    staleTime: Infinity,
    retry: false,
    queryFn: async () => {
      const at = '/docs/search.js' // not part of this build
      const { load, search } = (await import(/* @vite-ignore */ at)) as { load: (language: string) => Promise<unknown>; search: (sections: unknown, query: string, limit: number) => Guide[] }
      return search(await load(language), word, guidesMax)
    },
  })
  return found.data ?? []
}

// Finder is what the palette opens: every page, every job and node that there is,
// settings, what may be done, and what the header can do. Its code comes when it is
// opened first. It calls close when it is done, or when nothing is to be done.
export default function Finder({ signOut, close }: { signOut: () => void; close: () => void }) {
  const { t, i18n } = useTranslation()
  const [open, setOpen] = useState(true) // a dialog that asks once more takes its place
  const [text, setText] = useState('')
  const [at, setAt] = useState(0)
  const go = useNavigate()
  const client = useQueryClient()
  const { dark, setMode } = useLook()
  const may = useRights()
  const who = useQuery<Who | null>({ ...sessionQuery, enabled: false }).data
  const [doing, setDoing] = useState<Doing>()
  const typed = text.trim() !== ''
  const asked = useFound(open, text)
  const language = i18n.language === 'zh' ? 'zh' : 'en'
  const guides = useGuides(open, text, language)
  const data = useQuery({ ...listQuery(who?.acting ?? ''), enabled: open && typed, retry: false }).data?.objects
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    if (open) dialog.current?.showModal()
  }, [open])
  const commands = useMemo<Command[]>(() => {
    if (!open) return []
    const pages = ['jobs', 'data', 'queue', 'cluster', 'pools', 'use', 'project', 'secrets', 'limits', 'projects', 'people', 'audit', 'servers'].filter((key) => key === 'projects' || opens(key, may)).map((key) => ({ key, label: t('menu.' + key), hint: t('palette.page'), run: () => void go('/' + key) }))
    const known = [...(client.getQueryData<NodeSummary[]>(['nodes']) ?? []), ...asked.nodes]
    const loaded = [...client.getQueriesData<JobSummary[]>({ queryKey: ['jobs'] }).flatMap(([, data]) => (Array.isArray(data) ? data : [])), ...asked.jobs]
    const nodes = known.map((node) => ({ key: 'n' + node.id, id: node.id, label: node.name, hint: t('palette.node'), run: () => void go('/nodes/' + node.id) }))
    const jobs = loaded.map((job) => ({ key: 'j' + job.id, id: job.id, label: `${job.name} ${job.project}`, also: [...(job.tags ?? []).map((tag) => 'tag:' + tag), job.note].join(' '), hint: t('state.' + job.state), run: () => void go('/jobs/' + job.id) }))
    return [
      ...pages,
      ...(may('submit') ? [
        { key: 'new', label: t('jobs.new'), run: () => void go('/jobs/new') },
        { key: 'sweep', label: t('shell.new_batch'), run: () => void go('/jobs/new?kind=batch') },
      ] : []),
      ...(may('vip') ? [{ key: 'vip', label: t('vip.title'), run: () => void go('/vip') }] : []),
      { key: 'board', label: t('cluster.board'), run: () => void go('/cluster?board') },
      { key: 'lang', label: i18n.language === 'zh' ? 'English' : '中文', hint: t('shell.language'), run: () => void chooseLanguage(i18n.language === 'zh' ? 'en' : 'zh') },
      { key: 'dark', label: dark ? t('palette.light') : t('palette.dark'), run: () => setMode(dark ? 'light' : 'dark') },
      { key: 'auto', label: t('shell.mode', { mode: t('shell.mode_auto') }), run: () => setMode('auto') },
      { key: 'keys', label: t('jobs.keys_title'), also: '?', run: () => setTimeout(() => dispatchEvent(new KeyboardEvent('keydown', { key: '?' }))) },
      { key: 'out', label: t('shell.sign_out'), run: signOut },
      ...jobs,
      ...nodes,
      ...(data ?? []).map((one) => ({ key: 'd' + pageOf(refOf(one)), label: `${one.object.name} ${one.object.project}`, also: [one.object.description, ...Object.entries(one.object.labels ?? {}).map(([key, value]) => `${key}=${value}`)].join(' '), hint: t('palette.kind_' + one.object.kind, one.object.kind), run: () => void go(pageOf(refOf(one))) })),
      // What nobody has begun to look for stays out of the way.
      ...(typed ? [
        ...(may('drain') ? [{ key: 'maintain', label: t('maintenance.add'), hint: t('palette.action'), run: () => void go('/queue?maintain') }] : []),
        ...(may('what_if') ? [{ key: 'whatif', label: t('whatif.title'), hint: t('palette.action'), run: () => void go('/queue') }] : []),
        ...newest(loaded).flatMap((job) => deedsOf(job, who).map((deed) => ({ key: deed + job.id, label: `${t('deed.' + deed)} ${job.name}`, also: job.project, hint: t('palette.action'), asks: true, run: () => setDoing({ deed, job }) }))),
        ...(may('drain') ? known.slice(0, actedMax).flatMap((node) => nodeDeedsOf(node).map((deed) => ({ key: deed + node.id, label: `${t('node.' + deed)} ${node.name}`, hint: t('palette.action'), asks: true, run: () => setDoing({ deed, node }) }))) : []),
        ...settings.filter(({ right }) => !right || may(right)).map(({ label, also, page, entry }) => ({ key: 's' + label, label: t(label), also, hint: t(page ? 'palette.setting' : 'palette.reference'), run: () => (page ? void go(page) : void window.open(entryAt(i18n.language, entry!), '_blank', 'noopener')) })),
      ] : []),
    ]
  }, [open, typed, t, i18n.language, dark, client, go, setMode, signOut, asked.jobs, asked.nodes, data]) // eslint-disable-line react-hooks/exhaustive-deps
  const pages = guides.map(({ url, title, head }) => ({ key: 'g' + url, label: head ? `${title} › ${head}` : title, hint: t('menu.guides'), run: () => location.assign(`/docs/${language}/${url}`) }))
  const found: Command[] = [...matching(commands, text), ...pages]
  const run = (command?: Command) => {
    if (!command) return
    if (!command.asks) close()
    setOpen(false)
    command.run()
  }
  return (
    <>
      {open && <dialog ref={dialog} className="card" aria-label={t('palette.title')} onClose={() => open && close()} onClick={(event) => event.target === dialog.current && close()}>
        <input
          className="field"
          autoFocus
          value={text}
          role="combobox"
          aria-expanded="true"
          aria-controls="palette-list"
          aria-activedescendant={found[at] ? 'palette-' + found[at].key : undefined}
          aria-label={t('palette.title')}
          placeholder={t('palette.placeholder')}
          onChange={(event) => {
            setText(event.target.value)
            setAt(0)
          }}
          onKeyDown={(event) => {
            if (event.key === 'ArrowDown') setAt(Math.min(at + 1, found.length - 1))
            else if (event.key === 'ArrowUp') setAt(Math.max(at - 1, 0))
            else if (event.key === 'Enter') run(found[at])
            else return
            event.preventDefault()
          }}
        />
        <ul className="palette" id="palette-list" role="listbox" aria-label={t('palette.title')}>
          {found.map((command, i) => (
            <li key={command.key} id={'palette-' + command.key} role="option" aria-selected={i === at} onMouseMove={() => setAt(i)} onClick={() => run(command)}>
              <span>{command.label}</span>
              <span className="quiet">{command.hint}</span>
            </li>
          ))}
        </ul>
        <p className="quiet" role="status">{asked.busy ? t('palette.looking') : found.length === 0 ? t('palette.none') : ''}</p>
      </dialog>}
      {doing?.job && <Suspense><DeedDialog deed={doing.deed as Deed} jobs={[doing.job]} close={close} /></Suspense>}
      {doing?.node && <Suspense><NodeDialog deed={doing.deed as NodeDeed} node={doing.node} close={close} /></Suspense>}
    </>
  )
}
