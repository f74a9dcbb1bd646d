import i18next from 'i18next'
import { expect, test } from 'vitest'
import { commandLine, deedsFor } from '../src/parts/actions'
import { lines, topicsOf, type Line } from '../src/events'
import { clock, dateTime, difference, quote, size, span, spelled } from '../src/format'
import { fill, preferred, reasonText, setCatalogue } from '../src/i18n'
import { askChanges, compose, envText, heredoc, noMachines, readEnv, readLine, runLine, simple, sizeText, text, variablesOf, vipChanges, vipFile, withoutMachines, words } from '../src/parts/jobfile'
import { stragglers } from '../src/parts/usage'
import { linesOf, namesOf } from '../src/parts/training'
import { colour, differing, errorLine, merged, timed, visible } from '../src/parts/logs'
import { matching } from '../src/parts/finder'
import { boxes, closed, lanes, outside, tops } from '../src/parts/timeline'
import { requestOf } from '../src/parts/maintenance'
import { sentence as queueSentence } from '../src/pages/queue'
import { atMoment, cellsOf, counted, groupsOf, keeps as keepsTile, largestGang, planOf, sumsOf } from '../src/parts/cells'
import { cellAt, shortened } from '../src/parts/wall'
import { keeps, readFilter } from '../src/parts/filters'
import { nextOrder, sorted, widthsOf, windowOf } from '../src/parts/grid'
import { outcomeOf } from '../src/pages/job/outcome'
import { segments } from '../src/pages/job/strip'
import { stepOf } from '../src/pages/job/truth'
import { second, sentence } from '../src/pages/cluster'
import { heldText } from '../src/pages/create'
import { lineOf } from '../src/pages/create/file'
import type { Attempt, AvailableNode, Bar, Event, JobSummary, MaintenanceDetail, NodeDevices, NodeSummary, QueueEntry, RankUsage, Timeline } from '../src/types'

test('Chinese comes first when the browser asks for it', () => {
  expect(preferred(['zh-CN', 'en'], null)).toBe('zh')
  expect(preferred(['fr', 'zh-TW', 'en'], null)).toBe('zh')
  expect(preferred(['en-GB', 'zh'], null)).toBe('en')
  expect(preferred(['de'], null)).toBe('en')
  expect(preferred(['zh-CN'], 'en')).toBe('en')
})

test('reasons are filled once, and an unknown one is shown as it is', () => {
  expect(fill('{a} and {b} and {c', { a: '{b}', b: '2' })).toBe('{b} and 2 and {c')
  expect(fill('{n} {n|job|jobs}', { n: '1' })).toBe('1 job')
  expect(fill('{n} {n|job|jobs}', { n: '0' })).toBe('0 jobs')
  expect(fill('{n|job|jobs}')).toBe('{n|job|jobs}')
  setCatalogue({ 'reason.x': 'node {node} was lost' })
  expect(reasonText({ id: 'reason.x', params: { node: 'n1' } })).toBe('node n1 was lost')
  expect(reasonText({ id: 'reason.y', params: { b: '2', a: '1' } })).toBe('reason.y a=1 b=2')
  expect(reasonText(undefined)).toBe('')
  expect(fill('from {at}', { at: new Date(2020, 1, 3, 4, 5).toISOString() })).toBe('from 2020-02-03 04:05')
})

test('times, spans and sizes', () => {
  expect(dateTime('2026-11-21T15:04:05')).toBe('2026-11-21 15:04')
  expect(dateTime(null)).toBe('–')
  expect(clock('2026-11-21T15:04:05', new Date('2026-11-21T20:00:00').getTime())).toBe('15:04')
  expect(clock('2026-11-20T15:04:05', new Date('2026-11-21T20:00:00').getTime())).toBe('2026-11-20 15:04')
  expect([0, 59, 61, 3599, 3 * 3600 + 12 * 60, 50 * 3600, 96 * 3600].map((s) => span(s * 1000))).toEqual(['0 s', '59 s', '1 min 1 s', '59 min', '3 h 12 min', '2 d 2 h', '4 d'])
  expect([0, 1023, 1024, 1.5 * 2 ** 30, 2 ** 40].map(size)).toEqual(['0 B', '1023 B', '1 KiB', '1.5 GiB', '1 TiB'])
})

test('command lines quote what a shell would take apart', () => {
  expect(quote("it's; rm -rf /")).toBe(`'it'\\''s; rm -rf /'`)
  expect(commandLine('train', { deed: 'stop', reason: 'wrong data' })).toBe("nomadlike job stop -reason 'wrong data' train")
  expect(commandLine('train', { deed: 'limit' })).toBe('nomadlike job limit train none')
  expect(commandLine('train', { deed: 'first' })).toBe('nomadlike queue move -first train')
  expect(commandLine('my job', { deed: 'clone' })).toBe("nomadlike job clone -run 'my job'")
  expect(deedsFor('succeeded')).toEqual(['resume', 'delete', 'annotate'])
  expect(deedsFor('running')).not.toContain('priority')
})

