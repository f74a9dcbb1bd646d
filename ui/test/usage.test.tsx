import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { cleanup, configure, render, screen, within } from '@testing-library/react'
import i18next from 'i18next'
import { initReactI18next } from 'react-i18next'
import { MemoryRouter } from 'react-router'
import { afterEach, beforeAll, expect, test, vi } from 'vitest'
import { Figures, measures } from '../src/parts/usage'
import { joined, lineOf, whole } from '../src/parts/rank_history'
import type { JobUsage, JobHistory, RankHistory } from '../src/types'
import userEvent from './user'
import { en, zh } from './words'

vi.mock('../src/parts/line_chart', () => ({ default: ({ label, x, lines, unit }: { label: string; x: number[]; lines: { name: string; values: (number | null)[] }[]; unit: string }) => <pre data-testid="curves">{`${label}|${x.length}|${lines.map((l) => `${l.name}: ${l.values.map((v) => (v === null ? '-' : Math.round(v))).join(' ')}`).join('; ')}|${unit}`}</pre> }))

const patience = { timeout: 30_000 } // a busy machine is slow

beforeAll(async () => {
  configure({ asyncUtilTimeout: patience.timeout })
  await i18next.use(initReactI18next).init({ lng: 'en', resources: { zh: { translation: zh }, en: { translation: en } }, interpolation: { escapeValue: false } })
})
afterEach(() => {
  cleanup()
  vi.unstubAllGlobals()
})

const rank = (number: number, series: RankHistory['series']): RankHistory => ({ alloc_id: 'a' + number, rank: number, node_id: 'n' + number, node: 'gpu-0' + number, status: 'complete', cpu: 4, memory: 1 << 30, series })
const past: JobHistory = { job_id: 'j1', subjob: 0, attempt: 2, step: '5s', at: ['2026-11-21T15:00:00Z', '2026-11-21T15:00:05Z', '2026-11-21T15:00:10Z'],
  ranks: [
    rank(0, [{ gauge: 'cpu_cores', values: [null, 2, 4] }, { gauge: 'memory_used_bytes', values: [1 << 28, 1 << 29, null] }, { gauge: 'device_utilization_ratio', values: [0.5, 0.7, null] }]),
    rank(1, [{ gauge: 'cpu_cores', values: [null, 1, 1] }, { gauge: 'device_temperature_celsius', values: [50, 60, 55] }]),
  ], away: ['<b>gpu-09</b>'] }
const now = (measured: boolean): JobUsage => ({ job_id: 'j1', subjob: 0, attempt: 2, ranks: [0, 1].map((number) => ({ alloc_id: 'a' + number, rank: number, node_id: 'n' + number, node: 'gpu-0' + number, status: measured ? 'running' : 'complete', measured, cpu: 4, memory: 1 << 30, ...(measured ? { cpu_busy: 3, memory_used: 1 << 29, processes: 5 } : {}) })) })

function open(live: boolean, kept: JobHistory) {
  vi.stubGlobal('matchMedia', () => ({ matches: false, addListener() {}, removeListener() {}, addEventListener() {}, removeEventListener() {} }))
  vi.stubGlobal('ResizeObserver', class { observe() {} unobserve() {} disconnect() {} })
  const asked: string[] = []
  vi.stubGlobal('fetch', vi.fn(async (path: string) => {
    asked.push(path)
    return Response.json(path.includes('/past') ? kept : now(live))
  }))
  render(<MemoryRouter><QueryClientProvider client={new QueryClient({ defaultOptions: { queries: { retry: false } } })}><Figures id="j1" name="my job" subjob={0} live={live} /></QueryClientProvider></MemoryRouter>)
  return asked
}

test('the curves of a running job begin with what nodes kept', async () => {
  await i18next.changeLanguage('en')
  const asked = open(true, past)
  const region = await screen.findByLabelText('While it runs')
  await vi.waitFor(() => expect(within(region).getByTestId('curves').textContent).toMatch(/^Cores\|[4-9]\|Rank 0: - 50 100 75( 75)*; Rank 1: - 25 25 75( 75)*\| %$/i), patience)
  await userEvent.click(within(region).getByText('Memory'))
  await vi.waitFor(() => expect(within(region).getByTestId('curves').textContent).toMatch(/^Memory\|[4-9]\|Rank 0: 25 50 - 50( 50)*; Rank 1: - - - 50( 50)*\| %$/i), patience)
  expect(within(region).getByText("nomadlike job figures -rank 0 'my job'")).toBeTruthy()
  expect(asked).toContain('/v1/jobs/j1/figures/past?subjob=0&attempt=2&points=240')
  expect(within(screen.getByLabelText('Every rank now')).getAllByText('3 / 4')).toHaveLength(2)
})

test('of a job that has ended the strip and the table tell what was kept', async () => {
  await i18next.changeLanguage('en')
  open(false, past)
  const table = await screen.findByLabelText('Every rank, while it ran')
  await vi.waitFor(() => expect(within(table).getByText('3 / 4')).toBeTruthy(), patience) // the mean of 2 and 4
  expect(within(table).getByText('512 MiB / 1 GiB')).toBeTruthy()
  expect(within(table).getByText('60 %')).toBeTruthy()
  expect(within(table).getByText('60 °C')).toBeTruthy()
  expect(within(table).getByText("nomadlike job figures -past 'my job'")).toBeTruthy()
  expect(document.querySelector('.heat')!.getAttribute('aria-label')).toBe('Card use of each rank: 0: 60 %, 1: –')
  const region = screen.getByLabelText('While it runs')
  await userEvent.click(within(region).getByText('Cores'))
  expect((await within(region).findByTestId('curves')).textContent).toMatch(/^Cores\|3\|Rank 0: - 50 100; Rank 1: - 25 25\| %$/i)
  expect(screen.getByText(/<b>gpu-09<\/b>/).querySelector('b')).toBeNull() // text, not markup
})

test('without anything kept the page says so', async () => {
  await i18next.changeLanguage('en')
  open(false, { ...past, at: [], ranks: [], away: undefined })
  expect(await screen.findByText('Nothing is kept of what its ranks used.')).toBeTruthy()
  expect(screen.queryByLabelText('While it runs')).toBeNull()
})

test('what was kept goes before what was seen', () => {
  const cores = measures.find((m) => m.key === 'cpu')!.value
  const second = Date.parse('2026-11-21T15:00:00Z') / 1000
  const kept = lineOf(past, cores, second + 10)
  expect(kept).toEqual({ at: [second, second + 5], ranks: new Map([[0, [null, 0.5]], [1, [null, 0.25]]]) })
  expect(joined(kept, { at: [second + 11], ranks: new Map([[2, [1]]]) })).toEqual({ at: [second, second + 5, second + 11], ranks: new Map([[0, [null, 0.5, null]], [1, [null, 0.25, null]], [2, [null, null, 1]]]) })
  expect(lineOf(undefined, cores, Infinity)).toEqual({ at: [], ranks: new Map() })
  expect(cores(whole(rank(0, null)))).toBeNull()
})
