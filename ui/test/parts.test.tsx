import { cleanup, configure, render, screen, fireEvent } from '@testing-library/react'
import userEvent from './user'
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import i18next from 'i18next'
import { initReactI18next } from 'react-i18next'
import { MemoryRouter } from 'react-router'
import { afterEach, beforeAll, expect, test, vi } from 'vitest'
import { Deeds } from '../src/parts/actions'
import { fileLines, Files } from '../src/parts/files'
import { startText } from '../src/parts/forecast'
import { StateTag } from '../src/parts/states'
import { truth } from '../src/pages/job/truth'
import { SignIn } from '../src/signin'
import { jobStates, type Allocation, type Beyond, type JobDetail, type JobState, type LoginProvider } from '../src/types'
import { en, zh } from './words'

const patience = { timeout: 30_000 } // a busy machine is slow

// What tables and dialogs ask of a browser and jsdom has not.
function stubBrowser() {
  vi.stubGlobal('matchMedia', () => ({ matches: false, addListener() {}, removeListener() {}, addEventListener() {}, removeEventListener() {} }))
  vi.stubGlobal('ResizeObserver', class { observe() {} unobserve() {} disconnect() {} })
}

beforeAll(async () => {
  configure({ asyncUtilTimeout: patience.timeout })
  stubBrowser()
  await i18next.use(initReactI18next).init({ lng: 'zh', resources: { zh: { translation: zh }, en: { translation: en } }, interpolation: { escapeValue: false } })
})
afterEach(() => {
  cleanup()
  vi.unstubAllGlobals()
  stubBrowser()
})

function show(node: React.ReactNode) {
  const client = new QueryClient()
  render(<MemoryRouter><QueryClientProvider client={client}>{node}</QueryClientProvider></MemoryRouter>)
  return client
}

test('states have their words in both languages', async () => {
  await i18next.changeLanguage('zh')
  show(jobStates.map((state) => <StateTag key={state} state={state} />))
  for (const word of ['排队中', '启动中', '运行中', '暂停', '停止中', '成功', '错误', '停止', '过期']) expect(screen.getByText(word)).toBeTruthy()
  cleanup()
  await i18next.changeLanguage('en')
  show(jobStates.map((state) => <StateTag key={state} state={state} />))
  for (const state of jobStates) expect(screen.getByText(state)).toBeTruthy()
})

// beside answers what the sign-in page asks for before anybody signs in, and hands on the rest.
const beside = (providers: LoginProvider[], answer: (path: string) => Promise<Response>) => vi.fn(async (path: string) => path === '/v1/login' ? new Response(JSON.stringify({ providers })) : answer(path))
const bodiesOf = (fetched: { mock: { calls: unknown[] } }) => (fetched.mock.calls as [string, RequestInit][]).filter(([path]) => path === '/v1/session').map(([, init]) => init.body)

test('a directory is offered, and its password goes with its name', async () => {
  await i18next.changeLanguage('en')
  const fetched = beside([{ name: 'company', kind: 'ldap', caption: 'Company directory' }, { name: 'platform', kind: 'oidc', caption: 'Platform' }],
    async () => new Response(JSON.stringify({ code: 'unauthorized', id: 'auth.directory_wrong', message: 'wrong there' }), { status: 401 }))
  vi.stubGlobal('fetch', fetched)
  show(<SignIn />)
  const from = await screen.findByLabelText<HTMLSelectElement>('Sign in with')
  expect([...from.options].map((o) => o.text)).toEqual(['Company directory', 'An account of this cluster'])
  const enter = screen.getByRole<HTMLButtonElement>('button', { name: 'Sign in' })
  await userEvent.type(screen.getByLabelText('Account'), 'ann')
  await userEvent.type(screen.getByLabelText('Password'), 'secret')
  await userEvent.click(enter)
  expect((await screen.findByRole('alert')).textContent).toContain('wrong there')
  fireEvent.change(from, { target: { value: '' } })
  await userEvent.click(enter)
  await vi.waitFor(() => expect(bodiesOf(fetched)).toEqual(['{"user":"ann","password":"secret","provider":"company"}', '{"user":"ann","password":"secret"}']), patience)
})

