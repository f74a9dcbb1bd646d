import { cleanup, render, screen } from '@testing-library/react'
import i18next from 'i18next'
import { initReactI18next } from 'react-i18next'
import { MemoryRouter } from 'react-router'
import { afterEach, beforeAll, expect, test } from 'vitest'
import { colorOf } from '../src/look'
import { heldText } from '../src/pages/create'
import { folded } from '../src/pages/job/story'
import { Holders } from '../src/parts/forecast'
import { spells } from '../src/parts/history'
import { boxes, ended } from '../src/parts/timeline'
import type { Event, Timeline } from '../src/types'
import { en } from './words'

beforeAll(() => i18next.use(initReactI18next).init({ lng: 'en', resources: { en: { translation: en } }, interpolation: { escapeValue: false } }))
afterEach(cleanup)

const hour = 3_600_000
const t0 = Date.parse('2026-11-23T12:00:00Z')
const at = (hours: number) => new Date(t0 + hours * hour).toISOString()

test('no job has the red of faults, the orange of warnings or the green of what went well', () => {
  const hues = new Set<number>()
  for (let i = 0; i < 500; i++) for (const dark of [false, true]) hues.add(Number(/^hsl\((\d+) /.exec(colorOf('job-' + i, dark))![1]))
  expect(hues.size).toBe(8)
  for (const hue of hues) expect(hue < 50 || hue > 330 || (hue > 80 && hue < 155), String(hue)).toBe(false)
})

test('a reserved start is drawn as long as its job is expected to run', () => {
  const bar = (kind: 'reserved' | 'forecast', job_id: string, more: object) => ({ kind, job_id, job_name: job_id, project: 'p', subjob: 0, from: null, to: null, p50: null, p90: null, ...more })
  const timeline = (bars: object[]) => ({ from: at(0), to: at(24), rows: [{ node_id: 'n', node: 'n', pool: 'p', bars }] }) as unknown as Timeline
  const known = ended(timeline([bar('reserved', 'a', { from: at(2) }), bar('forecast', 'a', { from: at(3), to: at(4) })]))
  expect(known.rows![0]!.bars![0]!.to).toBe(at(3))
  const width = 130 + 24 * 100
  const [reserved] = boxes(known, width)
  expect([reserved!.x, reserved!.w]).toEqual([130 + 200, 100])
  const [open] = boxes(ended(timeline([bar('reserved', 'b', { from: at(2) })])), width)
  expect(open!.w).toBeLessThan(100) // nobody knows its end: a beginning, and no bar to the edge
  const [soon] = boxes(ended(timeline([bar('reserved', 'c', { p50: at(5) })])), width)
  expect(soon!.x).toBe(130 + 500)
})

test('one bad minute is one bad minute', () => {
  const minutes = Array.from({ length: 60 }, (_, i) => new Date(t0 + i * 60_000).toISOString())
  const values = minutes.map((_, i) => (i === 7 || (i >= 30 && i < 33) ? 0 : i === 8 ? null : 1))
  expect(spells(values, minutes, 60_000).map((spell) => spell.map((time) => time.slice(11, 16)))).toEqual([['12:07', '12:08'], ['12:30', '12:33']])
  expect(spells([], [], 60_000)).toEqual([])
})

test('what every rank tells when it starts is folded, and no warning is', () => {
  let index = 0
  const event = (id: string, more: Partial<Event> = {}) => ({ id, index: ++index, seq: 0, topic: 'alloc', time: at(index), job_id: 'j', attempt: 1, ...more }) as Event
  const ranks = Array.from({ length: 8 }, () => [event('event.alloc.prechecked'), event('event.alloc.environment'), event('event.alloc.running')]).flat()
  const told = folded([event('event.job.submitted'), ...ranks, event('event.alloc.environment_differs', { severity: 'warn' }), event('event.alloc.environment', { severity: 'warn' }), event('event.alloc.environment', { attempt: 2 })])
  expect(told.map((one) => ('id' in one ? one.id : one.details.length))).toEqual(['event.job.submitted', 24, 'event.alloc.environment_differs', 'event.alloc.environment', 1])
  expect(folded([event('event.alloc.running', { attempt: 3 })])).toHaveLength(1)
})

test('a holder that one may not see stands as another project, never as blank', () => {
  render(<MemoryRouter><Holders holders={[{ id: 'j1', name: 'train', user: 'ann' }, { id: '' }]} /></MemoryRouter>)
  expect(screen.getByText('train').closest('a')!.getAttribute('href')).toBe('/jobs/j1')
  expect(screen.getByText(/other project/).closest('a')).toBeNull()
  const card = (index: number, job = '') => ({ device: 'd' + index, index, healthy: true, used: true, job, text: `${index}:` })
  expect(heldText([card(0, 'train'), card(1), card(2)], 'other project')).toBe('train 0 · other project 1–2')
})
