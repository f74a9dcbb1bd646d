import { useTranslation } from 'react-i18next'
import { clock, millis, span } from '../../format'
import { reasonText } from '../../i18n'
import { pointAt, usePointed } from '../../parts/cursor'
import { endsText } from '../../parts/jobrow'
import type { Ends } from '../../parts/mine'
import { endedStates, useNow } from '../../parts/states'
import type { Attempt, Event, JobDetail, Subjob } from '../../types'
import { outcomeOf } from './outcome'

export interface Segment {
  kind: 'queued' | 'precheck' | 'data' | 'image' | 'preparing' | 'running' | 'resumed' | 'paused' | 'stopping'
  from: number
  to: number
  attempt: number
  outcome?: string
  cause?: string
}

// steps are what nodes tell of the preparation of an attempt when they are through
// with it, in the order in which they do it.
const steps: Record<string, Segment['kind']> = { 'event.alloc.prechecked': 'precheck', 'event.alloc.data_prepared': 'data', 'event.alloc.image_pulled': 'image' }

// stepEnds tells when the last rank of an attempt was through with each step.
function stepEnds(attempt: number, events: Event[]) {
  const ends = new Map<Segment['kind'], number>()
  for (const e of events) {
    const step = steps[e.id]
    if (step && e.attempt === attempt) ends.set(step, Math.max(ends.get(step) ?? 0, millis(e.time)))
  }
  return Object.values(steps).filter((step) => ends.has(step)).map((step) => [step, ends.get(step)!] as const)
}

// segments part the life of a subjob into what it did when. An attempt after one
// that registered a checkpoint is resumed from that; saved tells that the job
// began with one of another job.
export function segments(submitted: number, attempts: Attempt[], ended: boolean, now: number, events: Event[] = [], saved = false): Segment[] {
  const out: Segment[] = []
  let at = submitted
  const add = (kind: Segment['kind'], to: number, attempt: number, more: Partial<Segment> = {}) => {
    if (to > at) out.push({ kind, from: at, to, attempt, ...more })
    at = Math.max(at, to)
  }
  for (const a of attempts) {
    add('queued', millis(a.placed_at), a.number)
    const end = millis(a.ended_at) || now
    const ending = millis(a.ending_at) || end
    const ready = Math.min(millis(a.running_at) || ending, ending)
    for (const [step, until] of stepEnds(a.number, events)) add(step, Math.min(until, ready), a.number)
    add('preparing', ready, a.number)
    const why = { outcome: outcomeOf(a), cause: reasonText(a.cause) }
    const paused = a.ended_at ? 0 : millis(a.paused_at)
    add(saved ? 'resumed' : 'running', paused || ending, a.number, why)
    if (paused) add('paused', ending, a.number, why)
    saved ||= !!a.checkpoint_at
    add('stopping', end, a.number, why)
  }
  if (!ended && (attempts.length === 0 || attempts.at(-1)!.ended_at)) add('queued', now, (attempts.at(-1)?.number ?? 0) + 1)
  return out
}

const rowsMax = 8 // attempts that are drawn, the newest
const wide = 0.09 // share of the width from which on a stretch has room for its name

// checkpointsOf are the moments at which checkpoints were registered.
export const checkpointsOf = (events: Event[]): { at: number; attempt: number; step?: string }[] =>
  events.filter((event) => event.id === 'event.alloc.checkpoint').map((event) => ({ at: millis(event.time), attempt: event.attempt ?? 0, step: event.params?.step }))

// marksOf are four to six times of a span at which an axis is labelled.
export function marksOf(from: number, to: number): number[] {
  const steps = [1, 2, 5, 10, 15, 30].map((s) => s * 1000).concat([1, 2, 5, 10, 15, 30].map((m) => m * 60_000), [1, 2, 3, 6, 12, 24, 48, 168].map((h) => h * 3_600_000))
  const every = steps.find((step) => (to - from) / step <= 6) ?? (to - from) / 4
  const first = new Date(from)
  first.setHours(0, 0, 0, 0)
  const marks: number[] = []
  for (let at = first.getTime() + Math.ceil((from - first.getTime()) / every) * every; at < to; at += every) marks.push(at)
  return marks
}

