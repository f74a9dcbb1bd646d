import { useEffect, useMemo, useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useNavigate } from 'react-router'
import { clock, millis } from '../format'
import { colorOf, useLook, useWidth } from '../look'
import type { Bar, MaintenanceDetail, Timeline, Row, Change } from '../types'
import { Scroll, Table } from './controls/table'

const rowHeight = 22 // of a node whose bars do not overlap
const laneHeight = 15
const lanesMax = 8 // beyond, bars of a node become thinner
const head = 22
const names = 130

export interface Box {
  x: number
  y: number
  w: number
  h: number
  bar: Bar
  row: Row
}

// lanes puts the bars of one node above each other where they overlap.
export function lanes(bars: Bar[]): number[] {
  const ends: number[] = []
  return bars.map((bar) => {
    const from = millis(bar.from)
    let lane = ends.findIndex((end) => end <= from)
    if (lane < 0) lane = ends.length
    ends[lane] = millis(bar.to) || Infinity
    return lane
  })
}

// tops says where the row of every node begins, and at last where the rows end:
// a node where much happens at a time is as high as that needs.
export function tops(timeline: Timeline): number[] {
  const out = [head]
  for (const row of timeline.rows ?? []) {
    const many = Math.max(1, ...lanes(row.bars ?? []).map((l) => l + 1))
    out.push(out.at(-1)! + Math.max(rowHeight, Math.min(many, lanesMax) * laneHeight + 4))
  }
  return out
}

// keptFor is how long the job of a reserved start is expected to stay, as its
// forecast says: a reservation has a beginning and no end of its own. 0: nobody
// knows.
function keptFor(timeline: Timeline): (bar: Bar) => number {
  const lengths = new Map<string, number>()
  for (const row of timeline.rows ?? []) {
    for (const bar of row.bars ?? []) if (bar.kind === 'forecast' && bar.to) lengths.set(`${bar.job_id}/${bar.subjob}`, millis(bar.to) - millis(bar.from))
  }
  return (bar) => lengths.get(`${bar.job_id}/${bar.subjob}`) ?? 0
}

// ended gives reserved bars the end that they are expected to have.
export function ended(timeline: Timeline): Timeline {
  const length = keptFor(timeline)
  const end = (bar: Bar): Bar => {
    const from = millis(bar.from) || millis(bar.p50)
    if (bar.kind !== 'reserved' || bar.to || !from) return bar
    return { ...bar, from: new Date(from).toISOString(), to: length(bar) ? new Date(from + length(bar)).toISOString() : null }
  }
  return { ...timeline, rows: (timeline.rows ?? []).map((row) => ({ ...row, bars: (row.bars ?? []).map(end) })) }
}

const insideFrom = 46 // pixels of a bar that has room for a name
const outsideFrom = 30 // and of the room behind one that has none
const openWidth = 46 // pixels of a reserved bar whose end nobody knows

// boxes places every bar of a timeline on a plane of a given width.
export function boxes(timeline: Timeline, width: number): Box[] {
  const from = millis(timeline.from)
  const scale = (width - names) / (millis(timeline.to) - from || 1)
  const at = tops(timeline)
  const out: Box[] = []
  ;(timeline.rows ?? []).forEach((row, i) => {
    const bars = row.bars ?? []
    const lane = lanes(bars)
    const many = Math.max(1, ...lane.map((l) => l + 1))
    const h = (at[i + 1]! - at[i]! - 4) / many
    bars.forEach((bar, j) => {
      const x = names + Math.max(0, millis(bar.from) - from) * scale
      const end = bar.to ? names + (millis(bar.to) - from) * scale : bar.kind === 'reserved' ? x + openWidth : width
      out.push({ x, y: at[i]! + 2 + lane[j]! * h, w: Math.max(2, Math.min(end, width) - x), h: Math.max(2, h - 1), bar, row })
    })
  })
  return out
}

// Closed is a stretch of a node's row in which maintenance keeps work away.
export interface Closed {
  x: number
  y: number
  w: number
  h: number
  row: Row
  window: MaintenanceDetail
}

