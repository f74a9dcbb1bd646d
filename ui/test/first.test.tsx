import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { cleanup, configure, render, screen, within } from '@testing-library/react'
import i18next from 'i18next'
import { initReactI18next } from 'react-i18next'
import { createMemoryRouter, RouterProvider, useLocation } from 'react-router'
import { afterEach, beforeAll, expect, test, vi } from 'vitest'
import { again, MissingPart } from '../src/again'
import { setCatalogue } from '../src/i18n'
import { Jobs } from '../src/pages/jobs'
import { Broken } from '../src/parts/states'
import userEvent from './user'
import { en, zh } from './words'

const patience = { timeout: 30_000 } // a busy machine is slow

beforeAll(async () => {
  configure({ asyncUtilTimeout: patience.timeout })
  await i18next.use(initReactI18next).init({ lng: 'en', resources: { zh: { translation: zh }, en: { translation: en } }, interpolation: { escapeValue: false } })
  setCatalogue({ 'wait.cards': 'needs {count} cards', 'reason.exit': 'exit code {code}' })
})
afterEach(() => {
  cleanup()
  vi.unstubAllGlobals()
  vi.useRealTimers()
})

const hex = (n: number) => n.toString(16).padStart(32, '0')
const job = (n: number, more = {}) => ({ id: hex(n + 1), name: `train-${n}`, project: 'vision', user: n % 2 ? 'ann' : 'bob', type: 'training', priority: 'normal', nodes: 1, subjobs: 1, submitted_at: '2026-11-21T15:00:00Z', state: 'running', counts: {}, attempt: 1, exit_code: 0, ...more })
const jobs = [
  job(0, { state: 'queued', wait: { id: 'wait.cards', params: { count: '8' } }, specs: ['H800'], output: 'bob/exp-1' }),
  job(1, { state: 'failed', reason: { id: 'reason.exit', params: { code: '3' } }, code: ['yolo'] }),
  job(2, { name: 'a-batch', subjobs: 2, type: 'batch' }),
  job(3, { vip: true, name: '<img src=x onerror=alert(1)>', state: 'succeeded' }),
]

function stubAgent() {
  const asked: [string, string, unknown][] = []
  vi.stubGlobal('fetch', vi.fn(async (path: string, init?: RequestInit) => {
    asked.push([init?.method ?? 'GET', path, init?.body && JSON.parse(String(init.body))])
    if (path.includes('/subjobs')) return Response.json({ subjobs: [{ index: 0, state: 'running', attempt: 1 }, { index: 1, state: 'queued', attempt: 0, wait: { id: 'wait.cards', params: { count: '4' } } }] })
    if (path.startsWith('/v1/jobs?limit=60')) return Response.json({ jobs: jobs.slice(0, 3), next: 'more' })
    if (path.startsWith('/v1/jobs?')) return Response.json({ jobs })
    if (init?.method === 'POST') return Response.json({ job_id: hex(99) })
    return Response.json({ job: { name: 'train-0', source: `job "${path.slice(-2)}" {}\n` } })
  }))
  return asked
}

function Address() {
  return <output aria-label="address">{useLocation().search}</output>
}

function show(address = '/jobs') {
  vi.stubGlobal('matchMedia', () => ({ matches: false, addListener() {}, removeListener() {}, addEventListener() {}, removeEventListener() {} }))
  vi.stubGlobal('ResizeObserver', class { observe() {} unobserve() {} disconnect() {} })
  const router = createMemoryRouter([{ path: '/jobs', element: <><Jobs /><Address /></> }, { path: '/jobs/:id', element: <p>a job</p> }], { initialEntries: [address] })
  render(<QueryClientProvider client={new QueryClient()}><RouterProvider router={router} /></QueryClientProvider>)
  return router
}

test('the newest jobs are there first, then all of them', async () => {
  const asked = stubAgent()
  show()
  await screen.findByText('4 of 4')
  expect(asked.map(([, path]) => path)).toEqual(['/v1/jobs?limit=60', '/v1/jobs?limit=1000'])
  const table = screen.getByRole('table', { name: 'Jobs' })
  expect(table.getAttribute('aria-rowcount')).toBe('8') // the head, four jobs and three headings
  expect(within(table).getByText(/needs 8 cards/)).toBeTruthy()
  expect(within(table).getByRole('link', { name: '<img src=x onerror=alert(1)>' })).toBeTruthy() // text, not markup
  expect(table.querySelector('img')).toBeNull()
  expect(within(table).getAllByText('VIP')).toHaveLength(1)
})

