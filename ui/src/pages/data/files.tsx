import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { useCallback, useEffect, useMemo, useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { Link, useNavigate, useSearchParams } from 'react-router'
import { inActing } from '../../acting'
import { get, send } from '../../api'
import { quote, size } from '../../format'
import { Cli } from '../../parts/actions'
import { Note } from '../../parts/controls'
import { Choice } from '../../parts/controls/fields'
import { Scroll } from '../../parts/controls/table'
import { fileAddress, flagsOf, pageOf, readable, spelled, type Ref } from '../../parts/data'
import { Grid, sorted, useHeight, type Column } from '../../parts/grid'
import { typing } from '../../parts/keys'
import { Failed, failing, Loading } from '../../parts/states'
import type { DataEntry, DataPreview, DataTree, DataVersion, Shown } from '../../types'
import { usable } from './object'

const firstPage = 1000
const otherPages = 10_000

// useTree lists a directory of a version, which never changes: the first names at once,
// the others, where it has very many, behind them.
function useTree(object: Ref, version: number, path: string, enabled: boolean) {
  const tree = useInfiniteQuery({
    queryKey: ['tree', object.project, object.kind, object.name, version, path],
    enabled,
    staleTime: Infinity,
    gcTime: 60_000,
    initialPageParam: 0,
    queryFn: ({ pageParam, signal }) => get<DataTree>(fileAddress(object, '/tree', version, path, { after: pageParam, limit: pageParam ? otherPages : firstPage }), signal),
    getNextPageParam: (page) => page.next || undefined,
  })
  const { hasNextPage, isFetching, isError, fetchNextPage } = tree
  useEffect(() => {
    if (hasNextPage && !isFetching && !isError) void fetchNextPage()
  }, [hasNextPage, isFetching, isError, fetchNextPage])
  return tree
}

// Files walks through the files of a version. Version and path stand in the address.
export function Files({ object, versions, acting }: { object: Ref; versions: DataVersion[]; acting: string }) {
  const { t } = useTranslation()
  const [params, setParams] = useSearchParams()
  const there = versions.filter(usable)
  const asked = Number(params.get('version'))
  const version = there.find(({ number }) => number === asked) ?? there.at(-1)
  const path = params.get('path') ?? ''
  const tree = useTree(object, version?.number ?? 0, path, version?.state === 'ready')
  if (!version) return <p>{t('data.no_version')}</p>
  const at = (to: string) => {
    const next = new URLSearchParams(params)
    if (to) next.set('path', to)
    else next.delete('path')
    return pageOf(object) + (next.size ? '?' + next.toString() : '')
  }
  const steps = path.split('/').filter(Boolean)
  const entry = tree.data?.pages[0]?.entry
  const name = `${quote(object.name)}@${version.number}`
  return (
    <div className="stack">
      <div className="bar">
        <Choice bare label={t('data.version')} value={version.number} change={(value) => setParams({ version: String(value) }, { replace: true })} options={[...there].reverse().map(({ number, tag }) => ({ value: number, label: t('data.version_of', { version: number }) + (tag ? ` (${tag})` : '') }))} />
        <nav aria-label={t('files.place')} className="mono crumbs">
          <Link to={at('')}>{object.name}</Link>
          {steps.map((step, i) => <span key={i}> / <Link to={at(steps.slice(0, i + 1).join('/'))} aria-current={i === steps.length - 1 ? 'page' : undefined}>{readable(step)}</Link></span>)}
        </nav>
        <span className="grow" />
        {entry?.dir && <a className="button" href={inActing(fileAddress(object, '/archive', version.number, path))} download>{t('data.download_dir')}</a>}
      </div>
      {version.state === 'registered' ? <Note tone="info" title={t('data.registered', { source: version.source, storage: '' })}>{t('data.registered_about')}</Note>
        : failing(tree) ? <Failed error={tree.error} retry={() => void tree.refetch()} />
        : !entry ? <Loading />
        : entry.dir ? <Directory key={path} entries={tree.data!.pages.flatMap((page) => page.entries ?? [])} names={tree.data!.pages[0]!.names} entry={entry} path={path} at={at} />
        : <File key={path} object={object} version={version.number} path={path} entry={entry} />}
      <Cli text={`nomadlike data pull ${flagsOf(object, acting)}${name} DIR`} />
    </div>
  )
}

const marks = { dir: '▸', link: '↪', file: '' }

// Directory lists the names in one, of which only those are drawn that are seen.
function Directory({ entries, names, entry, path, at }: { entries: DataEntry[]; names: number; entry: DataEntry; path: string; at: (path: string) => string }) {
  const { t } = useTranslation()
  const go = useNavigate()
  const [text, setText] = useState('')
  const [order, setOrder] = useState('')
  const [here, setHere] = useState(-1)
  const search = useRef<HTMLInputElement>(null)
  const height = Math.min(useHeight(460), Math.max(5, entries.length + 2) * 33)
  const columns = useMemo((): Column<DataEntry>[] => [
    {
      key: 'name', title: t('data.name'), width: innerWidth < 800 ? 200 : 320, grows: true, compare: (a, b) => (a.name < b.name ? -1 : 1),
      cell: (one) => {
        const kind = one.dir ? 'dir' : one.link ? 'link' : 'file'
        return <span className="mono"><span className="quiet mark-of" aria-hidden="true">{marks[kind]}</span>{one.link ? <>{one.name} <span className="quiet">→ {one.link}</span></> : <a href={at((path && path + '/') + spelled(one))}>{one.name}{one.dir && '/'}</a>}</span>
      },
    },
    { key: 'size', title: t('data.size'), width: 120, compare: (a, b) => a.size - b.size, cell: (one) => (one.link ? '–' : size(one.size)) },
    { key: 'files', title: t('data.files_head'), width: 110, compare: (a, b) => (a.files ?? -1) - (b.files ?? -1), cell: (one) => (one.dir ? one.files ?? 0 : one.runs ? <span className="quiet">{t('data.runs')}</span> : '') },
  ], [t, at, path])
  const found = useMemo(() => (text ? entries.filter((one) => one.name.toLowerCase().includes(text.toLowerCase())) : entries), [entries, text])
  const rows = useMemo(() => (order ? sorted(found, columns, order) : found), [found, columns, order])
  const keys = useCallback((event: KeyboardEvent) => {
    if (typing(event)) return
    const one = rows[here]
    if (event.key === '/') search.current?.focus()
    else if (event.key === 'j') setHere(Math.min(rows.length - 1, here + 1))
    else if (event.key === 'k') setHere(Math.max(0, here - 1))
    else if (event.key === 'o' && one && !one.link) void go(at((path && path + '/') + spelled(one)))
    else return
    event.preventDefault()
  }, [rows, here, go, at, path])
  useEffect(() => {
    addEventListener('keydown', keys)
    return () => removeEventListener('keydown', keys)
  }, [keys])
  return (
    <>
      <div className="bar">
        <span className="quiet" role="status">{t('data.dir', { names, files: t('data.files', { count: entry.files ?? 0 }), size: size(entry.size) })}{entries.length < names && ' · ' + t('data.coming', { count: entries.length })}</span>
        <span className="grow" />
        {names > 10 && <input ref={search} className="field" type="search" style={{ width: 200 }} aria-label={t('data.find_file')} placeholder={t('data.find_file')} value={text} onChange={(event) => setText(event.target.value)} />}
      </div>
      <Grid<DataEntry> label={t('data.tab_files')} rows={rows} columns={columns} idOf={spelled} height={height} order={order} setOrder={setOrder} at={here} go={(to) => void go(to)} empty={<p>{t(text ? 'data.none_match' : 'data.dir_empty')}</p>} />
    </>
  )
}

// File shows the beginning of one, and lets it be downloaded whole.
function File({ object, version, path, entry }: { object: Ref; version: number; path: string; entry: DataEntry }) {
  const { t } = useTranslation()
  const preview = useQuery({ queryKey: ['preview', object.project, object.kind, object.name, version, path], enabled: !entry.link, staleTime: Infinity, gcTime: 60_000, retry: false, queryFn: ({ signal }) => get<DataPreview>(fileAddress(object, '/tree/preview', version, path), signal) })
  const content = fileAddress(object, '/tree/content', version, path)
  return (
    <section className="stack" aria-label={entry.name}>
      <div className="bar">
        <strong className="mono">{entry.name}</strong> <span className="quiet">{entry.link ? '→ ' + entry.link : size(entry.size)}</span>
        <span className="grow" />
        {!entry.link && <a className="button first" href={inActing(content)} download={entry.name}>{t('data.download')}</a>}
      </div>
      {!entry.link && (failing(preview) ? <Failed error={preview.error} retry={() => void preview.refetch()} /> : !preview.data ? <Loading /> : <Preview shown={preview.data.shown} content={content} name={entry.name} />)}
    </section>
  )
}

export function Preview({ shown, content, name }: { shown: Shown; content: string; name: string }) {
  const { t } = useTranslation()
  const more = shown.more && <p className="quiet">{shown.kind === 'table' ? t('data.more_rows', { count: shown.rows?.length ?? 0 }) : t('data.more_text')}</p>
  switch (shown.kind) {
    case 'text':
      return <><Scroll label={name} className="preview"><pre>{shown.text}</pre></Scroll>{shown.encoding && <p className="quiet">{t('data.encoding', { encoding: shown.encoding })}</p>}{more}</>
    case 'table':
      return (
        <>
          <Scroll label={name} className="preview">
            <table className="table">
              <caption className="hidden">{name}</caption>
              <thead><tr>{shown.columns?.map((column, i) => <th key={i} scope="col">{column.name}{column.type && <><br /><small className="quiet">{column.type}</small></>}</th>)}</tr></thead>
              <tbody>{shown.rows?.map((row, i) => <tr key={i}>{shown.columns?.map((_, j) => <td key={j}>{row?.[j]}</td>)}</tr>)}</tbody>
            </table>
          </Scroll>
          {shown.count ? <p className="quiet">{t('data.rows', { count: shown.count, columns: shown.columns?.length ?? 0 })}</p> : more}
        </>
      )
    case 'image':
      return <Picture shown={shown} content={content} name={name} />
  }
  return <p className="quiet">{t('data.why.' + (shown.why || 'binary'), t('data.why.binary'))}</p>
}

// Picture draws a picture from bytes that this page has fetched, of a type that the server
// has found in them: the browser looks at neither name nor address.
function Picture({ shown, content, name }: { shown: Shown; content: string; name: string }) {
  const { t } = useTranslation()
  const [url, setURL] = useState('')
  const [broken, setBroken] = useState<unknown>()
  useEffect(() => {
    const end = new AbortController()
    let made = ''
    send('GET', content, undefined, end.signal).then((answer) => answer.arrayBuffer()).then((bytes) => {
      if (end.signal.aborted) return
      made = URL.createObjectURL(new Blob([bytes], { type: shown.media }))
      setURL(made)
    }).catch((error: unknown) => !end.signal.aborted && setBroken(error))
    return () => {
      end.abort()
      if (made) URL.revokeObjectURL(made)
    }
  }, [content, shown.media])
  if (broken !== undefined) return <Failed error={broken} />
  return (
    <figure className="picture">
      {url ? <img src={url} alt={name} width={shown.width} height={shown.height} onError={() => setBroken(new Error(t('data.why.broken')))} /> : <Loading />}
      <figcaption className="quiet">{shown.width} × {shown.height}, {shown.media?.replace('image/', '')}</figcaption>
    </figure>
  )
}
