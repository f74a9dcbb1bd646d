import { ApiError, call, part, send } from '../api'
import type { DataFiles, DataFilesBegun, DataFilesFinished } from '../types'
import { Sha256 } from './upload_hash'
import type { Ask, Told } from './upload_worker'

// Sending takes files to a new version of named data: each by tus, in pieces that the
// node has on its disk before the next one goes. It keeps nothing in the browser: an
// upload is named by the list of its files, so the same folder, chosen again, goes on.

export const pieceMax = 8 << 20
const atOnce = 4 // files under way
const tries = 8 // of one file, in a row without anything that came
const waits = [500, 1000, 3000, 5000, 10_000]

export interface Chosen {
  path: string // below the version's directory
  file: File | undefined // none: an empty directory
}

export type State = 'waiting' | 'sending' | 'done' | 'failed'

export interface Item extends Chosen {
  size: number
  sent: number
  state: State
  digest?: string
  error?: unknown
}

export interface Where {
  project: string
  kind: string
  name: string
  storage?: string
}

// itemsOf sorts what was chosen; of two of one path the later one counts.
export function itemsOf(chosen: readonly Chosen[]): Item[] {
  const all = new Map<string, Item>()
  for (const one of chosen) all.set(one.path, { ...one, size: one.file?.size ?? 0, sent: 0, state: 'waiting' })
  return [...all.values()].sort((a, b) => (a.path < b.path ? -1 : 1))
}

// keyOf names an upload by the list of its files: their paths and sizes. What they hold
// is compared when it is there.
export const keyOf = (items: readonly Item[]) => new Sha256().add(new TextEncoder().encode(items.map((one) => `${one.size} ${JSON.stringify(one.path)}\n`).join(''))).hex()

// sumsOf is what sha256sum would print of the files.
export function sumsOf(items: readonly Item[]): string {
  return items.filter((one) => one.file).map((one) => {
    const plain = one.path.replace(/[\\\n\r]/g, (c) => (c === '\\' ? '\\\\' : c === '\n' ? '\\n' : '\\r'))
    return `${plain === one.path ? '' : '\\'}${one.digest ?? ''}  ${plain}\n`
  }).join('')
}

const base64 = (text: string) => btoa(String.fromCharCode(...new TextEncoder().encode(text)))

// passes reports whether to wait and try again helps.
const passes = (error: unknown) => error instanceof ApiError && (error.status === 0 || error.status === 409 || error.status === 423 || error.status === 429 || error.status === 460 || error.status >= 500)

// Reader is the worker, asked about files one after the other.
export class Reader {
  private readonly worker: Worker
  private readonly waiting = new Map<number, ((told: Told) => void)[]>()
  private next = 1

  constructor(make: () => Worker = () => new Worker(new URL('./upload_worker.ts', import.meta.url), { type: 'module' })) {
    this.worker = make()
    this.worker.onmessage = ({ data }: MessageEvent<Told>) => this.waiting.get(data.job)?.shift()?.(data)
    this.worker.onerror = (event) => {
      for (const [job, all] of this.waiting) for (const told of all.splice(0)) told({ job, error: event.message })
    }
  }

  open(file: File) {
    const job = this.next++
    const queue: ((told: Told) => void)[] = []
    this.waiting.set(job, queue)
    let first = true
    const ask = (question: Omit<Ask, 'job' | 'file'>) => new Promise<Told>((told, failed) => {
      queue.push((answer) => (answer.error ? failed(new ApiError(400, { code: 'invalid', id: 'ui.file_changed' })) : told(answer)))
      this.worker.postMessage({ job, ...question, ...(first && { file }) } satisfies Ask)
      first = false
    })
    return {
      read: (from: number, to: number, wanted: boolean) => ask({ from, to, send: wanted }),
      end: async () => {
        const { whole } = await ask({ from: 0, to: 0, send: false, end: true })
        this.waiting.delete(job)
        return whole!
      },
    }
  }

  close() {
    this.worker.terminate()
  }
}

export class Sending {
  readonly items: Item[]
  stage: 'sending' | 'checking' | 'done' | 'failed' = 'sending'
  paused = false
  checked = 0 // bytes of the version that the node has looked at
  error: unknown
  finished: DataFilesFinished | undefined
  private readonly where: Where
  private readonly reader: Pick<Reader, 'open' | 'close'>
  private readonly changed: () => void
  private readonly stopping = new AbortController()
  private going = new AbortController() // of what is under way until a pause
  private wake: (() => void)[] = []
  private begun: DataFilesBegun | undefined
  private readonly marks: { at: number; sent: number }[] = []

