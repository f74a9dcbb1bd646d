import { useEffect, useMemo, useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { clock } from '../format'
import { colorOf, useLook, useWidth } from '../look'
import { idle, planOf, sumsOf, takes, title, type Cell, type Group, type Plan, type Tile } from './cells'

export const colourings = ['job', 'user', 'project'] as const
export type Colouring = (typeof colourings)[number] | 'whose'

export interface WallProps {
  groups: Group[]
  height?: number // pixels that it should fit into, if it can
  colour?: Colouring
  chosen?: string // id of the node that is looked at closely
  choose?: (node: string) => void
  plain?: boolean // with the first page's legend, mine and others'
}

// Wall draws every card of the cluster on one canvas. The list says the same to
// those who do not see it.
export function Wall({ groups, height = 360, colour = 'job', chosen, choose, plain }: WallProps) {
  const { t } = useTranslation()
  const { dark } = useLook()
  const canvas = useRef<HTMLCanvasElement>(null)
  const [width, frame] = useWidth(240)
  const [over, setOver] = useState<{ tile: Tile; cell?: Cell; x: number; y: number }>()
  const plan = useMemo(() => planOf(groups, width, height), [groups, width, height])
  useEffect(() => {
    const context = canvas.current?.getContext('2d')
    if (context) draw(context, plan, { width, dark, colour, chosen })
  }, [plan, width, dark, colour, chosen])
  const find = (event: React.MouseEvent) => {
    const rect = canvas.current!.getBoundingClientRect()
    const hit = cellAt(plan, event.clientX - rect.left, event.clientY - rect.top)
    return hit && { ...hit, x: event.clientX, y: event.clientY }
  }
  const tiles = useMemo(() => groups.flatMap((group) => group.tiles), [groups])
  if (tiles.length === 0) return <p className="quiet">{t('cluster.none')}</p>
  const held = tiles.reduce((sum, tile) => sum + tile.cells.filter((cell) => cell.held).length, 0)
  const sick = tiles.reduce((sum, tile) => sum + tile.cells.filter((cell) => cell.sick).length, 0)
  return (
    <>
      <ul className="legend" aria-hidden="true">
        {colour === 'whose' ? ['mine', ''].map((whose) => <li key={whose}><i style={{ background: whoseColor(whose, dark) }} />{t(whose ? 'wall.mine' : 'wall.theirs')}</li>) : <li><i style={{ background: colorOf('example', dark) }} />{t('wall.held')}</li>}
        <li><i style={{ border: '1px solid var(--line)' }} />{t('wall.free')}</li>
        {!plain && <li><i className="hatch" />{t('wall.idle')}</li>}
        <li><i className="dot" />{t('wall.reserved')}</li>
        <li><i className="seg-fault" />{t('wall.sick')}</li>
        <li><i className="crossed" />{t('wall.away')}</li>
        {tiles.some((tile) => tile.cells.some((cell) => cell.unknown)) && <li><i className="unknown" />{t('wall.unknown')}</li>}
      </ul>
      <div className="wall" ref={frame}>
        {plan.groups.map((group) => group.tiles[0]!.y > group.y && (
          <h2 key={group.name} className="wall-group" style={{ top: group.y }}>{group.name || t('wall.others')} <span className="quiet">{groupText(group.tiles.map((at) => at.tile), t, plain)}</span></h2>
        ))}
        <canvas
          ref={canvas}
          role="img"
          aria-label={t('wall.about', { nodes: tiles.length, held, sick })}
          style={{ width, height: plan.height, cursor: over && choose ? 'pointer' : 'default' }}
          onMouseMove={(event) => setOver(find(event))}
          onMouseLeave={() => setOver(undefined)}
          onClick={(event) => { const hit = find(event); if (hit) choose?.(hit.tile.node.id) }}
        />
        {over && <Tip {...over} />}
      </div>
    </>
  )
}

// groupText says what a group has: its nodes and cards, and what of them is free or
// at fault.
function groupText(tiles: Tile[], t: (key: string, values?: Record<string, unknown>) => string, short?: boolean): string {
  const sums = sumsOf(tiles)
  if (short && sums.cards > 0) return t('wall.free_of', { free: sums.free, count: sums.cards })
  return [
    t('short.nodes', { count: tiles.length }), sums.cards > 0 && t('short.cards', { count: sums.cards }), sums.cards > 0 && t('wall.some_free', { count: sums.free }),
    sums.faults.length > 0 && t('wall.some_sick', { count: sums.faults.length }), sums.away.length > 0 && t('wall.some_away', { count: sums.away.length }),
  ].filter(Boolean).join(' · ')
}

function Tip({ tile, cell, x, y }: { tile: Tile; cell?: Cell; x: number; y: number }) {
  const { t } = useTranslation()
  const state = !cell ? '' : cell.unknown ? t('wall.unknown') : cell.sick ? `${t('wall.sick')} ${cell.why ?? ''}` : cell.held ? cell.job || t('wall.held') : cell.reserved ? t('wall.reserved') : t('wall.free')
  return (
    <div className="tip" style={{ left: Math.min(x + 12, Math.max(0, innerWidth - 372)), top: y + 14 }}>
      <strong>{tile.node.name}</strong>{tile.then ? !takes(tile.node) && ' · ' + t('wall.away') : <> · {t('node_status.' + tile.node.status)}{tile.node.eligibility !== 'eligible' && ' · ' + t('eligibility.' + tile.node.eligibility)}</>}
      {cell && <><br />{cell.label} · {state}{cell.expected && ` · ${t('wall.expected')}`}{cell.user && ` (${cell.user})`}{cell.from && ` · ${clock(cell.from)} – ${cell.to ? clock(cell.to) : tile.then ? t('wall.still') : '?'}`}{cell.use !== undefined && ` · ${Math.round(cell.use * 100)} %`}{cell.heat !== undefined && ` · ${Math.round(cell.heat)} °C`}</>}
    </div>
  )
}

// cellAt is what stands at a place of the plan.
export function cellAt(plan: Plan, x: number, y: number): { tile: Tile; cell?: Cell } | undefined {
  for (const group of plan.groups) {
    for (const at of group.tiles) {
      if (x < at.x || y < at.y || x >= at.x + plan.tile.w || y >= at.y + plan.tile.h) continue
      const column = Math.floor((x - at.x - plan.pad) / plan.cell)
      const row = Math.floor((y - at.y - plan.pad - (plan.named ? title : 0)) / plan.cell)
      return { tile: at.tile, cell: column >= 0 && column < plan.across && row >= 0 ? at.tile.cells[row * plan.across + column] : undefined }
    }
  }
  return undefined
}

// shortened returns as much of the end of a name as fits: the machines of one hall
// differ in their last digits.
export function shortened(name: string, width: number, room: number): string {
  if (width <= room) return name
  const kept = Math.floor((name.length * room) / width) - 1 // an ellipsis is as wide as a letter
  return kept > 0 ? '…' + name.slice(-kept) : ''
}

interface Style {
  width: number
  dark: boolean
  colour: Colouring
  chosen?: string
}

function draw(c: CanvasRenderingContext2D, plan: Plan, style: Style) {
  const ratio = devicePixelRatio || 1
  c.canvas.width = style.width * ratio
  c.canvas.height = plan.height * ratio
  c.setTransform(ratio, 0, 0, ratio, 0, 0)
  c.font = `${plan.cell > 26 ? 12 : 10}px system-ui, sans-serif`
  c.textBaseline = 'middle'
  for (const group of plan.groups) for (const at of group.tiles) drawTile(c, plan, style, at)
}

function drawTile(c: CanvasRenderingContext2D, plan: Plan, style: Style, { tile, x, y }: { tile: Tile; x: number; y: number }) {
  const { dark } = style
  const { pad } = plan
  const ink = dark ? '#d7dbe0' : '#23272c'
  const line = dark ? '#3a4149' : '#cdd3da'
  const fault = dark ? '#ff6b60' : '#d64541'
  const away = !takes(tile.node)
  const chosen = tile.node.id === style.chosen
  c.strokeStyle = chosen ? ink : tile.node.status === 'lost' ? fault : away ? (dark ? '#f3a761' : '#9a4a00') : line
  c.lineWidth = chosen ? 2 : 1
  c.setLineDash(away ? [3, 2] : [])
  c.strokeRect(x + 0.5, y + 0.5, plan.tile.w - 1, plan.tile.h - 1)
  c.setLineDash([])
  c.lineWidth = 1
  if (plan.named) {
    c.save()
    c.beginPath()
    c.rect(x + pad, y, plan.tile.w - pad * 2, title + pad)
    c.clip()
    c.fillStyle = ink
    c.fillText(shortened(tile.node.name, c.measureText(tile.node.name).width, plan.tile.w - pad * 2), x + pad, y + pad + 5)
    c.restore()
  }
  const top = y + pad + (plan.named ? title : 0)
  const side = Math.max(2, plan.cell - (plan.cell > 8 ? 2 : 1))
  tile.cells.forEach((cell, j) => {
    const cx = x + pad + (j % plan.across) * plan.cell
    const cy = top + Math.floor(j / plan.across) * plan.cell
    if (cell.share !== undefined) {
      const whole = plan.tile.w - pad * 2
      c.fillStyle = colorOf(cell.owner, dark)
      c.fillRect(cx, cy, whole * cell.share, side)
      c.strokeStyle = line
      c.strokeRect(cx + 0.5, cy + 0.5, whole - 1, side - 1)
      return
    }
    const cross = (color: string) => {
      const inset = side > 8 ? 3 : 1
      c.strokeStyle = color
      c.beginPath()
      c.moveTo(cx + inset, cy + inset)
      c.lineTo(cx + side - inset, cy + side - inset)
      c.moveTo(cx + side - inset, cy + inset)
      c.lineTo(cx + inset, cy + side - inset)
      c.stroke()
    }
    if (cell.sick) {
      c.fillStyle = fault
      c.fillRect(cx, cy, side, side)
      cross('#ffffff')
      return
    }
    if (!cell.held) {
      c.strokeStyle = cell.unknown ? ink : line
      if (cell.unknown) c.setLineDash([1, 3])
      c.strokeRect(cx + 0.5, cy + 0.5, side - 1, side - 1)
      c.setLineDash([])
      if (away) cross(line)
      else if (cell.reserved) {
        c.fillStyle = ink
        c.beginPath()
        c.arc(cx + side / 2, cy + side / 2, Math.max(1, side / 6), 0, Math.PI * 2)
        c.fill()
      }
      return
    }
    c.fillStyle = style.colour === 'whose' ? whoseColor(cell.user, dark) : colorOf(keyOf(cell, style.colour), dark)
    c.globalAlpha = cell.use === undefined ? 1 : 0.3 + 0.7 * cell.use // darker is busier
    c.fillRect(cx, cy, side, side)
    c.globalAlpha = 1
    if (cell.expected || (cell.use !== undefined && cell.use < idle)) {
      c.strokeStyle = ink
      c.beginPath()
      for (let d = 4; d < side; d += 5) {
        c.moveTo(cx + d, cy)
        c.lineTo(cx, cy + d)
      }
      c.stroke()
    }
    if (away) cross(ink)
  })
}

// whoseColor is that of what the reader holds, and of what others do.
const whoseColor = (user: string | undefined, dark: boolean) => (user ? (dark ? '#79a9ff' : '#1f5fcc') : dark ? '#56616d' : '#b4bdc7')

const keyOf = (cell: Cell, colour: Exclude<Colouring, 'whose'>) => (colour === 'job' ? cell.owner : cell[colour] ?? '')
