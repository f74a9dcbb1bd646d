import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { cleanup, configure, fireEvent, render, screen, within } from '@testing-library/react'
import i18next from 'i18next'
import { initReactI18next } from 'react-i18next'
import { MemoryRouter } from 'react-router'
import { afterEach, beforeAll, expect, test, vi } from 'vitest'
import catalogue from '../src/catalogue.en'
import rest from '../src/catalogue.en.rest'
import { setCatalogue } from '../src/i18n'
import { around } from '../src/pages/job/cause'
import { cameFrom } from '../src/pages/job/code'
import { Facts } from '../src/pages/job/facts'
import { FaultStories } from '../src/pages/job/faults'
import { busyOf, everyOf, Keys, pastBusyOf, recentOf, speedsOf, trendOf } from '../src/pages/job/keys'
import { Overview, type Known } from '../src/pages/job/overview'
import { rankOf } from '../src/pages/job/ranks'
import { marksOf, Strip } from '../src/pages/job/strip'
import { truth } from '../src/pages/job/truth'
import { LinesBeside, nearLines } from '../src/parts/beside'
import { Cursor, nearest, pointAt, pointed } from '../src/parts/cursor'
import { ForecastCard, movesOf } from '../src/parts/forecast'
import { againLine, changesOf, sooner } from '../src/parts/help_deed'
import { rangeOf } from '../src/parts/line_chart'
import { sparkOf } from '../src/parts/spark'
import type { Allocation, Attempt, Event, Fault, Help, Job, JobDetail, JobForecast, JobMetrics, MetricSeries, Subjob, When, Workdir } from '../src/types'
import userEvent from './user'
import { en, zh } from './words'

vi.mock('uplot', () => ({ default: class { setCursor() {} setSize() {} setData() {} destroy() {} } }))
vi.mock('uplot/dist/uPlot.min.css', () => ({}))

beforeAll(async () => {
  configure({ asyncUtilTimeout: 30_000 })
  await i18next.use(initReactI18next).init({ lng: 'en', resources: { zh: { translation: zh }, en: { translation: en } }, interpolation: { escapeValue: false } })
  setCatalogue({ ...catalogue, ...rest })
})
afterEach(() => {
  cleanup()
  vi.unstubAllGlobals()
  vi.useRealTimers()
  pointAt(undefined)
})

// answers stubs the API: each path that begins with a key gets its value.
function answers(all: Record<string, unknown>) {
  vi.stubGlobal('ResizeObserver', class { observe() {} unobserve() {} disconnect() {} })
  const asked: [string, string, unknown][] = []
  vi.stubGlobal('fetch', vi.fn(async (path: string, init?: RequestInit) => {
    asked.push([init?.method ?? 'GET', path, init?.body && JSON.parse(String(init.body))])
    const key = Object.keys(all).filter((one) => path.startsWith(one)).sort((a, b) => b.length - a.length)[0]
    if (key === undefined) return Response.json({ code: 'not_found', id: 'x', message: 'no ' + path }, { status: 404 })
    const value = all[key]
    return typeof value === 'string' ? new Response(value) : Response.json(value)
  }))
  return asked
}

function show(node: React.ReactNode, at = '/jobs/j') {
  const client = new QueryClient({ defaultOptions: { queries: { retry: false } } })
  client.setQueryData(['session'], { id: 't', role: 'admin' })
  return render(<MemoryRouter initialEntries={[at]}><QueryClientProvider client={client}>{node}</QueryClientProvider></MemoryRouter>)
}

const at = (minutes: number) => new Date(Date.UTC(2026, 10, 26, 9, 0) + minutes * 60_000).toISOString()
const t = i18next.t

test('the moment that is pointed at is found on every axis, or nowhere', () => {
  expect(nearest([10, 20, null, 40], 22)).toBe(1)
  expect(nearest([10, 20, null, 40], 39)).toBe(3)
  expect(nearest([10, 20, 40], 90)).toBe(-1)
  expect(nearest([10, 20, 40], -90)).toBe(-1)
  expect(nearest([null, undefined], 5)).toBe(-1)
  expect(nearest([], 5)).toBe(-1)
})

