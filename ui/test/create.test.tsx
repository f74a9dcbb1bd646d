import { cleanup, configure, fireEvent, render, screen } from '@testing-library/react'
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import i18next from 'i18next'
import { initReactI18next } from 'react-i18next'
import { MemoryRouter } from 'react-router'
import { afterEach, beforeAll, expect, test, vi } from 'vitest'
import { Create } from '../src/pages/create'
import { againChanges } from '../src/pages/create/fails'
import { wrongAt, wrongBelow } from '../src/pages/create/fields'
import { added } from '../src/pages/create/runs'
import { listOf } from '../src/pages/create/what'
import { modeChanges } from '../src/pages/create/where'
import type { Error as Failure } from '../src/types'
import { en } from './words'

const patience = { timeout: 30_000 } // a busy machine is slow

beforeAll(async () => {
  configure({ asyncUtilTimeout: patience.timeout })
  await i18next.use(initReactI18next).init({ lng: 'en', resources: { en: { translation: en } }, interpolation: { escapeValue: false } })
})
afterEach(() => {
  cleanup()
  localStorage.clear()
  vi.unstubAllGlobals()
})

// A server that reads the number of nodes out of a file and writes it there. Its
// answers to a reading wait until they are let go: a slow machine.
function stubServer() {
  vi.stubGlobal('matchMedia', () => ({ matches: false, addListener() {}, removeListener() {}, addEventListener() {}, removeEventListener() {} }))
  vi.stubGlobal('ResizeObserver', class { observe() {} unobserve() {} disconnect() {} })
  const changes: number[] = []
  let slow = false
  const held: (() => void)[] = []
  const job = (hcl: string) => ({ name: 'digits', nodes: Number(/nodes = (\d+)/.exec(hcl)?.[1] ?? 1), distributed: { mode: 'single' }, resources: [], task: { command: 'x' } })
  vi.stubGlobal('fetch', vi.fn(async (path: string, init?: RequestInit) => {
    if (path.endsWith('/format')) {
      let { hcl, set } = JSON.parse(init!.body as string) as { hcl: string; set?: { value: number }[] }
      for (const one of set ?? []) {
        changes.push(one.value)
        hcl = hcl.replace(/\n {2}nodes = \d+/, '').replace('{', `{\n  nodes = ${one.value}`)
      }
      if (!set && slow) await new Promise<void>((done) => held.push(done))
      return new Response(JSON.stringify({ hcl, job: job(hcl), defaults: [] }))
    }
    if (path.endsWith('/validate')) return new Response(JSON.stringify({ valid: false, problems: [] }))
    return new Response('{}', { status: 404 })
  }))
  return { changes, slow: (now: boolean) => { slow = now; if (!now) held.splice(0).forEach((go) => go()) } }
}

const file = () => (document.getElementById('jobfile') as HTMLTextAreaElement).value

test('a field of the form is sent once and writes over nothing that was typed after it', async () => {
  const server = stubServer()
  render(<MemoryRouter><QueryClientProvider client={new QueryClient()}><Create /></QueryClientProvider></MemoryRouter>)
  const nodes = await screen.findByRole('spinbutton', { name: 'Nodes' })
  await vi.waitFor(() => expect((nodes as HTMLInputElement).disabled).toBe(false), patience)
  server.slow(true)
  fireEvent.focus(nodes)
  fireEvent.change(nodes, { target: { value: '2' } })
  fireEvent.keyDown(nodes, { key: 'Enter' })
  await vi.waitFor(() => expect(file()).toContain('nodes = 2'), patience)
  expect((nodes as HTMLInputElement).value, 'the form follows its own change at once').toBe('2')

  // The file is typed into before the form was read again: leaving the field is no change.
  fireEvent.blur(nodes)
  fireEvent.change(document.getElementById('jobfile')!, { target: { value: file().replace('nodes = 2', 'nodes = 1') } })
  server.slow(false)
  await vi.waitFor(() => expect((nodes as HTMLInputElement).value).toBe('1'), patience)
  expect(server.changes).toEqual([2])
  expect(file()).toContain('nodes = 1')
}, patience.timeout)

test('arrows and leaving a field each change the file', async () => {
  const server = stubServer()
  render(<MemoryRouter><QueryClientProvider client={new QueryClient()}><Create /></QueryClientProvider></MemoryRouter>)
  const nodes = await screen.findByRole('spinbutton', { name: 'Nodes' })
  await vi.waitFor(() => expect((nodes as HTMLInputElement).disabled).toBe(false), patience)
  fireEvent.focus(nodes)
  fireEvent.keyDown(nodes, { key: 'ArrowUp' })
  await vi.waitFor(() => expect(file()).toContain('nodes = 2'), patience)
  fireEvent.change(nodes, { target: { value: '7' } })
  fireEvent.blur(nodes)
  await vi.waitFor(() => expect(file()).toContain('nodes = 7'), patience)
  expect(server.changes).toEqual([2, 7])
}, patience.timeout)

test('what the parts of the form write into the file', () => {
  // Options of another mode are refused, so they go with it; one node is one.
  expect(modeChanges('single')).toContainEqual({ at: 'nodes', value: 1 })
  expect(modeChanges('tensorflow').map((one) => one.at)).not.toContain('distributed.parameter_servers')
  expect(modeChanges('pytorch')).toContainEqual({ at: 'distributed.parameter_servers', value: null })
  // Restart and resume exclude each other.
  expect(againChanges('resume')).toEqual([{ at: 'restart#', value: null }, { at: 'checkpoint.max_resumes', value: 3 }])
  expect(againChanges('none')).toEqual([{ at: 'restart#', value: null }, { at: 'checkpoint#', value: null }])
  expect(added('LR=0.1=x')).toEqual([{ at: 'task.env["LR"]', value: '0.1=x' }])
  expect(added('not a name=1')).toEqual([])
  expect(listOf('a, b，c  a')).toEqual(['a', 'b', 'c'])
})

test('a problem is told at the field that it is of', () => {
  const problem = (path: string) => [{ code: 'invalid', id: 'x', params: { path } }] as Failure[]
  for (const [at, path] of [['#', 'name'], ['distributed#', 'distributed.mode'], ['resources[0].cpu', 'resources[0].cpu'], ['resources.device#', 'resources[0].device[0].kind'], ['dataset[1]#', 'dataset[1].name'], ['mount[0]#', 'mount[0].target'], ['task.hook[0]#', 'task.hook[0].when'], ['task.env["LR"]', 'task.env["LR"]'], ['output#', 'output']] as const)
    expect(wrongAt(problem(path), at), at).toBeDefined()
  expect(wrongAt(problem('resources[1].cpu'), 'resources[0].cpu')).toBeUndefined()
  expect(wrongBelow(problem('checkpoint.grace'), ['restart', 'checkpoint'])).toBe(1)
  expect(wrongBelow(problem('checkpoints'), ['checkpoint'])).toBe(0)
})
