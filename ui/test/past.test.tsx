import { fireEvent, render, screen } from '@testing-library/react'
import i18next from 'i18next'
import { initReactI18next } from 'react-i18next'
import { MemoryRouter } from 'react-router'
import { beforeAll, expect, test, vi } from 'vitest'
import { pastSentence } from '../src/pages/cluster'
import { cellsOf, counted, sumsOf, type Tile } from '../src/parts/cells'
import { NodeDay } from '../src/parts/holders'
import { Hours, hoursOf } from '../src/parts/hours'
import { atPast, covers, missingAt, missingText, numbers } from '../src/parts/past'
import type { NodeSummary, Past, PastNode, PastSpan } from '../src/types'
import { en } from './words'

beforeAll(async () => {
  await i18next.use(initReactI18next).init({ lng: 'en', resources: { en: { translation: en } }, interpolation: { escapeValue: false } })
})

const minute = 60_000
const began = Date.parse('2026-11-01T08:00:00Z')
const t = (minutes: number) => new Date(began + minutes * minute).toISOString()

const fleet = (nodes: number, cards: number, change: (i: number) => Partial<NodeSummary> = () => ({})): Tile[] =>
  cellsOf(Array.from({ length: nodes }, (_, i) => ({
    id: 'n' + i, name: 'gpu-' + i, pool: 'train', addr: '', rpc_addr: '', version: '', capacity: { cpu: 8, memory: 1 }, status: 'ready', eligibility: 'eligible', create_index: 1, modify_index: 1, register_index: 1, incarnation: 1,
    devices: Array.from({ length: cards }, (_, d) => ({ id: 'd' + d, index: d, kind: 'nvidia/gpu', model: 'H800', memory: 1, healthy: true, numa_node: 0 })),
    used: { node_id: 'n' + i, cpu: 8, memory: 1, allocs: 1, modify_index: 1, claim: 'promised', devices: { d0: 'of-today' } }, ...change(i),
  })) as NodeSummary[], [])

const span = (job: string, from: number, to: number, ...cards: number[]): PastSpan => ({ job_id: job, job, project: 'p-' + job, user: 'u-' + job, attempt: 1, cards, cpu: 2, from: t(from), to: to ? t(to) : null })
const node = (id: string, spans: PastSpan[], more: Partial<PastNode> = {}): PastNode => ({ node_id: id, node: 'gpu-' + id.slice(1), pool: 'train', cards: [0, 1, 2, 3].map((index) => ({ id: 'd' + index, index })), spans, ...more })

// drawn is a wall in letters: who held a card, x for one at fault, what is not known by
// the first letter of its reason behind a ?, and brackets around a node that took no work.
const drawn = (tiles: Tile[]) => tiles.map((tile) => {
  const cells = tile.cells.map((cell) => (cell.held ? cell.job || '#' : cell.sick ? 'x' : cell.unknown ? '?' + cell.unknown : '.')).join(' ')
  return tile.node.eligibility === 'cordoned' ? `(${cells})` : cells
})

const past: Past = {
  from: t(0), to: t(1440), more: 1,
  forgotten: [{ pool: 'train', cards: 3, nodes: 1, from: t(800), to: t(900) }],
  nodes: [
    node('n0', [span('a', 0, 100, 0, 1), span('b', 100, 0, 1, 2)], { outages: [{ card: 3, from: t(50), to: t(120) }, { from: null, to: t(10) }] }),
    node('n1', [span('c', 300, 400, 0)], { joined_at: t(200), complete_since: t(250) }),
    node('n2', [{ ...span('d', 10, 600, 0), unknown_cards: 1 }, { ...span('', 700, 750, 2), job_id: undefined, job: undefined, project: undefined, user: undefined }]),
    node('n9', [span('e', 0, 90)], { removed: true }),
  ],
}

