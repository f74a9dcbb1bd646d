import { millis } from '../format'
import { reasonText } from '../i18n'
import type { AvailableNode, Bar, NodeDevices, NodeSummary, PastNode, PastSpan, Timeline } from '../types'

// What the wall of cards shows and where, decided without a page.

// A tile is a node, and a cell one of its cards; a node without cards has one cell
// for itself, filled as far as its cores are in use.
export interface Cell {
  id: string
  label: string
  index: number
  held: boolean
  sick: boolean
  reserved?: boolean // free, and promised to a job
  expected?: boolean // of a moment to come: a start or an end that is foreseen
  owner: string // id of the job
  job?: string
  user?: string
  project?: string
  share?: number
  why?: string
  use?: number // 0 to 1, where it is measured
  heat?: number // degrees
  from?: string | null // of a moment that is not now: since when it is held
  to?: string | null // and until when; null: still
  unknown?: 'absent' | 'left' | 'cut' | 'cards' | 'forgotten' // of a moment that is over: why nobody knows who held it
}
export interface Tile {
  node: NodeSummary
  cells: Cell[]
  then?: { node?: PastNode; spans: PastSpan[] } // of a moment that is over: what held it
}

export const idle = 0.02 // below that, a card in use does nothing

export function cellsOf(nodes: NodeSummary[], available: AvailableNode[], measured: NodeDevices[] = []): Tile[] {
  const states = new Map(measured.flatMap((node) => (node.devices ?? []).map((d) => [node.id + d.id, d] as const)))
  const jobs = new Map(available.flatMap((node) => (node.cards ?? []).map((card) => [node.id + card.device, card] as const)))
  return nodes.map((node) => ({
    node,
    cells: node.devices?.length
      ? [...node.devices].sort((a, b) => a.index - b.index).map((device) => {
          const alloc = node.used.devices?.[device.id]
          const card = jobs.get(node.id + device.id)
          const now = states.get(node.id + device.id)
          return {
            id: device.id, label: `${device.index} ${device.model}`, index: device.index, held: !!alloc, sick: !device.healthy, reserved: !alloc && !!node.used.claim,
            owner: now?.owner?.job_id ?? card?.job_id ?? alloc ?? '', job: now?.owner?.job ?? card?.job, user: now?.owner?.user, project: now?.owner?.project,
            why: reasonText(device.health), use: now?.gauges?.utilization_ratio, heat: now?.gauges?.temperature_celsius,
          }
        })
      : [{ id: node.id, label: 'CPU', index: 0, held: node.used.allocs > 0, sick: false, owner: 'cpu', share: node.capacity.cpu ? Math.min(1, node.used.cpu / node.capacity.cpu) : 0 }],
  }))
}

// takes reports whether a node takes new work.
export const takes = (node: NodeSummary) => node.status === 'ready' && node.eligibility === 'eligible' && !(node.faults ?? []).some((fault) => fault.unfit)

const free = (tile: Tile, cell: Cell) => takes(tile.node) && !cell.held && !cell.sick && !cell.reserved && !cell.unknown && cell.share === undefined

// The filters of the wall, each a question that people ask of it.
export const questions = ['mine', 'free', 'unused', 'reserved', 'fault', 'free4', 'idle'] as const
export type Question = (typeof questions)[number]

// answers reports whether a cell is one of those that a question is about.
function answers(tile: Tile, cell: Cell, question: Question, user: string): boolean {
  switch (question) {
    case 'mine':
      return cell.held && !!user && cell.user === user
    case 'free':
      return free(tile, cell)
    case 'unused':
      return cell.held && cell.use !== undefined && cell.use < idle
    case 'reserved':
      return !!cell.reserved
    case 'fault':
      return cell.sick || tile.node.status === 'lost' || tile.node.status === 'disconnected'
    case 'free4':
      return free(tile, cell) && tile.cells.filter((one) => free(tile, one)).length >= 4
    case 'idle':
      return tile.node.used.allocs === 0
  }
}