test('every filter and the order stand in the address', async () => {
  stubAgent()
  show('/jobs?cause=reason.exit&state=failed')
  await screen.findByText('1 of 4')
  expect(screen.getByRole('link', { name: 'train-1' })).toBeTruthy()
  await userEvent.click(screen.getByRole('button', { name: 'Clear' }))
  await screen.findByText('4 of 4')
  await userEvent.type(screen.getAllByRole('combobox', { name: 'Cause' })[0]!, 'wait.cards')
  await userEvent.type(screen.getByRole('combobox', { name: 'Spec', hidden: true }), 'H800')
  await userEvent.type(screen.getByRole('searchbox', { name: 'Output', hidden: true }), 'exp')
  await userEvent.click(screen.getByRole('button', { name: /^Name/ }))
  await screen.findByText('1 of 4')
  expect(screen.getByLabelText('address').textContent).toBe('?cause=wait.cards&spec=H800&output=exp&sort=name')
})

test('a batch folds open to its subjobs, and a link opens the job', async () => {
  stubAgent()
  const router = show()
  await userEvent.click(await screen.findByRole('button', { name: 'Open the subjobs' }))
  expect((await screen.findByRole('img', { name: /^a-batch:/ })).tagName).toBe('svg')
  expect(screen.queryByText('Subjob 1')).toBeNull()
  await userEvent.click(screen.getByRole('button', { name: 'Show rows' }))
  expect(await screen.findByText('Subjob 1')).toBeTruthy()
  expect(screen.getByText(/needs 4 cards/)).toBeTruthy()
  await userEvent.click(screen.getByRole('link', { name: 'a-batch' }))
  await vi.waitFor(() => expect(router.state.location.pathname).toBe('/jobs/' + hex(3)), patience)
})

test('several jobs are cloned at once, after one has seen the command lines', async () => {
  const asked = stubAgent()
  show()
  await screen.findByText('4 of 4')
  for (const name of ['train-0', 'train-1']) await userEvent.click(screen.getByRole('checkbox', { name: 'Choose ' + name }))
  await userEvent.click(screen.getByRole('button', { name: 'Clone' }))
  expect((await screen.findByText(/nomadlike job clone -run train-0/)).textContent).toContain('nomadlike job clone -run train-1')
  expect(asked.every(([method]) => method === 'GET')).toBe(true)
  await userEvent.click(screen.getAllByRole('button', { name: 'Clone' }).at(-1)!)
  await vi.waitFor(() => expect(asked.filter(([method]) => method === 'POST')).toEqual([['POST', '/v1/jobs', { hcl: 'job "01" {}\n' }], ['POST', '/v1/jobs', { hcl: 'job "02" {}\n' }]]), patience)
})

test('a part of the program is asked for again, and in the end the page says so', async () => {
  vi.useFakeTimers()
  let tries = 0
  const third = again(async () => {
    if (++tries < 3) throw new TypeError('Failed to fetch dynamically imported module')
    return 'here'
  })
  await vi.runAllTimersAsync()
  expect([await third, tries]).toEqual(['here', 3])
  tries = 0
  const never = again(async () => {
    tries++
    throw new TypeError('Failed to fetch dynamically imported module')
  }).catch((error: unknown) => error)
  await vi.runAllTimersAsync()
  expect(await never).toBeInstanceOf(MissingPart)
  expect(tries).toBe(6)
  vi.useRealTimers()
  const router = createMemoryRouter([{ path: '/', errorElement: <Broken />, lazy: () => Promise.reject(new MissingPart('gone')) }])
  render(<RouterProvider router={router} />)
  expect((await screen.findByRole('alert')).textContent).toContain('could not be loaded')
  expect(screen.getByRole('button', { name: 'Load the page again' })).toBeTruthy()
})