test('logs keep colours and drop everything else that a terminal obeys', () => {
  expect(colour('\x1b[1;31mbad\x1b[0m ok')).toEqual([{ text: 'bad', style: 'b c1' }, { text: ' ok', style: '' }])
  expect(colour('\x1b]0;title\x07a\x1b]8;;http://evil\x1b\\b\x1b]52;c;AAAA\x07c\x1b[2Jd\x1b[6ne\x07').map((s) => s.text).join('')).toBe('abcde')
  expect(colour('\x1bP+q\x1b\\x\u202Ey').map((s) => s.text).join('')).toBe('xy')
  expect(colour('<img src=x onerror=alert(1)>')).toEqual([{ text: '<img src=x onerror=alert(1)>', style: '' }])
  expect(visible('10%\r50%\r100%')).toBe('100%')
})

test('lines that every rank printed can be left out', () => {
  const line = (rank: number, text: string, key: number) => ({ rank, text, key })
  const all = [line(0, 'epoch 1', 0), line(1, 'epoch 1', 1), line(0, 'loss 2.0', 2), line(1, 'loss nan', 3)]
  expect(differing(all, 2).map((l) => l.text)).toEqual(['loss 2.0', 'loss nan'])
  expect(differing(all, 1)).toEqual(all)
  // Once a loss is printed no two lines are the same: numbers are not compared.
  const steps = [line(0, '[rank0] step 12/100 loss=0.3151 1.2e-4', 4), line(1, '[rank1] step 12/100 loss=0.3198 1.1e-04', 5), line(0, 'loss: 1', 6), line(1, 'loss:  2', 7), line(1, 'retry 3', 8)]
  expect(differing([...all, ...steps], 2).map((l) => l.text)).toEqual(['loss 2.0', 'loss nan', 'retry 3'])
})

test('lines of several ranks stand in the order in which they were printed', () => {
  expect(timed('2026-11-23T09:30:05.120Z step 1')).toEqual({ text: 'step 1', at: Date.parse('2026-11-23T09:30:05.120Z') })
  expect(timed('- step 1')).toEqual({ text: 'step 1' })
  expect(timed('- a list')).toEqual({ text: 'a list' })
  expect(timed('step 1 of an older agent')).toEqual({ text: 'step 1 of an older agent' })
  const line = (rank: number, at: number, key: number) => ({ rank, text: '', key, at })
  const all = [line(0, 10, 0), line(0, 30, 1), line(0, 30, 2), line(1, 20, 3), line(1, 30, 4)]
  expect(merged(all).map((l) => l.key)).toEqual([0, 3, 1, 2, 4])
  const late = [line(1, 10, 0), line(1, 20, 1), line(0, 10, 2), line(0, 20, 3)] // rank 0 answered last
  expect(merged(late).map((l) => l.key)).toEqual([2, 0, 3, 1])
  const old = [{ rank: 1, text: '', key: 0 }, { rank: 0, text: '', key: 1 }] // without times they stay as they came
  expect(merged(old)).toBe(old)
})

test('the line that names an error is found in the end of a log', () => {
  expect(errorLine(['Traceback (most recent call last):', '  raise ValueError', 'torch.cuda.OutOfMemoryError: CUDA out of memory.', '', 'ending'])).toBe('torch.cuda.OutOfMemoryError: CUDA out of memory.')
  expect(errorLine(['all is well', 'ran without error'])).toBeUndefined()
})

test('events name what they make out of date', () => {
  expect(topicsOf({ topic: 'job', job_id: 'j' })).toContainEqual(['job', 'j'])
  expect(topicsOf({ topic: 'node', node_id: 'n' })).toContainEqual(['nodes'])
  expect(topicsOf({ topic: 'unheard-of' })).toEqual([])
})

test('the event stream is read line by line, wherever it is cut', async () => {
  const bytes = new TextEncoder().encode('{"index":1}\n{"event":{"id":"事件"},"index":2}\n')
  const body = new ReadableStream<Uint8Array>({
    start(c) {
      for (const byte of bytes) c.enqueue(new Uint8Array([byte]))
      c.close()
    },
  })
  const got: Line[] = []
  await lines(body, (line) => got.push(line))
  expect(got.map((line) => line.index)).toEqual([1, 2])
  expect(got[1]!.event!.id).toBe('事件')
})

