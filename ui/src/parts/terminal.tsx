import { FitAddon } from '@xterm/addon-fit'
import { Terminal } from '@xterm/xterm'
import '@xterm/xterm/css/xterm.css'
import { useEffect, useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { acting } from '../acting'
import { part } from '../api'
import { dateTime, quote } from '../format'
import type { Allocation } from '../types'
import { Cli } from './actions'
import { Button } from './controls'
import { Choice } from './controls/fields'
import { TaskPages } from './task_pages'

const stderr = 2 // the first byte of a binary message tells the stream
const shell = ['sh', '-c', 'command -v bash >/dev/null && exec bash -i || exec sh -i']
const earlyMost = 4096 // characters

// enterable reports whether a rank runs, or failed and is held for whoever looks
// for the cause.
export const enterable = (a: Allocation) => a.status === 'running' || (!!a.hold && !a.hold.over)

// Shell is a terminal inside a running or held rank, over the exec websocket.
export default function Shell({ allocs, job }: { allocs: Allocation[]; job: string }) {
  const { t } = useTranslation()
  const open = allocs.filter(enterable)
  const [chosen, setChosen] = useState(open[0]?.id)
  const alloc = allocs.find((a) => a.id === chosen) ?? open[0] // the chosen one also after its end: what it said stays
  const id = alloc?.id
  const [round, setRound] = useState(0)
  const [over, setOver] = useState('')
  const box = useRef<HTMLDivElement>(null)
  const attempt = alloc?.attempt
  useEffect(() => {
    if (!id || !box.current) return
    setOver('')
    const term = new Terminal({ fontSize: 13, fontFamily: 'ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace', cursorBlink: true, scrollback: 5000, screenReaderMode: true, theme: { background: '#0f1216' } })
    const fit = new FitAddon()
    term.loadAddon(fit)
    term.open(box.current)
    fit.fit()
    const socket = new WebSocket(`wss://${location.host}/v1/allocations/${part(id)}/exec${acting() && '?acting=' + part(acting())}`)
    socket.binaryType = 'arraybuffer'
    const tell = (message: object) => socket.readyState === WebSocket.OPEN && socket.send(JSON.stringify(message))
    const size = () => ({ rows: term.rows, cols: term.cols })
    const bytes = new TextEncoder()
    let early = '' // what is typed before the shell is there is for the shell
    socket.onopen = () => {
      tell({ start: { alloc_id: id, attempt, command: shell, tty: true, size: size(), env: { TERM: 'xterm-256color' } } })
      if (early) socket.send(bytes.encode(early))
    }
    term.focus()
    socket.onmessage = (message: MessageEvent<ArrayBuffer | string>) => {
      if (typeof message.data === 'string') {
        const { exit } = JSON.parse(message.data) as { exit?: { code: number; err?: { message?: string } } }
        if (exit) setOver(exit.err?.message || t('terminal.exit', { code: exit.code }))
        return
      }
      const data = new Uint8Array(message.data)
      if (data[0] === 1 || data[0] === stderr) term.write(data.subarray(1))
    }
    socket.onclose = (event) => setOver((text) => text || event.reason || t('terminal.closed'))
    const typed = term.onData((text) => {
      if (socket.readyState === WebSocket.OPEN) socket.send(bytes.encode(text))
      else if (socket.readyState === WebSocket.CONNECTING && early.length < earlyMost) early += text
    })
    const resized = term.onResize(() => tell({ resize: size() }))
    const watch = new ResizeObserver(() => fit.fit())
    watch.observe(box.current)
    return () => {
      watch.disconnect()
      typed.dispose()
      resized.dispose()
      socket.onclose = null
      socket.close()
      term.dispose()
    }
  }, [id, attempt, round, t])
  if (open.length === 0) return <p>{t('terminal.none')}</p>
  const rank = open.length > 1 ? ` -rank ${alloc?.rank ?? 0}` : ''
  return (
    <div className="stack">
      <div className="bar">
        <Choice bare label={t('logs.ranks')} value={id} change={setChosen} options={open.map((a) => ({ value: a.id, label: `${t('logs.rank', { rank: a.rank })} · ${a.name} · ${a.node_name}` }))} />
        {alloc?.hold && <span className="quiet">{t('terminal.held', { until: dateTime(alloc.hold.until) })}</span>}
        <span role="status">{over}</span>
        {over && <Button onClick={() => setRound(round + 1)}>{t('terminal.again')}</Button>}
      </div>
      {alloc && <TaskPages key={alloc.id} alloc={alloc} />}
      <div className="terminal" ref={box} role="region" aria-label={t('terminal.title')} />
      <Cli text={`nomadlike job exec -t${rank} ${quote(job)} bash\nnomadlike job open${rank} ${quote(job)} ${Object.keys(alloc?.ports ?? {})[0] ?? '8888'}`} />
    </div>
  )
}
