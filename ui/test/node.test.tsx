import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { cleanup, configure, fireEvent, render, screen, within } from '@testing-library/react'
import i18next from 'i18next'
import { initReactI18next } from 'react-i18next'
import { MemoryRouter, Route, Routes } from 'react-router'
import { afterEach, beforeAll, expect, test, vi } from 'vitest'
import catalogue from '../src/catalogue.en'
import { dateTime } from '../src/format'
import { setCatalogue } from '../src/i18n'
import { AttemptLogs } from '../src/pages/job/attemptlogs'
import { cardFaults, Cause } from '../src/pages/job/cause'
import { RankCommands } from '../src/pages/job/commands'
import { NodePage } from '../src/pages/node'
import { sinceWhen } from '../src/parts/nodefaults'
import { cardName, drawn, historyLines } from '../src/parts/history'
import type { Allocation, Attempt, Event, JobDetail, NodeHistory } from '../src/types'
import userEvent from './user'
import { en, zh } from './words'

vi.mock('../src/parts/line_chart', () => ({ default: ({ label, x, lines, unit }: { label: string; x: number[]; lines: { name: string; values: (number | null)[] }[]; unit: string }) => <pre data-testid="curves">{`${label}|${x.length}|${lines.map((l) => `${l.name}: ${l.values.join(' ')}`).join('; ')}|${unit}`}</pre> }))

const patience = { timeout: 30_000 } // a busy machine is slow

function stubBrowser() {
  vi.stubGlobal('matchMedia', () => ({ matches: false, addListener() {}, removeListener() {}, addEventListener() {}, removeEventListener() {} }))
  vi.stubGlobal('ResizeObserver', class { observe() {} unobserve() {} disconnect() {} })
}

beforeAll(async () => {
  configure({ asyncUtilTimeout: patience.timeout })
  await i18next.use(initReactI18next).init({ lng: 'en', resources: { zh: { translation: zh }, en: { translation: en } }, interpolation: { escapeValue: false } })
  setCatalogue({ 'device.link_lost': 'network link {link} used to work and is down', 'client.processes_stuck': '{count} processes hang', 'client.device_quarantined_for': '{by} keeps new work from {device}: {reason}' })
})
afterEach(() => {
  cleanup()
  vi.unstubAllGlobals()
})

const sick = { id: 'client.device_quarantined_for', params: { by: 'olga', device: 'GPU-1', reason: '<b>bad cable</b>' } }
const card = (index: number, more = {}) => ({ id: 'GPU-' + index, index, kind: 'nvidia/gpu', model: 'H100', memory: 85899345920, healthy: true, used: false, numa_node: 0, gauges: { utilization_ratio: 0.5 }, ...more })
const node = { id: 'n1', name: 'gpu-01', addr: '10.0.0.1', version: '1', capacity: { cpu: 8, memory: 1 << 30 }, used: { cpu: 0, memory: 0, allocs: 0 }, status: 'ready', eligibility: 'eligible', registered_at: '2026-11-21T10:00:00Z', allocations: [],
  faults: [{ name: 'link/mlx5_0:1', reason: { id: 'device.link_lost', params: { link: '<i>mlx5_0:1</i>' } } }, { name: 'processes', unfit: true, reason: { id: 'client.processes_stuck', params: { count: '2' } } }] }
const at = ['2026-11-21T15:00:00Z', '2026-11-21T15:01:00Z', '2026-11-21T15:02:00Z']
const past: NodeHistory = { id: 'n1', name: 'gpu-01', step: '1m0s', at,
  machine: [{ gauge: 'cpu_cores', values: [1, 2, null] }],
  devices: [
    { id: 'GPU-0', index: 0, series: [{ gauge: 'utilization_ratio', values: [0.5, null, 1] }, { gauge: 'healthy', values: [1, 1, 1] }] },
    { id: 'GPU-1', index: 1, series: [{ gauge: 'temperature_celsius', values: [40, 50, 60] }, { gauge: 'healthy', values: [1, 0, 1] }] },
  ] }