test('the form writes job files that mean what was typed', () => {
  expect(text('a"b\\c ${x} %{y}\n')).toBe('"a\\"b\\\\c $${x} %%{y}\\n"')
  const file = compose({ ...simple, nodes: 2, cards: 8, mode: 'pytorch', image: 'img:1' })
  expect(file).toContain('distributed "pytorch" {}')
  expect(file).toContain('driver  = "docker"')
})

test('diagnostics know their line', () => {
  expect(lineOf({ code: 'invalid', id: 'x', params: { line: '8' } })).toBe(8)
  expect(lineOf({ code: 'invalid', id: 'x' })).toBe(0)
})

const attempt = (number: number, times: Partial<Attempt>): Attempt => ({ job_id: 'j', subjob: 0, create_index: 0, modify_index: 0, number, state: 'ended', exit_code: 0, spec: 0, allocs: [], placed_at: null, ...times })
const t = (s: number) => new Date(s * 1000).toISOString()

test('the life of a job is parted without gaps', () => {
  const parts = segments(0, [attempt(1, { placed_at: t(10), running_at: t(12), ending_at: t(50), ended_at: t(55), outcome: 'failed' }), attempt(2, { placed_at: t(60), running_at: t(63) })], false, 100_000)
  expect(parts.map((p) => [p.kind, p.from / 1000, p.to / 1000])).toEqual([['queued', 0, 10], ['preparing', 10, 12], ['running', 12, 50], ['stopping', 50, 55], ['queued', 55, 60], ['preparing', 60, 63], ['running', 63, 100]])
  expect(segments(0, [], false, 5000)).toHaveLength(1)
})

test('the life of a job names the steps of its preparation, and what it was resumed from', () => {
  const told = (id: string, at: number, number: number) => ({ id: 'event.alloc.' + id, index: 1, seq: 0, time: t(at), topic: 'alloc', attempt: number }) as Event
  const events = [told('prechecked', 11, 1), told('prechecked', 12, 1), told('image_pulled', 30, 1), told('data_prepared', 20, 1), told('running', 33, 1), told('prechecked', 61, 2)]
  const parts = segments(0, [attempt(1, { placed_at: t(10), running_at: t(33), ending_at: t(50), ended_at: t(55), outcome: 'lost', checkpoint_at: t(40) }), attempt(2, { placed_at: t(60), running_at: t(63) })], false, 100_000, events)
  expect(parts.map((p) => [p.kind, p.from / 1000, p.to / 1000])).toEqual([
    ['queued', 0, 10], ['precheck', 10, 12], ['data', 12, 20], ['image', 20, 30], ['preparing', 30, 33], ['running', 33, 50], ['stopping', 50, 55],
    ['queued', 55, 60], ['precheck', 60, 61], ['preparing', 61, 63], ['resumed', 63, 100],
  ])
  expect(segments(0, [attempt(1, { placed_at: t(1), running_at: t(2) })], false, 9000, [], true).at(-1)).toMatchObject({ kind: 'resumed', attempt: 1 })
  // A pause that lasts is no run; one that was over before the end is not told apart.
  expect(segments(0, [attempt(1, { placed_at: t(1), running_at: t(2), paused_at: t(5) })], false, 9000).map((p) => [p.kind, p.from, p.to])).toEqual([['queued', 0, 1000], ['preparing', 1000, 2000], ['running', 2000, 5000], ['paused', 5000, 9000]])
  expect(segments(0, [attempt(1, { placed_at: t(1), running_at: t(2), ending_at: t(7), ended_at: t(8), paused_at: t(5) })], true, 9000).map((p) => p.kind)).toEqual(['queued', 'preparing', 'running', 'stopping'])
})

test('a restart for its performance lost nothing', () => {
  const ended = (cause?: string) => attempt(1, { outcome: 'lost', cause: cause ? { id: cause } : undefined })
  expect([outcomeOf(ended('reason.slow')), outcomeOf(ended('reason.node_lost')), outcomeOf(ended()), outcomeOf(attempt(1, {}))]).toEqual(['moved', 'lost', 'lost', undefined])
  const [, , running] = segments(0, [attempt(1, { placed_at: t(1), running_at: t(2), ending_at: t(7), ended_at: t(8), outcome: 'lost', cause: { id: 'reason.slow' } })], true, 9000)
  expect(running).toMatchObject({ outcome: 'moved' })
})

test('a name on the wall keeps its end', () => {
  expect([shortened('gpu-017', 40, 60), shortened('gpu-node-0117', 65, 60), shortened('gpu-node-0117', 65, 30), shortened('gpu', 18, 3)]).toEqual(['gpu-017', '…u-node-0117', '…-0117', ''])
})

