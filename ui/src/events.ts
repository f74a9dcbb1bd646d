import type { QueryClient } from '@tanstack/react-query'
import { send } from './api'
import type { Event } from './types'

// What happens in the cluster reaches the page over one stream for all tabs of
// a browser, because a browser opens only six connections to a host. The tab
// that holds the lock reads it and tells the others.

export interface Line {
  event?: Event
  index: number
  cursor?: string // names the place behind this line; several events share an index
}
export type Liveness = 'live' | 'connecting'

const retryMax = 15_000
const gather = 60 // milliseconds that changes are gathered for

// topicsOf names the queries that an event makes out of date.
export function topicsOf(event: Pick<Event, 'topic' | 'job_id' | 'node_id'>): string[][] {
  switch (event.topic) {
    case 'job':
    case 'attempt':
      return [['jobs'], ['queue'], ...(event.job_id ? [['job', event.job_id]] : [])]
    case 'alloc':
      return [['nodes'], ...(event.job_id ? [['job', event.job_id]] : []), ...(event.node_id ? [['node', event.node_id]] : [])]
    case 'node':
      return [['nodes'], ['pools'], ...(event.node_id ? [['node', event.node_id]] : [])]
    case 'pool':
      return [['pools'], ['nodes'], ['queue']]
    case 'project':
      return [['projects'], ['queue']]
    case 'cluster':
      return [['servers']]
  }
  return []
}

// lines reads a stream of JSON lines.
export async function lines(body: ReadableStream<Uint8Array>, take: (line: Line) => void) {
  const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader()
  let rest = ''
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    const parts = (rest + value).split('\n')
    rest = parts.pop() ?? ''
    for (const text of parts) if (text) take(JSON.parse(text) as Line)
  }
}

// follow keeps the queries of a signed-in page current until signal aborts.
export function follow(client: QueryClient, signal: AbortSignal, tell: (state: Liveness) => void) {
  const stale = new Map<string, string[]>()
  let timer: ReturnType<typeof setTimeout> | undefined
  const outdate = (keys: string[][]) => {
    for (const key of keys) stale.set(key.join('/'), key)
    if (stale.size) timer ??= setTimeout(ask, gather)
  }
  const ask = () => {
    timer = undefined
    const keys = [...stale.values()]
    stale.clear()
    // An answer that is on its way may be older than the event: it is asked for once more when it is there.
    const again = keys.filter((queryKey) => client.isFetching({ queryKey }) > 0)
    for (const queryKey of keys) void client.invalidateQueries({ queryKey }, { cancelRefetch: false })
    outdate(again)
  }
  const take = (event: Event) => outdate(topicsOf(event))
  const others = new BroadcastChannel('nomadlike-events')
  others.onmessage = (message: MessageEvent<{ event?: Event; state?: Liveness }>) => {
    if (message.data.event) take(message.data.event)
    if (message.data.state) tell(message.data.state)
  }
  signal.addEventListener('abort', () => {
    clearTimeout(timer)
    others.close()
  })
  const both = (state: Liveness) => {
    tell(state)
    if (!signal.aborted) others.postMessage({ state })
  }
  const read = async () => {
    let after = ''
    let wait = 500
    while (!signal.aborted) {
      try {
        const answer = await send('GET', '/v1/events' + (after && `?${after}`), undefined, signal)
        both('live')
        wait = 500
        // What happened between the first answers and now was told to nobody.
        if (!after) outdate([[]])
        await lines(answer.body!, (line) => {
          after = line.cursor ? `cursor=${line.cursor}` : `index=${line.index}`
          if (!line.event) return
          take(line.event)
          others.postMessage({ event: line.event })
        })
      } catch {
        if (signal.aborted) return
      }
      both('connecting')
      await new Promise((done) => setTimeout(done, wait))
      wait = Math.min(wait * 2, retryMax)
      // What was missed is not known: everything is read again.
      if (!signal.aborted) void client.invalidateQueries()
    }
  }
  tell('live')
  if (navigator.locks) navigator.locks.request('nomadlike-events', { signal }, read).catch(() => {})
  else void read()
}
