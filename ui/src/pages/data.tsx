import { useQuery, useQueryClient } from '@tanstack/react-query'
import { lazy, Suspense, useCallback, useEffect, useMemo, useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useNavigate, useSearchParams } from 'react-router'
import { again } from '../again'
import { call } from '../api'
import { clock, dateTime, millis, size } from '../format'
import { Cli } from '../parts/actions'
import { Button, Segments } from '../parts/controls'
import { say } from '../parts/controls/messages'
import { addressOf, isOf, kindsOf, listQuery, matches, pageOf, refOf, whoses, type Ref, type Whose } from '../parts/data'
import { Grid, sorted, twoLines, useHeight, type Column } from '../parts/grid'
import { typing } from '../parts/keys'
import { errorText, Failed, failing, Loading, useTitle } from '../parts/states'
import { useRights, useUser } from '../rights'
import { useSession } from '../shell'
import type { DataDetail, DataList } from '../types'
import './data/data.css'

const MakeDialog = lazy(() => again(() => import('./data/make')).then((m) => ({ default: m.MakeDialog })))

const none: DataDetail[] = []

// useMark marks an object as a favourite of one's own, or takes that back, at once: what
// the server says of it follows.
export function useMark(): (ref: Ref, on: boolean) => Promise<void> {
  const { t } = useTranslation()
  const client = useQueryClient()
  return async (ref, on) => {
    try {
      await call('PUT', addressOf(ref, '/mark'), { off: !on })
    } catch (error) {
      say('bad', errorText(error, t))
    }
    await client.invalidateQueries({ queryKey: ['data'] })
  }
}

// Star marks an object as a favourite.
export function Star({ detail, mark }: { detail: DataDetail; mark: (ref: Ref, on: boolean) => void }) {
  const { t } = useTranslation()
  const { favourite, object } = detail
  return <button type="button" className="star" aria-pressed={favourite} aria-label={t('data.mark', { name: object.name })} title={t(favourite ? 'data.unmark_long' : 'data.mark_long')} onClick={() => mark(refOf(detail), !favourite)}>{favourite ? '★' : '☆'}</button>
}

// DataPage lists the named data that one may use: of the project, one's own, what one has
// marked, what was published, and all there is.
export function DataPage() {
  const { t } = useTranslation()
  useTitle(t('menu.data'))
  const acting = useSession().data?.acting ?? ''
  const user = useUser()
  const may = useRights()
  const go = useNavigate()
  const mark = useMark()
  const list = useQuery(listQuery(acting))
  const [params, setParams] = useSearchParams()
  const whose = (whoses.find((one) => one === params.get('whose')) ?? 'project') satisfies Whose
  const kind = params.get('kind') ?? ''
  const asked = params.get('text') ?? ''
  const [text, setText] = useState(asked) // what is typed is here at once, the address follows
  const order = params.get('sort') ?? ''
  const [at, setAt] = useState(-1)
  const [makes, setMakes] = useState(false)
  const search = useRef<HTMLInputElement>(null)
  const room = useHeight(430)
  useEffect(() => {
    if (document.activeElement !== search.current) setText(asked)
  }, [asked])
  const all = list.data?.objects ?? none
  const set = (name: string, value: string) => setParams((old) => {
    const next = new URLSearchParams(old)
    if (value) next.set(name, value)
    else next.delete(name)
    return next
  }, { replace: true })
  const ours = useMemo(() => all.filter((one) => isOf(one, whose, user, acting)), [all, whose, user, acting])
  const kinds = useMemo(() => kindsOf(all), [all])
  const shown = useMemo(() => ours.filter((one) => (!kind || one.object.kind === kind) && matches(one, text)), [ours, kind, text])
  const columns = useColumns(mark)
  const rows = useMemo(() => (order ? sorted(shown, columns, order) : shown), [shown, columns, order])
  const keys = useCallback((event: KeyboardEvent) => {
    if (typing(event)) return
    const here = rows[at]
    if (event.key === '/') search.current?.focus()
    else if (event.key === 'j') setAt(Math.min(rows.length - 1, at + 1))
    else if (event.key === 'k') setAt(Math.max(0, at - 1))
    else if (event.key === 'o' && here) void go(pageOf(refOf(here)))
    else if (event.key === 'x' && here) void mark(refOf(here), !here.favourite)
    else return
    event.preventDefault()
  }, [rows, at, go, mark])
  useEffect(() => {
    addEventListener('keydown', keys)
    return () => removeEventListener('keydown', keys)
  }, [keys])
  if (list.isPending) return <Loading />
  if (failing(list) || !list.data) return <div className="page"><h1>{t('menu.data')}</h1><Failed error={list.error} retry={() => void list.refetch()} /></div>
  return (
    <div className="page">
      <div className="bar">
        <h1>{t('menu.data')}</h1>
        <span className="quiet" role="status">{t('jobs.count', { shown: shown.length, count: all.length })}</span>
        <span className="grow" />
        {may('submit') && <Button tone="first" onClick={() => setMakes(true)}>{t('data.make')}</Button>}
      </div>
      <Truth all={all} list={list.data} user={user} acting={acting} />
      <div className="bar" role="search" aria-label={t('data.filter')}>
        <Segments<Whose> label={t('data.whose')} value={whose} change={(value) => set('whose', value === 'project' ? '' : value)} options={whoses.filter((one) => one !== 'mine' || user).map((value) => ({ value, label: t('data.whose_' + value) }))} />
        {kinds.map((one) => {
          const count = ours.filter(({ object }) => object.kind === one).length
          return <button key={one} type="button" className="chip" aria-pressed={kind === one} onClick={() => set('kind', kind === one ? '' : one)}>{t('data.kinds.' + one, one)} <b>{count}</b></button>
        })}
        <input ref={search} className="field" type="search" style={{ width: 220 }} aria-label={t('data.search')} placeholder={t('data.search_words')} value={text} onChange={(event) => { setText(event.target.value); set('text', event.target.value) }} />
        {params.size > 0 && <Button tone="bare" onClick={() => { setText(''); setParams('', { replace: true }) }}>{t('jobs.no_filter')}</Button>}
      </div>
      <Grid<DataDetail>
        label={t('menu.data')}
        rows={rows}
        columns={columns}
        idOf={(one) => pageOf(refOf(one))}
        height={Math.min(room, Math.max(4, rows.length + 1) * twoLines)}
        order={order}
        setOrder={(value) => set('sort', value)}
        at={at}
        rowHeight={twoLines}
        go={(path) => void go(path)}
        empty={<Empty whose={all.length ? whose : 'none'} text={!!text || !!kind} />}
      />
      <p className="quiet">{t('data.keys')}</p>
      <Cli text={lineOf(whose, kind)} />
      {makes && <Suspense><MakeDialog known={all} project={acting} close={() => setMakes(false)} /></Suspense>}
    </div>
  )
}