test('the moment is moved with keys, and taken away', () => {
  show(<Cursor from={1000} to={1100} />)
  const slider = screen.getByRole('slider', { name: /^Time/ })
  expect(slider.getAttribute('aria-valuetext')).toBe('none chosen')
  fireEvent.keyDown(slider, { key: 'ArrowLeft' })
  expect(pointed()).toBe(1099)
  fireEvent.keyDown(slider, { key: 'PageDown' })
  expect(pointed()).toBe(1089)
  fireEvent.keyDown(slider, { key: 'ArrowRight' })
  expect(pointed()).toBe(1090)
  fireEvent.keyDown(slider, { key: 'Escape' })
  expect(pointed()).toBeUndefined()
})

test('the lines that were printed at the moment are marked', async () => {
  answers({ '/v1/allocations/a/logs?stream=stdout': Array.from({ length: 30 }, (_, i) => `2026-11-26T09:${String(i).padStart(2, '0')}:00.000Z step ${i}`).join('\n') + '\n' })
  show(<LinesBeside allocs={[{ id: 'a', rank: 0 }] as Allocation[]} live={false} />)
  expect(await screen.findByText('step 29')).toBeTruthy()
  pointAt(Date.parse(at(12.5)) / 1000)
  const line = (await screen.findByText('step 12')).closest('div')!
  expect(line.className).toBe('here')
  expect(line.parentElement!.children.length).toBe(9)
  expect(nearLines([{ at: 1 }, { at: 5 }], 0).here).toBe(-1)
})

test('an axis begins at zero unless all values lie far from it', () => {
  expect(rangeOf(0, 10)[0]).toBe(0)
  expect(rangeOf(2, 10)[0]).toBe(0)
  expect(rangeOf(9, 10)[0]).toBeGreaterThan(8)
  expect(rangeOf(-10, -1)[1]).toBe(0)
  expect(rangeOf(-1, 1)[0]).toBeLessThan(-1)
  expect(rangeOf(5, 5)[0]).toBeLessThan(5)
  expect(rangeOf(0, 0)).toEqual([0, 1])
  expect(rangeOf(null, null)).toEqual([0, 1])
})

const series = (name: string, points: [number, number, number][]): MetricSeries => ({ name, source: 'log', count: points.length, min: 0, max: 1, last: { step: points.at(-1)![0], at: at(points.at(-1)![1]), value: points.at(-1)![2] }, points: points.map(([step, minute, value]) => ({ step, at: at(minute), value })) })

test('the key figures are those of the first rank that measures itself', () => {
  const metrics = { ranks: [{ attempt: 2, rank: 1, alloc_id: 'b', node: 'n', series: [series('loss', [[1, 0, 9]])] }, { attempt: 2, rank: 0, alloc_id: 'a', node: 'n', series: [series('lr', [[1, 0, 0.1]]), series('train_loss', [[0, 0, 3], [60, 1, 2], [180, 2, 1]])] }, { attempt: 1, rank: 0, alloc_id: 'c', node: 'n', series: [series('loss', [[1, 0, 7]])] }] } as JobMetrics
  const { loss, longest } = trendOf(metrics, 2)
  expect([loss?.name, loss?.last.value, longest?.last.step]).toEqual(['train_loss', 1, 180])
  expect(speedsOf(longest)).toEqual([1, 2])
  expect(recentOf(longest)).toBe(1.5)
  expect(recentOf(undefined)).toBeUndefined()
  expect(trendOf(undefined, 2).speeds).toEqual([])
  expect(everyOf([{ saved_at: at(0) }, { saved_at: at(10) }, { saved_at: at(30) }] as Subjob['checkpoints'])).toBe(15 * 60_000)
  expect(everyOf([{ saved_at: at(0) }] as Subjob['checkpoints'])).toBe(0)
  const rank = (share: number) => ({ measured: true, cpu: 4, cpu_busy: 1, devices: [{ gauges: { utilization_ratio: share } }] })
  expect(busyOf({ ranks: [rank(0.5), rank(1)] } as never)).toEqual({ share: 0.75, cards: 2 })
  expect(busyOf({ ranks: [{ measured: true, cpu: 4, cpu_busy: 1 }] } as never)).toEqual({ share: 0.25, cards: 0 })
  expect(busyOf({ ranks: [{ measured: false, cpu: 4 }] } as never)).toBeUndefined()
  expect(pastBusyOf({ at: [at(0), at(1)], ranks: [{ cpu: 4, series: [{ gauge: 'cpu_cores', values: [2, null] }] }] } as never, false)).toEqual([0.5, null])
  expect(sparkOf([1, null, 3])).toMatch(/^M0\.0,.*L120\.0,/)
  expect(sparkOf([1])).toBe('')
})