test('filters, which the address holds', () => {
  const job = { id: 'abc123', name: 'Train-7', state: 'failed', user: 'ann', project: 'vision', priority: 'urgent', code: ['yolo', 'favorite/tools'], specs: ['H800'], output: 'ann/exp-7', reason: { id: 'reason.exit', params: { code: '3' } }, wait: { id: 'wait.cards' } } as unknown as JobSummary
  const passes = (address: string) => keeps(job, readFilter(new URLSearchParams(address)))
  for (const yes of ['', 'text=train', 'text=abc1', 'state=failed,queued', 'user=ann&project=vision', 'code=yolo', 'code=favorite/tools', 'spec=H800', 'output=exp-7', 'cause=reason.exit', 'priority=urgent']) expect(passes(yes), yes).toBe(true)
  for (const no of ['text=eval', 'state=queued', 'user=bob', 'pool=a', 'code=yol', 'spec=A800', 'output=exp-8', 'cause=wait.cards', 'priority=normal']) expect(passes(no), no).toBe(false)
  expect(keeps({ ...job, state: 'queued' }, readFilter(new URLSearchParams('cause=wait.cards')))).toBe(true)
  expect(readFilter(new URLSearchParams('state=running,<b>,')).states).toEqual(['running'])
})

test('differences read as spans with a sign', () => {
  expect(['20.548257334s', '-18.536591912s', '1h2m3.5s', '-1h0m0s', '350ms', '0s', ''].map(difference)).toEqual(['+21 s', '−19 s', '+1 h 2 min', '−1 h', '–', '–', '–'])
  expect(['1h0m0s', '36h30m0s', '0s', 'soon'].map(spelled)).toEqual(['1 h', '36 h 30 min', '0s', 'soon'])
})

test('a table draws what is seen and some more, in the order of the address', () => {
  for (const [top, count] of [[0, 10_000], [330, 10_000], [330_000, 10_000], [1e9, 10_000], [500, 3], [-50, 3], [0, 0]] as const) {
    const { first, end } = windowOf(top, 600, count)
    const from = Math.min(count, Math.floor(Math.max(0, top) / 33))
    const to = Math.min(count, Math.ceil((Math.max(0, top) + 600) / 33))
    expect(first, `${top} of ${count}`).toBeLessThanOrEqual(from)
    expect(end, `${top} of ${count}`).toBeGreaterThanOrEqual(to)
    expect(end - first).toBeLessThan(80)
  }
  expect(widthsOf([{ width: 100 }, { width: 200, grows: true }], 500, 36).map((one) => one.width)).toEqual([100, 364])
  expect(widthsOf([{ width: 100 }, { width: 200 }], 400).map((one) => one.width)).toEqual([150, 250])
  expect(widthsOf([{ width: 100 }, { width: 200, grows: true }], 50).map((one) => one.width)).toEqual([100, 200])
  const columns = [{ key: 'n', title: '', width: 1, compare: (a: number, b: number) => a - b, cell: String }]
  expect(sorted([2, 3, 1], columns, 'n')).toEqual([1, 2, 3])
  expect(sorted([2, 3, 1], columns, '-n')).toEqual([3, 2, 1])
  expect(sorted([2, 3, 1], columns, 'constructor')).toEqual([2, 3, 1])
  expect(['', 'n', '-n', 'm'].map((order) => nextOrder(order, 'n'))).toEqual(['n', '-n', '', 'n'])
})

test('the palette shows first what begins with the text', () => {
  const found = matching([{ label: 'big-train' }, { label: 'train' }, { label: 'other' }], 'train')
  expect(found.map((f) => f.label)).toEqual(['train', 'big-train'])
})

test('held cards are said by their job, in runs', () => {
  const card = (index: number, job = '', healthy = true) => ({ device: 'd' + index, index, healthy, used: !!job, job, text: `${index}:sick` })
  expect(heldText([card(0, 'train'), card(1, 'train'), card(2), card(3, 'digits'), card(4, 'train'), card(5, '', false)], 'other project')).toBe('train 0–1, 4 · digits 3 · 5:sick')
  expect(heldText(undefined, '')).toBe('')
})

test('the step is that of the newest attempt', () => {
  const rank = (attempt: number, ...steps: number[]) => ({ alloc_id: 'a', attempt, rank: 0, node: 'n', series: [{ name: 'loss', source: 'log', count: 1, min: 0, max: 1, last: { step: 1, at: null, value: 1 }, points: steps.map((step) => ({ step, at: null, value: 1 })) }] })
  expect(stepOf({ ranks: [rank(1, 900), rank(2, 10, 20), rank(2, 15)] }, { number: 2 } as Attempt)).toBe(20)
  expect(stepOf({ ranks: [rank(1, 900)] }, { number: 2 } as Attempt)).toBeUndefined()
  expect(stepOf(undefined, undefined)).toBeUndefined()
})

