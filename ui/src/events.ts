import type { QueryClient } from '@tanstack/react-query'
import { ApiError, send } from './api'
import type { Event } from './types'

// What happens in the cluster reaches the page over one stream for all tabs of
// a browser, because a browser opens only six connections to a host. The tab
// that holds the lock reads it and tells the others.

export interface Line {
  event?: Event
  index: number
  cursor?: string // names the place behind this line; several events share an index
}
// Contact is whether the page hears of changes as they happen, and when it last
// heard anything at all.
export interface Contact {
  state: 'live' | 'connecting'
  heard: number
}

const retryMax = 3_000
const quietMax = 8_000 // milliseconds; servers say every 3 seconds that they are there
const gather = 60 // milliseconds that changes are gathered for

// topicsOf names the queries that an event makes out of date.
export function topicsOf(event: Pick<Event, 'topic' | 'job_id' | 'node_id'>): string[][] {
  switch (event.topic) {
    case 'job':
    case 'attempt':
      return [['jobs'], ['queue'], ['pools'], ['data', 'use'], ...(event.job_id ? [['job', event.job_id]] : [])]
    case 'alloc':
      return [['nodes'], ...(event.job_id ? [['job', event.job_id]] : []), ...(event.node_id ? [['node', event.node_id]] : [])]
    case 'node':
      return [['nodes'], ['pools'], ...(event.node_id ? [['node', event.node_id]] : [])]
    case 'pool':
      return [['pools'], ['nodes'], ['queue']]
    case 'project':
      return [['projects'], ['queue']]
    case 'data':
      return [['data']]
    case 'template':
      return [['templates']]
    case 'cluster':
      return [['servers']]
  }
  return []
}

// lines reads a stream of JSON lines; heard is called whenever anything comes.
export async function lines(body: ReadableStream<Uint8Array>, take: (line: Line) => void, heard = () => {}) {
  const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader()
  let rest = ''
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    heard()
    const parts = (rest + value).split('\n')
    rest = parts.pop() ?? ''
    for (const text of parts) if (text) take(JSON.parse(text) as Line)
  }
}

// follow keeps the queries of a signed-in page current until signal aborts.
export function follow(client: QueryClient, signal: AbortSignal, tell: (contact: Contact) => void) {
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
  others.onmessage = (message: MessageEvent<{ event?: Event; contact?: Contact; again?: boolean }>) => {
    if (message.data.event) take(message.data.event)
    if (message.data.contact) tell(message.data.contact)
    if (message.data.again) void client.invalidateQueries()
  }
  signal.addEventListener('abort', () => {
    clearTimeout(timer)
    others.close()
  })
  let heard = Date.now()
  let said: Contact = { state: 'live', heard }
  const both = (state: Contact['state']) => {
    if (state === said.state && heard - said.heard < 1000) return
    const contact = { state, heard }
    said = contact
    tell(contact)
    if (!signal.aborted) others.postMessage({ contact })
  }
  const read = async () => {
    let after = ''
    let wait = 500
    let broke = false
    while (!signal.aborted) {
      // A server that is frozen keeps its connections and says nothing.
      const quiet = new AbortController()
      let alarm = setTimeout(() => quiet.abort(), quietMax)
      try {
        const answer = await send('GET', '/v1/events' + (after && `?${after}`), undefined, AbortSignal.any([signal, quiet.signal]))
        heard = Date.now()
        both('live')
        wait = 500
        if (broke) { // what was missed is not known: everything is read again
          void client.invalidateQueries()
          others.postMessage({ again: true })
        } else if (!after) outdate([[]]) // what happened between the first answers and now was told to nobody
        await lines(answer.body!, (line) => {
          after = line.cursor ? `cursor=${line.cursor}` : `index=${line.index}`
          if (!line.event) return
          take(line.event)
          others.postMessage({ event: line.event })
        }, () => {
          heard = Date.now()
          both('live')
          clearTimeout(alarm)
          alarm = setTimeout(() => quiet.abort(), quietMax)
        })
      } catch (failure) {
        if (signal.aborted) return
        if (failure instanceof ApiError && failure.status >= 400 && failure.status < 500) after = '' // what it was behind is kept no longer
      } finally {
        clearTimeout(alarm)
      }
      broke = true
      both('connecting')
      await new Promise((done) => setTimeout(done, wait))
      wait = Math.min(wait * 2, retryMax)
    }
  }
  tell({ state: 'live', heard })
  if (navigator.locks) navigator.locks.request('nomadlike-events', { signal }, read).catch(() => {})
  else void read()
}