const halfHours = ['2026-11-21T15:00:00Z', '2026-11-21T15:30:00Z', '2026-11-21T16:00:00Z']
// The same half hour, minute by minute: one of them was bad.
const minutes: NodeHistory = { ...past, at: Array.from({ length: 90 }, (_, i) => new Date(Date.parse(halfHours[0]!) + i * 60_000).toISOString()), devices: [{ id: 'GPU-1', index: 1, series: [{ gauge: 'healthy', values: Array.from({ length: 90 }, (_, i) => (i === 37 ? 0 : 1)) }] }] }
const events: Event[] = [
  { index: 1, seq: 0, id: 'event.node.unfit', time: '2026-11-21T11:00:00Z', params: { fault: 'processes' } },
  { index: 2, seq: 0, id: 'event.node.fault_over', time: '2026-11-21T12:00:00Z', params: { fault: 'processes' } },
  { index: 3, seq: 0, id: 'event.node.unfit', time: '2026-11-21T13:00:00Z', params: { fault: 'processes' } },
] as unknown as Event[]

function open() {
  stubBrowser()
  const asked: [string, string, unknown][] = []
  vi.stubGlobal('fetch', vi.fn(async (path: string, init?: RequestInit) => {
    asked.push([init?.method ?? 'GET', path, init?.body && JSON.parse(String(init.body))])
    if (init?.method === 'POST') return Response.json({ device: 'GPU-0', index: 7 })
    if (path.includes('/figures')) return Response.json(path.includes('device=GPU-1') ? minutes : path.includes('since=6h') ? { ...past, step: '30m0s', at: halfHours } : past)
    if (path.includes('/events')) return Response.json({ events: path.includes('device=') ? [] : events })
    if (path.endsWith('/devices')) return Response.json({ ...node, cpu: 8, measured: true, devices: [card(0), card(1, { healthy: false, health: sick, action: 'cordon', attrs: { fault: 'quarantine' } }), card(2, { healthy: false, action: 'reset', attrs: { fault: 'xid-95' } })] })
    return Response.json(node)
  }))
  render(<MemoryRouter initialEntries={['/nodes/n1']}><QueryClientProvider client={new QueryClient({ defaultOptions: { queries: { retry: false } } })}><Routes><Route path="/nodes/:id" element={<NodePage />} /></Routes></QueryClientProvider></MemoryRouter>)
  return asked
}

test('what a machine is not well of is told with cause, what follows, since when, and cure', async () => {
  await i18next.changeLanguage('en')
  open()
  const faults = await screen.findByLabelText('Faults of this machine')
  const [link, stuck] = faults.querySelectorAll('tbody tr')
  expect(link!.textContent).toContain('network link <i>mlx5_0:1</i> used to work and is down') // text, not markup
  expect(link!.textContent).toContain('only noticed')
  expect(link!.textContent).toContain('Look at the cable')
  expect(stuck!.textContent).toContain('2 processes hang')
  expect(stuck!.textContent).toContain('no new work')
  expect(stuck!.textContent).toContain('drain the node and reboot it')
  expect(sinceWhen('processes', events)).toBe('2026-11-21T13:00:00Z')
  expect(sinceWhen('processes', events.slice(0, 2))).toBeNull()
  expect(faults.querySelector('i, b')).toBeNull()
  expect(screen.getByText('not fit: processes')).toBeTruthy() // beside the node's name
})