const fleet = (nodes: number, cards: number, change: (i: number, d: number) => Partial<{ used: boolean; sick: boolean }> = () => ({}), more: (i: number) => object = () => ({})) =>
  Array.from({ length: nodes }, (_, i) => ({
    id: `n${i}`, name: `gpu-${i}`, pool: 'train', status: 'ready', eligibility: 'eligible', capacity: { cpu: 1, memory: 1 },
    used: { cpu: 0, memory: 0, allocs: 1, devices: Object.fromEntries(Array.from({ length: cards }, (_, d) => [d, d]).filter(([, d]) => change(i, d!).used).map(([, d]) => [`d${d}`, 'a'])) },
    devices: Array.from({ length: cards }, (_, d) => ({ id: `d${d}`, index: d, kind: 'nvidia/gpu', model: 'H800', memory: 1, healthy: !change(i, d).sick, numa_node: 0 })), ...more(i),
  }) as unknown as NodeSummary)

test('a timeline shows windows of maintenance, and names beside short bars', () => {
  const bar = (from: number, to: number, name: string): Bar => ({ kind: 'running', job_id: name, job_name: name, project: 'p', subjob: 0, from: t(from), to: t(to), p50: null, p90: null })
  const timeline: Timeline = { from: t(0), to: t(100), rows: [{ node_id: 'n', node: 'gpu-0', pool: 'p', bars: [bar(0, 2, 'short'), bar(30, 32, 'tight'), bar(34, 90, 'long')] }, { node_id: 'm', node: 'gpu-1', pool: 'p', bars: [] }] }
  const window = (from: number, to: number, ...names: string[]) => ({ id: 'w', start: t(from), end: t(to), names, running: [] }) as unknown as MaintenanceDetail
  const shut = closed(timeline, [window(50, 200, 'gpu-1'), window(-20, 10, 'gpu-0', 'gpu-1'), window(100, 120, 'gpu-0')], 1130)
  expect(shut.map((c) => [c.row.node, c.x, c.w])).toEqual([['gpu-0', 130, 100], ['gpu-1', 630, 500], ['gpu-1', 130, 100]])
  const placed = boxes(timeline, 1130)
  expect([...outside(placed, 1130)].map(([box, room]) => [box.bar.job_name, room])).toEqual([['short', 274]])
})

test('the queue in one sentence, and a window as it is asked for', () => {
  const say = ((key: string, values?: Record<string, unknown>) => key.split('.')[1] + (values ? JSON.stringify(values) : '')) as never
  const entry = (verdict: string, at?: number) => ({ forecast: { verdict, p50: at === undefined ? null : t(at) } }) as unknown as QueueEntry
  expect(queueSentence([], 0, say)).toBe('empty')
  expect(queueSentence([entry('never')], 0, say)).toContain('truth_unknown')
  expect(queueSentence([entry('later', 900), entry('never'), entry('later', 600)], 0, say)).toContain('"time":"10 min')
  expect(queueSentence([entry('later', 900), entry('now')], 0, say)).toContain('truth_now')
  const from = '2026-12-01T22:00'
  const to = '2026-12-02T02:00'
  const iso = { start: new Date(from).toISOString(), end: new Date(to).toISOString() }
  expect(requestOf(' gpu-03, gpu-04 ', from, to, ' firmware ', false)).toEqual({ nodes: ['gpu-03', 'gpu-04'], ...iso, reason: 'firmware' })
  expect(requestOf('pool:a800', from, to, '', true)).toEqual({ pool: 'a800', ...iso, keep_running: true })
  expect(requestOf('*', from, to, '', false)).toEqual({ all: true, ...iso })
})

test('questions that people ask of the wall', () => {
  const nodes = fleet(1, 5, (_, d) => ({ used: d === 0 }))
  const measured = (use: number | undefined, user: string) => [{ id: 'n0', devices: [{ id: 'd0', owner: { user, job_id: 'j' }, gauges: use === undefined ? undefined : { utilization_ratio: use } }, { id: 'd1', gauges: { utilization_ratio: 0 } }] }] as unknown as NodeDevices[]
  const kept = (use: number | undefined, user: string, asks: string) => ['', 'mine', 'unused', 'idle', 'fault', 'free4', 'free', 'reserved', 'H800', 'A100'].filter((show) => keepsTile(cellsOf(nodes, [], measured(use, user))[0]!, show, asks))
  expect(kept(0, 'ann', 'ann')).toEqual(['', 'mine', 'unused', 'free4', 'free', 'H800'])
  expect(kept(0.9, 'ann', 'li')).toEqual(['', 'free4', 'free', 'H800'])
  expect(kept(undefined, 'ann', '')).toEqual(['', 'free4', 'free', 'H800'])
  expect(counted(cellsOf(nodes, [], measured(0, 'ann')), 'ann')).toEqual({ mine: 1, free: 4, unused: 1, reserved: 0, fault: 0, free4: 1, idle: 0 })
  const promised = fleet(1, 2, undefined, () => ({ used: { cpu: 0, memory: 0, allocs: 0, claim: 'job' } }))
  expect(counted(cellsOf(promised, []))).toMatchObject({ free: 0, reserved: 2, idle: 1 })
})