// closed places the windows of maintenance on the plane of the boxes.
export function closed(timeline: Timeline, windows: MaintenanceDetail[], width: number): Closed[] {
  const from = millis(timeline.from)
  const to = millis(timeline.to)
  const scale = (width - names) / (to - from || 1)
  const at = tops(timeline)
  return (timeline.rows ?? []).flatMap((row, i) =>
    windows.filter((window) => (window.names ?? []).includes(row.node) && millis(window.start) < to && millis(window.end) > from).map((window) => {
      const x = names + (Math.max(from, millis(window.start)) - from) * scale
      return { x, y: at[i]! + 1, w: Math.max(3, names + (Math.min(to, millis(window.end)) - from) * scale - x), h: at[i + 1]! - at[i]! - 1, row, window }
    }))
}

// outside says which boxes are too short for their names and have room for them
// behind, and how much: up to the next box of their row, or the edge.
export function outside(placed: Box[], width: number): Map<Box, number> {
  const out = new Map<Box, number>()
  for (const box of placed) {
    if (box.w > insideFrom || box.h <= 10) continue
    const next = placed.reduce((x, other) => (other !== box && other.row === box.row && other.y < box.y + box.h && other.y + other.h > box.y && other.x >= box.x + box.w ? Math.min(x, other.x) : x), width)
    if (next - box.x - box.w > outsideFrom) out.set(box, next - box.x - box.w - 6)
  }
  return out
}

// dropped is the change that letting go of a bar asks for: before the job that
// it is dropped on, else to the front or the end of its tier.
export function dropped(box: Box, on: Box | undefined, x: number): Change | undefined {
  const job_id = box.bar.job_id
  if (on && on.bar.job_id === job_id) return undefined
  if (on && on.bar.kind !== 'running') return { kind: 'move', job_id, before: on.bar.job_id }
  return x < box.x ? { kind: 'move', job_id } : { kind: 'move', job_id, last: true }
}