test('signing in sends the token once and keeps it nowhere', async () => {
  await i18next.changeLanguage('en')
  const fetched = beside([], async () => new Response(JSON.stringify({ token: { id: 't1', role: 'account' }, role: 'admin', cluster: 'admin', project: 'default' })))
  vi.stubGlobal('fetch', fetched)
  const client = show(<SignIn />)
  await userEvent.type(screen.getByLabelText('Token'), ' nl_user_secret ')
  await userEvent.click(screen.getByRole('button', { name: 'Sign in' }))
  await vi.waitFor(() => expect(client.getQueryData(['session'])).toEqual({ id: 't1', role: 'admin', project: '', acting: 'default', cluster: 'admin', memberships: [] }), patience)
  const [, init] = (fetched.mock.calls as unknown as [string, RequestInit][]).find(([path]) => path === '/v1/session')!
  expect(init.body).toBe('{"token":"nl_user_secret"}')
  expect((init.headers as Record<string, string>)['X-Nomadlike-Request']).toBe('ui')
  expect(JSON.stringify({ ...localStorage, ...sessionStorage })).not.toContain('secret')
  expect(document.body.innerHTML).not.toContain('secret')
})

test('a first password asks for another, and neither is kept', async () => {
  await i18next.changeLanguage('en')
  const answers = [
    new Response(JSON.stringify({ code: 'conflict', id: 'auth.password_first', message: 'choose' }), { status: 409 }),
    new Response(JSON.stringify({ token: { id: 't1' } })),
    new Response(JSON.stringify({ token: { id: 't1', role: 'account', user: 'li', method: 'password' }, role: 'user', project: 'vision' })),
  ]
  const fetched = beside([], async () => answers.shift()!)
  vi.stubGlobal('fetch', fetched)
  const client = show(<SignIn />)
  const enter = screen.getByRole<HTMLButtonElement>('button', { name: 'Sign in' })
  await userEvent.type(screen.getByLabelText('Account'), ' li ')
  expect(enter.disabled).toBe(true)
  await userEvent.type(screen.getByLabelText('Password'), 'drawn-secret')
  await userEvent.click(enter)
  await userEvent.type(await screen.findByLabelText('New password'), 'three pandas eat')
  await userEvent.type(screen.getByLabelText('The new password again'), 'three')
  expect(screen.getByRole('alert').textContent).toBe('The two are not the same')
  expect(enter.disabled).toBe(true)
  await userEvent.type(screen.getByLabelText('The new password again'), 'three pandas eat')
  await userEvent.click(enter)
  await vi.waitFor(() => expect(client.getQueryData<{ user: string }>(['session'])?.user).toBe('li'), patience)
  const bodies = bodiesOf(fetched)
  expect(bodies[0]).toBe('{"user":"li","password":"drawn-secret"}')
  expect(bodies[1]).toBe('{"user":"li","password":"drawn-secret","new_password":"three pandas eat"}')
  expect(JSON.stringify({ ...localStorage, ...sessionStorage }) + document.body.innerHTML).not.toMatch(/secret|pandas/)
})

test('a refusal is told in words', async () => {
  await i18next.changeLanguage('en')
  vi.stubGlobal('fetch', vi.fn(async () => new Response(JSON.stringify({ code: 'unauthorized', id: 'auth.token_invalid', message: 'the token is <b>wrong</b>' }), { status: 401 })))
  show(<SignIn />)
  await userEvent.type(screen.getByLabelText('Token'), 'x')
  await userEvent.click(screen.getByRole('button', { name: 'Sign in' }))
  expect((await screen.findByRole('alert')).textContent).toContain('<b>wrong</b>') // text, not markup
})

test('stopping asks once more and shows the command line', async () => {
  await i18next.changeLanguage('en')
  const fetched = vi.fn(async () => new Response('{"index":1}'))
  vi.stubGlobal('fetch', fetched)
  show(<Deeds job={{ id: 'j1', name: 'train', state: 'running', priority: 'normal' }} />)
  await userEvent.click(screen.getByRole('button', { name: 'Stop' }))
  expect(await screen.findByText('nomadlike job stop train')).toBeTruthy()
  expect(fetched).not.toHaveBeenCalled()
  await userEvent.type(screen.getByLabelText(/Reason/), 'wrong data')
  expect(await screen.findByText("nomadlike job stop -reason 'wrong data' train")).toBeTruthy()
  await userEvent.click(screen.getAllByRole('button', { name: 'Stop' }).at(-1)!)
  await vi.waitFor(() => expect(fetched).toHaveBeenCalled(), patience)
  const [path, init] = fetched.mock.calls[0] as unknown as [string, RequestInit]
  expect([path, init.method, init.body]).toEqual(['/v1/jobs/j1/stop', 'POST', '{"reason":"wrong data"}'])
})

