import { expect, test } from 'vitest'
import { doneOf, endsOf, liveOf, needsOf } from '../src/parts/mine'
import { band, hours, layersOf } from '../src/parts/load'
import { endsText } from '../src/parts/jobrow'
import { beside, grouped, groupOf } from '../src/pages/jobs'
import { bestOf, freeCards, longerLimit, nearlyUsed, notesOf } from '../src/pages/home'
import type { AutopilotHealth, JobState, JobSummary, NodeSummary, QueueEntry, Timeline } from '../src/types'

const at = (minutes: number) => new Date(Date.UTC(2026, 10, 24, 8, minutes)).toISOString()
const ms = (minutes: number) => Date.parse(at(minutes))
const job = (name: string, state: JobState, more: Partial<JobSummary> = {}): JobSummary =>
  ({ id: name, name, state, project: 'vision', nodes: 1, subjobs: 1, attempt: 1, counts: {}, exit_code: 0, priority: 'normal', type: 'training', submitted_at: at(0), ...more }) as JobSummary
const bar = (id: string, kind: string, from: number, to: number, devices = 8, p90 = to + 20) => ({ job_id: id, job_name: id, kind, project: 'vision', subjob: 0, devices, from: at(from), to: at(to), p50: at(to), p90: at(p90) })
const timeline: Timeline = {
  from: at(10), to: at(730),
  rows: [
    { node: 'n1', node_id: 'n1', pool: 'a', devices: 8, bars: [bar('train', 'running', 0, 60), bar('next', 'forecast', 60, 120, 4)] },
    { node: 'n2', node_id: 'n2', pool: 'a', devices: 8, bars: [bar('train', 'running', 0, 90), bar('', 'running', 0, 30, 2)] },
  ],
}

test('a gang ends with the last of its ranks', () => {
  expect(endsOf(timeline).get('train')).toEqual({ p50: ms(90), p90: ms(110) })
  expect(endsOf(timeline).has(''), 'a job that may not be seen has no name').toBe(false)
  expect(endsOf(undefined).size).toBe(0)
})

test('what runs stands before what waits, each by what happens next', () => {
  const queue = [{ job_id: 'next', position: 3, forecast: { verdict: 'later', p50: at(60), p90: at(70), point: at(60) } }, { job_id: 'never', position: 4, forecast: { verdict: 'never' } }] as unknown as QueueEntry[]
  const live = liveOf([job('never', 'queued'), job('next', 'queued'), job('dark', 'running'), job('train', 'running'), job('old', 'succeeded')], timeline, queue)
  expect(live.map((one) => one.job.name)).toEqual(['train', 'dark', 'next', 'never'])
  expect(live[2]!.place).toBe(3)
})

test('what needs somebody: news of a day, what never starts, what stands still', () => {
  const now = ms(0) + 26 * 3_600_000
  const jobs = [
    job('today', 'failed', { finished_at: at(3 * 60) }), job('yesterday', 'failed', { finished_at: at(1) }), job('limit', 'expired', { finished_at: at(4 * 60) }),
    job('never', 'queued', { wait: { id: 'x', never: true } }), job('soon', 'queued', { wait: { id: 'x' } }), job('still', 'paused'), job('fine', 'running'), job('mine', 'stopped', { finished_at: at(4 * 60) }),
  ]
  expect(needsOf(jobs, now).map(({ job: { name }, need }) => `${name} ${need}`)).toEqual(['limit expired', 'today failed', 'never never', 'still paused'])
})

test('progress is by subjobs, or by time against the likely end, and is never full before it is', () => {
  expect(doneOf({ job: job('batch', 'running', { subjobs: 4, counts: { succeeded: 1 } }) }, ms(0))).toEqual({ share: 0.25, byTime: false })
  const runs = job('train', 'running', { started_at: at(0) })
  expect(doneOf({ job: runs, ends: { p50: ms(100), p90: 0 } }, ms(40))).toEqual({ share: 0.4, byTime: true })
  expect(doneOf({ job: runs, ends: { p50: ms(100), p90: 0 } }, ms(400))?.share).toBe(0.99)
  expect(doneOf({ job: runs }, ms(40)), 'nobody knows').toBeUndefined()
})