test('the sentence above the wall, and what one asks next', () => {
  const t = (key: string, values?: Record<string, unknown>) => key + (values ? JSON.stringify(values) : '')
  const tiles = cellsOf(fleet(4, 8, (i, d) => ({ used: i === 0 || (i === 1 && d < 2), sick: i === 1 && d === 7 }), (i) => (i === 3 ? { status: 'lost' } : {})), [])
  expect(sumsOf(tiles)).toEqual({ cards: 32, used: 10, free: 8 + 5, faults: [{ node: 'gpu-1', index: 7 }], away: ['gpu-3'] })
  expect(sentence(sumsOf(tiles), 4, t)).toBe('cluster.truth{"used":10,"cards":32}cluster.commacluster.truth_free{"count":13}')
  expect(largestGang(tiles)).toEqual({ model: 'H800', nodes: 1, cards: 8 })
  expect(largestGang(tiles.slice(0, 2))).toEqual({ model: 'H800', nodes: 1, cards: 5 })
  expect(largestGang(tiles.slice(0, 1))).toBeUndefined()
  expect(second(sumsOf(tiles), tiles, t)).toBe('cluster.gang{"nodes":"short.nodes{\\"count\\":1}","cards":8,"model":"H800"} cluster.one_fault{"node":"gpu-1","card":7} cluster.away{"count":1,"node":"gpu-3"}')
  const bare = cellsOf(fleet(3, 0), [])
  expect(sentence(sumsOf(bare), 3, t)).toBe('cluster.no_cards{"count":3}')
})

test('tiles stand together by pool, rack, model and project', () => {
  const tiles = cellsOf(fleet(4, 2, undefined, (i) => ({ pool: i < 3 ? 'b' : 'a', topology: i === 0 ? [] : ['hall', `rack-${11 - i}`] })), [])
  tiles[1]!.cells = tiles[1]!.cells.map((cell) => ({ ...cell, project: 'vision' }))
  const names = (by: 'pool' | 'rack' | 'model' | 'project') => groupsOf(tiles, by).map((group) => [group.name, group.tiles.length])
  expect(names('pool')).toEqual([['a', 1], ['b', 3]])
  expect(names('rack')).toEqual([['hall / rack-8', 1], ['hall / rack-9', 1], ['hall / rack-10', 1], ['', 1]])
  expect(names('model')).toEqual([['H800', 4]])
  expect(names('project')).toEqual([['vision', 1], ['', 3]])
})

test('the wall at a moment to come has what the forecast foresees', () => {
  const tiles = cellsOf(fleet(1, 4, (_, d) => ({ used: d < 2 })), [{ id: 'n0', cards: [{ device: 'd0', job_id: 'x', job: 'x' }, { device: 'd1', job_id: 'y', job: 'y' }] }] as unknown as AvailableNode[])
  const bar = (kind: string, job: string, from: number, to: number, devices: number): Bar => ({ kind, job_id: job, job_name: job, project: 'p', subjob: 0, from: t(from), to: to ? t(to) : null, p50: null, p90: null, devices })
  const timeline: Timeline = { from: t(0), to: t(100), rows: [{ node_id: 'n0', node: 'gpu-0', pool: 'train', bars: [bar('running', 'x', 0, 50, 1), bar('running', 'y', 0, 0, 1), bar('forecast', 'z', 50, 90, 3), bar('reserved', 'w', 95, 0, 1)] }] }
  const jobs = (at: number) => atMoment(tiles, timeline, at * 1000)[0]!.cells.map((cell) => (cell.held ? cell.job : '') + (cell.expected ? '*' : ''))
  expect(jobs(10)).toEqual(['x', 'y', '', ''])
  expect(jobs(50)).toEqual(['z*', 'y', 'z*', 'z*'])
  expect(jobs(92)).toEqual(['*', 'y', '', ''])
  expect(jobs(96)).toEqual(['w*', 'y', '', ''])
})