test('what cards measured is drawn by measure and span, with the command line', async () => {
  await i18next.changeLanguage('en')
  const asked = open()
  const region = await screen.findByLabelText('Over time')
  await vi.waitFor(() => expect(within(region).getByTestId('curves').textContent).toBe('Card use|3|Card 0: 50  100| %'), patience)
  await userEvent.click(within(region).getByText('Temperature'))
  expect(within(region).getByTestId('curves').textContent).toBe('Temperature|3|Card 1: 40 50 60| °C')
  await userEvent.click(within(region).getByText('Cores'))
  expect(within(region).getByTestId('curves').textContent).toBe('Cores|3|gpu-01: 1 2 |')
  // One bad minute is red, not the half hour that it stands in.
  const spell = `unhealthy ${dateTime(minutes.at![37])} – ${dateTime(minutes.at![38])}`
  await vi.waitFor(() => expect(region.querySelector('.health')!.getAttribute('aria-label')).toBe(spell), patience)
  expect([...region.querySelectorAll<HTMLElement>('.health i')].map((one) => [one.className, one.style.flexGrow])).toEqual([['well', '37'], ['sick', '1'], ['well', '52']])
  expect(asked.some(([, path]) => path === '/v1/nodes/n1/figures?since=6h&points=360&device=GPU-1')).toBe(true)
  await userEvent.click(within(region).getByText('24 h'))
  expect(await within(region).findByText('nomadlike node figures -since 24h gpu-01')).toBeTruthy()
  await vi.waitFor(() => expect(asked.some(([, path]) => path.startsWith('/v1/nodes/n1/figures?since=24h'))).toBe(true), patience)
  expect(historyLines(past, drawn[4]!, cardName, '')).toEqual([]) // nobody measured ECC
})

test('an operator quarantines a card for a reason, and returns it', async () => {
  await i18next.changeLanguage('en')
  const asked = open()
  expect((await screen.findByText(/olga keeps new work from GPU-1: <b>bad cable<\/b>/)).querySelector('b')).toBeNull()
  const row = (index: number) => within(screen.getByRole('table', { name: en.node.use })).getAllByRole('row')[index + 1]!
  expect(within(row(1)).queryByText('Reset and test')).toBeNull() // nothing of it is broken
  expect(within(row(2)).getByText('Reset and test')).toBeTruthy()
  await userEvent.click(within(row(0)).getByText('Quarantine'))
  const dialog = await screen.findByRole('dialog', { name: 'Quarantine · gpu-01 · 0' })
  await userEvent.type(within(dialog).getByLabelText(/Reason/), "bad cable's end")
  expect(within(dialog).getByText(/nomadlike device quarantine/).textContent).toBe(`nomadlike device quarantine -reason 'bad cable'\\''s end' gpu-01 GPU-0`)
  expect(asked.every(([method]) => method === 'GET')).toBe(true)
  await userEvent.click(within(dialog).getByRole('button', { name: 'Quarantine' }))
  await vi.waitFor(() => expect(asked.filter(([method]) => method === 'POST')).toEqual([['POST', '/v1/nodes/n1/devices', { device: 'GPU-0', act: 'quarantine', reason: "bad cable's end" }]]), patience)
  await userEvent.click(within(row(1)).getByText('Return without a test'))
  expect(await screen.findByText('nomadlike device clear gpu-01 GPU-1')).toBeTruthy()
})

test('a failed job that printed nothing on stdout opens on stderr', async () => {
  await i18next.changeLanguage('en')
  stubBrowser()
  vi.stubGlobal('fetch', vi.fn(async (path: string) => new Response(path.includes('stream=stderr') ? '2026-11-23T09:30:05.120Z bash: python: command not found\n' : '')))
  render(<AttemptLogs attempts={[{ number: 1, state: 'ended', outcome: 'failed' }] as Attempt[]} allocs={[{ id: 'a', attempt: 1, rank: 0, node_name: 'gpu-01', status: 'failed' }] as Allocation[]} />)
  const line = await screen.findByText('bash: python: command not found')
  expect(line.closest('div')!.querySelector('time')!.dateTime).toBe('2026-11-23T09:30:05.120Z')
  expect(screen.getByRole('button', { name: 'stderr', pressed: true })).toBeTruthy()
})

