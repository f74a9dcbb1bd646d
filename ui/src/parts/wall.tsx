import { useEffect, useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useNavigate } from 'react-router'
import { useGuest } from '../guest'
import { reasonText } from '../i18n'
import { colorOf, useLook, useWidth } from '../look'
import type { AvailableNode, NodeSummary, NodeDevices } from '../types'

// One tile for each node, one cell for each card; a node without cards has one
// cell for itself, filled as far as its cores are held.
export interface Cell {
  id: string
  label: string
  held: boolean
  sick: boolean
  owner: string // what the colour stands for
  job?: string
  share?: number
  why?: string
  use?: number // 0 to 1, where it is measured
  heat?: number // degrees
  user?: string
}
export interface Tile {
  node: NodeSummary
  cells: Cell[]
}

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
            id: device.id, label: `${device.index} ${device.model}`, held: !!alloc, sick: !device.healthy, owner: now?.owner?.job_id ?? card?.job_id ?? alloc ?? '', job: now?.owner?.job ?? card?.job,
            why: reasonText(device.health), use: now?.gauges?.utilization_ratio, heat: now?.gauges?.temperature_celsius, user: now?.owner?.user,
          }
        })
      : [{ id: node.id, label: 'CPU', held: node.used.allocs > 0, sick: false, owner: 'cpu', share: node.capacity.cpu ? Math.min(1, node.used.cpu / node.capacity.cpu) : 0 }],
  }))
}

const gap = 6
const pad = 4
const title = 13
export const idle = 0.02 // below that, a held card does nothing

// layout puts tiles in rows; cells shrink until a thousand fit one screen.
export function layout(tiles: Tile[], width: number): { cell: number; tile: { w: number; h: number }; columns: number; rows: number; across: number } {
  const cells = tiles.reduce((sum, tile) => sum + tile.cells.length, 0)
  const most = Math.max(1, ...tiles.map((tile) => tile.cells.length))
  const across = most <= 4 ? most : most <= 8 ? 4 : 8
  const cell = cells > 600 ? 14 : cells > 200 ? 18 : 26
  const w = Math.max(across * cell + pad * 2, cells > 600 ? 64 : 92)
  const h = Math.ceil(most / across) * cell + pad * 2 + title
  const columns = Math.max(1, Math.floor((width + gap) / (w + gap)))
  return { cell, tile: { w, h }, columns, rows: Math.ceil(tiles.length / columns), across }
}

export function Wall({ tiles, small }: { tiles: Tile[]; small?: boolean }) {
  const { t } = useTranslation()
  const { dark } = useLook()
  const go = useNavigate()
  const guest = useGuest()
  const canvas = useRef<HTMLCanvasElement>(null)
  const [width, frame] = useWidth(240)
  const [over, setOver] = useState<{ tile: Tile; cell?: Cell; x: number; y: number }>()
  const plan = layout(tiles, width)
  const height = Math.max(1, plan.rows * (plan.tile.h + gap))
  useEffect(() => {
    const context = canvas.current?.getContext('2d')
    if (context) draw(context, tiles, plan, width, height, dark)
  })
  const find = (event: React.MouseEvent) => {
    const rect = canvas.current!.getBoundingClientRect()
    const x = event.clientX - rect.left
    const y = event.clientY - rect.top
    const column = Math.floor(x / (plan.tile.w + gap))
    const row = Math.floor(y / (plan.tile.h + gap))
    const tile = column < plan.columns ? tiles[row * plan.columns + column] : undefined
    if (!tile) return undefined
    const cx = Math.floor((x - column * (plan.tile.w + gap) - pad) / plan.cell)
    const cy = Math.floor((y - row * (plan.tile.h + gap) - pad - title) / plan.cell)
    const cell = cx >= 0 && cx < plan.across && cy >= 0 ? tile.cells[cy * plan.across + cx] : undefined
    return { tile, cell, x: event.clientX, y: event.clientY }
  }
  if (tiles.length === 0) return <p className="quiet">{t('cluster.none')}</p>
  const held = tiles.reduce((sum, tile) => sum + tile.cells.filter((cell) => cell.held).length, 0)
  const sick = tiles.reduce((sum, tile) => sum + tile.cells.filter((cell) => cell.sick).length, 0)
  return (
    <>
      {!small && <ul className="legend" aria-hidden="true">
        <li><i style={{ background: colorOf('example', dark) }} />{t('wall.held')}</li>
        <li><i style={{ border: '1px solid var(--line)' }} />{t('wall.free')}</li>
        <li><i className="hatch" />{t('wall.idle')}</li>
        <li><i className="seg-fault" />{t('wall.sick')}</li>
        <li><i style={{ border: '1px dashed var(--expired)' }} />{t('wall.away')}</li>
      </ul>}
      <div className="wall" ref={frame}>
        <canvas
          ref={canvas}
          role="img"
          aria-label={t('wall.about', { nodes: tiles.length, held, sick })}
          style={{ width, height, cursor: over && !guest ? 'pointer' : 'default' }}
          onMouseMove={(event) => setOver(find(event))}
          onMouseLeave={() => setOver(undefined)}
          onClick={(event) => { const hit = find(event); if (hit && !guest) void go('/nodes/' + hit.tile.node.id) }}
        />
        {over && (
          <div className="tip" style={{ left: Math.min(over.x + 12, Math.max(0, innerWidth - 372)), top: over.y + 14 }}>
            <strong>{over.tile.node.name}</strong> · {t('node_status.' + over.tile.node.status)}{over.tile.node.eligibility !== 'eligible' && ' · ' + t('eligibility.' + over.tile.node.eligibility)}
            {over.cell && <><br />{over.cell.label} · {over.cell.sick ? t('wall.sick') + ' ' + (over.cell.why ?? '') : over.cell.held ? over.cell.job || t('wall.held') : t('wall.free')}{over.cell.user && ` (${over.cell.user})`}{over.cell.use !== undefined && ` · ${Math.round(over.cell.use * 100)} %`}{over.cell.heat !== undefined && ` · ${Math.round(over.cell.heat)} °C`}</>}
          </div>
        )}
      </div>
    </>
  )
}

