import { createHash } from 'node:crypto'
import { afterEach, expect, test, vi } from 'vitest'
import { fromInput } from '../src/parts/upload_choose'
import { Sha256 } from '../src/parts/upload_hash'
import { idOf, itemsOf, keyOf, pieceMax, Sending, sumsOf } from '../src/parts/upload_send'

afterEach(() => vi.unstubAllGlobals())

const sha256 = (data: Uint8Array | string) => createHash('sha256').update(data).digest()

test('the digest of pieces is that of the whole', () => {
  const data = new Uint8Array(5000).map((_, i) => (i * 7919) >> 3)
  for (const length of [0, 1, 55, 56, 63, 64, 65, 119, 120, 128, 1000, 5000]) {
    for (const step of [1, 13, 64, 999]) {
      const hash = new Sha256()
      for (let at = 0; at < length; at += step) hash.add(data.subarray(at, Math.min(at + step, length)))
      expect(hash.hex(), `${length} in ${step}`).toBe(sha256(data.subarray(0, length)).toString('hex'))
    }
  }
  expect(idOf('图/a')).toBe(sha256('图/a').toString('hex').slice(0, 32))
})

test('one folder gives what is in it, several things keep their names', () => {
  const file = (path: string, top = '') => Object.defineProperty(new File([], path.split('/').at(-1)!), 'webkitRelativePath', { value: top && top + '/' + path })
  const paths = (files: File[]) => fromInput(files).map((one) => one.path)
  expect(paths([file('a/b', 'top'), file('c', 'top')])).toEqual(['a/b', 'c'])
  expect(paths([file('a', 'one'), file('a', 'two')])).toEqual(['one/a', 'two/a'])
  expect(paths([file('x'), file('y')])).toEqual(['x', 'y'])
})

// A node in memory, which answers as tus says; rules say what goes wrong.
function node(rules: { fails?: (method: string, count: number) => number; wrong?: string[] } = {}) {
  const files = new Map<string, { path: string; size: number; data: Uint8Array }>()
  let count = 0
  let begun = false
  const asked: string[] = []
  const answer = async (url: string, init: RequestInit): Promise<Response> => {
    const method = init.method!
    const at = new URL(url, 'https://x')
    const head = new Headers(init.headers)
    const body = init.body instanceof Blob ? new Uint8Array(await init.body.arrayBuffer()) : new Uint8Array()
    asked.push(method + ' ' + at.pathname.split('/').slice(4).join('/'))
    const status = rules.fails?.(method, ++count)
    if (status === 0) throw new TypeError('cut')
    const refuse = (code: number, id: string, more: object = {}) => new Response(JSON.stringify({ code: 'x', id, ...more }), { status: code })
    if (status) return refuse(status, 'ui.x')
    const json = (value: object) => new Response(JSON.stringify(value))
    const told = (offset: number, code: number) => new Response(null, { status: code, headers: { 'Upload-Offset': String(offset) } })
    if (at.pathname.endsWith('/files/finish')) {
      const lines = new TextDecoder().decode(body)
      const plain = [...files].filter(([, f]) => !f.path.endsWith('/'))
      const want = plain.map(([, f]) => f).map((f) => `${sha256(f.data).toString('hex')}  ${f.path}\n`).sort().join('')
      const bad = plain.find(([, f]) => !lines.includes(`${sha256(f.data).toString('hex')}  ${f.path}\n`))
      if (bad) {
        bad[1].data = new Uint8Array()
        return refuse(409, 'objects.files_wrong', { details: [{ code: 'x', id: 'objects.wrong_changed', params: { path: bad[1].path } }] })
      }
      expect(lines.split('\n').sort().join('\n').trim()).toBe(want.split('\n').sort().join('\n').trim())
      return json({ done: true, version: 3, files: files.size, bytes: 0, all: 0, digest: 'sha256:x' })
    }
    if (at.pathname.endsWith('/files')) {
      if (method === 'GET') return json({ files: [...files].map(([id, f]) => ({ id, path: f.path, size: f.size, offset: f.data.length })) })
      const was = begun
      begun = true
      return json({ upload: 'u', begun: was, url: '/v1/data/x/tus?upload=u' })
    }
    const sum = head.get('Upload-Checksum')
    if (sum && sum !== 'sha256 ' + sha256(body).toString('base64')) return refuse(460, 'agent.tus_wrong')
    if (method === 'POST') {
      const path = Buffer.from(head.get('Upload-Metadata')!.split(' ')[1]!, 'base64').toString()
      const known = files.get(idOf(path)) ?? { path, size: Number(head.get('Upload-Length')), data: new Uint8Array() }
      if (!known.data.length) known.data = body
      files.set(idOf(path), known)
      return told(known.data.length, 201)
    }
    const file = files.get(at.searchParams.get('file')!)
    if (!file) return refuse(404, 'objects.no_file')
    if (method === 'HEAD') return told(file.data.length, 200)
    if (Number(head.get('Upload-Offset')) !== file.data.length) return refuse(409, 'objects.offset')
    file.data = Uint8Array.from([...file.data, ...body])
    return told(file.data.length, 204)
  }
  vi.stubGlobal('fetch', answer)
  return { files, asked }
}

