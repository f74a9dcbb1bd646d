import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { cleanup, configure, render, screen } from '@testing-library/react'
import i18next from 'i18next'
import { initReactI18next } from 'react-i18next'
import { createMemoryRouter, RouterProvider } from 'react-router'
import { afterEach, beforeAll, expect, test, vi } from 'vitest'
import { Cluster } from '../src/pages/cluster'
import { JobPage } from '../src/pages/job'
import { ShareDialog } from '../src/parts/share'
import { Shell } from '../src/shell'
import userEvent from './user'
import { en, zh } from './words'

const patience = { timeout: 30_000 } // a busy machine is slow
const secret = 'nl_share_' + 'a2'.repeat(16)

beforeAll(async () => {
  configure({ asyncUtilTimeout: patience.timeout })
  await i18next.use(initReactI18next).init({ lng: 'en', resources: { zh: { translation: zh }, en: { translation: en } }, interpolation: { escapeValue: false } })
})
afterEach(() => {
  cleanup()
  vi.unstubAllGlobals()
  history.replaceState(null, '', '/')
})

function stubBrowser() {
  vi.stubGlobal('matchMedia', () => ({ matches: false, addListener() {}, removeListener() {}, addEventListener() {}, removeEventListener() {} }))
  vi.stubGlobal('ResizeObserver', class { observe() {} unobserve() {} disconnect() {} })
}

// open shows the page of a job to whoever the servers take the visitor for;
// null: they know nobody, and the link is over.
function open(guest: { role: string } | null, at = '/jobs/j1') {
  stubBrowser()
  const asked: [string, string, unknown][] = []
  let signedIn = false
  vi.stubGlobal('fetch', vi.fn(async (path: string, init?: RequestInit) => {
    asked.push([init?.method ?? 'GET', path, init?.body && JSON.parse(String(init.body))])
    const refused = () => Response.json({ code: 'unauthorized', id: 'auth.token_invalid', message: 'no' }, { status: 401 })
    const token = { id: 't1', expires_at: '2026-11-28T15:00:00Z', ...guest }
    if (path === '/v1/session') {
      signedIn = !!guest && init?.method !== 'DELETE'
      return guest ? Response.json({ token }) : refused()
    }
    if (path === '/v1/self') return signedIn ? Response.json({ token, name: 't1', project: '', role: guest?.role, memberships: [] }) : refused()
    if (path === '/v1/jobs/j1') return Response.json({ state: 'succeeded', counts: {}, attempt: 1, exit_code: 0, subjobs: [{ index: 0, state: 'succeeded', checkpoints: [] }], yielded: [{ subjob: 0, attempt: 1, at: '2026-11-21T15:00:00Z', to: { id: 'j2', name: 'urgent-one', user: 'li', vip: true } }], job: { id: 'j1', name: 'train', type: 'training', priority: 'normal', nodes: 1, distributed: { mode: 'none' }, resources: [], task: { driver: 'exec', command: 'secret-command' }, source: 'job "secret-file" {}' } })
    if (path.endsWith('/attempts')) return Response.json({ attempts: [{ subjob: 0, number: 1, state: 'ended', outcome: 'succeeded', placed_at: '2026-11-21T15:00:00Z' }] })
    if (path.endsWith('/allocations')) return Response.json({ allocations: [{ id: 'a1', name: 'train-1-0', node_id: 'n1', node_name: 'gpu-01', subjob: 0, attempt: 1, rank: 0, status: 'complete', exit_code: 0, spec: { cpu: 1 } }] })
    if (path.includes('/figures')) return Response.json({ ranks: [{ alloc_id: 'a1', rank: 0, node_id: 'n1', node: 'gpu-01', status: 'complete', measured: true, cpu: 1, cpu_busy: 0.5, memory: 1024, memory_used: 512 }] })
    if (path.startsWith('/v1/nodes?') && guest?.role === 'board') return Response.json({ nodes: [{ id: 'n1', name: 'gpu-01', capacity: { cpu: 8, memory: 1 << 30 }, used: { cpu: 0, memory: 0, allocs: 0 }, status: 'ready', eligibility: 'eligible' }] })
    if (path.endsWith('/events')) return Response.json({ events: [] })
    return Response.json({ code: 'forbidden', id: 'auth.forbidden', message: 'no' }, { status: 403 })
  }))
  history.replaceState(null, '', at + '#share=' + secret)
  const router = createMemoryRouter([{ element: <Shell />, children: [{ path: 'jobs', element: <p>a list of jobs</p> }, { path: 'jobs/:id/:tab?', element: <JobPage /> }, { path: 'cluster', element: <Cluster /> }] }], { initialEntries: [at] })
  render(<QueryClientProvider client={new QueryClient({ defaultOptions: { queries: { retry: false } } })}><RouterProvider router={router} /></QueryClientProvider>)
  return { asked, router }
}