// shortened gives as much of the end of a name as fits: the machines of one hall
// differ in their last digits.
export function shortened(name: string, width: number, room: number): string {
  if (width <= room) return name
  const kept = Math.floor((name.length * room) / width) - 1 // an ellipsis is as wide as a letter
  return kept > 0 ? '…' + name.slice(-kept) : ''
}

function draw(c: CanvasRenderingContext2D, tiles: Tile[], plan: ReturnType<typeof layout>, width: number, height: number, dark: boolean) {
  const ratio = devicePixelRatio || 1
  c.canvas.width = width * ratio
  c.canvas.height = height * ratio
  c.setTransform(ratio, 0, 0, ratio, 0, 0)
  c.font = '10px system-ui, sans-serif'
  c.textBaseline = 'middle'
  const ink = dark ? '#d7dbe0' : '#23272c'
  const line = dark ? '#3a4149' : '#cdd3da'
  const fault = dark ? '#ff6b60' : '#d64541'
  tiles.forEach((tile, i) => {
    const x = (i % plan.columns) * (plan.tile.w + gap)
    const y = Math.floor(i / plan.columns) * (plan.tile.h + gap)
    const away = tile.node.status !== 'ready' || tile.node.eligibility !== 'eligible'
    c.strokeStyle = tile.node.status === 'lost' ? fault : away ? (dark ? '#f3a761' : '#9a4a00') : line
    c.setLineDash(away ? [3, 2] : [])
    c.strokeRect(x + 0.5, y + 0.5, plan.tile.w - 1, plan.tile.h - 1)
    c.setLineDash([])
    c.fillStyle = ink
    c.save()
    c.beginPath()
    c.rect(x + pad, y, plan.tile.w - pad * 2, title + pad)
    c.clip()
    c.fillText(shortened(tile.node.name, c.measureText(tile.node.name).width, plan.tile.w - pad * 2), x + pad, y + pad + 5)
    c.restore()
    tile.cells.forEach((cell, j) => {
      const cx = x + pad + (j % plan.across) * plan.cell
      const cy = y + pad + title + Math.floor(j / plan.across) * plan.cell
      const side = plan.cell - 2
      if (cell.share !== undefined) {
        const whole = plan.tile.w - pad * 2
        c.fillStyle = colorOf(cell.owner, dark)
        c.fillRect(cx, cy, whole * cell.share, side)
        c.strokeStyle = line
        c.strokeRect(cx + 0.5, cy + 0.5, whole - 1, side - 1)
        return
      }
      if (cell.held) {
        c.fillStyle = colorOf(cell.owner, dark)
        c.globalAlpha = cell.use === undefined ? 1 : 0.3 + 0.7 * cell.use // brightness is real use
        c.fillRect(cx, cy, side, side)
        c.globalAlpha = 1
        if (cell.use !== undefined && cell.use < idle) { // held, and nothing done with it
          c.strokeStyle = ink
          c.beginPath()
          for (let d = 4; d < side; d += 5) {
            c.moveTo(cx + d, cy)
            c.lineTo(cx, cy + d)
          }
          c.stroke()
        }
      } else {
        c.strokeStyle = line
        c.strokeRect(cx + 0.5, cy + 0.5, side - 1, side - 1)
      }
      if (cell.sick) {
        c.fillStyle = fault
        c.fillRect(cx, cy, side, side)
        c.strokeStyle = '#ffffff'
        c.beginPath()
        c.moveTo(cx + 3, cy + 3)
        c.lineTo(cx + side - 3, cy + side - 3)
        c.moveTo(cx + side - 3, cy + 3)
        c.lineTo(cx + 3, cy + side - 3)
        c.stroke()
      }
    })
  })
}