test('a job that runs shows its key figures, and what nobody knows as such', async () => {
  answers({ '/v1/jobs/j/metrics': { ranks: [] }, '/v1/jobs/j/figures/past': { at: [], ranks: [] }, '/v1/jobs/j/figures': { ranks: [] } })
  vi.useFakeTimers({ toFake: ['Date'], now: new Date(2026, 4, 1, 12) }) // a time of another day is told with its date
  const began = new Date(Date.now() - 3_600_000).toISOString()
  show(<Keys id="j" detail={{ state: 'running', job: { id: 'j', name: 'train', time_limit: '4h0m0s', priority: 'normal' } } as JobDetail} standing={{ checkpoints: [{ path: '/c', step: 14000, saved_at: began }] } as Subjob} newest={{ number: 1, running_at: began } as Attempt} subjob={0} ends={{ p50: Date.now() + 3_600_000, p90: Date.now() + 7_200_000 }} logs may={() => true} />)
  expect(screen.getByText('50')).toBeTruthy() // by time: half of it is over
  expect(screen.getByText(/step 14,000/)).toBeTruthy()
  expect(screen.getByText(/^limit \d\d:\d\d/)).toBeTruthy()
  expect(screen.getByRole('button', { name: 'Change the limit' })).toBeTruthy()
  expect(screen.getAllByText('–').length).toBe(3) // speed, loss, cards
})

test('the timeline has a row for each attempt, and marks for checkpoints', () => {
  const attempts = [{ number: 1, placed_at: at(1), running_at: at(2), ending_at: at(20), ended_at: at(21), outcome: 'lost', cause: { id: 'reason.node_lost', params: { node: 'gpu-07' } } }, { number: 2, placed_at: at(22), running_at: at(23), ending_at: at(40), ended_at: at(40), outcome: 'succeeded' }] as Attempt[]
  const events = [{ id: 'event.alloc.checkpoint', time: at(10), attempt: 1, params: { step: '100' } }, { id: 'event.alloc.checkpoint', time: at(30), attempt: 2 }] as unknown as Event[]
  const { container } = show(<Strip detail={{ state: 'succeeded', job: { submitted_at: at(0) } } as JobDetail} attempts={attempts} events={events} />)
  expect([...container.querySelectorAll('.strip-name')].map((one) => one.textContent)).toEqual(['attempt 1', 'attempt 2', 'Checkpoints', ''])
  expect(container.querySelectorAll('.strip-saved').length).toBe(2)
  expect((container.querySelector('.seg-fault') as HTMLElement).title).toContain('gpu-07')
  expect(screen.getByText('As a list')).toBeTruthy()
  for (const length of [30_000, 600_000, 7_200_000, 86_400_000 * 5]) {
    const marks = marksOf(1000, 1000 + length)
    expect(marks.length).toBeGreaterThan(1)
    expect(marks.length).toBeLessThan(8)
  }
})

test('a job that waits says until when, for what, and for how long so far', () => {
  const detail = { state: 'queued', job: { submitted_at: at(0) }, wait: { id: 'scheduler.no_room', params: { nodes: '4', need: 'nvidia/gpu 8', room: '2', large: '6', short: 'nvidia/gpu 8' } } } as unknown as JobDetail
  const said = truth(t, detail, { queued_at: at(0) } as Subjob, [], undefined, Date.parse(at(5)), undefined, { verdict: 'later', p50: at(30), p90: at(60), point: at(30) } as When)
  expect(said).toMatch(/^About \d\d:\d\d \(\d\d:\d\d at 90 %\)\. Queued for 5 min: waits for/)
  expect(said).toContain('nodes needed: 4')
})

test('the sentence about a failed job counts those that went with it', () => {
  const detail = { state: 'failed', finished_at: at(60), started_at: at(0), exit_code: 1, job: {} } as unknown as JobDetail
  const ranks = [{ id: 'a', status: 'failed' }, { id: 'b', status: 'killed' }, { id: 'c', status: 'complete' }] as Allocation[]
  expect(truth(t, detail, undefined, ranks, { first_failed: 'a' } as Attempt, Date.parse(at(90)))).toContain('1 other rank was ended because of it.')
})

