import i18next from 'i18next'
import { beforeAll, expect, test } from 'vitest'
import en from '../src/locales/en.json'
import zh from '../src/locales/zh.json'
import { dropped, type Box } from '../src/parts/timeline'
import { doLines, readChanges, sentence, tryLine } from '../src/parts/what_if'
import type { Change } from '../src/types'

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