  constructor(where: Where, items: Item[], changed: () => void, reader: Pick<Reader, 'open' | 'close'> = new Reader()) {
    this.where = where
    this.items = items
    this.changed = changed
    this.reader = reader
  }

  get bytes() {
    return this.items.reduce((sum, one) => sum + one.size, 0)
  }
  get sent() {
    return this.items.reduce((sum, one) => sum + one.sent, 0)
  }

  // rate is bytes in a second, of the last ten.
  rate(now = performance.now()): number {
    while (this.marks.length > 1 && this.marks[0]!.at < now - 10_000) this.marks.shift()
    const first = this.marks[0]
    const last = this.marks.at(-1)
    return first && last && now - first.at > 500 ? ((last.sent - first.sent) * 1000) / (now - first.at) : 0
  }

  pause() {
    this.paused = true
    this.going.abort()
    this.marks.length = 0
    this.changed()
  }

  resume() {
    this.paused = false
    this.going = new AbortController()
    for (const go of this.wake.splice(0)) go()
    this.changed()
  }

  // again tries what failed.
  again() {
    for (const one of this.items) if (one.state === 'failed') Object.assign(one, { state: 'waiting', error: undefined })
    this.error = undefined
    this.stage = 'sending'
    this.resume()
    return this.run()
  }

  // stop leaves what was sent where it is.
  stop() {
    this.stopping.abort()
    this.going.abort()
    this.reader.close()
  }

  // giveUp removes it.
  async giveUp() {
    this.stop()
    if (this.begun && !this.finished) await call('DELETE', this.at('/files', { upload: this.begun.upload }))
  }

  private at(path: string, more: Record<string, string> = {}) {
    return `/v1/data/${part(this.where.name)}${path}?` + new URLSearchParams({ kind: this.where.kind, of: this.where.project, ...more }).toString()
  }

  async run() {
    try {
      await this.begin()
      for (let round = 1; ; round++) {
        await this.sendAll()
        if (this.items.some((one) => one.state === 'failed')) {
          this.stage = 'failed'
          return
        }
        if (await this.finish(round < 3)) break
      }
      this.stage = 'done'
    } catch (error) {
      if (this.stopping.signal.aborted) return
      this.error = error
      this.stage = 'failed'
    } finally {
      this.changed()
    }
  }

  // begin finds what of the same files has come before.
  private async begin() {
    const files = this.items.filter((one) => one.file).length
    this.begun = await this.patiently(() => call<DataFilesBegun>('POST', this.at('/files'), { key: keyOf(this.items), files, bytes: this.bytes, storage: this.where.storage }))
    if (!this.begun.begun) return
    const known = new Map<string, number>()
    let after = ''
    do {
      const page = await this.patiently(() => call<DataFiles>('GET', this.at('/files', { upload: this.begun!.upload, ...(after && { after }) })))
      for (const file of page.files ?? []) known.set(file.path + (file.dir ? '/' : ''), file.offset)
      after = page.next ?? ''
    } while (after)
    for (const one of this.items) {
      one.sent = Math.min(known.get(one.path) ?? 0, one.size)
    }
    this.changed()
  }

  // patiently asks again while that may help.
  private async patiently<T>(ask: () => Promise<T>): Promise<T> {
    for (let failed = 0; ; failed++) {
      await this.unpaused()
      try {
        return await ask()
      } catch (error) {
        if (!passes(error) || failed === tries || (error instanceof ApiError && error.status === 409)) throw error
        await this.wait(failed)
      }
    }
  }

  private async unpaused() {
    while (this.paused) await new Promise<void>((go) => this.wake.push(go))
    this.stopping.signal.throwIfAborted()
  }

  private wait(failed: number) {
    return new Promise<void>((go) => setTimeout(go, waits[Math.min(failed, waits.length - 1)]))
  }

  private async sendAll() {
    const left = this.items.filter((one) => one.state === 'waiting')
    const next = async (): Promise<void> => {
      for (let one = left.shift(); one; one = left.shift()) await this.sendOne(one)
    }
    await Promise.all(Array.from({ length: atOnce }, next))
  }

  // sendOne sends a file; what is wrong with it is said of it, and the others go on.
  private async sendOne(one: Item) {
    for (let failed = 0; ; ) {
      await this.unpaused()
      const before = one.sent
      try {
        one.state = 'sending'
        await this.sendRest(one)
        one.state = 'done'
        this.changed()
        return
      } catch (error) {
        this.stopping.signal.throwIfAborted()
        if (this.paused || this.going.signal.aborted) continue
        if (error instanceof ApiError && error.status === 401) throw error // whoever signs in again goes on
        failed = one.sent > before ? 0 : failed + 1
        if (!passes(error) || failed > tries) {
          Object.assign(one, { state: 'failed', error })
          this.changed()
          return
        }
        if (error instanceof ApiError && error.status === 460) one.sent = 0
        await this.wait(failed)
      }
    }
  }

