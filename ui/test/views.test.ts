import { beforeEach, expect, test } from 'vitest'
import { signedTags, changedTags } from '../src/parts/annotate'
import { comparedOf, curvesOf, metricNames, subjobResults } from '../src/parts/compare'
import { finds } from '../src/parts/filters'
import { sorted, type Column } from '../src/parts/grid'
import { matching } from '../src/parts/finder'
import { scaleOf } from '../src/parts/parallel'
import { figureIn, figureText, namesIn } from '../src/parts/results'
import { countsText, gridOf } from '../src/parts/strip'
import { columnsOf, encodeColumns, figureOf, linkOf, paramsOf, readViews, withView } from '../src/parts/views'
import type { JobDiff, JobMetrics, JobSummary, MetricResult } from '../src/types'

const job = (more: Partial<JobSummary> = {}): JobSummary => ({ id: 'abcdef', name: 'train-7', project: 'vision', user: 'li', type: 'training', priority: 'normal', nodes: 1, subjobs: 1, submitted_at: null, state: 'running', counts: {}, attempt: 1, exit_code: 0, ...more }) as JobSummary

test('a search finds by words, tags and fields', () => {
  const one = job({ tags: ['paper-3', '消融'], note: 'diverged; 学习率太高', code: ['yolo'], specs: ['A800'] })
  for (const text of ['', 'train', 'TRAIN div', 'tag:Paper-3', 'tag:消融 学习率', 'abc', 'user:li project:vision', 'code:yolo card:a800', 'tag:', 'paper']) expect(finds(one, text), text).toBe(true)
  for (const text of ['tag:paper', 'user:l', 'what:train', 'train other', 'bcdef']) expect(finds(one, text), text).toBe(false)
})

test('a view is its filters, order and columns, in the address', () => {
  expect(paramsOf(new URLSearchParams('text=tag:a&view=old&sort=-min:loss'), ['state', 'min:loss,train'])).toBe('columns=state%2Cmin%3Aloss%252Ctrain&sort=-min%3Aloss&text=tag%3Aa')
  const kept = new URLSearchParams(paramsOf(new URLSearchParams(), ['state', 'min:loss,train', 'last:a%b']))
  expect(columnsOf(kept.get('columns'), ['state', 'user'])).toEqual(['state', 'min:loss,train', 'last:a%b'])
  expect(columnsOf('state,gone,best:loss,last:,state', ['state'])).toEqual(['state'])
  expect(columnsOf(encodeColumns(Array.from({ length: 9 }, (_, i) => 'min:m' + i)), [])).toHaveLength(6)
  expect(columnsOf(null, ['state'])).toBeUndefined()
  expect(figureOf('max:val/acc')).toEqual({ key: 'max:val/acc', kind: 'max', name: 'val/acc' })
  expect([figureOf('state'), figureOf(':x'), figureOf('min:')]).toEqual([undefined, undefined, undefined])
  expect(linkOf("week's ablations", 'text=a')).toBe('/jobs?text=a&view=week%27s+ablations')
})

beforeEach(() => localStorage.clear())

test('views are kept by name, also those of before; what is no view is dropped', () => {
  expect(readViews()).toEqual({})
  localStorage.setItem('nomadlike.jobs.filters', '{"mine":"user=li"}')
  expect(readViews()).toEqual({ mine: 'user=li' })
  localStorage.setItem('nomadlike.jobs.views', '{"a":"x=1","b":7}')
  expect(readViews()).toEqual({ a: 'x=1' })
  localStorage.setItem('nomadlike.jobs.views', 'nonsense')
  expect(readViews()).toEqual({ mine: 'user=li' })
  expect(withView({ a: '1' }, '  b ', '2')).toEqual({ a: '1', b: '2' })
  expect(withView({ a: '1' }, '  ', '2')).toEqual({ a: '1' })
  const full = Object.fromEntries(Array.from({ length: 50 }, (_, i) => ['v' + i, '']))
  expect(Object.keys(withView(full, 'more', ''))).toHaveLength(50)
  expect(withView(full, 'v1', 'new').v1).toBe('new')
})

test('tags are changed by what a text says', () => {
  expect(changedTags(['a', 'b'], 'b，c  d')).toEqual({ add: ['c', 'd'], remove: ['a'] })
  expect(changedTags(['a'], ' a ')).toEqual({})
  expect(signedTags('+x y -z - +')).toEqual({ add: ['x', 'y'], remove: ['z'] })
})

const result = (name: string, last: number, min = last, max = last): MetricResult => ({ name, count: 1, min, max, last: { step: 1, at: null, value: last } }) as MetricResult

