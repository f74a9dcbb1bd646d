import { act, acting, astray } from './acting'
import type { Error as Failure, JobList, JobSummary } from './types'

// A refusal of the API, in the language that the page asked for.
export class ApiError extends Error {
  readonly status: number
  readonly failure: Failure

  constructor(status: number, failure: Failure) {
    super(failure.message || failure.id)
    this.status = status
    this.failure = failure
  }
}

let language = 'en'
let whenSignedOut = () => {}

export function speak(lang: string) {
  language = lang
}

// onSignedOut says what to do when the API no longer knows who asks.
export function onSignedOut(handler: () => void) {
  whenSignedOut = handler
}

// asked reports whether boot.js has asked for something that nobody took yet.
export const asked = (path: string) => path in ((globalThis as { early?: object }).early ?? {})

// early takes the answer to what boot.js asked before the program was here.
// A refusal is not taken: who is signed in may have changed since.
async function early(path: string): Promise<Response | undefined> {
  const asked = (globalThis as { early?: Record<string, Promise<Response>> }).early
  const answer = asked?.[path]
  if (!answer) return undefined
  delete asked[path]
  const found = await answer.catch(() => undefined)
  return found?.ok ? found : undefined
}

// send makes a request with the cookie, in the project that was chosen. The header
// tells the agent that no form of another site made it. Where the project may be acted
// in no more it is forgotten: what is read is read in the caller's own, what changes
// something is not repeated there.
export async function send(method: string, path: string, body?: unknown, signal?: AbortSignal, more: Record<string, string> = {}): Promise<Response> {
  const headers: Record<string, string> = { ...more, 'X-Nomadlike-Request': 'ui', 'Accept-Language': language }
  const project = path === '/v1/session' ? '' : acting()
  if (project) headers['X-Nomadlike-Project'] = project
  const raw = body instanceof Blob // has its own type
  if (body !== undefined && !raw) headers['Content-Type'] = 'application/json'
  let answer: Response
  try {
    answer = (method === 'GET' && (await early(path))) || (await fetch(path, { method, headers, credentials: 'same-origin', signal, body: body === undefined || raw ? body : JSON.stringify(body) }))
  } catch (cause) {
    if (signal?.aborted) throw cause
    throw new ApiError(0, { code: 'unavailable', id: 'ui.unreachable' })
  }
  if (answer.ok) return answer
  let failure: Failure = { code: 'internal', id: 'ui.http', params: { status: String(answer.status) } }
  try {
    failure = (await answer.json()) as Failure
  } catch {
    // whoever stands between has answered in words of its own
  }
  if (astray(failure.id, project)) {
    if (acting() === project) act('', project)
    if (method === 'GET') return send(method, path, body, signal, more)
  }
  if (answer.status === 401 && path !== '/v1/session') whenSignedOut()
  throw new ApiError(answer.status, failure)
}

// sendBlob sends bytes of this machine, and tells how many have left it.
export function sendBlob<T>(path: string, body: Blob, told: (done: number) => void, signal: AbortSignal): Promise<T> {
  return new Promise((done, fail) => {
    const request = new XMLHttpRequest()
    request.open('POST', path)
    request.setRequestHeader('X-Nomadlike-Request', 'ui')
    request.setRequestHeader('Accept-Language', language)
    if (acting()) request.setRequestHeader('X-Nomadlike-Project', acting())
    request.responseType = 'json'
    request.upload.onprogress = (event) => told(event.loaded)
    request.onload = () => (request.status < 300 ? done(request.response as T) : fail(new ApiError(request.status, (request.response as Failure | null) ?? { code: 'internal', id: 'ui.http', params: { status: String(request.status) } })))
    request.onerror = () => fail(new ApiError(0, { code: 'unavailable', id: 'ui.unreachable' }))
    request.onabort = () => fail(signal.reason)
    signal.addEventListener('abort', () => request.abort())
    request.send(body)
  })
}

export async function call<T>(method: string, path: string, body?: unknown, signal?: AbortSignal, more?: Record<string, string>): Promise<T> {
  return (await (await send(method, path, body, signal, more)).json()) as T
}

export const get = <T>(path: string, signal?: AbortSignal) => call<T>('GET', path, undefined, signal)

// part spells one part of a path.
export const part = (text: string) => encodeURIComponent(text)

const pageSize = 1000
const jobsMax = 20000

// allJobs reads the list of jobs page by page.
export async function allJobs(signal?: AbortSignal): Promise<JobSummary[]> {
  const jobs: JobSummary[] = []
  let after = ''
  do {
    const page = await get<JobList>(`/v1/jobs?limit=${pageSize}${after && '&after=' + part(after)}`, signal)
    jobs.push(...(page.jobs ?? []))
    after = page.next ?? ''
  } while (after && jobs.length < jobsMax)
  return jobs
}