test('what holds and does nothing, what is held, and what its limit will end', () => {
  const now = ms(30)
  const jobs = [
    job('rests', 'running', { idle: 'cards', idle_since: at(10) }), job('look', 'failed', { finished_at: at(20), held_until: at(60), idle: 'held' }), job('looked', 'failed', { finished_at: at(25), held_until: at(29) }),
    job('train', 'running', { limit_at: at(90) }), job('long', 'running', { limit_at: at(95) }), job('dev', 'running', { type: 'dev', limit_at: at(90) }), job('next', 'queued', { limit_at: at(90) }),
  ]
  const ends = new Map(['train', 'long', 'dev', 'next'].map((id) => [id, { p50: ms(90), p90: ms(110) }]))
  expect(needsOf(jobs, now, ends).map(({ job: { name }, need }) => `${name} ${need}`).sort()).toEqual(['look held', 'looked failed', 'rests idle', 'train limit'])
  const asked = { ...jobs.find((job) => job.name === 'train')!, asked: { to: { id: 'boss', name: 'boss' } } } as unknown as JobSummary
  expect(needsOf([asked], now, ends).map(({ need }) => need), 'a question goes before what is only foreseen').toEqual(['asked'])
  expect(needsOf(jobs, now).some(({ need }) => need === 'limit'), 'without a forecast nobody knows').toBe(false)
  expect(longerLimit(job('train', 'running', { limit_at: at(90), time_limit: '1h30m0s' }))).toEqual({ text: '3h', until: ms(180) })
  expect(longerLimit(job('week', 'running', { limit_at: at(90), time_limit: '168h0m0s' })).text).toBe('192h')
})

test('a quota is nearly used when a tenth is left', () => {
  const quota = (held: number, maximum?: number, guaranteed?: number) => ({ kind: 'nvidia/gpu', held, maximum, guaranteed })
  expect(nearlyUsed([quota(9, 10), quota(8, 10), quota(0, 0), quota(4, undefined, 4), quota(3)] as never).map((one) => one.held)).toEqual([9, 4])
})

test('the layers of the load stand on each other, and what is away hangs from the top', () => {
  const layers = layersOf({ pool: '', total: [8, 8], used: [4, 2], held: [1, 0], foreseen: [0, 3], away: [2, 1], reserved: [0, 0] })
  expect(layers).toEqual({ used: [[0, 0], [4, 2]], held: [[4, 2], [5, 2]], foreseen: [[5, 2], [5, 5]], away: [[6, 7], [8, 8]] })
  expect(band([0, 10, 20], [0, 0, 0], [4, 2, 2]), 'what is known at an instant holds until the next').toBe('M0.0,4.0L10.0,4.0L10.0,2.0L20.0,2.0L20.0,2.0L20.0,0.0L20.0,0.0L10.0,0.0L10.0,0.0L0.0,0.0Z')
})

test('hours are named that are full on the clock of the reader', () => {
  const from = new Date(2026, 10, 24, 8, 7).getTime()
  expect(hours(from, from + 24 * 3_600_000, 6).map((time) => new Date(time).getHours())).toEqual([12, 18, 0, 6])
})

test('the best that could start is the most cards on one node', () => {
  const model = (name: string, most: number) => ({ kind: 'nvidia/gpu', model: name, node: 8, free: most, most, whole: 0, half: 0, single: most })
  expect(bestOf([model('a', 2), model('b', 4), model('c', 4)])?.model).toBe('b')
  expect(bestOf([])).toBeUndefined()
})

test('the list has what runs first, then what waits, then what is over', () => {
  const rows = [job('a', 'succeeded'), job('b', 'queued'), job('c', 'stopping'), job('d', 'failed')].map((one) => ({ job: one }))
  expect(grouped(rows).map((one) => [one.group, one.rows.map((row) => row.job.name)])).toEqual([['running', ['c']], ['waiting', ['b']], ['ended', ['a', 'd']]])
  expect(groupOf(job('p', 'paused'))).toBe('running')
})

const node = (name: string, more: Partial<NodeSummary> = {}, cards = 0, held = 0, sick = 0): NodeSummary =>
  ({ id: name, name, status: 'ready', eligibility: 'eligible', version: '1.0', capacity: { cpu: 1, memory: 1 }, used: { allocs: held ? 1 : 0, cpu: 0, memory: 0, devices: Object.fromEntries(Array.from({ length: held }, (_, i) => [`${name}${i}`, 'alloc'])) }, devices: Array.from({ length: cards }, (_, i) => ({ id: `${name}${i}`, index: i, model: name[0], healthy: i < cards - sick })), ...more }) as unknown as NodeSummary

