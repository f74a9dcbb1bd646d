import { useQuery } from '@tanstack/react-query'
import { lazy, Suspense, useEffect, useMemo, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { Link } from 'react-router'
import { useAddress } from '../address'
import { again } from '../again'
import { get } from '../api'
import { clock } from '../format'
import { useGuest } from '../guest'
import { Button, Pick, Segments } from '../parts/controls'
import { atMoment, cellsOf, counted, groupings, groupsOf, keeps, largestGang, questions, sumsOf, type Question, type Sums, type Tile } from '../parts/cells'
import { HolderTable, NodeDay } from '../parts/holders'
import { Hours, hoursAhead, hoursOf } from '../parts/hours'
import { cardsQuery, nodesQuery } from '../parts/lists'
import { NodeTable } from '../parts/nodetable'
import { atPast, missingAt, missingText } from '../parts/past'
import { Failed, failing, Loading, useTitle } from '../parts/states'
import { colourings, Wall } from '../parts/wall'
import { operates } from '../rights'
import { useSession } from '../shell'
import type { DeviceList, Past, Timeline } from '../types'

// What is opened from the page comes when it is: nobody waits for it who looks at the wall.
const ShareDialog = lazy(() => again(() => import('../parts/share')).then((m) => ({ default: m.ShareDialog })))
const NodeCards = lazy(() => again(() => import('../parts/nodecards')).then((m) => ({ default: m.NodeCards })))
const Board = lazy(() => again(() => import('../parts/board')).then((m) => ({ default: m.Board })))

// useTiles asks for all nodes and cards, with who uses them and what they measure.
function useTiles(guest: boolean) {
  const nodes = useQuery({ ...nodesQuery, refetchInterval: 30_000 })
  const cards = useQuery({ ...cardsQuery, enabled: !guest })
  const measured = useQuery({
    queryKey: ['nodes', 'figures'],
    retry: false,
    enabled: !guest && (nodes.data ?? []).some((n) => n.devices?.length),
    refetchInterval: 5000,
    queryFn: ({ signal }) => get<DeviceList>('/v1/devices?limit=1000', signal).then((d) => d.nodes ?? []),
  })
  const tiles = useMemo(() => cellsOf(nodes.data ?? [], cards.data?.nodes ?? [], measured.data), [nodes.data, cards.data, measured.data])
  return { nodes, tiles }
}

export function Cluster() {
  const { t } = useTranslation()
  useTitle(t('menu.cluster'))
  const guest = useGuest()
  const [params] = useAddress()
  const seen = useTiles(guest)
  if (params.has('board')) return <Suspense><Board tiles={seen.tiles} at={seen.nodes.dataUpdatedAt} leave={guest ? undefined : '/cluster'} /></Suspense>
  return <Cards {...seen} guest={guest} />
}

function Cards({ nodes, tiles: now, guest }: ReturnType<typeof useTiles> & { guest: boolean }) {
  const { t } = useTranslation()
  const session = useSession()
  const [params, put] = useAddress()
  const [sharing, setSharing] = useState(false)
  const user = session.data?.user ?? ''
  const mayShare = operates(session.data)
  const list = params.get('view') === 'list'
  const text = params.get('text') ?? ''
  const show = params.get('show') ?? ''
  const chosen = params.get('node') ?? ''
  const by = groupings.find((one) => one === params.get('group')) ?? 'pool'
  const colour = colourings.find((one) => one === params.get('colour')) ?? 'job'
  const hours = guest ? 0 : hoursOf(params.get('hours'))
  const timeline = useQuery({ queryKey: ['nodes', 'timeline'], enabled: hours > 0, refetchInterval: 60_000, queryFn: ({ signal }) => get<Timeline>('/v1/queue/timeline?hours=' + hoursAhead, signal) })
  const past = useQuery({ queryKey: ['nodes', 'past'], enabled: hours < 0, refetchInterval: 60_000, queryFn: ({ signal }) => get<Past>('/v1/outlook/past', signal) })
  const known = hours < 0 ? past.data : undefined // what is over is known, what comes is foreseen
  const ahead = hours > 0 ? timeline.data : undefined
  const since = known?.to ?? ahead?.from
  const at = since ? Date.parse(since) + hours * 3600e3 : 0
  const tiles = useMemo(() => (known ? atPast(now, known, at) : ahead ? atMoment(now, ahead, at) : now), [now, known, ahead, at])
  const counts = useMemo(() => counted(tiles, user), [tiles, user])
  const models = useMemo(() => [...new Set((nodes.data ?? []).flatMap((n) => (n.devices ?? []).map((d) => d.model)))].sort(), [nodes.data])
  const shown = useMemo(
    () => tiles.filter((tile) => (!text || `${tile.node.name} ${tile.node.pool ?? ''} ${(tile.node.topology ?? []).join(' ')}`.toLowerCase().includes(text.toLowerCase())) && keeps(tile, show, user)),
    [tiles, text, show, user],
  )
  const groups = useMemo(() => groupsOf(shown, by), [shown, by])
  const sums = useMemo(() => sumsOf(tiles), [tiles])
  const height = useRoom()
  const closer = tiles.find((tile) => tile.node.id === chosen)
  const asked: Question[] = questions.filter((q) => (q !== 'mine' || !!user) && (q !== 'unused' || sums.cards > 0) && !(known && (q === 'unused' || q === 'reserved')))
  if (nodes.isPending) return <Loading />
  return (
    <div className="page">
      <div className="bar">
        <h1>{known ? pastSentence(sums, at, t) : sentence(sums, tiles.length, t)}</h1>
        <span className="grow" />
        {!guest && <Link className="button plain" to="/cluster?board">{t('cluster.board')}</Link>}
        {mayShare && <Button onClick={() => setSharing(true)}>{t('share.share')}</Button>}
        {sharing && <Suspense><ShareDialog path="/v1/wall/shares" close={() => setSharing(false)} /></Suspense>}
      </div>
      <p className="truth">{known ? missingText(missingAt(tiles, known, at), t) || t('cluster.past_known') : ahead ? t('cluster.foreseen', { time: clock(new Date(at).toISOString()) }) : second(sums, tiles, t)}</p>
      {failing(nodes) && <Failed error={nodes.error} retry={() => void nodes.refetch()} />}
      {failing(timeline) && <Failed error={timeline.error} retry={() => void timeline.refetch()} />}
      {failing(past) && <Failed error={past.error} retry={() => void past.refetch()} />}
      <div className="bar" role="group" aria-label={t('cluster.show')}>
        <button type="button" className="chip" aria-pressed={!show} onClick={() => put('show', '')}>{t('cluster.all')}</button>
        {asked.map((q) => <button key={q} type="button" className="chip" aria-pressed={show === q} onClick={() => put('show', show === q ? '' : q)}>{t('cluster.only_' + q)} <b>{counts[q]}</b></button>)}
        {models.length > 1 && models.map((model) => <button key={model} type="button" className="chip" aria-pressed={show === model} onClick={() => put('show', show === model ? '' : model)}>{model}</button>)}
      </div>
      <div className="bar" role="search" aria-label={t('jobs.filter')}>
        <input className="field" type="search" style={{ width: 200 }} aria-label={t('cluster.search')} placeholder={t('cluster.search')} value={text} onChange={(e) => put('text', e.target.value)} />
        <Segments<'wall' | 'list'> label={t('cluster.view')} value={list ? 'list' : 'wall'} change={(value) => put('view', value === 'wall' ? '' : value)} options={[{ value: 'wall', label: t('cluster.wall') }, { value: 'list', label: t('cluster.list') }]} />
        <Pick width={150} label={t('cluster.colour')} value={params.get('colour') ?? ''} change={(value) => put('colour', value)} options={colourings.map((value) => ({ value, label: t('cluster.colour_' + value) }))} />
        <Pick width={150} label={t('cluster.group')} value={params.get('group') ?? ''} change={(value) => put('group', value)} options={groupings.map((value) => ({ value, label: t('cluster.group_' + value) }))} />
        {!guest && <Hours hours={hours} put={(value) => put('hours', value)} />}
        <span className="quiet" role="status">{t('cluster.count', { count: shown.length })}</span>
      </div>
      {hours < 0 && past.isPending ? <Loading /> : list && known ? <HolderTable tiles={shown} order={params.get('sort') ?? ''} setOrder={(value) => put('sort', value)} /> : list ? <NodeTable nodes={shown.map((tile) => tile.node)} order={params.get('sort') ?? ''} setOrder={(value) => put('sort', value)} /> : (
        <div className={closer ? 'beside' : undefined}>
          <section className="card" aria-label={t('cluster.wall')}><Wall groups={groups} height={height} colour={colour} chosen={chosen} choose={guest ? undefined : (node) => put('node', node === chosen ? '' : node)} /></section>
          {closer && known && <NodeDay tile={closer} at={at} close={() => put('node', '')} />}
          {closer && !known && <Suspense><NodeCards tile={closer} close={() => put('node', '')} /></Suspense>}
        </div>
      )}
    </div>
  )
}

type Say = (key: string, values?: Record<string, unknown>) => string

// sentence is what the whole cluster comes to, in a few words.
export function sentence(sums: Sums, nodes: number, t: Say): string {
  if (sums.cards === 0) return nodes ? t('cluster.no_cards', { count: nodes }) : t('menu.cluster')
  return [t('cluster.truth', { used: sums.used, cards: sums.cards }), t('cluster.truth_free', { count: sums.free }), sums.unused !== undefined && sums.unused > 0 && t('cluster.truth_unused', { count: sums.unused })].filter(Boolean).join(t('cluster.comma'))
}

// pastSentence is what the cluster came to at a moment that is over.
export function pastSentence(sums: Sums, at: number, t: Say): string {
  const time = clock(new Date(at).toISOString())
  if (sums.cards === 0) return t('cluster.past_no_cards', { time })
  return [t('cluster.past_truth', { time, used: sums.used, cards: sums.cards }), t('cluster.past_free', { count: sums.free }), !!sums.unknown && t('cluster.past_unknown', { count: sums.unknown })].filter(Boolean).join(t('cluster.comma'))
}

// second is what one would ask next: how large a job could start, and what is broken.
export function second(sums: Sums, tiles: Tile[], t: Say): string {
  const gang = largestGang(tiles)
  const fault = sums.faults[0]
  return [
    gang && (gang.nodes > 1 || gang.cards > 1 ? t('cluster.gang', { nodes: t('short.nodes', { count: gang.nodes }), cards: gang.cards, model: gang.model }) : t('cluster.one_free', { model: gang.model })),
    fault && (sums.faults.length === 1 ? t('cluster.one_fault', { node: fault.node, card: fault.index }) : t('cluster.faults', { count: sums.faults.length, node: fault.node, card: fault.index })),
    sums.away.length > 0 && t('cluster.away', { count: sums.away.length, node: sums.away[0] }),
  ].filter(Boolean).join(' ')
}

// useRoom is the height that is left for the wall below what stands above it.
function useRoom(): number {
  const [room, setRoom] = useState(Math.max(320, innerHeight - 330))
  useEffect(() => {
    const change = () => setRoom(Math.max(320, innerHeight - 330))
    addEventListener('resize', change)
    return () => removeEventListener('resize', change)
  }, [])
  return room
}