// Gantt draws nodes × time: what runs, what is reserved and what is expected.
// The table below says the same to those who do not see it.
export function Gantt({ timeline: told, windows = [], move }: { timeline: Timeline; windows?: MaintenanceDetail[]; move?: (change: Change) => void }) {
  const { t } = useTranslation()
  const { dark } = useLook()
  const go = useNavigate()
  const canvas = useRef<HTMLCanvasElement>(null)
  const [width, frame] = useWidth(480)
  const [over, setOver] = useState<{ box?: Box; shut?: Closed; x: number; y: number }>()
  const [held, setHeld] = useState<{ box: Box; x: number; y: number; moved: boolean }>()
  const timeline = useMemo(() => ended(told), [told])
  const rows = timeline.rows ?? []
  const height = tops(timeline).at(-1)! + 4
  const placed = boxes(timeline, width)
  const shut = closed(timeline, windows, width)
  useEffect(() => {
    const context = canvas.current?.getContext('2d')
    if (context) draw(context, timeline, placed, shut, width, height, dark)
  })
  const find = (event: React.MouseEvent) => {
    const rect = canvas.current!.getBoundingClientRect()
    const x = event.clientX - rect.left
    const y = event.clientY - rect.top
    const box = placed.findLast((b) => x >= b.x && x <= b.x + b.w && y >= b.y && y <= b.y + b.h)
    return box && { box, x, y }
  }
  if (rows.length === 0) return <p className="quiet">{t('queue.no_nodes')}</p>
  return (
    <>
      <ul className="legend" aria-hidden="true">
        <li><i style={{ background: 'var(--running)' }} />{t('bar.running')}</li>
        <li><i style={{ border: '1px dashed var(--quiet)' }} />{t('bar.reserved')}</li>
        <li><i style={{ border: '1px solid var(--running)' }} />{t('bar.forecast')}</li>
        {shut.length > 0 && <li><i className="hatch" />{t('bar.maintenance')}</li>}
      </ul>
      <Scroll label={t('queue.timeline')} className="wall" frame={frame} style={{ maxHeight: 480 }}>
        <canvas
          ref={canvas}
          role="img"
          aria-label={t('queue.timeline_about', { nodes: rows.length, bars: placed.length })}
          style={{ width, height, cursor: over?.box ? 'pointer' : 'default' }}
          onMouseMove={(event) => {
            const rect = canvas.current!.getBoundingClientRect()
            const [x, y] = [event.clientX - rect.left, event.clientY - rect.top]
            if (held) setHeld({ ...held, x, y, moved: held.moved || Math.hypot(x - held.x, y - held.y) > 4 })
            const hit = held ? undefined : find(event)
            const within = hit || held ? undefined : shut.find((c) => x >= c.x && x <= c.x + c.w && y >= c.y && y <= c.y + c.h)
            setOver(hit || within ? { box: hit?.box, shut: within, x: event.clientX, y: event.clientY } : undefined)
          }}
          onMouseLeave={() => { setOver(undefined); setHeld(undefined) }}
          onMouseDown={(event) => { const hit = find(event); if (hit && move && hit.box.bar.kind !== 'running' && hit.box.bar.job_name) setHeld({ ...hit, moved: false }) }}
          onMouseUp={(event) => {
            const hit = find(event)
            setHeld(undefined)
            if (held?.moved) {
              const change = dropped(held.box, hit?.box, held.x)
              if (change) move?.(change)
            } else if (hit) void go('/jobs/' + hit.box.bar.job_id)
          }}
        />
        {held?.moved && <div className="ghost" style={{ left: held.x, top: held.y, width: Math.max(30, Math.min(held.box.w, 240)) }}>{held.box.bar.job_name}</div>}
        {over && (
          <div className="tip" style={{ left: Math.min(over.x + 12, Math.max(0, innerWidth - 372)), top: over.y + 14 }}>
            {over.box && <>
              <strong>{over.box.bar.job_name || t('queue.hidden')}</strong> · {t('bar.' + over.box.bar.kind)}<br />
              {over.box.row.node} · {clock(over.box.bar.from)} – {over.box.bar.to ? clock(over.box.bar.to) : t('queue.open')}
              {over.box.bar.p90 && <><br />P50 {clock(over.box.bar.p50)} · P90 {clock(over.box.bar.p90)}</>}
            </>}
            {over.shut && <><strong>{t('bar.maintenance')}</strong>{over.shut.window.reason && ` · ${over.shut.window.reason}`}<br />{over.shut.row.node} · {clock(over.shut.window.start)} – {clock(over.shut.window.end)}</>}
          </div>
        )}
      </Scroll>
      {timeline.more ? <p className="quiet">{t('queue.more', { count: timeline.more })}</p> : null}
      <details>
        <summary>{t('forecast.table')}</summary>
        <Table<Box> label={t('queue.timeline')} idOf={(b) => b.row.node_id + b.bar.job_id + b.bar.subjob + b.bar.from} page={20} rows={placed} columns={[
          { title: t('job.node'), cell: (b) => b.row.node },
          { title: t('jobs.name'), cell: (b) => b.bar.job_name || t('queue.hidden') },
          { title: t('queue.kind'), cell: (b) => t('bar.' + b.bar.kind) },
          { title: t('queue.from'), cell: (b) => clock(b.bar.from) },
          { title: t('queue.to'), cell: (b) => (b.bar.to ? clock(b.bar.to) : t('queue.open')) },
        ]} />
      </details>
    </>
  )
}

