import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { cleanup, configure, render, screen, within } from '@testing-library/react'
import i18next from 'i18next'
import { initReactI18next } from 'react-i18next'
import { createMemoryRouter, RouterProvider } from 'react-router'
import { afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { act } from '../src/acting'
import { topicsOf } from '../src/events'
import { DataPage, lineOf } from '../src/pages/data'
import { changesOf, updateLine } from '../src/pages/data/deeds'
import { Preview } from '../src/pages/data/files'
import { DataObjectPage } from '../src/pages/data/object'
import { fileAddress, flagsOf, isOf, kindsOf, labelsOf, linesOf, matches, readable, spelled } from '../src/parts/data'
import { whoOf, type Who } from '../src/rights'
import type { DataDetail, Self } from '../src/types'
import userEvent from './user'
import { en, zh } from './words'

beforeAll(async () => {
  configure({ asyncUtilTimeout: 30_000 }) // a busy machine is slow
  await i18next.use(initReactI18next).init({ lng: 'en', resources: { zh: { translation: zh }, en: { translation: en } }, interpolation: { escapeValue: false } })
  vi.stubGlobal('ResizeObserver', class { observe() {} unobserve() {} disconnect() {} })
})
beforeEach(() => act(''))
afterEach(cleanup)

const who: Who = whoOf({ token: { id: 't1', user: 'ann', role: 'account' }, name: 'ann', project: 'vision', role: 'user', memberships: [] } as unknown as Self)
const detail = (name: string, more: object = {}, object: object = {}): DataDetail => ({
  object: { project: 'vision', kind: 'dataset', name, owner: 'ann', storage: 'nas', access: 'project', next: 3, ...object },
  newest: 2, files: 3, bytes: 2048, all_bytes: 4096, count: 2, favourite: false, favourites: 0, verbs: ['read', 'write', 'delete'], newest_at: '2026-11-27T01:00:00Z', ...more,
} as DataDetail)
const words = detail('words', { favourite: true }, { labels: { team: 'speech' }, description: 'of a language' })
const bert = detail('bert', {}, { kind: 'model', owner: 'ada', project: 'text', published: true })

function show(page: React.ReactNode, at: string, path = '*', answers: Record<string, unknown> = {}) {
  const asked: string[] = []
  vi.stubGlobal('fetch', vi.fn(async (to: string, init?: RequestInit) => {
    asked.push(`${init?.method ?? 'GET'} ${to}${init?.body ? ' ' + String(init.body) : ''}`)
    return Response.json(answers[to] ?? answers[to.split('?')[0]!] ?? {})
  }))
  const client = new QueryClient({ defaultOptions: { queries: { retry: false, staleTime: Infinity } } })
  client.setQueryData(['session'], who)
  render(<QueryClientProvider client={client}><RouterProvider router={createMemoryRouter([{ path, element: page }], { initialEntries: [at] })} /></QueryClientProvider>)
  return asked
}

test('whose, kinds and words find objects', () => {
  expect([words, bert].filter((one) => isOf(one, 'project', 'ann', 'vision'))).toEqual([words])
  expect([words, bert].filter((one) => isOf(one, 'published', 'ann', 'vision'))).toEqual([bert])
  expect([words, bert].filter((one) => isOf(one, 'favourites', 'ann', 'vision'))).toEqual([words])
  expect([words, bert].filter((one) => isOf(one, 'mine', '', 'vision'))).toEqual([])
  expect(kindsOf([detail('x', {}, { kind: 'film' }), bert, words])).toEqual(['dataset', 'model', 'film']) // a kind of later stands behind
  expect(matches(words, 'TEAM=speech lang')).toBe(true)
  expect(matches(words, 'speech german')).toBe(false)
  expect(lineOf('favourites', 'model')).toBe('nomadlike data ls -favourites -kind model')
  expect(flagsOf({ project: 'text', kind: 'model', name: 'bert' }, 'vision')).toBe('-kind model -of text ')
})

test('paths are bytes, spelled once', () => {
  expect(spelled({ name: 'a&b/c' } as never)).toBe('a%26b%2Fc')
  expect(spelled({ name: 'g�', ref: 'g%C4' })).toBe('g%C4')
  expect([readable('g%C4'), readable('a%26b')]).toEqual(['g%C4', 'a&b'])
  expect(fileAddress({ project: 'vision', kind: 'dataset', name: 'words' }, '/tree', 2, 'a/g%C4', { after: 0, limit: 5 })).toBe('/v1/data/words/tree?kind=dataset&of=vision&version=2&limit=5&path=a/g%C4')
})

test('labels and changes are told as the command line has them', () => {
  expect(labelsOf('a=1\n\n b = x=y ')).toEqual({ a: '1', b: 'x=y' })
  expect(labelsOf('none')).toBeUndefined()
  expect(linesOf({ b: '2', a: '1' })).toBe('a=1\nb=2')
  const same = { description: 'of a language', labels: 'team=speech', access: 'project', published: false }
  expect(changesOf(words, same)).toBeUndefined()
  const request = changesOf(words, { ...same, labels: 'lang=de', access: 'private' })
  expect(request).toEqual({ labels: { lang: 'de' }, access: 'private' })
  expect(updateLine(words, request, 'vision')).toBe('nomadlike data update -access private -label lang=de -label team= words')
})

test('events of data make its pages read again, those of jobs who uses it', () => {
  expect(topicsOf({ topic: 'data' })).toEqual([['data']])
  expect(topicsOf({ topic: 'job', job_id: 'j1' })).toContainEqual(['data', 'use'])
})

test('the list says what there is, and marks', async () => {
  const asked = show(<DataPage />, '/data', '*', { '/v1/data': { objects: [words, bert], used: 95, quota: 100 } })
  await screen.findByText(/1 name in project vision. Versions hold 95 B of 100 B./)
  screen.getByText('The quota is nearly used up.')
  expect(screen.queryByRole('link', { name: 'bert' })).toBeNull() // of another project
  await userEvent.click(screen.getByRole('button', { name: 'All' }))
  screen.getByRole('link', { name: 'bert' })
  await userEvent.click(screen.getByRole('button', { name: 'Mark words as a favourite' }))
  await vi.waitFor(() => expect(asked).toContain('PUT /v1/data/words/mark?kind=dataset&of=vision {"off":true}'))
})

test('what a job uses is not removed, and the job is named', async () => {
  const versions = [{ number: 1, state: 'ready', files: 1, bytes: 5 }, { number: 2, state: 'ready', tag: 'best', files: 3, bytes: 2048 }]
  const used = { jobs: [{ id: 'j1', name: 'train', user: 'ben', project: 'vision', version: 2, state: 'running', submitted_at: '2026-11-27T01:00:00Z' }], more: false, hidden: 0, storage: { name: 'nas', nodes: [] }, copies: [{ node_id: 'n1', node: 'gpu-1', version: 2 }] }
  show(<DataObjectPage />, '/data/vision/dataset/words/versions', '/data/:project/:kind/:name/:tab?', { '/v1/data/words': { ...words, object: { ...words.object, versions } }, '/v1/data/words/use': used })
  await screen.findByText(/1 job that has not ended uses it/)
  await userEvent.click(screen.getByRole('button', { name: 'Remove version 2' }))
  const dialog = await screen.findByRole('dialog')
  within(dialog).getByRole('link', { name: 'train' })
  expect(within(dialog).getByRole('button', { name: 'Remove' }).hasAttribute('disabled')).toBe(true)
  await userEvent.click(within(dialog).getByRole('button', { name: 'Cancel' }))
  await userEvent.click(screen.getByRole('button', { name: 'Remove version 1' }))
  const other = await screen.findByRole('dialog')
  expect(within(other).getByRole('button', { name: 'Remove' }).hasAttribute('disabled')).toBe(false)
  within(other).getByText('nomadlike data rm words@1')
})

test('a preview is text, whatever it says', () => {
  render(<Preview shown={{ kind: 'text', text: '<img src=x onerror=alert(1)>' }} content="" name="evil.html" />)
  screen.getByText('<img src=x onerror=alert(1)>')
  expect(document.querySelector('.preview img')).toBeNull()
  cleanup()
  render(<Preview shown={{ kind: 'none', why: 'too_large' }} content="" name="large.png" />)
  screen.getByText('The picture is too large to be shown here.')
})