test('one sentence tells how a job stands', async () => {
  const now = Date.parse('2026-11-21T15:00:00Z')
  const detail = (state: JobState, more: Partial<JobDetail> = {}) => ({ state, counts: {}, attempt: 1, exit_code: 3, subjobs: [], started_at: '2026-11-21T11:48:00Z', finished_at: '2026-11-21T14:00:00Z', job: { nodes: 2, submitted_at: '2026-11-21T11:00:00Z' }, ...more }) as unknown as JobDetail
  for (const lang of ['en', 'zh']) {
    const t = i18next.getFixedT(lang)
    for (const state of jobStates) expect(truth(t, detail(state), undefined, [], undefined, now), state).not.toMatch(/\{\{|truth\.|undefined/)
  }
  expect(truth(i18next.getFixedT('en'), detail('running'), undefined, [], undefined, now)).toBe('Runs for 3 h 12 min on 2 nodes as attempt 1. No faults.')
  expect(truth(i18next.getFixedT('zh'), detail('failed'), undefined, [], undefined, now)).toContain('退出码 3')
})

test('forecasts say now, about when, or never', () => {
  const t = i18next.getFixedT('en')
  const when = (verdict: 'now' | 'later' | 'never' | 'unknown', beyond: Beyond = '') => startText(t, { verdict, beyond, point: '2026-11-21T15:10:00', p50: '2026-11-21T15:10:00', p90: '2026-11-21T16:00:00' }, new Date('2026-11-21T15:00:00').getTime())
  expect(when('now')).toBe('Starts now')
  expect(when('later')).toBe('About 15:10 (16:00 at 90 %)')
  expect(startText(t, { verdict: 'later', point: '2026-11-21T15:10:00', p50: '2026-11-21T15:10:00', p90: '2026-11-21T15:10:20' }, new Date('2026-11-21T15:00:00').getTime())).toBe('About 15:10')
  expect(when('later', 'p50')).toBe('Later than 15:10')
  expect(when('never')).toBe('Never in this cluster')
  expect(when('unknown')).toBe('Not known when')
})

test('files are listed by directory and rank, with what can be downloaded', async () => {
  await i18next.changeLanguage('en')
  const modified = '2026-11-21T15:00:00Z'
  const lists: Record<string, unknown> = {
    '': { entry: { name: '', dir: true }, entries: [{ name: 'logs', dir: true, size: 0, modified }, { name: 'outputs', dir: true, size: 0, modified }] },
    outputs: { entry: { name: 'outputs', dir: true }, entries: [{ name: 'a&b #1.pt', size: 2048, modified }, { name: 'far', link: true, size: 0, modified }] },
  }
  const asked: string[] = []
  vi.stubGlobal('fetch', vi.fn(async (path: string) => {
    asked.push(path)
    return new Response(JSON.stringify(lists[new URL(path, 'http://agent').searchParams.get('path')!]))
  }))
  const allocs = [[1, 0], [2, 0], [2, 1]].map(([attempt, rank]) => ({ attempt, rank, subjob: 0, node_name: 'n' + rank })) as Allocation[]
  show(<Files id="j1" name="my job" subjob={0} allocs={allocs} live={false} />)
  await userEvent.click(await screen.findByRole('link', { name: 'outputs/' }))
  const file = await screen.findByRole('link', { name: 'a&b #1.pt' })
  expect(file.getAttribute('href')).toBe('/v1/jobs/j1/files/content?path=outputs%2Fa%26b%20%231.pt&attempt=2')
  expect(file.getAttribute('download')).toBe('a&b #1.pt')
  expect(screen.getByText('2 KiB')).toBeTruthy()
  expect(screen.queryByRole('link', { name: /far/ })).toBeNull() // nothing to download
  expect(screen.getByText(/nomadlike job download 'my job' outputs$/)).toBeTruthy()
  expect(asked).toEqual(['/v1/jobs/j1/files?path=&attempt=2', '/v1/jobs/j1/files?path=outputs&attempt=2'])
  await userEvent.click(screen.getByRole('link', { name: 'files' }))
  expect(await screen.findByRole('link', { name: 'logs/' })).toBeTruthy()
  expect(fileLines('train', { subjob: 3, attempt: 1, rank: 2, path: '' }, false)).toBe('nomadlike job files -attempt 1 -rank 2 -subjob 3 train')
})