test('a share link shows one job and nothing that leads anywhere or changes anything', async () => {
  const { asked, router } = open({ role: 'guest' })
  await screen.findByText('train', { selector: 'h1' })
  expect(document.querySelector('[role=note]')!.textContent).toContain('2026-11-2')
  expect(location.hash).toBe('') // nobody copies the secret with the address
  expect(asked.find(([method]) => method === 'POST')).toEqual(['POST', '/v1/session', { token: secret }])
  expect([...document.querySelectorAll('[role=tab]')].map((tab) => tab.textContent)).toEqual(['Overview', 'Use', 'Attempts'])
  for (const name of ['Stop', 'Clone', 'Share', 'Delete', 'Priority']) expect(screen.queryByText(name)).toBeNull()
  expect(document.querySelector('nav')).toBeNull()
  expect(JSON.stringify({ ...localStorage, ...sessionStorage }) + document.body.innerHTML).not.toContain(secret)
  // Names of machines and of other jobs are words, and there is no command to type.
  await screen.findByText('gpu-01', { selector: 'td' })
  await screen.findByText(/urgent-one/)
  const leads = () => [...document.querySelectorAll('a[href]')].map((a) => a.getAttribute('href'))
  expect(leads()).toEqual([])
  await router.navigate('/jobs/j1/figures')
  await screen.findByText('gpu-01', { selector: 'td' })
  expect(leads()).toEqual([])
  expect(document.querySelector('.cli')).toBeNull()
  // An address that names another tab shows none of it either.
  for (const tab of ['file', 'command', 'logs', 'terminal', 'files']) {
    await router.navigate('/jobs/j1/' + tab)
    expect(document.body.innerHTML).not.toMatch(/secret-(file|command)/)
  }
  const reads = new Set(asked.map(([, path]) => path.split('?')[0]))
  for (const path of ['/v1/events', '/v1/jobs/j1/shares', '/v1/jobs/j1/forecast', '/v1/jobs/plan', '/v1/jobs']) expect(reads.has(path), path).toBe(false)
})

test('a share link shows no other page, and leaves the way to sign in', async () => {
  const { asked, router } = open({ role: 'guest' })
  await screen.findByText('train', { selector: 'h1' })
  for (const place of ['/jobs', '/cluster']) {
    await router.navigate(place)
    await screen.findByText(en.share.only)
    expect(document.querySelector('main')!.textContent).not.toMatch(/a list of jobs|gpu-01/)
  }
  expect(document.querySelector('a[href]')).toBeNull()
  await router.navigate('/jobs/j1')
  await userEvent.click(await screen.findByRole('button', { name: en.signin.enter }))
  await screen.findByLabelText('Token')
  expect(asked.some(([method, path]) => method === 'DELETE' && path === '/v1/session')).toBe(true)
})

test('a shared wall leads to no machine', async () => {
  const { router } = open({ role: 'board' }, '/cluster')
  const canvas = await screen.findByRole('img')
  await userEvent.click(canvas)
  expect(router.state.location.pathname).toBe('/cluster')
  await userEvent.click(screen.getByText(en.cluster.list))
  await screen.findByText('gpu-01')
  expect(document.querySelector('a[href]')).toBeNull()
})

test('a link that is over asks to sign in and shows nothing', async () => {
  const { asked } = open(null)
  await screen.findByLabelText('Token')
  expect(asked.map(([, path]) => path)).toEqual(['/v1/self', '/v1/session', '/v1/login']) // the last: what one may sign in through
  expect(document.body.textContent).not.toContain('train')
})

test('a link is made for a time, shown once, and ended', async () => {
  stubBrowser()
  const asked: [string, string, unknown][] = []
  let shares = [{ id: 's1', user: 'ann', expires_at: '2026-11-28T15:00:00Z' }]
  vi.stubGlobal('fetch', vi.fn(async (path: string, init?: RequestInit) => {
    asked.push([init?.method ?? 'GET', path, init?.body && JSON.parse(String(init.body))])
    if (init?.method === 'POST') return Response.json({ path: '/jobs/j1#share=' + secret })
    if (init?.method === 'DELETE') shares = []
    return Response.json({ shares })
  }))
  const { unmount } = render(<QueryClientProvider client={new QueryClient()}><ShareDialog name="my job" path="/v1/jobs/j1/shares" close={() => {}} /></QueryClientProvider>)
  await screen.findByText('ann')
  expect(screen.getByText("nomadlike job share -ttl 7d 'my job'")).toBeTruthy()
  await userEvent.click(screen.getByText(en.share.make))
  expect((await screen.findByText(new RegExp(secret))).textContent).toBe(location.origin + '/jobs/j1#share=' + secret)
  expect(asked.find(([method]) => method === 'POST')).toEqual(['POST', '/v1/jobs/j1/shares', { ttl: '168h' }])
  await userEvent.click(screen.getByRole('button', { name: en.share.end }))
  await screen.findByText(en.share.none)
  expect(asked.some(([method, path]) => method === 'DELETE' && path === '/v1/tokens/s1')).toBe(true)
  unmount()
  render(<QueryClientProvider client={new QueryClient()}><ShareDialog path="/v1/wall/shares" close={() => {}} /></QueryClientProvider>)
  expect(screen.getByText('nomadlike node share -ttl 7d')).toBeTruthy()
})