test('free are the cards that are well, held by nobody, and on a node that takes jobs', () => {
  const free = freeCards([node('a1', {}, 8, 6, 1), node('a2', {}, 8), node('b1', {}, 4, 1), node('b2', { eligibility: 'cordoned' } as Partial<NodeSummary>, 4), node('b3', { status: 'lost' } as Partial<NodeSummary>, 4)])
  expect(free).toEqual({ cards: true, most: { model: 'a', count: 8 }, models: [['a', 9], ['b', 3]], nodes: 1 })
  expect(freeCards([node('c')])).toEqual({ cards: false, most: { model: '', count: 0 }, models: [], nodes: 1 })
})

test('an operator is told of what is away, unfit and at fault, and when no server may fail', () => {
  expect(notesOf([node('a1', {}, 8)], { healthy: true, failure_tolerance: 1, servers: [] } as unknown as AutopilotHealth)).toEqual([])
  const servers = [{ id: 's1', name: 's1', healthy: true, voter: true }, { id: 's2', name: 's2', healthy: false, voter: true, disk_full: true }]
  const notes = notesOf([node('a1', { status: 'lost' } as Partial<NodeSummary>, 8), node('a2', { version: '1.1' } as Partial<NodeSummary>, 8, 0, 2), node('a3', { faults: [{ unfit: true }] } as unknown as Partial<NodeSummary>)], { healthy: false, failure_tolerance: 0, servers } as unknown as AutopilotHealth)
  expect(notes.map(({ id, names, count }) => `${id} ${count} ${names}`)).toEqual(['servers 1 s2', 'quorum 2 s1,s2', 'disk 1 s2', 'lost 1 a1', 'unfit 1 a3', 'cards 2 a2'])
})

test('certificates that end soon and versions that differ are named, with their cure', () => {
  const versions = [{ version: '1.4', agents: 3, names: ['s1', 's2', 'n1'] }, { version: '1.3', agents: 1, names: ['n2'] }]
  const certificates = [{ id: 'x', name: 'n1', role: 'client', ends_at: at(60) }]
  const health = { healthy: true, failure_tolerance: 1, servers: [], certificates, versions } as unknown as AutopilotHealth
  expect(notesOf([], health)).toEqual([
    { id: 'certificates', tone: 'bad', to: '/servers', names: ['n1'], count: 1, cure: { entry: 'certificates', at: at(60) } },
    { id: 'versions', tone: 'busy', to: '/servers', names: ['1.4: s1, s2 …', '1.3: n2'], count: 2, cure: { entry: 'upgrade' } },
  ])
  expect(notesOf([], { ...health, certificates: [], versions: versions.slice(0, 1) })).toEqual([])
})

test('when a job ends is told with both ends, and the second needs no date of the same night', () => {
  const t = ((id: string, values: Record<string, string>) => `${id} ${Object.values(values ?? {}).join(' ')}`) as unknown as Parameters<typeof endsText>[0]
  const now = new Date(2026, 10, 24, 20, 0).getTime()
  const minutes = (count: number) => now + count * 60_000
  expect(endsText(t, { p50: minutes(180), p90: minutes(280) }, now)).toBe('home.ends_between 23:00 00:40')
  expect(endsText(t, { p50: minutes(10), p90: minutes(10) }, now)).toBe('home.ends_at 20:10')
  expect(endsText(t, { p50: minutes(10), p90: 0 }, now)).toBe('home.ends_at 20:10')
  expect(endsText(t, { p50: minutes(10), p90: minutes(2000) }, now)).toBe('home.ends_between 20:10 2026-11-26 05:20')
  expect(endsText(t, { p50: 0, p90: 0 }, now)).toBe('home.end_unknown ')
})

test('keys go from job to job over headings, also from a place that a filter took away', () => {
  const rows = [{ heads: true }, {}, {}, { heads: true }, {}]
  expect([-1, 1, 2, 4, 9].map((at) => beside(rows, at, 1))).toEqual([1, 2, 4, 4, 4])
  expect([-1, 1, 2, 4, 9].map((at) => beside(rows, at, -1))).toEqual([1, 1, 1, 2, 4])
  expect(beside([], 3, 1)).toBe(-1)
})