const job = { id: 'j', name: 'train', priority: 'normal' } as Job
const help = (more: Partial<Help>): Help => ({ id: 'forecast.help_nodes', params: { nodes: '2', was: '4' }, kind: 'nodes', nodes: 2, verdict: 'now', point: at(1), p50: at(1), p90: at(1), sooner: '10m0s', ...more }) as Help

test('what would help is made by values of the job file, or in place', () => {
  expect(changesOf(help({}))).toEqual([{ at: 'nodes', value: 2 }])
  expect(changesOf(help({ kind: 'preemptible', priority: 'urgent' }))).toEqual([{ at: 'priority', value: 'urgent' }])
  expect(changesOf(help({ kind: 'resources', cpu: 4, params: { memory: '16GiB' } }))).toEqual([{ at: 'resources.cpu', value: 4 }, { at: 'resources.memory', value: '16GiB' }])
  expect(changesOf(help({ kind: 'no_rdma' }))).toEqual([{ at: 'resources.rdma', value: null }])
  expect(changesOf(help({ kind: 'two' }))).toBeUndefined()
  expect(changesOf(help({ kind: 'spread' }))).toBeUndefined()
  expect(againLine('train', [{ at: 'nodes', value: 2 }, { at: 'resources.rdma', value: null }])).toBe('nomadlike job stop train\nnomadlike job clone -set nodes=2 -set resources.rdma=null -run train')
  const when = (p50: string | null, verdict = 'later') => ({ verdict, p50 }) as When
  expect(sooner(when(at(1)), when(at(5)))).toBe(true)
  expect(sooner(when(at(9)), when(at(5)))).toBe(false)
  expect(sooner(when(null, 'never'), when(at(5)))).toBe(false)
  expect(sooner(when(at(9)), when(null))).toBe(true)
})

test('a waiting job names its holders with their ends; a change is tried before it is offered', async () => {
  const forecast = { starts: [{ subjob: 0, pool: 'gpu', position: 3, verdict: 'later', p50: at(60), p90: at(90), point: at(60) }], history: [[{ attempt: 1, given_at: at(0), p50: at(50), p90: at(80) }, { attempt: 1, given_at: at(5), p50: at(60), p90: at(90) }]] } as unknown as JobForecast
  let start: Partial<When> = { verdict: 'later', p50: at(70), p90: at(90) }
  const asked = answers({
    '/v1/jobs/j/forecast?helps': { helps: [help({}), help({ kind: 'two', id: 'forecast.help_two', params: { first: 'a', second: 'b' } })] },
    '/v1/jobs/format': { hcl: 'changed' },
    '/v1/jobs/forecast': { get verdict() { return start.verdict }, get p50() { return start.p50 }, get p90() { return start.p90 } },
    '/v1/jobs/j/stop': { index: 1 },
    '/v1/jobs/j': { job: { ...job, source: 'job "train" {}' } },
    '/v1/jobs': { job_id: 'k' },
  })
  const card = () => <ForecastCard id="j" spec={job} forecast={forecast} subjob={0} holders={[{ id: 'h', name: 'llama', user: 'wei' }, { id: '' }]} ends={new Map([['h', { p50: Date.parse(at(60)), p90: Date.parse(at(60)) }]])} />
  show(card())
  const table = screen.getByRole('table', { name: 'Held by' })
  expect(within(table).getByRole('link', { name: 'llama' })).toBeTruthy()
  expect(within(table).getByText(/\d\d:\d\d/)).toBeTruthy()
  expect(within(table).getByText('other project')).toBeTruthy()
  const deeds = await screen.findAllByRole('button', { name: 'Submit again' })
  expect(deeds.length).toBe(1) // the other change is told, and no button
  await userEvent.click(deeds[0]!)
  const dialog = await screen.findByRole('dialog')
  expect(await within(dialog).findByText(/would not start sooner/)).toBeTruthy()
  expect((within(dialog).getByRole('button', { name: 'Submit again' }) as HTMLButtonElement).disabled).toBe(true)
  expect(within(dialog).getByText(/nomadlike job clone -set nodes=2 -run train/)).toBeTruthy()
  cleanup()

  start = { verdict: 'now', p50: at(1), p90: at(1) }
  show(card())
  await userEvent.click((await screen.findAllByRole('button', { name: 'Submit again' }))[0]!)
  const again = await screen.findByRole('dialog')
  expect(await within(again).findByText('As a new job: Starts now.')).toBeTruthy()
  expect(asked.some(([, path]) => path === '/v1/jobs/j/stop')).toBe(false)
  await userEvent.click(within(again).getByRole('button', { name: 'Submit again' }))
  await vi.waitFor(() => expect(asked.find(([method, path]) => method === 'POST' && path === '/v1/jobs')?.[2]).toEqual({ hcl: 'changed' }))
  const order = asked.filter(([method]) => method === 'POST').map(([, path]) => path)
  expect(order.indexOf('/v1/jobs/j/stop')).toBeLessThan(order.indexOf('/v1/jobs'))
  expect(movesOf(forecast.history!.flat() as never).p50).toEqual([Date.parse(at(50)) / 1000, Date.parse(at(60)) / 1000])
})