test('the wall at a moment that is over has who held its cards, and says what nobody knows', () => {
  const tiles = fleet(4, 4)
  const at = (minutes: number) => drawn(atPast(tiles, past, began + minutes * minute))
  const absent = Array(4).fill('?absent').join(' ')
  const left = Array(4).fill('?left').join(' ') // the fourth node is not told
  expect(at(5)).toEqual(['(a a . .)', absent, '. . . .', left])
  expect(at(60)).toEqual(['a a . x', absent, 'd ?cards ?cards ?cards', left])
  expect(at(100)).toEqual(['. b b x', absent, 'd ?cards ?cards ?cards', left])
  expect(at(220)).toEqual(['. b b .', '?cut ?cut ?cut ?cut', 'd ?cards ?cards ?cards', left])
  expect(at(320)).toEqual(['. b b .', 'c . . .', 'd ?cards ?cards ?cards', left])
  expect(at(720)).toEqual(['. b b .', '. . . .', '. . # .', left])
  expect(at(850)).toEqual(['?forgotten b b ?forgotten', '?forgotten ?forgotten ?forgotten ?forgotten', '?forgotten ?forgotten ?forgotten ?forgotten', left])
  expect(at(1000)).toEqual(['. b b .', '. . . .', '. . . .', left])
})

test('a card that is held says from when to when, and nothing of today is left', () => {
  const [tile] = atPast(fleet(1, 4), past, began + 60 * minute)
  expect(tile!.cells[0]).toMatchObject({ held: true, owner: 'a', job: 'a', user: 'u-a', project: 'p-a', from: t(0), to: t(100) })
  const [later] = atPast(fleet(1, 4), past, began + 1000 * minute)
  expect(later!.cells[0]).toEqual({ id: 'd0', label: '0 H800', index: 0, held: false, sick: false, owner: '', unknown: undefined })
  expect(later!.cells[1]).toMatchObject({ owner: 'b', from: t(100), to: null })
  expect(counted([later!], 'u-b')).toMatchObject({ mine: 2, free: 2, reserved: 0, fault: 0, idle: 0 })
  expect(sumsOf(atPast(fleet(4, 4), past, began + 60 * minute))).toMatchObject({ cards: 12, used: 3, free: 1, unknown: 7, faults: [{ node: 'gpu-0', index: 3 }], away: [] })
})

test('a node without cards is as full as the cores that its ranks held', () => {
  const bare = (minutes: number) => atPast(fleet(2, 0), past, began + minutes * minute).map((tile) => [tile.cells[0]!.held, tile.cells[0]!.share, tile.cells[0]!.unknown])
  expect(bare(60)).toEqual([[true, 0.25, undefined], [false, 0, 'absent']])
  expect(bare(320)).toEqual([[true, 0.25, undefined], [true, 0.25, undefined]])
})

test('no cell holds what no span holds, and none is free of which not all is known', () => {
  let seed = 7
  const random = (n: number) => (seed = (seed * 48271) % 2147483647) % n
  const tiles = fleet(3, 4)
  for (let round = 0; round < 150; round++) {
    const world: Past = {
      from: t(0), to: t(100),
      nodes: [0, 1, 2].filter(() => random(6)).map((i) => node('n' + i, Array.from({ length: random(6) }, (_, job) => {
        const from = random(90)
        return { ...span('j' + job, from, random(3) ? from + 1 + random(40) : 0, random(4)), unknown_cards: random(4) ? undefined : 1 }
      }), { joined_at: random(3) ? undefined : t(random(50)), complete_since: random(3) ? undefined : t(random(50)) })),
      forgotten: random(3) ? [] : [{ pool: 'train', cards: 1, nodes: 1, from: t(random(50)), to: t(50 + random(50)) }],
    }
    for (let tick = 0; tick < 20; tick++) {
      const moment = began + random(100) * minute
      atPast(tiles, world, moment).forEach((tile, i) => {
        const told = world.nodes!.find((one) => one.node_id === 'n' + i)
        const spans = (told?.spans ?? []).filter((one) => Date.parse(one.from!) <= moment && (one.to === null || moment < Date.parse(one.to)))
        tile.cells.forEach((cell, d) => {
          const holders = spans.filter((one) => one.cards!.includes(d)).map((one) => one.job_id)
          expect(cell.held).toBe(holders.length > 0)
          if (cell.held) expect(holders).toContain(cell.owner)
          const sure = !!told && moment >= Date.parse(told.joined_at ?? t(0)) && moment >= Date.parse(told.complete_since ?? t(0)) && !spans.some((one) => one.unknown_cards) && !world.forgotten!.some((use) => covers(use, moment))
          if (!cell.held) expect(!cell.unknown).toBe(sure)
        })
      })
    }
  }
})