test('a failed job begins with the lines of the rank that failed first, and what was other when it last went well', async () => {
  await i18next.changeLanguage('en')
  stubBrowser()
  const long = Array.from({ length: 30 }, (_, i) => `2026-11-23T09:30:0${i % 10}.120Z step ${i}`).join('\n')
  vi.stubGlobal('fetch', vi.fn(async (path: string) => {
    if (path.includes('/diff')) return Response.json({ before: { id: 'b', name: 'train-2', state: 'succeeded', submitted_at: '2026-11-22T08:00:00Z', finished_at: '2026-11-22T09:00:00Z' }, after: { id: 'j', name: 'train-3', state: 'failed', submitted_at: '2026-11-23T08:00:00Z' }, differences: [{ path: 'task.command --batch-size', before: '256', after: '320' }], found: [{ path: 'node', before: 'gpu-01', after: 'gpu-02' }] })
    return new Response(path.includes('stream=stderr') ? `${long}\nTraceback:\n  x\n\x1b[31mValueError: bad <b>data</b>\x1b[0m\nbye\nbye\nbye\n` : 'step 1\n')
  }))
  const detail = { state: 'failed', job: { id: 'j', name: 'train-3' } } as JobDetail
  const alloc = { id: 'a', rank: 3, node_name: 'gpu-01', job_name: 'train-3', status: 'failed', exit_code: 1 } as Allocation
  render(<MemoryRouter><QueryClientProvider client={new QueryClient()}><Cause id="j" detail={detail} alloc={alloc} found={['the script takes no --local-rank']}><p>ways on</p></Cause></QueryClientProvider></MemoryRouter>)
  const error = await screen.findByText('ValueError: bad <b>data</b>')
  expect(error.className).toBe('err')
  const lines = screen.getByLabelText('Lines of rank 3 around the error')
  expect(lines.children.length).toBe(10)
  expect([...lines.children].findIndex((line) => line.className === 'err')).toBe(7) // two lines stand behind it
  expect(lines.querySelector('time')!.dateTime).toBe('2026-11-23T09:30:05.120Z')
  expect(screen.getByText('the script takes no --local-rank')).toBeTruthy()
  expect(screen.getByText('ways on')).toBeTruthy()
  expect(await screen.findByRole('link', { name: 'train-2' })).toBeTruthy()
  const row = screen.getByText('task.command --batch-size').closest('tr')!
  expect(within(row).getByText('256')).toBeTruthy()
  expect(within(row).getByText('320').closest('strong')).toBeTruthy()
  expect(screen.getByText('node of rank 0')).toBeTruthy()
  expect(screen.getByText(/nomadlike job logs -rank 3/).textContent).toContain('nomadlike job diff train-3')
})