  private address(one: Item) {
    return this.at('/tus/file', { upload: this.begun!.upload, file: idOf(one.path) })
  }

  private async sendRest(one: Item) {
    const signal = this.going.signal
    const head = { 'Tus-Resumable': '1.0.0' }
    const make = (body: Blob | undefined, more: Record<string, string>) => send('POST', this.begun!.url, body, signal, { ...head, ...more, 'Upload-Length': String(one.size), 'Upload-Metadata': 'path ' + base64(one.path) })
    if (!one.file) {
      await make(undefined, {})
      one.digest = ''
      return
    }
    if (one.sent > 0) {
      const known = await send('HEAD', this.address(one), undefined, signal, head).catch((error: unknown) => {
        if (error instanceof ApiError && error.status === 404) return undefined
        throw error
      })
      one.sent = Math.min(Number(known?.headers.get('Upload-Offset') ?? 0), one.size)
    }
    const reading = this.reader.open(one.file)
    for (let at = 0; at < one.sent; at += pieceMax) {
      await reading.read(at, Math.min(at + pieceMax, one.sent), false)
      signal.throwIfAborted()
    }
    let created = one.sent > 0
    const read = (from: number) => reading.read(from, Math.min(from + pieceMax, one.size), true)
    let coming = one.sent < one.size ? read(one.sent) : undefined
    while (coming) {
      const { data, sum } = await coming
      const end: number = one.sent + data!.byteLength
      const ahead = end < one.size ? read(end) : undefined
      ahead?.catch(() => {}) // told when it is waited for
      const body = new Blob([data!], { type: 'application/offset+octet-stream' })
      const more = { 'Upload-Checksum': 'sha256 ' + sum! }
      const answer = created
        ? await send('PATCH', this.address(one), body, signal, { ...head, ...more, 'Upload-Offset': String(one.sent) })
        : await make(body, more)
      created = true
      const offset = Number(answer.headers.get('Upload-Offset'))
      const before = one.sent
      one.sent = Math.min(offset, one.size)
      if (offset !== end) throw new ApiError(409, { code: 'conflict', id: 'objects.offset', params: { path: one.path, offset: String(offset), given: String(before) } })
      this.marks.push({ at: performance.now(), sent: this.sent })
      this.changed()
      coming = ahead
    }
    if (!created) await make(undefined, {})
    one.digest = await reading.end()
  }

  // finish has the version made. What is not as it has to be is sent again, where that
  // may help.
  private async finish(mend: boolean): Promise<boolean> {
    this.stage = 'checking'
    this.changed()
    const list = new Blob([sumsOf(this.items)], { type: 'application/octet-stream' })
    for (;;) {
      let told: DataFilesFinished
      try {
        told = await this.patiently(async () => (await send('POST', this.at('/files/finish', { upload: this.begun!.upload }), list, this.stopping.signal)).json() as Promise<DataFilesFinished>)
      } catch (error) {
        const details = error instanceof ApiError && error.failure.id === 'objects.files_wrong' ? (error.failure.details ?? []) : []
        if (!mend || !details.length) throw error
        await this.mend(details)
        return false
      }
      this.checked = told.bytes
      this.changed()
      if (told.done) {
        this.finished = told
        return true
      }
    }
  }

  private async mend(details: { id: string; params?: Record<string, string> }[]) {
    const items = new Map(this.items.map((one) => [one.path, one]))
    for (const { id, params } of details) {
      const path = params?.path ?? ''
      const one = items.get(path)
      if (id === 'objects.wrong_extra' && !one) {
        await send('DELETE', this.at('/tus/file', { upload: this.begun!.upload, file: idOf(path) }), undefined, this.stopping.signal, { 'Tus-Resumable': '1.0.0' })
      } else if (one) {
        one.sent = id === 'objects.wrong_half' ? one.sent : 0
        one.state = 'waiting'
      }
    }
    this.stage = 'sending'
    this.changed()
  }
}

// idOf is the name of a file in an upload, drawn from its path as the node draws it.
export const idOf = (path: string) => new Sha256().add(new TextEncoder().encode(path.replace(/\/$/, ''))).hex().slice(0, 32)
