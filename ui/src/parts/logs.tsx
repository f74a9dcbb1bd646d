import { Alert, Button, Checkbox, Input, Radio, Select } from 'antd'
import { memo, useEffect, useMemo, useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { part, send } from '../api'
import { dateTime } from '../format'
import { reasonText } from '../i18n'
import type { Allocation, Attempt } from '../types'
import { errorText } from './states'

export interface Line {
  key: number
  rank: number
  text: string
}
export interface Span {
  text: string
  style: string
}

const linesMax = 5000 // kept of all ranks together
const tail = 1000 // lines of each rank at first
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

// differing leaves out the lines that every rank has printed.
export function differing(lines: Line[], ranks: number): Line[] {
  const seen = new Map<string, Set<number>>()
  for (const line of lines) {
    const text = line.text.trim()
    let by = seen.get(text)
    if (!by) seen.set(text, (by = new Set()))
    by.add(line.rank)
  }
  return ranks < 2 ? lines : lines.filter((line) => seen.get(line.text.trim())!.size < ranks)
}

// Logs shows what the ranks of an attempt print, merged as it arrives.
export function Logs({ allocs, attempt }: { allocs: Allocation[]; attempt?: Attempt }) {
  const { t } = useTranslation()
  const [stream, setStream] = useState<'stdout' | 'stderr'>('stdout')
  const [ranks, setRanks] = useState<number[]>(() => allocs.slice(0, followMax).map((a) => a.rank))
  const [follow, setFollow] = useState(true)
  const [only, setOnly] = useState(false)
  const [text, setText] = useState('')
  const chosen = useMemo(() => allocs.filter((a) => ranks.includes(a.rank)), [allocs, ranks])
  const ids = chosen.map((a) => a.id).join(',')
  const may = follow && chosen.length <= followMax
  const { lines, error } = useLines(ids, stream, may, chosen)
  const shown = useMemo(() => {
    const base = only ? differing(lines, chosen.length) : lines
    return text ? base.filter((line) => line.text.toLowerCase().includes(text.toLowerCase())) : base
  }, [lines, only, text, chosen.length])
  const box = useRef<HTMLPreElement>(null)
  const end = useRef(true)
  useEffect(() => {
    if (end.current && box.current) box.current.scrollTop = box.current.scrollHeight
  }, [shown])
  const first = allocs.find((a) => a.id === attempt?.first_failed)
  const followed = first ? allocs.filter((a) => a !== first && ['failed', 'killed', 'lost'].includes(a.status)).length : 0
  return (
    <div className="stack">
      {first && (
        <Alert type="error" showIcon
          title={t('logs.root', { rank: first.rank, node: first.node_name, time: dateTime(first.finished_at ?? attempt?.ending_at ?? null, true), reason: reasonText(first.cause ?? attempt?.cause) || t('alloc.' + first.status, first.status) }) + (followed ? t('logs.followed', { count: followed }) : '')}
          action={<Button danger size="small" onClick={() => { setStream('stderr'); setRanks([first.rank]) }}>{t('logs.first_failure', { rank: first.rank })}</Button>} />
      )}
      <div className="bar">
        <Radio.Group value={stream} aria-label={t('logs.stream')} onChange={(e) => setStream(e.target.value as 'stdout' | 'stderr')} optionType="button" options={['stdout', 'stderr']} />
        <Select mode="multiple" maxTagCount={6} style={{ minWidth: 180 }} aria-label={t('logs.ranks')} value={ranks} onChange={(value: number[]) => setRanks([...value].sort((a, b) => a - b))} options={allocs.map((a) => ({ value: a.rank, label: t('logs.rank', { rank: a.rank }) }))} />
        <Checkbox checked={follow} onChange={(e) => setFollow(e.target.checked)}>{t('logs.follow')}</Checkbox>
        <Checkbox checked={only} disabled={chosen.length < 2} onChange={(e) => setOnly(e.target.checked)}>{t('logs.differ')}</Checkbox>
        <Input.Search allowClear style={{ width: 220 }} aria-label={t('logs.search')} placeholder={t('logs.search')} onChange={(e) => setText(e.target.value)} />
        {chosen.map((a) => (
          <a key={a.id} href={`/v1/allocations/${part(a.id)}/logs?stream=${stream}`} download={`${a.name}.${stream}.log`}>{t('logs.download', { rank: a.rank })}</a>
        ))}
      </div>
      {follow && chosen.length > followMax && <Alert type="info" showIcon title={t('logs.too_many', { max: followMax })} />}
      {error !== undefined && <Alert type="warning" showIcon title={errorText(error, t)} />}
      <pre className="logs" ref={box} tabIndex={0} role="log" aria-label={t('logs.title')} aria-live="off" onScroll={(e) => { const b = e.currentTarget; end.current = b.scrollHeight - b.scrollTop - b.clientHeight < 40 }}>
        {shown.length === 0 && <div>{t('logs.empty')}</div>}
        {shown.map((line) => <LogLine key={line.key} line={line} many={allocs.length > 1} find={text} />)}
      </pre>
    </div>
  )
}

const LogLine = memo(function LogLine({ line, many, find }: { line: Line; many: boolean; find: string }) {
  return (
    <div className={find ? 'hit' : undefined}>
      {many && <span className={'rank rank' + (line.rank % 8)}>{line.rank}</span>}
      {colour(visible(line.text)).map((span, i) => <span key={i} className={span.style || undefined}>{span.text}</span>)}
      {line.text === '' && ' '}
    </div>
  )
})

// useLines reads the logs of some ranks. They are shown in batches, so that a
// rank that prints a lot does not stop the page.
function useLines(ids: string, stream: string, follow: boolean, chosen: Allocation[]): { lines: Line[]; error?: unknown } {
  const [lines, setLines] = useState<Line[]>([])
  const [error, setError] = useState<unknown>()
  const allocs = useRef(chosen)
  allocs.current = chosen
  useEffect(() => {
    const end = new AbortController()
    let waiting: Line[] = []
    let key = 0
    setLines([])
    setError(undefined)
    const flush = setInterval(() => {
      if (waiting.length === 0) return
      const next = waiting
      waiting = []
      setLines((old) => [...old, ...next].slice(-linesMax))
    }, 200)
    const read = async (alloc: Allocation) => {
      try {
        const answer = await send('GET', `/v1/allocations/${part(alloc.id)}/logs?stream=${stream}&tail=${tail}${follow ? '&follow=true' : ''}`, undefined, end.signal)
        const reader = answer.body!.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader()
        let rest = ''
        for (;;) {
          const { done, value } = await reader.read()
          if (done) break
          const parts = (rest + value).split('\n')
          rest = (parts.pop() ?? '').slice(-10_000)
          for (const text of parts) waiting.push({ key: key++, rank: alloc.rank, text })
          if (waiting.length > linesMax) waiting = waiting.slice(-linesMax)
        }
        if (rest) waiting.push({ key: key++, rank: alloc.rank, text: rest })
      } catch (failure) {
        if (!end.signal.aborted) setError(failure)
      }
    }
    for (const alloc of allocs.current) void read(alloc)
    return () => {
      end.abort()
      clearInterval(flush)
    }
  }, [ids, stream, follow])
  return { lines, error }
}
