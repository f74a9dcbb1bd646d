import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { deedsOf, nodeDeedsOf, settings } from '../src/parts/commands'
import { deedsFor, fitting, verbs } from '../src/parts/deeds'
import { places, sheetOf } from '../src/parts/keys'
import { asks, matching } from '../src/parts/finder'
import { isLimit, shortLimit } from '../src/parts/limit'
import { ofModel } from '../src/pages/create'
import { allows, reaches, rights, type Right } from '../src/rights'
import type { Available, Token } from '../src/types'
import { en, zh } from './words'

test('what roles may ask for is what the policy says', () => {
  const source = readFileSync(join(__dirname, '../../nomadlike/auth/policy.go'), 'utf8')
  const names = ['viewer', 'user', 'project-admin', 'operator', 'admin']
  const rules: Record<Right, string> = { submit: 'ObjectJob, VerbSubmit', vip: 'ObjectJob, VerbVIP', what_if: 'ObjectQueue, VerbWhatIf', move: 'ObjectJob, VerbMove', drain: 'ObjectNode, VerbDrain', token_write: 'ObjectToken, VerbWrite', project_write: 'ObjectProject, VerbWrite', pool_write: 'ObjectPool, VerbWrite', operator_read: 'ObjectCluster, VerbOperatorRead', audit: 'ObjectCluster, VerbAudit', settings: 'ObjectCluster, VerbCeilings', secrets: 'ObjectSecret, VerbList', keys_rotate: 'ObjectCluster, VerbOperatorWrite', user_list: 'ObjectUser, VerbList', user_write: 'ObjectUser, VerbWrite', members: 'ObjectProject, VerbMembers' }
  for (const [right, rule] of Object.entries(rules)) {
    const [, ...grants] = new RegExp(`\\{${rule}, ([^}]+)\\}`).exec(source)![1]!.split(', ')
    expect(rights[right as Right], right).toEqual(names.filter((_, i) => grants[i] !== 'no'))
  }
  expect([allows('submit', 'viewer'), allows('submit', undefined)]).toEqual([false, true])
  const of: Record<string, string | undefined> = { own: 'own', sharew: 'own', sharer: 'own', proj: 'project', every: 'all' }
  const spelled: Record<string, string> = { stop: 'VerbStop', control: 'VerbControl', annotate: 'VerbAnnotate', priority: 'VerbPriority', delete: 'VerbDelete', 'time-limit': 'VerbTimeLimit', clone: 'VerbClone', move: 'VerbMove' }
  expect(Object.keys(reaches).sort()).toEqual(Object.keys(spelled).sort())
  expect(Object.values(verbs).every((verb) => reaches[verb]), 'every deed has a rule').toBe(true)
  for (const [verb, rule] of Object.entries(spelled)) {
    const [, ...grants] = new RegExp(`\\{ObjectJob, ${rule}, ([^}]+)\\}`).exec(source)![1]!.split(', ')
    expect(reaches[verb], verb).toEqual(Object.fromEntries(names.flatMap((name, i) => (grants[i] === 'no' ? [] : [[name, of[grants[i]!]]]))))
  }
})

test('the palette offers what the reader may do to jobs, and no more', () => {
  const job = { user: 'ann', project: 'vision', state: 'running' as const }
  const who = (role: string, more = {}) => ({ role, user: 'ann', project: 'vision', ...more }) as unknown as Token
  expect(deedsOf(job, who('user'))).toEqual(['stop', 'pause', 'finish', 'throttle', 'limit', 'annotate', 'clone'])
  expect(deedsOf(job, who('user', { user: 'bob' })), "another's").toEqual([])
  expect(deedsOf(job, who('user', { project: 'speech' })), 'of another project').toEqual([])
  expect(deedsOf(job, who('project-admin', { user: 'bob' }))).toContain('stop')
  expect(deedsOf({ ...job, state: 'queued' }, who('operator', { user: 'op', project: '' }))).toEqual(['stop', 'priority', 'first', 'last', 'annotate'])
  expect(deedsOf({ ...job, state: 'failed' }, who('admin', { user: 'root', project: '' }))).toEqual(['delete', 'annotate', 'clone'])
  expect([deedsOf(job, who('viewer')), deedsOf(job, null), deedsOf(job, undefined)]).toEqual([[], [], []])
  expect([nodeDeedsOf({ eligibility: 'eligible' }), nodeDeedsOf({ eligibility: 'cordoned' }), nodeDeedsOf({ eligibility: 'draining' })]).toEqual([['drain', 'cordon'], ['uncordon'], ['uncordon']])
})

test('settings have a name in both languages and one place each', () => {
  const said = (catalogue: unknown, key: string) => key.split('.').reduce<unknown>((of, part) => (of as Record<string, unknown>)?.[part], catalogue)
  for (const { label, page, entry } of settings) {
    expect([typeof said(en, label), typeof said(zh, label), !page !== !entry], label).toEqual(['string', 'string', true])
  }
  const found = matching(settings.map((one) => ({ ...one, label: String(said(zh, one.label)) })), 'time_limit')
  expect(found.map((one) => one.entry), 'by the name in files, in any language').toEqual(['job.time_limit'])
})

test('the sheet of keys lists every key that pages take', () => {
  const listed = sheetOf('/').flatMap(({ keys }) => keys.map(([key]) => key))
  expect(Object.keys(places).filter((key) => !listed.includes('g ' + key))).toEqual([])
  const list = readFileSync(join(__dirname, '../src/pages/jobs.tsx'), 'utf8')
  for (const [, key] of list.matchAll(/event\.key === '(.)'/g)) expect(listed.join(' ').split(' '), key).toContain(key)
  expect(sheetOf('/jobs')[0]!.title, 'those of the page come first').toBe('jobs.keys_list')
  for (const { title, keys } of sheetOf('/')) for (const key of [title, ...keys.map(([, text]) => 'jobs.key_' + text)]) for (const catalogue of [en, zh]) expect(typeof (catalogue.jobs as Record<string, unknown>)[key.slice(5)], key).toBe('string')
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
