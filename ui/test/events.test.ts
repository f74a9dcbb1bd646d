import { QueryClient, QueryObserver } from '@tanstack/react-query'
import { expect, test, vi } from 'vitest'
import { follow } from '../src/events'

const patience = { timeout: 30_000 } // a busy machine is slow

// The answer that is on its way when the event comes was given before it.
test('an event that comes while an answer is on its way is asked for once more', async () => {
  let tell!: ReadableStreamDefaultController<Uint8Array>
  const body = new ReadableStream<Uint8Array>({ start: (controller) => { tell = controller } })
  vi.stubGlobal('fetch', vi.fn(async () => new Response(body)))
  vi.stubGlobal('navigator', { ...navigator, locks: undefined })
  const end = new AbortController()
  const client = new QueryClient()
  const answers: ((text: string) => void)[] = []
  const observer = new QueryObserver(client, { queryKey: ['job', 'j'], queryFn: () => new Promise<string>((done) => answers.push(done)) })
  const leave = observer.subscribe(() => {})
  answers[0]!('queued')
  await vi.waitFor(() => expect(client.isFetching()).toBe(0), patience)
  follow(client, end.signal, () => {})
  await vi.waitFor(() => expect(answers).toHaveLength(2), patience) // with the stream everything is read again
  tell.enqueue(new TextEncoder().encode('{"index":7,"event":{"topic":"job","job_id":"j"}}\n'))
  await new Promise((done) => setTimeout(done, 200))
  answers[1]!('starting')
  await vi.waitFor(() => expect(answers.length).toBeGreaterThan(2), patience)
  answers.at(-1)!('running')
  await vi.waitFor(() => expect(observer.getCurrentResult().data).toBe('running'), patience)
  end.abort()
  leave()
  vi.unstubAllGlobals()
})

// Several events share an index: only the cursor names the place behind the last line.
test('a stream that broke is asked to go on behind its last line', async () => {
  const asked: string[] = []
  const bodies = ['{"index":7,"cursor":"7.2","event":{"topic":"job","job_id":"j"}}\n', '{"index":9}\n', '']
  vi.stubGlobal('fetch', vi.fn(async (url: string) => {
    asked.push(url)
    return new Response(bodies[Math.min(asked.length, bodies.length) - 1])
  }))
  vi.stubGlobal('navigator', { ...navigator, locks: undefined })
  const end = new AbortController()
  follow(new QueryClient(), end.signal, () => {})
  await vi.waitFor(() => expect(asked.length).toBeGreaterThan(2), patience)
  end.abort()
  expect(asked.slice(0, 3)).toEqual(['/v1/events', '/v1/events?cursor=7.2', '/v1/events?index=9'])
  vi.unstubAllGlobals()
})

// A frozen server keeps its connections and says nothing.
test('a stream that says nothing is not called live, and is opened anew', async () => {
  vi.useFakeTimers()
  const opened: AbortSignal[] = []
  vi.stubGlobal('fetch', vi.fn(async (_: string, init: RequestInit) => {
    opened.push(init.signal!)
    if (opened.length === 1) return new Response(new ReadableStream<Uint8Array>({ start: (controller) => {
      controller.enqueue(new TextEncoder().encode('{"index":1}\n'))
      init.signal!.addEventListener('abort', () => controller.error(new Error('aborted')))
    } }))
    return new Promise<Response>((_, fail) => init.signal!.addEventListener('abort', () => fail(new Error('aborted'))))
  }))
  vi.stubGlobal('navigator', { ...navigator, locks: undefined })
  const end = new AbortController()
  const told: string[] = []
  let heard = 0
  const began = Date.now()
  const client = new QueryClient()
  follow(client, end.signal, (contact) => { told.push(contact.state); heard = contact.heard })
  await vi.advanceTimersByTimeAsync(7_000)
  expect(told.at(-1)).toBe('live')
  await vi.advanceTimersByTimeAsync(1_500)
  expect(told.at(-1)).toBe('connecting')
  expect(heard - began).toBeLessThan(1_000) // so old is what one sees
  await vi.advanceTimersByTimeAsync(12_000)
  expect(opened.length).toBeGreaterThan(2)
  expect(told.at(-1)).toBe('connecting')
  end.abort()
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

test('after a break everything is read again, once the stream is there', async () => {
  vi.useFakeTimers()
  let away = false
  let cut = () => {}
  vi.stubGlobal('fetch', vi.fn(async () => {
    if (away) throw new TypeError('Failed to fetch')
    return new Response(new ReadableStream<Uint8Array>({ start: (controller) => { cut = () => controller.close() } }))
  }))
  vi.stubGlobal('navigator', { ...navigator, locks: undefined })
  const end = new AbortController()
  const client = new QueryClient()
  let reads = 0
  const observer = new QueryObserver(client, { queryKey: ['job', 'j'], retry: false, queryFn: async () => { reads++; if (away) throw new Error('away'); return 'running' } })
  const leave = observer.subscribe(() => {})
  follow(client, end.signal, () => {})
  await vi.advanceTimersByTimeAsync(1_000)
  away = true
  cut()
  await vi.advanceTimersByTimeAsync(6_000)
  const before = reads
  away = false
  await vi.advanceTimersByTimeAsync(4_000)
  expect(reads).toBe(before + 1)
  expect(observer.getCurrentResult().data).toBe('running')
  end.abort()
  leave()
  vi.useRealTimers()
  vi.unstubAllGlobals()
})
