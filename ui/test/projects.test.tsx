import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { cleanup, configure, render, screen, within } from '@testing-library/react'
import i18next from 'i18next'
import { initReactI18next } from 'react-i18next'
import { createMemoryRouter, RouterProvider } from 'react-router'
import { afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { act } from '../src/acting'
import { askOf, AuditPage, commandOf, linesOf, objectOf } from '../src/pages/audit'
import { ProjectPage } from '../src/pages/project'
import { ProjectsPage } from '../src/pages/projects'
import { UsePage } from '../src/pages/use'
import { quotasOf } from '../src/parts/bounds'
import { lengthFor } from '../src/parts/ceiling_fields'
import { idleOf } from '../src/parts/quotas'
import { whoOf, type Who } from '../src/rights'
import type { AuditRecord, Self } from '../src/types'
import userEvent from './user'
import { en, zh } from './words'

beforeAll(async () => {
  configure({ asyncUtilTimeout: 30_000 }) // a busy machine is slow
  await i18next.use(initReactI18next).init({ lng: 'en', resources: { zh: { translation: zh }, en: { translation: en } }, interpolation: { escapeValue: false } })
  vi.stubGlobal('ResizeObserver', class { observe() {} unobserve() {} disconnect() {} })
  vi.stubGlobal('IntersectionObserver', class { observe() {} unobserve() {} disconnect() {} })
})
beforeEach(() => act(''))
afterEach(async () => {
  cleanup()
  await i18next.changeLanguage('en')
})

const who = (role: string, cluster?: string): Who => whoOf({ token: { id: 't1', user: 'ann', role: 'account' }, name: 'ann', project: 'vision', role, cluster, memberships: [] } as unknown as Self)

interface Asked {
  method: string
  path: string
  body: unknown
}

// stub answers as an agent does, by the path without its query.
function stub(answers: Record<string, unknown>, refuses?: (asked: Asked) => object | undefined): Asked[] {
  const asked: Asked[] = []
  vi.stubGlobal('fetch', vi.fn(async (path: string, init?: RequestInit) => {
    const one = { method: init?.method ?? 'GET', path, body: init?.body && JSON.parse(String(init.body)) }
    asked.push(one)
    const refused = refuses?.(one)
    return refused ? Response.json({ code: 'conflict', message: 'refused', ...refused }, { status: 409 }) : Response.json(answers[path] ?? answers[path.split('?')[0]!] ?? {})
  }))
  return asked
}

function show(page: React.ReactNode, signedIn: Who, at = '/', path = '*') {
  const client = new QueryClient({ defaultOptions: { queries: { retry: false, staleTime: Infinity } } })
  client.setQueryData(['session'], signedIn)
  render(<QueryClientProvider client={client}><RouterProvider router={createMemoryRouter([{ path, element: page }], { initialEntries: [at] })} /></QueryClientProvider>)
}

const quotas = [{ kind: 'nvidia/gpu', model: 'A800', guaranteed: 16, maximum: 32, held: 12 }, { kind: 'cpu', guaranteed: 64, held: 3 }]
const record = {
  name: 'vision', description: 'camera group', members: ['ann'], admins: ['li'], quotas: [{ kind: 'nvidia/gpu', model: 'A800', guaranteed: 16, maximum: 32 }],
  job_defaults: { time_limit: '24h0m0s' }, ceilings: { time_limit: '168h0m0s', devices: 16 }, bounds_by: 'root', bounds_at: '2026-11-27T01:00:00Z',
}
const use = {
  from: '2026-11-26T00:00:00Z', to: '2026-11-27T12:00:00Z', device_hours: 40, cpu_hours: 80,
  days: [
    { start: '2026-11-26T00:00:00Z', device_hours: 30, cpu_hours: 60, kinds: [{ kind: 'nvidia/gpu', model: 'A800', device_hours: 26 }, { device_hours: 4 }] },
    { start: '2026-11-27T00:00:00Z', device_hours: 10, cpu_hours: 20, kinds: [{ kind: 'nvidia/gpu', model: 'A800', device_hours: 10 }] },
  ],
}
const vision = {
  '/v1/projects/vision': { defined: true, project: record, quotas, queued: 2, running: 3, urgent: 0, held: {}, shares: [] },
  '/v1/projects/vision/usage': { project: 'vision', use, users: [{ user: 'ann', device_hours: 40, cpu_hours: 80 }] },
}

test('cards that are guaranteed and not held are idle; cores are no cards', () => {
  expect([idleOf(quotas), idleOf([]), idleOf([{ ...quotas[0]!, held: 20 }])]).toEqual([4, 0, 0])
})

test('a project says what it has, used and may, and who set that', async () => {
  stub(vision)
  show(<ProjectPage />, who('project-admin'))
  expect(await screen.findByText('3 running, 2 waiting. 4 guaranteed cards are idle.')).toBeTruthy()
  expect(screen.getByText('12 held, 16 guaranteed, at most 32')).toBeTruthy()
  const rules = within(screen.getByRole('region', { name: 'Defaults and ceilings' }))
  expect(rules.getByText('Time limit', { selector: 'dl:first-of-type dt' }).nextSibling!.textContent).toBe('24 h')
  expect(rules.getByText('Cards').nextSibling!.textContent).toBe('16')
  expect(rules.getByText(/^Set by root/)).toBeTruthy()
  expect((await screen.findByText('A800 26, forgotten jobs 4')).closest('tr')!.textContent).toContain('30')
  // What its own administrator may not change is not offered, and it says whose it is.
  expect(screen.queryByRole('button', { name: /Change limits|Archive/ })).toBeNull()
  expect(rules.getByText('Administrators of the cluster change quotas, defaults and ceilings.')).toBeTruthy()
  expect(screen.getByRole('form', { name: 'Add a member' })).toBeTruthy()
})

test('another project than the one that is acted in is changed by administrators alone', async () => {
  stub({ ...vision, '/v1/projects/speech': { ...vision['/v1/projects/vision'], project: { ...record, name: 'speech' } } })
  show(<ProjectPage />, who('project-admin'), '/projects/speech', '/projects/:name')
  expect(await screen.findByRole('heading', { name: 'Project speech' })).toBeTruthy()
  expect(screen.queryByRole('form', { name: 'Add a member' })).toBeNull()
})

test('limits are changed, and who belongs to the project stays', async () => {
  const asked = stub(vision, ({ method, body }) => (method === 'PUT' && (body as { weight: number }).weight < 0 ? { id: 'agent.project_invalid', message: 'invalid', details: [{ id: 'job.range', message: 'weight is -1' }] } : undefined))
  show(<ProjectPage />, who('admin', 'admin'))
  await userEvent.click(await screen.findByRole('button', { name: 'Change limits' }))
  const dialog = within(await screen.findByRole('dialog'))
  const most = dialog.getByRole('textbox', { name: 'At most' })
  await userEvent.type(most, '40')
  await userEvent.type(dialog.getByRole('textbox', { name: 'Weight' }), '-1')
  await userEvent.click(dialog.getByRole('button', { name: 'Save' }))
  expect((await dialog.findByText('weight is -1')).closest('[role=alert], .note')).toBeTruthy()
  await userEvent.type(dialog.getByRole('textbox', { name: 'Weight' }), '2')
  await userEvent.click(dialog.getByRole('button', { name: 'Save' }))
  await vi.waitFor(() => expect(asked.filter((one) => one.method === 'PUT').at(-1)).toMatchObject({ path: '/v1/projects/vision', body: { name: 'vision', members: ['ann'], admins: ['li'], weight: 2, quotas: [{ kind: 'nvidia/gpu', model: 'A800', guaranteed: 16, maximum: 40 }], ceilings: { time_limit: '168h0m0s', devices: 16 } } }))
  expect([lengthFor('7d'), lengthFor('1d12h'), lengthFor(' 90m '), lengthFor(' '), lengthFor()]).toEqual(['168h', '24h12h', '90m', undefined, undefined])
  expect(quotasOf([{ kind: ' ', model: '', guaranteed: '1', maximum: '' }, { kind: 'cpu', model: '', guaranteed: '', maximum: '0' }])).toEqual([{ kind: 'cpu', guaranteed: 0, maximum: 0 }])
})

test('a project with live jobs is archived once it is said that they stop', async () => {
  const asked = stub(vision)
  show(<ProjectPage />, who('admin', 'admin'))
  await userEvent.click(await screen.findByRole('button', { name: 'Archive' }))
  const dialog = within(await screen.findByRole('dialog'))
  const ok = dialog.getByRole('button', { name: 'Archive' }) as HTMLButtonElement
  expect([!!dialog.getByText('5 subjobs run or wait.'), ok.disabled]).toEqual([true, true])
  await userEvent.click(dialog.getByRole('checkbox', { name: 'Stop them' }))
  expect(dialog.getByText('nomadlike project archive -stop-jobs vision')).toBeTruthy()
  await userEvent.click(ok)
  await vi.waitFor(() => expect(asked.find((one) => one.method === 'PUT')).toMatchObject({ path: '/v1/projects/vision/archive', body: { archived: true, stop_jobs: true } }))
})

test('projects are listed with what they hold; archived ones where they are asked for', async () => {
  const asked = stub({ '/v1/projects': { projects: [vision['/v1/projects/vision']] } })
  show(<ProjectsPage />, who('viewer'))
  const row = (await screen.findByRole('link', { name: 'vision' })).closest('tr')!
  expect(row.textContent).toContain('camera group2')
  expect(screen.queryByRole('button', { name: 'New project' })).toBeNull()
  await userEvent.click(screen.getByRole('checkbox', { name: 'Show archived ones too' }))
  await vi.waitFor(() => expect(asked.at(-1)!.path).toBe('/v1/projects?archived=true'))
})

test('my use says what runs and waits, what is left and which cards do nothing', async () => {
  stub({ '/v1/self/usage': {
    user: 'ann', project: 'vision', quotas, running: 2, queued: 1, use, jobs: [{ job_id: 'j1', name: 'train', project: 'vision', device_hours: 36, cpu_hours: 80 }, { job_id: 'j2', name: 'gone', project: 'vision', device_hours: 4, cpu_hours: 0, forgotten: true }],
    idle: [{ job_id: 'j1', job: 'train', project: 'vision', rank: 'train-1-0', node: 'gpu-03', devices: 8, since: '2026-11-27T11:00:00Z' }],
  } })
  show(<UsePage />, who('user'))
  expect(await screen.findByText('2 running, 1 waiting; card hours of the last 7 d: 40. 8 cards of yours have nothing to do.')).toBeTruthy()
  expect(screen.getByText('gpu-03').closest('tr')!.textContent).toContain('train-1-0')
  expect(screen.getByRole('link', { name: 'train' }).getAttribute('href')).toBe('/jobs/j1')
  expect([screen.queryByRole('link', { name: 'gone' }), !!screen.getByText('not kept any more')]).toEqual([null, true])
})

const refused: AuditRecord = { seq: 7, server: 's1', time: '2026-11-27T01:02:03Z', actor: { kind: 'user', user: 'li', role: 'user' }, action: 'jobs.stop', object: { kind: 'job', id: '4f2a', project: 'vision' }, outcome: 'refused', status: 403, address: '192.0.2.7', prev: 'ab', request: 'r1' } as AuditRecord

test('the audit record is filtered, looked into, verified and saved', async () => {
  const filter = { user: 'li', object: 'job/4f', action: '', since: '24h', refused: true }
  expect(askOf(filter, 100, 'c1')).toBe('user=li&object=job%2F4f&since=24h&refused=true&limit=100&after=c1')
  expect([commandOf(filter), commandOf({ ...filter, user: 'li wei', object: '', since: '', refused: false }, true)]).toEqual(['nomadlike audit list -user li -object job/4f -since 24h -refused', "nomadlike audit list -user 'li wei' -json"])
  expect(objectOf(refused)).toBe('job 4f2a')
  const pages = [{ records: [refused, refused], next: 'c1' }, { records: [refused] }]
  const paths: string[] = []
  const lines = await linesOf(filter, 10, async (path) => { paths.push(path); return pages[paths.length - 1]! as never })
  expect([lines.count, lines.more, lines.text.split('\n').length, JSON.parse(lines.text.split('\n')[2]!).seq, paths[1]!.endsWith('&limit=1000&after=c1')]).toEqual([3, false, 4, 7, true])
  expect((await linesOf(filter, 1, async () => pages[0] as never)).more).toBe(true)

  const asked = stub({
    '/v1/audit': { records: [refused], servers: [{ id: 's1', name: 'srv-1', answered: true, last: 7 }, { id: 's2', name: 'srv-2', answered: false, last: 3 }] },
    '/v1/audit/verify': { whole: false, chains: [{ server: 's1', holder: 's2', lines: 7, broken: 'hash', file: 'audit-1.jsonl', line: 4 }], away: [], names: { s1: 'srv-1', s2: 'srv-2' } },
  })
  show(<AuditPage />, who('operator', 'operator'))
  const row = (await screen.findByText('jobs.stop')).closest('tr')!
  expect(row.textContent).toContain('lijobs.stopjob 4f2a')
  expect(within(row).getByText('refused')).toBeTruthy()
  expect(screen.getByText('srv-2, records of srv-1: audit-1.jsonl, line 4 does not follow.')).toBeTruthy()
  expect(screen.getByText('No answer from srv-2: their records are those that other servers have copied.')).toBeTruthy()
  await userEvent.type(screen.getByRole('textbox', { name: 'User' }), 'li')
  await userEvent.click(screen.getByRole('checkbox', { name: 'Only what was refused' }))
  await vi.waitFor(() => expect(asked.some((one) => one.path === '/v1/audit?user=li&since=24h&refused=true&limit=100')).toBe(true))
  expect(screen.getByText('nomadlike audit list -user li -since 24h -refused')).toBeTruthy()
  await userEvent.click(within((await screen.findByText('jobs.stop')).closest('tr')!).getByRole('button'))
  expect(await screen.findByText('r1')).toBeTruthy()
})

test('whoever may not read the audit record is told who does', async () => {
  const asked = stub({})
  show(<AuditPage />, who('project-admin'))
  expect(await screen.findByText('Operators and administrators of the cluster read this record.')).toBeTruthy()
  expect(asked.filter((one) => one.path.startsWith('/v1/audit'))).toEqual([])
})