// lineOf is what lists the same on the command line.
export const lineOf = (whose: Whose, kind: string) => 'nomadlike data ls' + (whose === 'favourites' ? ' -favourites' : whose === 'all' || whose === 'published' ? ' -all' : '') + (kind ? ' -kind ' + kind : '')

// Truth says what there is and how much of the project's quota it has.
function Truth({ all, list, user, acting }: { all: DataDetail[]; list: DataList; user: string; acting: string }) {
  const { t } = useTranslation()
  const here = all.filter((one) => isOf(one, 'project', user, acting)).length
  const { used, quota } = list
  const share = quota ? used / quota : 0
  const much = quota ? t('data.quota', { used: size(used), quota: size(quota) }) : t('data.no_quota', { used: size(used) })
  return (
    <>
      <p className="truth">{t('data.truth', { count: here, project: acting })} {much}{share >= nearly && <> <strong className="tone-bad">{t(share >= 1 ? 'data.quota_full' : 'data.quota_near')}</strong></>}</p>
      {quota > 0 && <div className="meter narrow" role="img" aria-label={much}><i className={share >= nearly ? 'over' : undefined} style={{ width: `${Math.min(100, 100 * share)}%` }} /></div>}
    </>
  )
}
const nearly = 0.9 // of a quota

function Empty({ whose, text }: { whose: Whose | 'none'; text: boolean }) {
  const { t } = useTranslation()
  if (text && whose !== 'none') return <p>{t('data.none_match')}</p>
  return <div><p>{t('data.empty_' + whose)}</p>{whose !== 'published' && whose !== 'favourites' && <pre className="cli">nomadlike data push DIR NAME</pre>}</div>
}

function useColumns(mark: (ref: Ref, on: boolean) => void): Column<DataDetail>[] {
  const { t } = useTranslation()
  return useMemo((): Column<DataDetail>[] => [
    {
      key: 'name', title: t('data.name'), width: innerWidth < 800 ? 190 : 300, grows: true, compare: (a, b) => a.object.name.localeCompare(b.object.name),
      cell: (one) => {
        const said = [t('data.kind.' + one.object.kind, one.object.kind), one.object.description?.replaceAll('\n', ' ')].filter(Boolean).join(' · ')
        return <span className="two"><Star detail={one} mark={mark} /> <a href={pageOf(refOf(one))}>{one.object.name}</a>{one.object.published && <> <span className="tag tone-good">{t('data.published')}</span></>}<br /><small className="quiet" title={said}>{said}</small></span>
      },
    },
    { key: 'newest', title: t('data.newest'), width: 110, compare: (a, b) => a.newest! - b.newest!, known: (one) => !!one.newest, cell: (one) => (one.newest ? <span className="two">{t('data.version_short', { version: one.newest })}<br /><small className="quiet">{one.newest_tag ?? ''}</small></span> : <span className="quiet">{t('data.no_version')}</span>) },
    { key: 'size', title: t('data.size'), width: 130, compare: (a, b) => a.bytes - b.bytes, cell: (one) => (one.newest && one.files ? <span className="two">{size(one.bytes)}<br /><small className="quiet">{t('data.files', { count: one.files })}</small></span> : '–') },
    { key: 'since', title: t('data.since'), width: 140, compare: (a, b) => millis(a.newest_at) - millis(b.newest_at), known: (one) => !!one.newest_at, cell: (one) => <span title={dateTime(one.newest_at)}>{clock(one.newest_at)}</span> },
    { key: 'running', title: t('data.running'), width: 110, compare: (a, b) => (a.running ?? 0) - (b.running ?? 0), cell: (one) => (one.running ? t('data.jobs', { count: one.running }) : <span className="quiet">–</span>) },
    { key: 'owner', title: t('data.owner'), width: 110, compare: (a, b) => (a.object.owner ?? '').localeCompare(b.object.owner ?? ''), cell: (one) => one.object.owner },
    { key: 'project', title: t('data.project'), width: 110, compare: (a, b) => a.object.project.localeCompare(b.object.project), cell: (one) => one.object.project },
    { key: 'access', title: t('data.access'), width: 120, cell: (one) => t('data.accesses.' + one.object.access, one.object.access) },
  ], [t, mark])
}