test('overlapping bars of a node get lanes of their own', () => {
  const bar = (from: number, to: number): Bar => ({ kind: 'running', job_id: 'j', job_name: 'j', project: 'p', subjob: 0, from: t(from), to: t(to), p50: null, p90: null })
  expect(lanes([bar(0, 10), bar(5, 15), bar(10, 20)])).toEqual([0, 1, 0])
  const timeline: Timeline = { from: t(0), to: t(100), rows: [{ node_id: 'n', node: 'n', pool: 'p', bars: [bar(0, 50), { ...bar(50, 0), to: null }] }] }
  expect(tops(timeline)).toEqual([22, 44])
  expect(tops({ ...timeline, rows: [{ ...timeline.rows![0]!, bars: [bar(0, 50), bar(10, 50), bar(20, 50)] }, timeline.rows![0]!] })).toEqual([22, 71, 93]) // as high as three lanes need
  const [first, second] = boxes(timeline, 1130)
  expect([first!.x, first!.w]).toEqual([130, 500])
  expect(second!.x + second!.w).toBe(1130)
})

test('four cards fill a screen, and ten thousand fit one', () => {
  const plan = (nodes: number, width = 1380, height = 700) => planOf(groupsOf(cellsOf(fleet(nodes, 8, (_, d) => ({ used: d === 0, sick: d === 3 })), []), 'pool'), width, height)
  expect([1, 16, 125, 1250].map((nodes) => [plan(nodes).cell, plan(nodes).named, plan(nodes).height <= 700])).toEqual([[44, true, true], [44, true, true], [18, true, true], [6, false, true]])
  const large = plan(125)
  const first = large.groups[0]!.tiles[0]!
  expect(cellAt(large, first.x + 5, first.y + 20)?.cell?.index).toBe(0)
  expect(cellAt(large, first.x + 5 + large.cell, first.y + 20 + large.cell)?.cell?.index).toBe(5)
  expect(cellAt(large, first.x + large.tile.w + 1, first.y + 20)).toBeUndefined()
  const narrow = plan(1250, 360, 500)
  expect(narrow.groups[0]!.tiles.filter((at) => at.x + narrow.tile.w > 360)).toEqual([])
})

test('a command line and the variables of a file say the same', () => {
  const file = 'variable "nodes" {}\nvariable "note" {\n}\njob "x" {}\n'
  const names = variablesOf(file)
  expect(names).toEqual(['nodes', 'note'])
  for (const given of [{}, { nodes: '3' }, { nodes: '3', note: `it's "two" words` }] as Record<string, string>[]) {
    expect(readLine(runLine(names, given), names)).toEqual(given)
  }
  expect(readLine('nomadlike job run -var=nodes=4 --var other=1 job.hcl', names)).toEqual({ nodes: '4' })
  expect(words(`a 'b c' "d \\"e" f\\ g`)).toEqual(['a', 'b c', 'd "e', 'f g'])
  expect(runLine([], {}, { name: 'my job', step: 40 })).toBe("nomadlike job resume -edit -step 40 'my job'")
  expect(heredoc('a\nEOF\n')).toBe("cat > job.hcl <<'EOF_'\na\nEOF\nEOF_\n")
})

test('environments and sizes are spelled so that they are read back', () => {
  const env = { A: '1', B: `two 'words'`, C: 'x=y' }
  expect(readEnv(envText(env))).toEqual(env)
  expect(['1000B', '1KiB', '1536MiB', '64GiB']).toEqual([1000, 1024, 1536 * 2 ** 20, 64 * 2 ** 30].map(sizeText))
})

test('chosen machines are written in order', () => {
  expect(vipChanges([{ node: 'a' }, { node: 'b', busy: 'kill' }], 4)).toEqual([
    { at: 'vip.machine[0]#', value: 'a' },
    { at: 'vip.machine[0].busy', value: 'wait' },
    { at: 'vip.machine[1]#', value: 'b' },
    { at: 'vip.machine[1].busy', value: 'kill' },
    { at: 'vip.machine[3]#', value: null },
    { at: 'vip.machine[2]#', value: null },
    { at: 'nodes', value: 2 },
  ])
  const empty = vipFile({ ...simple, name: 'boss' })
  expect(noMachines(empty)).toBe(true)
  const one = empty.replace('  vip {\n', '  vip {\n    machine "a" {\n      busy = "kill"\n    }\n')
  expect(noMachines(one)).toBe(false)
  expect(withoutMachines(one)).toBe(empty)
  expect(askChanges({ for: '1h', silence: 'kill', message: '' })).toEqual([{ at: 'vip.ask.for', value: '1h' }, { at: 'vip.ask.silence', value: 'kill' }, { at: 'vip.ask.message', value: null }])
  expect(askChanges()).toEqual([{ at: 'vip.ask#', value: null }])
})