test('what nobody knows is said in words', () => {
  const say = (key: string, values?: Record<string, unknown>) => key.replace('cluster.', '') + (values ? JSON.stringify(values) : '')
  const tiles = (minutes: number) => atPast(fleet(4, 4), past, began + minutes * minute)
  const text = (minutes: number) => missingText(missingAt(tiles(minutes), past, began + minutes * minute), say)
  expect(text(60)).toBe('past_absent{"count":1,"node":"gpu-1"} past_left{"count":1,"node":"gpu-3"} past_cards{"count":1,"node":"gpu-2"} past_removed{"count":1}')
  expect(text(220)).toBe('past_cut{"count":1,"node":"gpu-1"} past_left{"count":1,"node":"gpu-3"} past_cards{"count":1,"node":"gpu-2"}')
  expect(text(850)).toBe('past_left{"count":1,"node":"gpu-3"} past_forgotten{"count":3}')
  expect(missingText(missingAt(tiles(1000).slice(0, 3), past, began + 1000 * minute), say)).toBe('')
  expect(pastSentence(sumsOf(tiles(60)), began, say)).toMatch(/^past_truth\{"time":"[^"]+","used":3,"cards":12\}commapast_free\{"count":1\}commapast_unknown\{"count":7\}$/)
  expect(pastSentence(sumsOf(atPast(fleet(1, 0), past, began)), began, say)).toMatch(/^past_no_cards/)
})

test('cards by their numbers', () => {
  const of = { ...node('n0', []), cards: [0, 1, 2, 2, 6].map((index) => ({ id: String(index), index })).concat([{ id: 'x', index: 0, gone: true } as never]) }
  expect(numbers(of, span('a', 0, 1, 0, 1, 2, 3))).toBe('0–2')
  expect(numbers(of, span('a', 0, 1, 0, 2, 4))).toBe('0, 2, 6')
  expect(numbers(of, { ...span('a', 0, 1, 1, 5), unknown_cards: 2 })).toBe('1 +3?')
  expect(numbers(of, span('a', 0, 1))).toBe('–')
  expect(numbers(undefined, span('a', 0, 1, 0))).toBe('+1?')
})

test('the slider goes from a day back to twelve hours ahead', () => {
  expect(['-30', '-1.5', '', 'x', '3', '99', null].map(hoursOf)).toEqual([-24, -1.5, 0, 0, 3, 12, 0])
  const put = vi.fn()
  const { rerender } = render(<Hours hours={0} put={put} />)
  const slider = () => screen.getByRole<HTMLInputElement>('slider', { name: en.cluster.time })
  expect([slider().min, slider().max, slider().getAttribute('aria-valuetext')]).toEqual(['-24', '12', en.cluster.now])
  expect(screen.queryByRole('button')).toBeNull()
  fireEvent.change(slider(), { target: { value: '-3.5' } })
  expect(put).toHaveBeenLastCalledWith('-3.5')
  rerender(<Hours hours={-3.5} put={put} />)
  expect(slider().getAttribute('aria-valuetext')).toBe('3.5 hours ago')
  fireEvent.change(slider(), { target: { value: '0' } })
  expect(put).toHaveBeenLastCalledWith('')
  rerender(<Hours hours={4} put={put} />)
  expect(slider().getAttribute('aria-valuetext')).toBe('in 4 hours')
  fireEvent.click(screen.getByRole('button', { name: en.cluster.to_now }))
  expect(put).toHaveBeenCalledTimes(3)
  expect(put).toHaveBeenLastCalledWith('')
})

test('a node beside the wall tells its day, and marks who held its cards then', () => {
  const at = began + 60 * minute
  const [tile] = atPast(fleet(1, 4), { ...past, nodes: [{ ...past.nodes![0]!, spans: [...past.nodes![0]!.spans!, { ...span('', 200, 300, 3), job_id: undefined, job: undefined }] }] }, at)
  render(<MemoryRouter><NodeDay tile={tile!} at={at} close={() => {}} /></MemoryRouter>)
  const rows = screen.getAllByRole('row').slice(1)
  expect(rows.map((row) => row.getAttribute('aria-current'))).toEqual([null, null, 'time'])
  expect(rows.map((row) => row.children[0]!.textContent + ' ' + row.children[1]!.textContent)).toEqual(['3 ' + en.queue.hidden, '1–2 b', '0–1 a'])
  expect(screen.getByRole('link', { name: 'a' }).getAttribute('href')).toBe('/jobs/a')
})
