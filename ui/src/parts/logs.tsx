import { memo, useEffect, useMemo, useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { inActing } from '../acting'
import { part, send } from '../api'
import { dateTime } from '../format'
import { reasonText } from '../i18n'
import type { Allocation, Attempt } from '../types'
import { Button, Note, Segments } from './controls'
import { Check, Field, Ticks } from './controls/fields'
import { pointAt, pointed, usePointed } from './cursor'
import { errorText, passing } from './states'

export interface Line {
  key: number
  rank: number
  text: string
  at?: number // milliseconds; when it was printed, or the line before it where that is not known
  timed?: boolean // the time is the line's own
}
export interface Span {
  text: string
  style: string
}

const linesMax = 5000 // kept of all ranks together
const tail = 1000 // lines of each rank at first
const againAfter = 1500 // milliseconds before a log that broke off is read again
const followMax = 3 // ranks: a browser opens six connections to a host, for all its tabs

// Everything that a terminal would obey is left out but colours and bold
// type: a log may not set titles, links or the clipboard.
const controls = /\x1b\[([0-9;:]*)m|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[P^_X][^\x1b]*\x1b\\|\x1b\[[0-?]*[ -/]*[@-~]|\x1b[ -/]*[0-~]|[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]/g

// colour parts a line into spans by its SGR sequences.
export function colour(line: string): Span[] {
  const spans: Span[] = []
  let style = new Set<string>()
  let from = 0
  const push = (text: string) => {
    if (text) spans.push({ text, style: [...style].join(' ') })
  }
  for (const match of line.matchAll(controls)) {
    push(line.slice(from, match.index))
    from = match.index + match[0].length
    if (match[1] === undefined) continue
    for (const code of (match[1] || '0').split(';').map(Number)) {
      const base = code >= 90 && code <= 97 ? code - 60 : code
      if (code === 0) style = new Set()
      else if (code === 1) style.add('b')
      else if (code === 22) style.delete('b')
      else if ((base >= 30 && base <= 37) || base === 39) {
        style = new Set([...style].filter((name) => !name.startsWith('c')))
        if (base > 30 && base < 38) style.add('c' + (base - 30))
      }
    }
  }
  push(line.slice(from))
  return spans
}

// visible is what a terminal would show of a line that was written over by
// carriage returns, as progress bars do.
export function visible(line: string): string {
  const parts = line.split('\r').filter(Boolean)
  return parts.at(-1) ?? ''
}

// likeness is a line without its numbers: what ranks count and measure is not
// what tells them apart.
export const likeness = (text: string) => visible(text).replace(controls, '').replace(/0x[0-9a-f]+|[+-]?(?:\d[\d,]*)?\.?\d+(?:e[+-]?\d+)?/gi, '#').replace(/\s+/g, ' ').trim()

// differing leaves out the lines that every rank has printed, whatever numbers
// stand in them.
export function differing(lines: Line[], ranks: number): Line[] {
  if (ranks < 2) return lines
  const seen = new Map<string, Set<number>>()
  const like = lines.map((line) => likeness(line.text))
  for (const [i, line] of lines.entries()) {
    const text = like[i]!
    let by = seen.get(text)
    if (!by) seen.set(text, (by = new Set()))
    by.add(line.rank)
  }
  return lines.filter((_, i) => seen.get(like[i]!)!.size < ranks)
}

// timed reads a line of which the server has put the time before.
export function timed(raw: string): { text: string; at?: number } {
  const found = /^(?:(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)|-) /.exec(raw)
  if (!found) return { text: raw }
  return { text: raw.slice(found[0].length), at: found[1] ? Date.parse(found[1]) : undefined }
}

// merged puts lines of several ranks in the order in which they were printed, those of
// one moment by rank, whichever came first; those of one rank stay as they are.
export function merged(lines: Line[]): Line[] {
  const order = (a: Line, b: Line) => (a.at ?? 0) - (b.at ?? 0) || (a.at === undefined ? 0 : a.rank - b.rank)
  for (let i = 1; i < lines.length; i++) {
    if (order(lines[i - 1]!, lines[i]!) > 0) return [...lines].sort((a, b) => order(a, b) || a.key - b.key)
  }
  return lines
}

// Logs shows what the ranks of an attempt print, merged as it arrives.
export function Logs({ allocs, attempt }: { allocs: Allocation[]; attempt?: Attempt }) {
  const { t } = useTranslation()
  const [chosenStream, setStream] = useState<'stdout' | 'stderr'>()
  const [silent, setSilent] = useState(false)
  const stream = chosenStream ?? (silent ? 'stderr' : 'stdout')
  const [ranks, setRanks] = useState<number[]>(() => allocs.slice(0, followMax).map((a) => a.rank))
  const [follow, setFollow] = useState(true)
  const [only, setOnly] = useState(false)
  const [text, setText] = useState('')
  const chosen = useMemo(() => allocs.filter((a) => ranks.includes(a.rank)), [allocs, ranks])
  const ids = chosen.map((a) => a.id).join(',')
  const may = follow && chosen.length <= followMax
  const { lines, error, whole } = useLines(ids, stream, may, chosen)
  // What failed and printed nothing has said why on the other stream.
  const failed = allocs.some((a) => a.status === 'failed' || a.status === 'killed') && allocs.every(endedAlloc)
  const mute = whole && failed && lines.length === 0
  useEffect(() => {
    if (mute && !chosenStream) setSilent(true)
  }, [mute, chosenStream])
  const shown = useMemo(() => {
    const base = only ? differing(lines, chosen.length) : lines
    return text ? base.filter((line) => line.text.toLowerCase().includes(text.toLowerCase())) : base
  }, [lines, only, text, chosen.length])
  const pointedAt = usePointed()
  const here = pointedAt === undefined ? undefined : shown.findLast((line) => line.at !== undefined && line.at <= pointedAt * 1000 + 500)?.key
  const box = useRef<HTMLPreElement>(null)
  const end = useRef(true)
  const came = useRef(pointed() === undefined)
  useEffect(() => { // whoever comes with a moment sees its lines first
    if (here === undefined || came.current) return
    came.current = true
    end.current = false
    box.current?.querySelector('.here')?.scrollIntoView?.({ block: 'center' })
  }, [here])
  useEffect(() => {
    if (end.current && box.current) box.current.scrollTop = box.current.scrollHeight
  }, [shown])
  const first = allocs.find((a) => a.id === attempt?.first_failed)
  const followed = first ? allocs.filter((a) => a !== first && ['failed', 'killed', 'lost'].includes(a.status)).length : 0
  return (
    <div className="stack">
      {first && (
        <Note tone="error"
          title={t('logs.root', { rank: first.rank, node: first.node_name, time: dateTime(first.finished_at ?? attempt?.ending_at ?? null, true), reason: reasonText(first.cause ?? attempt?.cause) || t('alloc.' + first.status, first.status) }) + (followed ? t('logs.followed', { count: followed }) : '')}
          action={<Button tone="danger" small onClick={() => { setStream('stderr'); setRanks([first.rank]) }}>{t('logs.first_failure', { rank: first.rank })}</Button>} />
      )}
      <div className="bar">
        <Segments label={t('logs.stream')} value={stream} change={setStream} options={(['stdout', 'stderr'] as const).map((value) => ({ value, label: value }))} />
        <Ticks label={t('logs.ranks')} value={ranks} change={setRanks} options={allocs.map((a) => ({ value: a.rank, label: t('logs.rank', { rank: a.rank }) }))} />
        <Check checked={follow} change={setFollow}>{t('logs.follow')}</Check>
        <Check checked={only} off={chosen.length < 2} change={setOnly}>{t('logs.differ')}</Check>
        <Field bare type="search" label={t('logs.search')} width={220} placeholder={t('logs.search')} value={text} change={setText} />
        {chosen.map((a) => (
          <a key={a.id} href={inActing(`/v1/allocations/${part(a.id)}/logs?stream=${stream}`)} download={`${a.name}.${stream}.log`}>{t('logs.download', { rank: a.rank })}</a>
        ))}
      </div>
      {follow && chosen.length > followMax && <Note tone="info" title={t('logs.too_many', { max: followMax })} />}
      {error !== undefined && <Note tone="warning" title={errorText(error, t)} />}
      <pre className="logs" ref={box} tabIndex={0} role="log" aria-label={t('logs.title')} aria-live="off" onScroll={(e) => { const b = e.currentTarget; end.current = b.scrollHeight - b.scrollTop - b.clientHeight < 40 }}>
        {shown.length === 0 && <div>{t('logs.empty')}</div>}
        {shown.map((line) => <LogLine key={line.key} line={line} many={allocs.length > 1} find={text} here={line.key === here} />)}
      </pre>
    </div>
  )
}

const LogLine = memo(function LogLine({ line, many, find, here }: { line: Line; many: boolean; find: string; here: boolean }) {
  return (
    <div className={[find && 'hit', here && 'here'].filter(Boolean).join(' ') || undefined} aria-current={here || undefined}>
      {line.at !== undefined && <time onPointerEnter={() => pointAt(line.at! / 1000)} className={line.timed ? undefined : 'about'} dateTime={new Date(line.at).toISOString()} title={dateTime(new Date(line.at).toISOString(), true)}>{timeOfDay(line.at)}</time>}
      {many && <span className={'rank rank' + (line.rank % 8)}>{line.rank}</span>}
      {colour(visible(line.text)).map((span, i) => <span key={i} className={span.style || undefined}>{span.text}</span>)}
      {line.text === '' && ' '}
    </div>
  )
})

const timeOfDay = (at: number) => dateTime(new Date(at).toISOString(), true).slice(11)

export const endedAlloc = (a: Pick<Allocation, 'status'>) => ['complete', 'failed', 'killed', 'lost'].includes(a.status)

// useLines reads the logs of some ranks, in the order in which they printed
// them. They are shown in batches, so that a rank that prints a lot does not
// stop the page. A log that broke off while it was followed is read again: then
// what is there stays until the first of it has come.
function useLines(ids: string, stream: string, follow: boolean, chosen: Allocation[]): { lines: Line[]; error?: unknown; whole: boolean } {
  const [lines, setLines] = useState<Line[]>([])
  const [error, setError] = useState<unknown>()
  const [whole, setWhole] = useState(false)
  const allocs = useRef(chosen)
  allocs.current = chosen
  useEffect(() => {
    const end = new AbortController()
    let waiting: Line[] = []
    let fresh = new Set<number>() // ranks whose log begins anew
    let key = 0
    let reading = allocs.current.length
    setLines([])
    setError(undefined)
    setWhole(false)
    const flush = () => {
      if (waiting.length === 0 && fresh.size === 0) return
      const [next, anew] = [waiting, fresh]
      waiting = []
      fresh = new Set()
      setLines((old) => merged([...(anew.size ? old.filter((line) => !anew.has(line.rank)) : old), ...next]).slice(-linesMax))
    }
    const timer = setInterval(flush, 200)
    const once = async (alloc: Allocation, again: boolean) => {
      const answer = await send('GET', `/v1/allocations/${part(alloc.id)}/logs?stream=${stream}&tail=${tail}&times=true${follow ? '&follow=true' : ''}`, undefined, end.signal)
      const reader = answer.body!.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader()
      let rest = ''
      let last: number | undefined
      const take = (raw: string) => {
        const { text, at } = timed(raw)
        last = at ?? last
        waiting.push({ key: key++, rank: alloc.rank, text, at: last, timed: at !== undefined })
      }
      for (;;) {
        const { done, value } = await reader.read()
        if (done) break
        if (again) {
          waiting = waiting.filter((line) => line.rank !== alloc.rank)
          fresh.add(alloc.rank)
          setError(undefined)
          again = false
        }
        const parts = (rest + value).split('\n')
        rest = (parts.pop() ?? '').slice(-10_000)
        for (const text of parts) take(text)
        if (waiting.length > linesMax) waiting = waiting.slice(-linesMax)
      }
      if (rest) take(rest)
    }
    const read = async (alloc: Allocation) => {
      for (let tries = 0; !end.signal.aborted; tries++) {
        try {
          await once(alloc, tries > 0)
          const now = allocs.current.find((one) => one.id === alloc.id)
          if (!follow || !now || endedAlloc(now)) break
        } catch (failure) {
          if (end.signal.aborted) return
          setError(failure)
          if (!follow || !passing(failure) && !(failure instanceof TypeError)) break
        }
        await new Promise((done) => setTimeout(done, againAfter))
      }
      flush()
      if (--reading === 0 && !end.signal.aborted) setWhole(true)
    }
    for (const alloc of allocs.current) void read(alloc)
    return () => {
      end.abort()
      clearInterval(timer)
    }
  }, [ids, stream, follow])
  return { lines, error, whole }
}

// errorLine is the line of the end of a log that names the error, if one does.
export const errorLine = (lines: string[]): string | undefined => lines.findLast((line) => /^\s*(?:[\w.]*(?:Error|Exception|Interrupt)\b|\S*[Ff]atal\b|FATAL\b|panic:|Segmentation fault|Killed\b|terminate called)/.test(line) || /\b(?:error|ERROR|错误)[:：]/.test(line))
