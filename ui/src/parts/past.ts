import { millis } from '../format'
import type { Past, PastNode, PastSpan } from '../types'
import type { Cell, Tile } from './cells'

// The wall at a moment that is over, decided without a page.

export const covers = (of: { from: string | null; to: string | null }, at: number) => millis(of.from) <= at && (!of.to || millis(of.to) > at)

// atPast is the wall at a moment of the past. A card that nobody is known to have held
// is free only where everything is known of it; else the cell says what is missing.
export function atPast(tiles: Tile[], past: Past, at: number): Tile[] {
  const nodes = new Map((past.nodes ?? []).map((node) => [node.node_id, node]))
  const forgotten = new Set((past.forgotten ?? []).filter((use) => covers(use, at)).map((use) => use.pool))
  return tiles.map((tile) => tileAt(tile, nodes.get(tile.node.id), forgotten, at))
}

function tileAt(tile: Tile, node: PastNode | undefined, forgotten: Set<string>, at: number): Tile {
  const spans = (node?.spans ?? []).filter((span) => covers(span, at))
  const outages = (node?.outages ?? []).filter((outage) => covers(outage, at))
  const missing = missingOf(node, spans, forgotten, at)
  const idOf = (place: number | undefined) => (place === undefined ? undefined : node?.cards?.[place]?.id)
  const holders = new Map(spans.flatMap((span) => (span.cards ?? []).map((place) => [idOf(place), span] as const)))
  const sick = new Set(outages.flatMap((outage) => idOf(outage.card) ?? []))
  const away = outages.some((outage) => outage.card === undefined)
  const cpu = spans.reduce((sum, span) => sum + (span.cpu ?? 0), 0)
  const cells = tile.cells.map((cell): Cell => {
    const bare = { id: cell.id, label: cell.label, index: cell.index, held: false, sick: sick.has(cell.id), owner: '' }
    if (cell.share !== undefined) return { ...bare, held: spans.length > 0, owner: cell.owner, share: missing === 'absent' ? 0 : Math.min(1, cpu / (tile.node.capacity.cpu || 1)), unknown: spans.length ? undefined : missing }
    const span = holders.get(cell.id)
    if (!span) return { ...bare, unknown: missing }
    return { ...bare, held: true, owner: span.job_id ?? 'hidden', job: span.job, user: span.user, project: span.project, from: span.from, to: span.to }
  })
  return {
    node: { ...tile.node, status: 'ready', eligibility: away ? 'cordoned' : 'eligible', faults: undefined, used: { ...tile.node.used, allocs: spans.length, claim: undefined } },
    cells, then: { node, spans },
  }
}

// missingOf is why it is not known of all cards of a node who held them.
function missingOf(node: PastNode | undefined, spans: PastSpan[], forgotten: Set<string>, at: number): Cell['unknown'] {
  if (!node) return 'left'
  if (at < millis(node.joined_at)) return 'absent'
  if (at < millis(node.complete_since)) return 'cut'
  if (spans.some((span) => span.unknown_cards || span.cards?.some((place) => node.cards?.[place]?.gone))) return 'cards'
  return forgotten.has(node.pool) ? 'forgotten' : undefined
}

// Missing is what is not known of a moment.
export interface Missing {
  absent: string[] // nodes that had not joined
  left: string[] // nodes of which nothing is told
  cut: string[] // nodes of which the oldest is left out
  cards: string[] // nodes with a job of whose cards nobody knows which they were
  forgotten: number // cards of jobs that are kept no longer
  removed: number // nodes with work that the cluster has no more
}

export function missingAt(tiles: Tile[], past: Past, at: number): Missing {
  const names = (why: Cell['unknown']) => tiles.filter((tile) => tile.cells.some((cell) => cell.unknown === why)).map((tile) => tile.node.name)
  return {
    absent: names('absent'), left: names('left'), cut: names('cut'), cards: names('cards'),
    forgotten: (past.forgotten ?? []).filter((use) => covers(use, at)).reduce((sum, use) => sum + use.cards, 0),
    removed: (past.nodes ?? []).filter((node) => node.removed && node.spans?.some((span) => covers(span, at))).length,
  }
}

type Say = (key: string, values?: Record<string, unknown>) => string

// missingText says it.
export function missingText(missing: Missing, t: Say): string {
  const of = (key: 'absent' | 'left' | 'cut' | 'cards') => missing[key].length > 0 && t('cluster.past_' + key, { count: missing[key].length, node: missing[key][0] })
  return [
    of('absent'), of('cut'), of('left'), of('cards'), missing.forgotten > 0 && t('cluster.past_forgotten', { count: missing.forgotten }),
    missing.removed > 0 && t('cluster.past_removed', { count: missing.removed }),
  ].filter(Boolean).join(' ')
}

// numbers writes the cards of a span by their numbers, as in 0–3, 6; those that the
// node has no more, or of which nobody knows which they were, are counted.
export function numbers(node: PastNode | undefined, span: PastSpan): string {
  const cards = (span.cards ?? []).map((place) => node?.cards?.[place])
  const there = cards.flatMap((card) => (card && !card.gone ? card.index : []))
  const own = [...new Set(there)].sort((a, b) => a - b) // parts of a card have one number
  const lost = (span.unknown_cards ?? 0) + cards.length - there.length
  const parts: string[] = []
  for (let i = 0; i < own.length; ) {
    let last = i
    while (last + 1 < own.length && own[last + 1] === own[last]! + 1) last++
    parts.push(last > i ? `${own[i]}–${own[last]}` : String(own[i]))
    i = last + 1
  }
  return [parts.join(', '), lost > 0 && `+${lost}?`].filter(Boolean).join(' ') || '–'
}