test('figures of jobs', () => {
  const results = new Map([['a', new Map([['loss', result('loss', 2, 1, 3)], ['acc', result('acc', 0.5)]])], ['b', new Map([['acc', result('acc', 0.7)]])]])
  expect(figureIn(results, 'a', { key: '', kind: 'min', name: 'loss' })).toBe(1)
  expect(figureIn(results, 'b', { key: '', kind: 'last', name: 'loss' })).toBeUndefined()
  expect(namesIn(results)).toEqual(['acc', 'loss'])
  expect(metricNames(results.values())).toEqual(['acc', 'loss'])
  expect([figureText(0.00012346), figureText(0.5), figureText(12345.6), figureText(undefined)]).toEqual(['0.0001235', '0.5', '12346', ''])
})

test('rows without a value stand last in either order', () => {
  const columns: Column<{ v?: number }>[] = [{ key: 'v', title: '', width: 1, cell: () => null, compare: (a, b) => a.v! - b.v!, known: (row) => row.v !== undefined }]
  const rows = [{ v: 2 }, {}, { v: 1 }]
  expect(sorted(rows, columns, 'v').map((row) => row.v)).toEqual([1, 2, undefined])
  expect(sorted(rows, columns, '-v').map((row) => row.v)).toEqual([2, 1, undefined])
})

test('find-anything knows tags', () => {
  const commands = [{ key: 'a', label: 'train-7 vision', also: 'tag:paper-3 diverged' }, { key: 'b', label: 'paper vision', also: '' }]
  expect(matching(commands, 'tag:paper').map((one) => one.key)).toEqual(['a'])
  expect(matching(commands, 'diverged train').map((one) => one.key)).toEqual(['a'])
})

test('a strip has a cell for each subjob, in at most four lines', () => {
  for (const count of [1, 59, 60, 61, 240, 1000, 10_000]) {
    const { columns, lines } = gridOf(count)
    expect(columns * lines).toBeGreaterThanOrEqual(count)
    expect(lines).toBeLessThanOrEqual(4)
  }
  expect(gridOf(60)).toEqual({ columns: 60, lines: 1 })
  const t = ((key: string) => key) as never
  expect(countsText(t, { succeeded: 3, queued: 61, failed: 0 })).toBe('61 state.queued · 3 state.succeeded')
})

test('what jobs differ in from the first stands side by side', () => {
  const diff = (differences: [string, string, string][], found: [string, string, string][] = []) => ({ differences: differences.map(([path, before, after]) => ({ path, before, after })), found: found.map(([path, before, after]) => ({ path, before, after })) }) as JobDiff
  expect(comparedOf([
    diff([['nodes', '1', '2'], ['tags', 'a', 'b'], ['task.command --lr', '0.1', '']]),
    undefined, // not answered yet
    diff([['nodes', '1', '4']], [['torch', '2.3', '2.4']]),
  ])).toEqual([
    { path: 'nodes', values: ['1', '2', '1', '4'] },
    { path: 'task.command --lr', values: ['0.1', '0.1', '0.1', '0.1'].map((value, i) => (i === 1 ? undefined : value)) },
    { path: 'torch', values: ['2.3', '2.3', '2.3', '2.4'] },
  ])
})

test('curves of jobs stand over one axis of steps', () => {
  const series = (values: [number, number][], source = 'log') => ({ name: 'loss', source, count: values.length, min: 0, max: 0, last: { step: 0, at: null, value: 0 }, points: values.map(([step, value]) => ({ step, at: null, value })) })
  const metrics = (ranks: unknown[]) => ({ ranks }) as JobMetrics
  const a = metrics([{ rank: 0, attempt: 2, series: [series([[2, 5], [3, 4]])] }, { rank: 0, attempt: 1, series: [series([[1, 9], [2, 8]]), series([[1, 0]], 'runs')] }, { rank: 7, attempt: 1, series: [series([[1, 1]])] }])
  const b = metrics([{ rank: 7, attempt: 1, series: [series([[3, 1]])] }])
  expect(curvesOf([{ name: 'a', metrics: a }, { name: 'b', metrics: b }, { name: 'c' }], 'loss')).toEqual({
    x: [1, 2, 3],
    lines: [{ name: 'a', values: [9, 5, 4] }, { name: 'b', values: [null, null, 1] }, { name: 'c', values: [null, null, null] }],
  })
  const found = subjobResults(metrics([{ subjob: 3, rank: 0, attempt: 2, series: [series([[1, 1]])] }, { subjob: 3, rank: 0, attempt: 1, series: [{ ...series([[1, 1]]), min: -9 }] }]))
  expect(found.get(3)!.get('loss')!.min).toBe(0)
})

test('axes of parallel coordinates: numbers by size, words in order', () => {
  expect(scaleOf(['1', '3', undefined, '2'])!.at('2')).toBe(0.5)
  expect(scaleOf(['0.001', '0.1', '10'])!.at('0.1')).toBeCloseTo(0.5)
  expect(scaleOf(['adam', 'sgd'])!.ticks).toEqual([{ at: 0, label: 'adam' }, { at: 1, label: 'sgd' }])
  expect(scaleOf(['1', '1', undefined])).toBeUndefined()
  expect(scaleOf(Array.from({ length: 13 }, (_, i) => 'w' + i))).toBeUndefined()
})
