import { useQuery } from '@tanstack/react-query'
import { useEffect, useMemo, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { Link } from 'react-router'
import { useAddress } from '../address'
import { get } from '../api'
import { clock, since } from '../format'
import { useGuest } from '../guest'
import { second } from '../pages/cluster'
import type { Queue } from '../types'
import { groupsOf, sumsOf, type Tile } from './cells'
import { useNow } from './states'
import { startText } from './starts'
import { Wall } from './wall'

const boards = ['cards', 'queue'] as const
const turnDefault = 20 // seconds of each page
const staleAfter = 90_000 // milliseconds: three times as long as nodes are asked for
const queueRows = 9

// Board is the wall screen: large enough to be read across a hall, with nothing to
// press. ?board shows the cards, ?board=cards,queue turns from one to the other every
// turn seconds. While no server answers it goes on showing what it knew, and how old
// that is.
export function Board({ tiles, at, leave }: { tiles: Tile[]; at: number; leave?: string }) {
  const { t } = useTranslation()
  const guest = useGuest()
  const [params] = useAddress()
  const now = useNow(1000)
  const wanted = (params.get('board') ?? '').split(',')
  const pages = boards.filter((one) => wanted.includes(one) && (one !== 'queue' || !guest)) // a link's owner may not read the queue
  const turn = Math.max(5, Number(params.get('turn')) || turnDefault)
  const page = pages[Math.floor(now / 1000 / turn) % (pages.length || 1)] ?? 'cards'
  const sums = useMemo(() => sumsOf(tiles), [tiles])
  const old = at > 0 && now - at > staleAfter
  const figures: [string, number, string][] = [['free', sums.free, 'ok'], ['used', sums.used, ''], ['sick', sums.faults.length, sums.faults.length ? 'bad' : ''], ['away', sums.away.length, sums.away.length ? 'bad' : '']]
  if (sums.cards === 0) figures.splice(0, 3, ['nodes', tiles.filter((tile) => tile.node.status === 'ready').length, 'ok'], ['allocs', tiles.reduce((sum, tile) => sum + tile.node.used.allocs, 0), ''])
  return (
    <div className="screen">
      <h1 className="hidden">{t('cluster.board')}</h1>
      <dl className="screen-figures">
        {figures.map(([key, value, tone]) => <div key={key} className={tone}><dd>{value}</dd><dt>{t('board.' + key)}</dt></div>)}
      </dl>
      <div className="screen-page">{page === 'queue' ? <Waiting /> : <Filling tiles={tiles} />}</div>
      <p className="screen-foot">
        <span>{second(sums, tiles, t)}</span>
        <span className={old ? 'bad' : 'quiet'} role="status">{old ? t('board.old', { time: clock(new Date(at).toISOString()), age: since(new Date(at).toISOString(), null, now) }) : clock(new Date(now).toISOString())}</span>
        {leave && <Link to={leave}>{t('cluster.leave')}</Link>}
      </p>
    </div>
  )
}

// Filling is the wall in what the figures leave of the screen.
function Filling({ tiles }: { tiles: Tile[] }) {
  const [room, setRoom] = useState(innerHeight)
  useEffect(() => {
    const change = () => setRoom(innerHeight)
    addEventListener('resize', change)
    return () => removeEventListener('resize', change)
  }, [])
  const groups = useMemo(() => groupsOf(tiles, 'pool'), [tiles])
  return <Wall groups={groups} height={Math.max(160, room - Math.min(260, room * 0.3) - 70)} plain />
}

// Waiting is the head of the queue, with when each is expected to start.
function Waiting() {
  const { t } = useTranslation()
  const queue = useQuery({ queryKey: ['queue', 'board'], refetchInterval: 20_000, queryFn: ({ signal }) => get<Queue>(`/v1/queue?limit=${queueRows}`, signal) })
  const entries = queue.data?.entries ?? []
  if (queue.data && entries.length === 0) return <p className="screen-none">{t('board.none')}</p>
  return (
    <table className="screen-queue">
      <caption className="hidden">{t('menu.queue')}</caption>
      <thead><tr><th scope="col">{t('jobs.name')}</th><th scope="col">{t('jobs.project')}</th><th scope="col">{t('queue.asks')}</th><th scope="col">{t('queue.starts')}</th></tr></thead>
      <tbody>{entries.map((e) => (
        <tr key={`${e.job_id}/${e.position}`}><th scope="row">{e.job_name || t('queue.hidden')}</th><td>{e.project}</td><td>{t('short.nodes', { count: e.nodes })}{e.devices ? ` · ${t('short.cards', { count: e.devices })}` : ''}</td><td>{e.forecast ? startText(t, e.forecast) : '–'}</td></tr>
      ))}</tbody>
    </table>
  )
}