function draw(c: CanvasRenderingContext2D, timeline: Timeline, placed: Box[], shut: Closed[], width: number, height: number, dark: boolean) {
  const ratio = devicePixelRatio || 1
  c.canvas.width = width * ratio
  c.canvas.height = height * ratio
  c.setTransform(ratio, 0, 0, ratio, 0, 0)
  const ink = dark ? '#d7dbe0' : '#23272c'
  const line = dark ? '#2a2f36' : '#e3e6ea'
  c.font = '11px system-ui, sans-serif'
  c.textBaseline = 'middle'
  const from = millis(timeline.from)
  const to = millis(timeline.to)
  const scale = (width - names) / (to - from || 1)
  const hours = (to - from) / 3_600_000
  const step = hours > 100 ? 24 : hours > 30 ? 12 : hours > 8 ? 3 : 1
  const first = new Date(from)
  first.setMinutes(0, 0, 0)
  for (let at = first.getTime(); at < to; at += 3_600_000) {
    const d = new Date(at)
    if (at < from || d.getHours() % step) continue
    const x = names + (at - from) * scale
    c.fillStyle = line
    c.fillRect(x, head - 4, 1, height)
    c.fillStyle = ink
    const text = step >= 24 || (d.getHours() === 0 && hours > 8) ? `${d.getMonth() + 1}-${String(d.getDate()).padStart(2, '0')}` : `${String(d.getHours()).padStart(2, '0')}:00`
    if (x < width - 30) c.fillText(text, x + 3, 10)
  }
  const at = tops(timeline)
  ;(timeline.rows ?? []).forEach((row, i) => {
    const y = at[i]!
    const rowHeight = at[i + 1]! - y
    c.fillStyle = line
    c.fillRect(0, y, width, 1)
    c.fillStyle = row.away ? (dark ? '#8b929b' : '#7a828b') : ink
    c.fillText(row.node.length > 20 ? row.node.slice(0, 19) + '…' : row.node, 4, y + rowHeight / 2, names - 8)
    if (row.away) {
      c.fillStyle = dark ? 'rgba(255,255,255,0.06)' : 'rgba(0,0,0,0.06)'
      c.fillRect(names, y + 1, width - names, rowHeight - 1)
    }
  })
  for (const { x, y, w, h, window } of shut) {
    c.save()
    c.beginPath()
    c.rect(x, y, w, h)
    c.clip()
    c.fillStyle = dark ? 'rgba(255,255,255,0.05)' : 'rgba(0,0,0,0.05)'
    c.fillRect(x, y, w, h)
    c.strokeStyle = dark ? '#5b646f' : '#9aa3ad'
    c.beginPath()
    for (let d = -h; d < w; d += 7) {
      c.moveTo(x + d, y + h)
      c.lineTo(x + d + h, y)
    }
    c.stroke()
    if (window.reason && w > 60 && h > 10) {
      const text = Math.min(w - 8, c.measureText(window.reason).width)
      c.fillStyle = dark ? '#171b21' : '#ffffff'
      c.fillRect(x + 3, y + 2, text + 4, h - 4)
      c.fillStyle = ink
      c.fillText(window.reason, x + 5, y + h / 2 + 0.5, w - 8)
    }
    c.restore()
  }
  const behind = outside(placed, width)
  for (const box of placed) {
    const { x, y, w, h, bar } = box
    const colour = colorOf(bar.job_id || bar.project || 'hidden', dark)
    c.setLineDash(bar.kind === 'reserved' ? [4, 3] : [])
    c.strokeStyle = bar.kind === 'reserved' ? ink : colour
    c.fillStyle = colour
    if (bar.kind === 'running') c.fillRect(x, y, w, h)
    else {
      c.globalAlpha = 0.18
      c.fillRect(x, y, w, h)
      c.globalAlpha = 1
      c.strokeRect(x + 0.5, y + 0.5, w - 1, h - 1)
    }
    c.setLineDash([])
    const room = behind.get(box)
    if (room) {
      c.fillStyle = ink
      c.save()
      c.beginPath()
      c.rect(x + w, y, room + 4, h)
      c.clip()
      c.fillText(bar.job_name, x + w + 4, y + h / 2 + 0.5)
      c.restore()
    } else if (w > insideFrom && h > 10) {
      c.fillStyle = bar.kind === 'running' ? (dark ? '#ffffff' : '#101317') : ink
      c.save()
      c.beginPath()
      c.rect(x, y, w - 3, h)
      c.clip()
      c.fillText(bar.job_name, x + 4, y + h / 2 + 0.5)
      c.restore()
    }
  }
}
