import { Sha256 } from './upload_hash'

// The worker reads pieces of files, and takes their digests, so that the page does not
// stand still meanwhile. Of each piece the digest comes with its bytes; that of the whole
// file is carried on from piece to piece. Digests of pieces are the browser's own; it has
// none that goes on, and what is fast elsewhere is WebAssembly, which the page's policy
// does not run.

export interface Ask {
  job: number // a file that is read from its beginning to its end
  file?: File // with the first question
  from: number
  to: number
  send: boolean // the bytes are wanted, not only their part in the digest
  end?: boolean // the digest of what was read
}

export interface Told {
  job: number
  data?: ArrayBuffer
  sum?: string // SHA-256 of data, in base64
  whole?: string // of all that was read, in hexadecimal digits
  error?: string
}

const files = new Map<number, { file: File; hash: Sha256 }>()

const base64 = (bytes: Uint8Array) => btoa(String.fromCharCode(...bytes))

async function answer(ask: Ask): Promise<Told> {
  if (ask.file) files.set(ask.job, { file: ask.file, hash: new Sha256() })
  const known = files.get(ask.job)
  if (!known) return { job: ask.job, error: 'gone' }
  if (ask.end) {
    files.delete(ask.job)
    return { job: ask.job, whole: known.hash.hex() }
  }
  const data = await known.file.slice(ask.from, ask.to).arrayBuffer()
  if (data.byteLength !== ask.to - ask.from) return { job: ask.job, error: 'changed' }
  const [sum] = await Promise.all([ask.send ? crypto.subtle.digest('SHA-256', data) : undefined, known.hash.add(new Uint8Array(data))])
  return { job: ask.job, ...(sum && { data, sum: base64(new Uint8Array(sum)) }) }
}

let turn: Promise<unknown> = Promise.resolve()
const worker = globalThis as unknown as { onmessage: (event: MessageEvent<Ask>) => void; postMessage: (told: Told, move: Transferable[]) => void }
worker.onmessage = ({ data: ask }) => {
  turn = turn.then(async () => {
    const told = await answer(ask).catch((cause: unknown): Told => ({ job: ask.job, error: String(cause) }))
    worker.postMessage(told, told.data ? [told.data] : [])
  })
}
