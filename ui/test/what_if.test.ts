import i18next from 'i18next'
import { beforeAll, expect, test } from 'vitest'
import { dropped, type Box } from '../src/parts/timeline'
import { doLines, quotaOf, readChanges, sentence, tryLine, withQuota } from '../src/parts/what_if'
import type { Change } from '../src/types'
import { en, zh } from './words'

beforeAll(async () => {
  await i18next.init({ lng: 'en', resources: { en: { translation: en }, zh: { translation: zh } }, interpolation: { escapeValue: false } })
})

const name = (id: string) => ({ j1: 'train', j2: 'digits' })[id] ?? id
const changes: Change[] = [
  { kind: 'drain', node: 'gpu-01' },
  { kind: 'add', node: 'gpu-02', count: 2 },
  { kind: 'stop', job_id: 'j1' },
  { kind: 'priority', job_id: 'j1', priority: 'urgent' },
  { kind: 'move', job_id: 'j1', before: 'j2' },
  { kind: 'move', job_id: 'j1' },
]

test('changes are said in a sentence, in both languages', () => {
  expect(changes.map((change) => sentence(i18next.getFixedT('en'), change, name))).toEqual(['Drain gpu-01', 'Add 2 nodes like gpu-02', 'Stop train', 'Make train urgent', 'Move train before digits', 'Move train to the front'])
  for (const change of changes) expect(sentence(i18next.getFixedT('zh'), change, name)).not.toMatch(/\{\{|whatif\./)
})

test('the command line asks the same what-if', () => {
  expect(tryLine(changes.slice(0, 4), name)).toBe('nomadlike queue try -drain gpu-01 -add 2 -like gpu-02 -stop train -priority train=urgent')
  expect(tryLine(changes.slice(4), name)).toBe('nomadlike queue try -move train=before:digits -move train=first')
  expect(tryLine([{ kind: 'move', job_id: 'j2', last: true }], name)).toBe('nomadlike queue try -move digits=last')
  expect(tryLine([], name)).toBe('')
})

test('command lines that make the changes', () => {
  expect(doLines(changes, name).split('\n')).toEqual(['nomadlike node drain gpu-01', 'nomadlike job stop train', 'nomadlike job priority train urgent', 'nomadlike queue move -before digits train', 'nomadlike queue move -first train'])
  expect(doLines([{ kind: 'move', job_id: 'j2', last: true }], name)).toBe('nomadlike queue move -last digits')
})

test('more jobs like one, and quotas', () => {
  const more: Change[] = [{ kind: 'submit', job_id: 'j1', count: 20 }, { kind: 'quota', project: 'lab', quotas: withQuota([{ kind: 'cpu', maximum: 64 }, { kind: 'nvidia/gpu', maximum: 32, guaranteed: 24 }], quotaOf('nvidia/gpu', 16)) }]
  expect(more[1]!.quotas).toEqual([{ kind: 'cpu', maximum: 64 }, { kind: 'nvidia/gpu', maximum: 16, guaranteed: 16 }])
  expect(quotaOf('nvidia/gpu/A800 80G', 8)).toEqual({ kind: 'nvidia/gpu', model: 'A800 80G', maximum: 8 })
  expect(more.map((change) => sentence(i18next.getFixedT('en'), change, name))).toEqual(['Submit 20 jobs like train', 'Give lab at most 16 of nvidia/gpu'])
  for (const change of more) expect(sentence(i18next.getFixedT('zh'), change, name)).not.toMatch(/\{\{|whatif\./)
  expect(tryLine(more, name)).toBe('nomadlike queue try -clone train=20 -quota lab=nvidia/gpu:16')
  expect(doLines(more, name)).toBe('')
  expect(readChanges(JSON.stringify(more))).toEqual(more)
  expect(readChanges('[{"kind":"quota","project":"lab"},{"kind":"submit"}]')).toEqual([])
})

test('changes of an address are taken when they are some', () => {
  expect(readChanges('')).toEqual([])
  expect(readChanges('{"kind":"drain"}')).toEqual([])
  expect(readChanges('[{"kind":"drain","node":"a"},{"kind":"burn"},null]')).toEqual([{ kind: 'drain', node: 'a' }])
  expect(readChanges('[')).toEqual([])
})

test('a bar that is let go of moves its job', () => {
  const box = (job: string, kind: string, x: number) => ({ x, y: 0, w: 10, h: 10, bar: { job_id: job, kind }, row: {} }) as unknown as Box
  expect(dropped(box('a', 'forecast', 50), box('b', 'forecast', 90), 95)).toEqual({ kind: 'move', job_id: 'a', before: 'b' })
  expect(dropped(box('a', 'forecast', 50), undefined, 20)).toEqual({ kind: 'move', job_id: 'a' })
  expect(dropped(box('a', 'forecast', 50), box('r', 'running', 90), 95)).toEqual({ kind: 'move', job_id: 'a', last: true })
  expect(dropped(box('a', 'forecast', 50), box('a', 'forecast', 50), 55)).toBeUndefined()
})