const reader = {
  open(file: File) {
    const hash = new Sha256()
    return {
      read: async (from: number, to: number, wanted: boolean) => {
        const data = await file.slice(from, to).arrayBuffer()
        hash.add(new Uint8Array(data))
        return { job: 1, ...(wanted && { data, sum: sha256(new Uint8Array(data)).toString('base64') }) }
      },
      end: async () => hash.hex(),
    }
  },
  close() {},
}

const folder = () => itemsOf([
  { path: 'a/one', file: new File(['one'], 'one') }, { path: 'two', file: new File(['two two'], 'two') }, { path: 'none', file: new File([], 'none') }, { path: 'dir/', file: undefined },
])
const where = { project: 'p', kind: 'dataset', name: 'x' }

test('what breaks off is gone on with, and what is wrong is sent again', async () => {
  vi.stubGlobal('setTimeout', (go: () => void) => queueMicrotask(go))
  const { files } = node({ fails: (_, count) => [undefined, 0, undefined, 503, 423, 460, 0][count] as never })
  const sending = new Sending(where, folder(), () => {}, reader)
  await sending.run()
  expect(sending.error).toBeUndefined()
  expect(sending.stage).toBe('done')
  expect(sending.finished?.version).toBe(3)
  expect([...files.values()].map((f) => f.path).sort()).toEqual(['a/one', 'dir/', 'none', 'two'])
})

test('the same list goes on where it was, and other bytes are found', async () => {
  const { files, asked } = node()
  const first = new Sending(where, folder(), () => {}, reader)
  await first.run()
  expect(keyOf(folder())).toBe(keyOf(first.items))
  asked.length = 0
  files.get(idOf('two'))!.data = new TextEncoder().encode('tw')
  files.get(idOf('a/one'))!.data = new TextEncoder().encode('eno')
  const second = new Sending(where, folder(), () => {}, reader)
  await second.run()
  expect(second.error).toBeUndefined()
  expect(new TextDecoder().decode(files.get(idOf('two'))!.data)).toBe('two two')
  expect(new TextDecoder().decode(files.get(idOf('a/one'))!.data)).toBe('one')
  expect(asked.filter((one) => one.startsWith('PATCH'))).toHaveLength(1)
})

test('a refusal is said of its file, and the others go', async () => {
  const { files } = node({ fails: (method, count) => (method === 'POST' && count === 2 ? 400 : (undefined as never)) })
  const sending = new Sending(where, folder(), () => {}, reader)
  await sending.run()
  expect(sending.stage).toBe('failed')
  expect(sending.items.filter((one) => one.state === 'failed')).toHaveLength(1)
  await sending.again()
  expect(sending.stage).toBe('done')
  expect(files.size).toBe(4)
})

test('a pause holds everything up', async () => {
  node()
  const sending = new Sending(where, folder(), () => {}, reader)
  sending.pause()
  let ended = false
  const run = sending.run().then(() => (ended = true))
  await new Promise((go) => setImmediate(go))
  expect(ended).toBe(false)
  sending.resume()
  await run
  expect(sending.stage).toBe('done')
})

test('lists are spelled as sha256sum spells them', () => {
  const items = itemsOf([{ path: 'a\nb\\c', file: new File([], 'x') }, { path: 'd/', file: undefined }])
  items[0]!.digest = '00'
  expect(sumsOf(items)).toBe('\\00  a\\nb\\\\c\n')
  expect(pieceMax).toBe(8 << 20)
})