test('the story of a fault says when each thing was, and what nobody knows', async () => {
  const fault = {
    subjob: 0, attempt: 1, outcome: 'lost', cause: { id: 'reason.node_lost', params: { node: 'gpu-07' } }, rank: 1, node: 'gpu-07', next: 2,
    moments: [{ stage: 'fault', id: 'story.node_silent', params: { node: 'gpu-07' }, at: null }, { stage: 'noticed', id: 'event.alloc.lost', params: { rank: 'train-1-1', node: 'gpu-07' }, at: at(10) }, { stage: 'saved', id: 'story.not_saved', at: null }, { stage: 'running', id: 'story.running', params: { attempt: '2' }, at: at(11), took: '41.2s' }],
    loss: { devices: 8, nodes: 2, saved: false, work: '10m0s', stopping: '12s', waiting: '0s', starting: '29s', hours: 1.4, steps: 1450 },
  } as unknown as Fault
  answers({ '/v1/jobs/j/faults': { job_id: 'j', faults: [fault], lost: 1.4 } })
  show(<FaultStories id="j" name="train" subjob={0} enabled />)
  const card = await screen.findByRole('region', { name: 'Faults' })
  const text = () => card.textContent!
  await vi.waitFor(() => expect(text()).toContain('node gpu-07 was lost'))
  expect(text()).toContain('went on after 1 min')
  expect(text()).toContain('1450 steps made again')
  expect(text()).toContain('1.40 card-hours lost')
  expect(within(card).getByText('node gpu-07 fell silent: since when is not recorded').className).toBe('quiet')
  expect(within(card).getAllByText('+41.2 s').length).toBe(2) // beside, or below on a phone
  expect(text()).toContain('10 min of work lost (no checkpoint was registered)')
  expect(within(card).getByText('nomadlike job history -faults train')).toBeTruthy()
})

test('a link to a rank opens what is known of it', async () => {
  expect([rankOf('#rank=3'), rankOf('#rank=x'), rankOf('')]).toEqual([3, undefined, undefined])
  answers({ '/v1/allocations/b/logs': '2026-11-26T09:00:01.000Z hello of one\n', '/v1/jobs/j/figures/past': { at: [at(0), at(1)], ranks: [{ rank: 1, alloc_id: 'b', node: 'n2', node_id: 'n2', status: 'running', cpu: 2, memory: 10, series: [{ gauge: 'cpu_cores', values: [1, 2] }] }] }, '/v1/jobs/plan': { ranks: [{ rank: 1, name: 'train-1-1', command: ['python', 'train.py'], env: { RANK: '1' } }] }, '/v1/jobs/j/metrics': { ranks: [] } })
  const ranks = [{ id: 'a', rank: 0, name: 'train-1-0', node_id: 'n1', node_name: 'gpu-01', status: 'running', spec: { cpu: 2 } }, { id: 'b', rank: 1, name: 'train-1-1', node_id: 'n2', node_name: 'gpu-02', status: 'running', job_name: 'train', attempt: 1, subjob: 0, spec: { cpu: 2 } }] as unknown as Allocation[]
  const events = [{ index: 1, seq: 0, id: 'event.alloc.running', time: at(0), alloc_id: 'b', attempt: 1, params: { rank: 'train-1-1', node: 'gpu-02' } }, { index: 2, seq: 0, id: 'event.alloc.running', time: at(0), alloc_id: 'a', attempt: 1, params: { rank: 'train-1-0', node: 'gpu-01' } }] as unknown as Event[]
  const known: Known = { id: 'j', full: 'j', detail: { state: 'running', job: { ...job, resources: [], distributed: { mode: 'none' }, task: { driver: 'exec' } } } as unknown as JobDetail, subjob: 0, attempts: [{ number: 1, state: 'running', placed_at: at(0), running_at: at(0) }] as Attempt[], newest: { number: 1, state: 'running' } as Attempt, ranks, events, shared: false, may: () => true, env: true, live: false, errors: { allocs: null, events: null } }
  show(<Overview {...known} />, '/jobs/j#rank=1')
  const panel = screen.getByRole('region', { name: 'Rank 1' })
  expect(within(panel).getByText(/rank train-1-1 is running/)).toBeTruthy()
  expect(within(panel).queryByText(/rank train-1-0 is running/)).toBeNull()
  expect(await within(panel).findByText('hello of one')).toBeTruthy()
  expect(await within(panel).findByText('python train.py')).toBeTruthy()
  expect(within(panel).getByText('RANK=1')).toBeTruthy()
  const download = within(panel).getByRole('link', { name: 'Download stderr' }) as HTMLAnchorElement
  expect(download.getAttribute('href')).toBe('/v1/allocations/b/logs?stream=stderr')
  expect(download.download).toBe('train-1-1.stderr.log')
  const first = within(screen.getByRole('table', { name: 'Ranks' })).getByRole('link', { name: 'Rank 0' })
  await userEvent.click(first)
  expect(await screen.findByRole('region', { name: 'Rank 0' })).toBeTruthy()
  expect(screen.queryByRole('region', { name: 'Rank 1' })).toBeNull()
})