// counted says how many cards are the answer to each question; nodes at fault and
// nodes without work count as nodes.
export function counted(tiles: Tile[], user = ''): Record<Question, number> {
  const out = Object.fromEntries(questions.map((q) => [q, 0])) as Record<Question, number>
  for (const tile of tiles) {
    for (const q of questions) {
      const cells = tile.cells.filter((cell) => answers(tile, cell, q, user)).length
      out[q] += q === 'free4' || q === 'idle' ? Math.min(1, cells) : cells
    }
  }
  return out
}

// keeps reports whether a tile has a cell that answers a question, or a card of a
// model of that name.
export function keeps(tile: Tile, show: string, user = ''): boolean {
  if (!show) return true
  if ((questions as readonly string[]).includes(show)) return tile.cells.some((cell) => answers(tile, cell, show as Question, user))
  return (tile.node.devices ?? []).some((device) => device.model === show)
}

// Sums is what the sentence above the wall says.
export interface Sums {
  cards: number
  used: number
  free: number
  unused?: number // where use is measured
  unknown?: number // of a moment that is over
  faults: { node: string; index: number }[]
  away: string[] // nodes
}

export function sumsOf(tiles: Tile[]): Sums {
  const out: Sums = { cards: 0, used: 0, free: 0, faults: [], away: [] }
  for (const tile of tiles) {
    if (tile.node.status === 'lost' || tile.node.status === 'disconnected') out.away.push(tile.node.name)
    for (const cell of tile.cells) {
      if (cell.share !== undefined || cell.unknown === 'absent') continue
      out.cards++
      if (cell.unknown) out.unknown = (out.unknown ?? 0) + 1
      if (cell.held) out.used++
      if (free(tile, cell)) out.free++
      if (cell.sick) out.faults.push({ node: tile.node.name, index: cell.index })
      if (cell.held && cell.use !== undefined) out.unused = (out.unused ?? 0) + (cell.use < idle ? 1 : 0)
    }
  }
  return out
}

// Group is what tiles stand together for, with its own sums.
export interface Group {
  name: string
  tiles: Tile[]
}

export const groupings = ['pool', 'rack', 'model', 'project'] as const
export type Grouping = (typeof groupings)[number]

// groupsOf puts tiles together by what they have in common: their pool, their place
// in the hall, their first card's model, or the one project that uses most of them.
export function groupsOf(tiles: Tile[], by: Grouping): Group[] {
  const groups = new Map<string, Tile[]>()
  for (const tile of tiles) {
    const name = nameOf(tile, by)
    groups.set(name, [...(groups.get(name) ?? []), tile])
  }
  return [...groups].map(([name, of]) => ({ name, tiles: of })).sort((a, b) => Number(!a.name) - Number(!b.name) || a.name.localeCompare(b.name, undefined, { numeric: true }))
}

function nameOf(tile: Tile, by: Grouping): string {
  switch (by) {
    case 'pool':
      return tile.node.pool || 'default'
    case 'rack':
      return (tile.node.topology ?? []).join(' / ')
    case 'model':
      return tile.node.devices?.[0]?.model ?? ''
    case 'project': {
      const many = new Map<string, number>()
      for (const cell of tile.cells) if (cell.project) many.set(cell.project, (many.get(cell.project) ?? 0) + 1)
      return [...many].sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0]))[0]?.[0] ?? ''
    }
  }
}

// Gang is the largest job that the cards alone would allow at once: whole nodes of
// one model, or, where no node is wholly free, cards of one node.
export interface Gang {
  model: string
  nodes: number
  cards: number // on each
}

export function largestGang(tiles: Tile[]): Gang | undefined {
  const whole = new Map<string, Gang>()
  let part: Gang | undefined
  for (const tile of tiles) {
    const cells = tile.cells.filter((cell) => free(tile, cell))
    const model = tile.node.devices?.[0]?.model
    if (!model || cells.length === 0) continue
    if (cells.length === tile.cells.length) {
      const key = model + '\n' + cells.length
      const gang = whole.get(key) ?? { model, nodes: 0, cards: cells.length }
      whole.set(key, { ...gang, nodes: gang.nodes + 1 })
    } else if (!part || cells.length > part.cards) part = { model, nodes: 1, cards: cells.length }
  }
  return [...whole.values()].sort((a, b) => b.nodes * b.cards - a.nodes * a.cards || a.model.localeCompare(b.model))[0] ?? part
}