test('a failed rank whose cards had faults of late says so beside the differences', async () => {
  await i18next.changeLanguage('en')
  stubBrowser()
  const fault = (seq: number, id: string, device: string, time: string): Event => ({ id: 'event.node.device_' + id, seq, index: seq, topic: 'node', time, params: { device, number: device.slice(-1), node: 'gpu-01' }, cause: { id: 'device.nvidia_xid', params: { xid: '94', code: '94' } } })
  const events = [
    fault(1, 'unwell', 'GPU-0', '2026-11-10T08:00:00Z'), // too long ago
    fault(2, 'suspect', 'GPU-0', '2026-11-20T08:00:00Z'), fault(3, 'well', 'GPU-0', '2026-11-20T09:00:00Z'),
    fault(4, 'unwell', 'GPU-7', '2026-11-23T09:00:00Z'), // another's card
    fault(5, 'unwell', 'GPU-1', '2026-11-23T09:05:00Z'), // found out when it had ended
    fault(6, 'unwell', 'GPU-1', '2026-11-23T12:00:00Z'), // of the next job
  ]
  const alloc = { id: 'a', rank: 3, node_id: 'n1', node_name: 'gpu-01', job_name: 'train-3', status: 'failed', exit_code: 1, devices: ['GPU-0', 'GPU-1'], finished_at: '2026-11-23T09:00:00Z' } as Allocation
  const seqs = (of: Allocation) => cardFaults(events, of, Date.parse(of.finished_at!)).map((event) => event.seq)
  expect(seqs(alloc)).toEqual([5, 2])
  expect(seqs({ ...alloc, devices: undefined })).toEqual([])
  vi.stubGlobal('fetch', vi.fn(async (path: string) => {
    if (path.includes('/diff')) return Response.json({ after: { id: 'j', name: 'train-3', state: 'failed', submitted_at: '2026-11-23T08:00:00Z' }, differences: [], found: [] })
    if (path.includes('/v1/nodes/n1/events')) return Response.json({ events })
    return new Response('step 1\n')
  }))
  render(<MemoryRouter><QueryClientProvider client={new QueryClient()}><Cause id="j" detail={{ state: 'failed', job: { id: 'j', name: 'train-3' } } as JobDetail} alloc={alloc} found={[]} /></QueryClientProvider></MemoryRouter>)
  const list = (await screen.findByText(en.diff.cards)).nextElementSibling!
  expect([...list.children].map((one) => one.textContent!.replace(/^.* · /, ''))).toEqual([expect.stringMatching(/^gpu-01, Card 1: .*94/), expect.stringMatching(/^gpu-01, Card 0: .*94/)])
  expect(within(list as HTMLElement).getAllByRole('link')[0]!.getAttribute('href')).toBe('/nodes/n1')
})

test('the logs are of the newest attempt, or of the one that failed before it', async () => {
  await i18next.changeLanguage('en')
  stubBrowser()
  const asked: string[] = []
  vi.stubGlobal('fetch', vi.fn(async (path: string) => {
    asked.push(path)
    return new Response(path.includes('/old/') ? 'Traceback: boom\n' : 'step 1\n')
  }))
  const attempts = [{ number: 1, state: 'ended', outcome: 'failed', first_failed: 'old' }, { number: 2, state: 'running' }] as Attempt[]
  const allocs = [{ id: 'old', attempt: 1, rank: 0, node_name: 'gpu-01', status: 'failed' }, { id: 'new', attempt: 2, rank: 0 }] as Allocation[]
  render(<AttemptLogs attempts={attempts} allocs={allocs} />)
  expect(await screen.findByText('step 1')).toBeTruthy()
  expect(asked.every((path) => path.startsWith('/v1/allocations/new/'))).toBe(true)
  const attempt = screen.getByRole('combobox', { name: 'Attempt' }) as HTMLSelectElement
  const old = within(attempt).getByRole('option', { name: 'attempt 1 · failed' }) as HTMLOptionElement
  fireEvent.change(attempt, { target: { value: old.value } })
  expect(await screen.findByText('Traceback: boom')).toBeTruthy()
  expect(screen.getByText(/^Rank 0 on gpu-01 failed first, at .*: failed\.$/)).toBeTruthy()
  await userEvent.click(screen.getByText('First failure: rank 0'))
  await vi.waitFor(() => expect(asked.at(-1)).toMatch(/^\/v1\/allocations\/old\/logs\?stream=stderr/), patience)
})

test('what of a launch only its nodes can tell is said below the ranks, in the reader\'s words', () => {
  setCatalogue(catalogue)
  render(<RankCommands plan={{ job: {} as never, defaults: null, starts: 1, starts_now: true, ceilings: [], ranks: [{ rank: 0, name: 'r0', command: ['python', 'train.py'], env: {} }], later: [{ id: 'launch.later_data' }] }} />)
  expect(screen.getByText('What is known only at the start')).toBeTruthy()
  expect(screen.getByText(catalogue['launch.later_data']!)).toBeTruthy()
})