test('the lines that tell why are those up to the error', () => {
  const lines = Array.from({ length: 40 }, (_, i) => 'line ' + i)
  expect(around(lines)).toEqual([30, 40])
  lines[20] = 'ValueError: no'
  expect(around(lines)).toEqual([13, 23])
  expect(around([])).toEqual([0, 0])
})

test('the code of a job is among its facts', async () => {
  const digest = 'sha256:' + '0123456789abcdef'.repeat(4)
  const detail = (workdir?: Workdir) => ({ job: { id: 'j', name: 'j', project: 'p', user: 'u', nodes: 1, distributed: {}, task: { driver: 'exec' }, workdir } }) as unknown as JobDetail
  const text = (workdir?: Workdir) => {
    cleanup()
    show(<Facts detail={detail(workdir)} />)
    return screen.queryByText('Code')?.nextElementSibling
  }
  expect(text()).toBeUndefined()
  expect(text({ source: '.' })).toBeUndefined() // not sent yet
  const repo = text({ source: 'https://git.example/team/train.git', tree: digest, files: 12, bytes: 2048, repo: { ref: 'main', subdir: 'train' }, git: { commit: 'abcdef0123456789abcdef0123456789abcdef01', branch: 'main' } })!
  expect([...repo.children].map((one) => one.textContent)).toEqual(['https://git.example/team/train.git#main:train', '12 files · 2 KiB', 'tree 0123456789ab', 'git main abcdef012345'])
  expect(repo.querySelector('[title="' + digest + '"]')).toBeTruthy()
  expect(repo.querySelector('[title^="abcdef0123456789abcdef"]')).toBeTruthy()
  const dir = text({ source: '<b>.</b>', tree: digest, files: 1, bytes: 1, git: { commit: 'ab', dirty: true } })!
  expect([...dir.children].map((one) => one.textContent)).toEqual(['<b>.</b>', '1 file · 1 B', 'tree 0123456789ab', 'git ab', 'with changes that were not committed'])
  expect([...text({ source: digest, tree: digest })!.children].map((one) => one.textContent)).toEqual(['tree 0123456789ab'])
  expect(cameFrom({ source: 'https://a/b', repo: {} })).toBe('https://a/b')
  expect(cameFrom({ source: 'https://a/b', repo: { subdir: 'x' } })).toBe('https://a/b#:x')
  await i18next.changeLanguage('zh')
  cleanup()
  show(<Facts detail={detail({ source: '.', tree: digest, files: 2, bytes: 5, git: { branch: 'main', dirty: true } })} />)
  expect([...screen.getByText('代码').nextElementSibling!.children].map((one) => one.textContent)).toEqual(['.', '2 个文件 · 5 B', '目录树 0123456789ab', 'git main', '含未提交的修改'])
  await i18next.changeLanguage('en')
})