test('deeds fit the state and say their command line', () => {
  expect(deedsFor('running')).toContain('pause')
  expect(deedsFor('paused')).toContain('continue')
  expect(deedsFor('failed')).toEqual(['resume', 'delete', 'annotate'])
  expect(commandLine('a', { deed: 'annotate', add: ['x', '消融'], remove: ['y'], note: "it's bad" })).toBe("nomadlike job tag a +x '+消融' -y\nnomadlike job note a 'it'\\''s bad'")
  expect(commandLine('a', { deed: 'annotate', note: '' })).toBe("nomadlike job note a ''")
  expect(commandLine('a', { deed: 'throttle', idle: 100, busy: 500 })).toBe('nomadlike job throttle a idle:100')
  expect(commandLine('a', { deed: 'throttle', idle: 100, busy: 200 })).toBe('nomadlike job throttle -busy 200ms a idle:100')
  expect(commandLine('a', { deed: 'throttle', idle: 0 })).toBe('nomadlike job throttle a off')
  expect(commandLine('a b', { deed: 'finish', reason: 'good enough' })).toBe("nomadlike job finish -reason 'good enough' 'a b'")
  expect(commandLine('a', { deed: 'resume', step: 400 })).toBe('nomadlike job resume -step 400 a')
})

test('a straggler is a rank far behind the middle of a gang that works', () => {
  const gang = (...use: number[]) => use.map((u, rank) => ({ rank, devices: [{ gauges: { utilization_ratio: u } }] }) as unknown as RankUsage)
  const value = (r: RankUsage) => r.devices![0]!.gauges!.utilization_ratio!
  expect(stragglers(gang(0.97, 0.95, 0.3, 0.96), value)).toEqual([2])
  expect(stragglers(gang(0.01, 0.0, 0.02), value)).toEqual([])
  expect(stragglers(gang(0.9, 0.1), value)).toEqual([])
})

test('states and outcomes inside of a reason are spoken', async () => {
  const { default: i18next } = await import('i18next')
  await i18next.init({ lng: 'zh', resources: { zh: { translation: { outcome: { lost: '节点丢失' }, priority: { urgent: '紧急' } } } }, interpolation: { escapeValue: false } })
  setCatalogue({ 'event.attempt.ending': '第 {attempt} 轮结束：{outcome}', 'event.job.priority': '改为 {to}', 'event.job.time_limit': '改为 {to}' })
  expect(reasonText({ id: 'event.attempt.ending', params: { attempt: '2', outcome: 'lost' } })).toBe('第 2 轮结束：节点丢失')
  expect(reasonText({ id: 'event.attempt.ending', params: { attempt: '2', outcome: 'new' } })).toBe('第 2 轮结束：new')
  expect(reasonText({ id: 'event.job.priority', params: { to: 'urgent' } })).toBe('改为 紧急')
  expect(reasonText({ id: 'event.job.time_limit', params: { to: 'urgent' } })).toBe('改为 urgent')
  setCatalogue({})
})

test('curves of ranks and attempts stand over one axis', () => {
  const point = (step: number, value: number) => ({ step, at: `2026-11-21T10:00:${String(step).padStart(2, '0')}Z`, value })
  const series = (name: string, points: ReturnType<typeof point>[], source = 'log') => ({ name, source, count: points.length, min: 0, max: 1, last: points.at(-1)!, points })
  const ranks = [
    { alloc_id: 'a', attempt: 2, rank: 0, node: 'n', series: [series('lr', [point(1, 0.1), point(2, 0.1), point(3, 0.1)]), series('loss', [point(2, 0.5), point(3, 0.4)])] },
    { alloc_id: 'b', attempt: 1, rank: 0, node: 'n', series: [series('loss', [point(1, 0.9), point(2, 0.6)]), series('loss', [point(1, 0.8)], 'runs/x')] },
  ]
  expect(namesOf(ranks)).toEqual(['loss', 'loss · runs/x', 'lr'])
  const { x, lines } = linesOf(ranks, 'loss', false, (rank) => String(rank.attempt))
  expect(x).toEqual([1, 2, 3])
  expect(lines).toEqual([{ name: '2', values: [null, 0.5, 0.4] }, { name: '1', values: [0.9, 0.6, null] }])
  expect(linesOf(ranks, 'loss', true, () => '').x[1]! - linesOf(ranks, 'loss', true, () => '').x[0]!).toBe(1)
})

test('lengths of time are in the language of the page, and never none when they are short', async () => {
  await i18next.changeLanguage('en')
  expect(span(300)).toBe('< 1 s')
  await i18next.changeLanguage('zh')
  expect([300, 61_000, 3 * 3_600_000 + 720_000, 50 * 3_600_000].map(span)).toEqual(['< 1 秒', '1 分 1 秒', '3 小时 12 分', '2 天 2 小时'])
  await i18next.changeLanguage('en')
})
