import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { deedsFor, fitting } from '../src/parts/deeds'
import { asks, matching } from '../src/parts/palette'
import { isLimit, shortLimit } from '../src/parts/limit'
import { ofModel } from '../src/pages/create'
import { allows, rights, type Right } from '../src/rights'
import type { Available } from '../src/types'

test('what roles may ask for is what the policy says', () => {
  const source = readFileSync(join(__dirname, '../../nomadlike/auth/policy.go'), 'utf8')
  const names = ['viewer', 'user', 'project-admin', 'operator', 'admin']
  const verbs: Record<Right, string> = { submit: 'ObjectJob, VerbSubmit', vip: 'ObjectJob, VerbVIP', what_if: 'ObjectQueue, VerbWhatIf', move: 'ObjectJob, VerbMove', drain: 'ObjectNode, VerbDrain' }
  for (const [right, rule] of Object.entries(verbs)) {
    const [, ...grants] = new RegExp(`\\{${rule}, ([^}]+)\\}`).exec(source)![1]!.split(', ')
    expect(rights[right as Right], right).toEqual(names.filter((_, i) => grants[i] !== 'no'))
  }
  expect([allows('submit', 'viewer'), allows('submit', undefined)]).toEqual([false, true])
})

test('a job is offered what its reader may do to it', () => {
  expect(deedsFor('running', ['read', 'logs'])).toEqual([])
  expect(deedsFor('running', ['read', 'control'])).toEqual(['pause', 'finish', 'throttle'])
  expect(deedsFor('queued', ['stop', 'time-limit'])).toEqual(['stop', 'limit'])
  expect(deedsFor('queued')).toContain('first')
  expect(deedsFor('running', undefined, { pause: false, finish_now: false, throttle: true })).toEqual(['stop', 'throttle', 'limit', 'annotate'])
  expect(deedsFor('failed', undefined, { resume: false })).toEqual(['delete', 'annotate'])
  const jobs = [{ state: 'running' as const }, { state: 'paused' as const }, { state: 'failed' as const }]
  expect(fitting('stop', [{ state: 'running' as const, may: ['read'] }, { state: 'running' as const, may: ['stop'] }])).toHaveLength(1)
  expect(fitting('clone', [{ state: 'running' as const, may: ['read'] }])).toHaveLength(0)
  expect([fitting('pause', jobs), fitting('continue', jobs), fitting('delete', jobs), fitting('clone', jobs)].map((list) => list.length)).toEqual([1, 1, 1, 3])
})

test('servers are asked for the longest word; ids are found by their beginning, and nothing twice', () => {
  expect([asks(''), asks('a Train-9 x')]).toEqual(['', 'train-9'])
  const all = [{ key: 'j1', id: 'abc1', label: 'train' }, { key: 'j1', id: 'abc1', label: 'train' }, { key: 'j2', id: '1abc', label: 'other' }]
  expect(matching(all, 'abc').map((c) => c.key)).toEqual(['j1'])
})

test('lengths of time are read as the API takes them', () => {
  expect(['36h', '1h30m', '90m', '', '0s', '2 days', '24', 'h'].map(isLimit)).toEqual([true, true, true, false, false, false, false, false])
  expect([3_600_000, 5_400_000, 28 * 3_600_000, 0].map(shortLimit)).toEqual(['1h', '1h30m', '28h', '0s'])
})

test('choosing a model leaves the nodes that have it and the specs that could stand there', () => {
  const node = (name: string, model: string, specs: number[], now: number[]) => ({ id: name, name, devices: [{ kind: 'gpu', model, total: 8, used: 0 }], specs, now })
  const found = { nodes: [node('a', 'H800', [0], []), node('b', 'A800', [1], [1])], specs: [{ spec: 0, nodes: 1, idle: 0, need: 1 }, { spec: 1, nodes: 1, idle: 1, need: 1 }], models: [{ kind: 'gpu', model: 'H800', total: 8, used: 8, wanted: 4, jobs: 1 }, { kind: 'gpu', model: 'A800', total: 8, used: 0, wanted: 0, jobs: 0 }] } as unknown as Available
  const of = ofModel(found, 'H800')
  expect([of.nodes.map((n) => n.name), of.specs.map((s) => s.spec), of.models.map((m) => m.wanted)]).toEqual([['a'], [0], [4]])
  expect(ofModel(found, '').specs.length).toBe(2)
})