// Strip is the life of a subjob in scale, a row for each attempt: solid what was,
// hatched what is foreseen.
export function Strip({ detail, attempts, events, standing, ends }: { detail: JobDetail; attempts: Attempt[]; events: Event[]; standing?: Subjob; ends?: Ends }) {
  const { t } = useTranslation()
  const now = useNow(5000)
  const at = usePointed()
  const ended = endedStates.includes(standing?.state ?? detail.state) // a subjob may be over before its job
  const parts = segments(millis(detail.job.submitted_at) || millis(standing?.queued_at), attempts, ended, now, events, !!detail.job.resume)
  const runs = (p: Segment) => p.kind === 'running' || p.kind === 'resumed'
  const look = (p: Segment) => (runs(p) && (p.outcome === 'failed' || p.outcome === 'lost') ? 'fault' : runs(p) && p.outcome === 'succeeded' ? 'done' : p.kind)
  const text = (p: Segment) => `${t('segment.' + p.kind)} ${span(p.to - p.from)}` + (p.kind !== 'queued' ? ` · ${t('job.attempt', { number: p.attempt })}` : '') + (p.outcome ? ` · ${t('outcome.' + p.outcome, p.outcome)}` : '') + (p.cause ? ` · ${p.cause}` : '')
  if (parts.length === 0) return <p className="quiet">{t('job.no_attempt')}</p>
  const numbers = [...new Set(parts.map((p) => p.attempt))].slice(-rowsMax)
  const shown = parts.filter((p) => numbers.includes(p.attempt))
  const from = shown[0]!.from
  const last = shown.at(-1)!.to
  const foreseen = !ended && ends?.p50 && ends.p50 > last ? ends.p50 : 0
  const to = Math.max(last, foreseen, from + 1)
  const left = (time: number) => `${((time - from) / (to - from)) * 100}%`
  const place = (a: number, b: number) => ({ left: left(a), width: `max(${((b - a) / (to - from)) * 100}%, 3px)` })
  const saved = checkpointsOf(events).filter((one) => one.at >= from && numbers.includes(one.attempt))
  const moment = at !== undefined && at * 1000 >= from && at * 1000 <= to ? at * 1000 : undefined
  const point = (event: React.PointerEvent<HTMLElement>) => {
    const box = event.currentTarget.getBoundingClientRect()
    if (box.width > 0) pointAt((from + ((event.clientX - box.left) / box.width) * (to - from)) / 1000)
  }
  return (
    <>
      <div className="strips" aria-hidden="true">
        {numbers.map((number) => (
          <div key={number} className="strip-row">
            <span className="strip-name">{t('job.attempt', { number })}</span>
            <div className="strip" onPointerMove={point}>
              {shown.filter((p) => p.attempt === number).map((p, i) => <span key={i} className={'seg-' + look(p)} style={place(p.from, p.to)} title={text(p)}>{(p.to - p.from) / (to - from) > wide && `${t('segment.' + p.kind)} ${span(p.to - p.from)}`}</span>)}
              {foreseen > 0 && number === numbers.at(-1) && <span className="seg-foreseen" style={place(last, foreseen)} title={endsText(t, ends!, now)}>{(foreseen - last) / (to - from) > wide && <b>{t('segment.foreseen')}</b>}</span>}
              {moment !== undefined && <i className="strip-moment" style={{ left: left(moment) }} />}
            </div>
          </div>
        ))}
        {saved.length > 0 && (
          <div className="strip-row">
            <span className="strip-name">{t('job.checkpoints')}</span>
            <div className="strip bare" onPointerMove={point}>{saved.map((one, i) => <i key={i} className="strip-saved" style={{ left: left(one.at) }} title={t('strip.saved', { time: clock(new Date(one.at).toISOString(), now), step: one.step || '–' })} />)}</div>
          </div>
        )}
        <div className="strip-row strip-axis">
          <span className="strip-name" />
          <div className="strip bare">{marksOf(from, to).map((mark) => <small key={mark} style={{ left: left(mark) }}>{clockOf(mark, to - from)}</small>)}</div>
        </div>
      </div>
      <details className="strip-list">
        <summary>{t('strip.list')}</summary>
        <ul className="legend">
          {parts.slice(-12).map((p, i) => <li key={i}><i className={'seg-' + look(p)} />{clock(new Date(p.from).toISOString())} {text(p)}</li>)}
          {foreseen > 0 && <li><i className="seg-foreseen" />{t('segment.foreseen')} {endsText(t, ends!, now)}</li>}
        </ul>
      </details>
    </>
  )
}

// clockOf labels a mark as exactly as the span wants.
function clockOf(at: number, total: number): string {
  const text = new Date(at).toTimeString()
  if (total < 5 * 60_000) return text.slice(0, 8)
  if (total > 36 * 3_600_000) return `${new Date(at).getMonth() + 1}-${String(new Date(at).getDate()).padStart(2, '0')} ${text.slice(0, 5)}`
  return text.slice(0, 5)
}