// atMoment is the wall as the forecast foresees it at a moment to come: jobs that
// are expected to have ended are gone, and those that are expected to start take
// cards that are free then. What nobody foresees stays as it is.
export function atMoment(tiles: Tile[], timeline: Timeline, at: number): Tile[] {
  const rows = new Map((timeline.rows ?? []).map((row) => [row.node_id, row.bars ?? []]))
  const covers = (bar: Bar) => (millis(bar.from) || millis(bar.p50)) <= at && (!bar.to || millis(bar.to) > at)
  return tiles.map((tile) => {
    const bars = rows.get(tile.node.id) ?? []
    const over = new Set(bars.filter((bar) => bar.kind === 'running' && bar.to && millis(bar.to) <= at).map((bar) => bar.job_id))
    const cells = tile.cells.map((cell) => (cell.held && over.has(cell.owner) ? { ...cell, held: false, reserved: false, owner: '', job: undefined, user: undefined, project: undefined, use: undefined, expected: true } : { ...cell, use: undefined }))
    for (const bar of bars) {
      if (bar.kind === 'running' || !covers(bar)) continue
      let left = bar.devices ?? 0
      for (const cell of cells) {
        if (left === 0) break
        if (cell.held || cell.sick || cell.share !== undefined) continue
        Object.assign(cell, { held: true, reserved: false, expected: true, owner: bar.job_id, job: bar.job_name, project: bar.project, from: bar.from, to: bar.to })
        left--
      }
    }
    return { ...tile, cells }
  })
}

// Plan is where everything of a wall stands, in pixels.
export interface Plan {
  cell: number // side of a cell with its gap
  across: number // cells in a row of a tile
  named: boolean // tiles have room for their names
  pad: number // from a tile's edge to its cells
  tile: { w: number; h: number }
  groups: { name: string; y: number; tiles: { tile: Tile; x: number; y: number }[] }[]
  height: number
}

const gap = 6
export const title = 14
const heading = 26
const nameWidth = 88
// How large cells may be, the best first: sides in pixels, and whether their tiles are
// named. Names make tiles wide, so that cells without are larger where there are many.
const sizes: [number, boolean][] = [[44, true], [36, true], [30, true], [26, true], [22, true], [18, true], [20, false], [17, false], [15, false], [12, false], [10, false], [8, false], [6, false], [5, false]]

// planOf fits a wall into a width and, if it can, into a height: cells are as large
// as all of them allow, from four cards to ten thousand.
export function planOf(groups: Group[], width: number, height: number): Plan {
  const most = Math.max(1, ...groups.flatMap((group) => group.tiles.map((tile) => tile.cells.length)))
  let plan: Plan | undefined
  for (const [cell, named] of sizes) {
    plan = placed(groups, width, cell, named, most)
    if (plan.height <= height) return plan
  }
  return plan!
}

function placed(groups: Group[], width: number, cell: number, named: boolean, most: number): Plan {
  const across = most <= 4 ? most : most <= 8 ? 4 : 8
  const top = named ? title : 0
  const pad = named ? 4 : 2
  const w = Math.max(across * cell + pad * 2, named ? nameWidth : 0)
  const h = Math.ceil(most / across) * cell + pad * 2 + top
  const between = named ? gap : 3
  const columns = Math.max(1, Math.floor((width + between) / (w + between)))
  const above = groups.length === 1 && !groups[0]!.name ? 0 : heading // one group without a name needs none
  let y = 0
  const out = groups.map((group) => {
    const at = { name: group.name, y, tiles: group.tiles.map((tile, i) => ({ tile, x: (i % columns) * (w + between), y: y + above + Math.floor(i / columns) * (h + between) })) }
    y += above + Math.ceil(group.tiles.length / columns) * (h + between) + gap
    return at
  })
  return { cell, across, named, pad, tile: { w, h }, groups: out, height: Math.max(1, y) }
}
