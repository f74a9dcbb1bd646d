import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { cleanup, configure, fireEvent, render, screen, within } from '@testing-library/react'
import i18next from 'i18next'
import { initReactI18next } from 'react-i18next'
import { createMemoryRouter, RouterProvider } from 'react-router'
import { afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { act } from '../src/acting'
import { cellText, LimitsPage } from '../src/pages/limits'
import { base64, bytesOf, nameOK, SecretsPage } from '../src/pages/secrets'
import { ceilingFlags, ceilingsFor } from '../src/parts/ceiling_fields'
import { Most } from '../src/parts/ceilings'
import { opens } from '../src/parts/rail'
import { allows, whoOf, type Right, type Who } from '../src/rights'
import type { Job, Self } from '../src/types'
import userEvent from './user'
import { en, zh } from './words'

beforeAll(async () => {
  configure({ asyncUtilTimeout: 30_000 }) // a busy machine is slow
  await i18next.use(initReactI18next).init({ lng: 'en', resources: { zh: { translation: zh }, en: { translation: en } }, interpolation: { escapeValue: false } })
  vi.stubGlobal('ResizeObserver', class { observe() {} unobserve() {} disconnect() {} })
})
beforeEach(() => act(''))
afterEach(cleanup)

const who = (role: string, cluster?: string): Who => whoOf({ token: { id: 't1', user: 'ann', role: 'account' }, name: 'ann', project: 'vision', role, cluster, memberships: [] } as unknown as Self)

interface Asked {
  method: string
  path: string
  body: unknown
}

// stub answers as an agent does, by the path, with its query or without.
function stub(answers: Record<string, unknown>): Asked[] {
  const asked: Asked[] = []
  vi.stubGlobal('fetch', vi.fn(async (path: string, init?: RequestInit) => {
    asked.push({ method: init?.method ?? 'GET', path, body: init?.body && JSON.parse(String(init.body)) })
    return Response.json(answers[`${init?.method ?? 'GET'} ${path}`] ?? answers[path] ?? answers[path.split('?')[0]!] ?? {})
  }))
  return asked
}

function show(page: React.ReactNode, signedIn: Who, at = '/') {
  const client = new QueryClient({ defaultOptions: { queries: { retry: false, staleTime: Infinity } } })
  client.setQueryData(['session'], signedIn)
  render(<QueryClientProvider client={client}><RouterProvider router={createMemoryRouter([{ path: '*', element: page }], { initialEntries: [at] })} /></QueryClientProvider>)
}

const set = { by: 'ada', at: '2026-11-27T01:00:00Z' }
const bounded = {
  '/v1/settings': {
    settings: { ceilings: { time_limit: '336h0m0s', nodes: 8 }, ceilings_by: 'ada', ceilings_at: set.at, modify_index: 7 },
    effective: [{ path: 'time_limit', max: '48h', level: 'pool', name: 'default', by: 'ben', at: set.at }, { path: 'nodes', max: '8', level: 'cluster', ...set }, { path: 'checkpoint', max: 'none', level: 'project', name: 'vision', ...set }],
    shared: { read_only: 3, read_write: 2, live: 4 },
  },
  '/v1/pools': { pools: [{ pool: { name: 'default', description: 'all', ceilings: { time_limit: '48h0m0s' }, ceilings_by: 'ben', ceilings_at: set.at }, models: [] }, { pool: { name: 'a800' }, models: [] }] },
  '/v1/projects/vision': { project: { name: 'vision', members: ['ann'], ceilings: { no_checkpoint: true }, bounds_by: 'ada', bounds_at: set.at }, shared: { read_only: 1, read_write: 0, live: 0 } },
}

test('three levels stand beside each other, with which of them counts and who set it', async () => {
  stub(bounded)
  show(<LimitsPage />, who('user'))
  await screen.findByText('In the pool default your jobs may ask for at most: Time limit 2 d, Nodes 8, Checkpoint resume none.')
  const row = (name: string) => within(screen.getByRole('table', { name: 'The most that jobs may ask for' })).getAllByRole('row').map((one) => [...one.querySelectorAll('td')].map((cell) => cell.textContent)).find(([first]) => first === name)
  expect(row('Time limit')).toEqual(['Time limit', expect.stringMatching(/^2 dpool default, ben, 2026-11-27/), '14 d', '2 d', '–'])
  expect(row('Checkpoint resume')!.slice(2)).toEqual(['–', '–', 'none'])
  expect(row('Resumes')).toEqual(['Resumes', 'no ceiling', '–', '–', '–'])
  expect(screen.getByText(/^Set for pool default by ben/)).toBeTruthy()
  // What a user may not do is not offered, and it says whose it is.
  expect(screen.queryByRole('button', { name: /Change|Switch/ })).toBeNull()
  expect(screen.getByText('Administrators of the cluster set them.')).toBeTruthy()
  expect([cellText(undefined, 'nodes', 'x'), cellText({ time_limit: '0s' }, 'time_limit', 'x'), cellText({ no_checkpoint: true }, 'no_checkpoint', 'x')]).toEqual(['', '', 'x'])
})

test('ceilings of each level are changed, and the rest of its record stays', async () => {
  const asked = stub(bounded)
  show(<LimitsPage />, who('admin', 'admin'))
  const change = async (button: string, field: string, value: string) => {
    await userEvent.click(await screen.findByRole('button', { name: button }))
    const dialog = within(await screen.findByRole('dialog'))
    fireEvent.change(dialog.getByRole('textbox', { name: field }), { target: { value } })
    const cli = dialog.getByText(/^nomadlike (operator|pool|project)/).textContent
    await userEvent.click(dialog.getByRole('button', { name: 'Save' }))
    await vi.waitFor(() => expect(screen.queryByRole('dialog')).toBeNull())
    return [cli, asked.filter((one) => one.method === 'PUT').at(-1)]
  }
  expect(await change('Change those of the cluster', 'Time limit', '7d')).toEqual(['nomadlike operator ceilings -time-limit 168h', { method: 'PUT', path: '/v1/settings', body: { ceilings: { time_limit: '168h', nodes: 8 } } }])
  expect(await change('Change those of pool default', 'Nodes', '4')).toEqual(['nomadlike pool apply FILE', { method: 'PUT', path: '/v1/pools/default', body: { name: 'default', description: 'all', ceilings: { time_limit: '48h0m0s', nodes: 4 }, ceilings_by: 'ben', ceilings_at: set.at } }])
  expect(await change('Change those of project vision', 'Cards', '')).toMatchObject(['nomadlike project apply FILE', { path: '/v1/projects/vision', body: { name: 'vision', members: ['ann'], ceilings: { no_checkpoint: true } } }])
  expect(ceilingFlags({ time_limit: '1h0m0s', nodes: 2, no_checkpoint: true }, { nodes: 2, devices: 8 })).toBe(' -time-limit none -devices 8 -no-checkpoint=false')
  expect(ceilingsFor({ time_limit: '2d', grace: ' ', devices: 1 })).toEqual({ time_limit: '48h', grace: undefined, hold: undefined, devices: 1 })
})

test('what closes is said before sharing is switched off', async () => {
  const asked = stub(bounded)
  show(<LimitsPage />, who('admin', 'admin'))
  await userEvent.click(await screen.findByRole('button', { name: 'Switch sharing off: Cluster' }))
  let dialog = within(await screen.findByRole('dialog'))
  dialog.getByText('5 jobs close to others of their project.')
  dialog.getByText(/Not ended: 4. Others may read 3, and also change 2./)
  dialog.getByText(/terminals of such jobs that others have open end at once/)
  expect(asked.every((one) => one.method === 'GET')).toBe(true)
  await userEvent.click(dialog.getByRole('button', { name: 'Switch sharing off' }))
  await vi.waitFor(() => expect(asked.find((one) => one.method === 'PUT')).toEqual({ method: 'PUT', path: '/v1/settings', body: { no_sharing: true } }))
  await userEvent.click(await screen.findByRole('button', { name: 'Switch sharing off: Project vision' }))
  dialog = within(await screen.findByRole('dialog'))
  dialog.getByText('1 job closes to others of its project.')
  await userEvent.click(dialog.getByRole('button', { name: 'Switch sharing off' }))
  await vi.waitFor(() => expect(asked.filter((one) => one.method === 'PUT').at(-1)).toMatchObject({ path: '/v1/projects/vision', body: { name: 'vision', members: ['ann'], no_sharing: true } }))
})

test('the create page shows the most for where the job is to stand', async () => {
  const asked = stub(bounded)
  show(<><Most acting="vision" job={{ placement: { pool: 'a800' } } as unknown as Job} /><Most acting="vision" job={{ placement: { pool: '', nodes: ['n1'] } } as unknown as Job} /></>, who('user'))
  expect((await screen.findAllByText('Time limit'))[0]!.nextSibling!.textContent).toMatch(/^2 d pool default, ben/)
  expect(asked.map((one) => one.path).sort()).toEqual(['/v1/settings?named=true', '/v1/settings?pool=a800'])
})

const secret = (name: string, more = {}) => ({ name, project: 'vision', own: false, version: 2, created_at: set.at, created_by: 'li', updated_at: set.at, updated_by: 'ann', jobs: [], verbs: ['read', 'write', 'delete'], ...more })
const jobs = ['a', 'b', 'c', 'd', 'e'].map((id) => ({ id, name: 'train-' + id, user: 'ann' }))
const keys = { current: 'k1', server_key: 's1', keys: 1, secrets: 2, lacking: [], resealed: 0 }
const kept = {
  '/v1/secrets': { secrets: [secret('wandb', { jobs }), secret('theirs', { verbs: ['read'] }), secret('mine', { own: true, project: undefined })] },
  'PUT /v1/secrets/wandb': { index: 9, version: 3, jobs: jobs.slice(0, 1), unmasked: true },
  '/v1/operator/secrets': keys,
  'POST /v1/operator/secrets/rotate': { ...keys, current: 'k2', resealed: 2 },
}

test('a secret is listed without its value, and replaced and deleted by who may', async () => {
  const asked = stub(kept)
  show(<SecretsPage />, who('user'))
  await screen.findByText('2 secrets of project vision; 1 of your own. 1 is used by jobs that have not ended.')
  screen.getByText(/and 2 more/)
  expect(screen.queryByRole('button', { name: /theirs/ })).toBeNull()
  expect(screen.queryByRole('region', { name: 'Keys of secrets' })).toBeNull()
  await userEvent.click(screen.getByRole('button', { name: 'Replace wandb' }))
  let dialog = within(await screen.findByRole('dialog'))
  dialog.getByText('wandb gets version 3.')
  const value = dialog.getByRole<HTMLTextAreaElement>('textbox', { name: 'Value' })
  expect(value.classList.contains('hides')).toBe(true)
  fireEvent.change(value, { target: { value: 'geheim\n' } })
  await userEvent.click(dialog.getByRole('button', { name: 'Replace' }))
  await screen.findByText('wandb is set, version 3.')
  screen.getByText(/too short to be masked/)
  expect(asked.find((one) => one.method === 'PUT')).toEqual({ method: 'PUT', path: '/v1/secrets/wandb', body: { value: btoa('geheim') } })
  expect(document.body.textContent).not.toContain('geheim')
  await userEvent.click(screen.getByRole('button', { name: 'Delete wandb' }))
  dialog = within(await screen.findByRole('dialog'))
  dialog.getByText('5 jobs use it and cannot start any more:')
  expect(dialog.getAllByRole('link')).toHaveLength(5)
  await userEvent.click(dialog.getByRole('button', { name: 'Delete' }))
  await vi.waitFor(() => expect(asked.find((one) => one.method === 'DELETE')?.path).toBe('/v1/secrets/wandb'))
  await userEvent.click(await screen.findByRole('button', { name: 'Delete mine' }))
  await userEvent.click(within(await screen.findByRole('dialog')).getByRole('button', { name: 'Delete' }))
  await vi.waitFor(() => expect(asked.filter((one) => one.method === 'DELETE').at(-1)?.path).toBe('/v1/secrets/mine?mine=true'))
})

test('a new secret is checked and may come from a file, byte by byte', async () => {
  const asked = stub(kept)
  show(<SecretsPage />, who('user'))
  await userEvent.click(await screen.findByRole('button', { name: 'New secret' }))
  const dialog = within(await screen.findByRole('dialog'))
  const make = () => dialog.getByRole<HTMLButtonElement>('button', { name: /^(New secret|Replace)$/ })
  fireEvent.change(dialog.getByRole('textbox', { name: 'Name' }), { target: { value: '1x' } })
  dialog.getByText(/does not begin with a digit/)
  expect(make().disabled).toBe(true)
  fireEvent.change(dialog.getByRole('textbox', { name: 'Name' }), { target: { value: 'mine' } })
  await userEvent.click(dialog.getByRole('radio', { name: /^mine/ }))
  dialog.getByText('mine gets version 3.') // there is one
  fireEvent.change(dialog.getByLabelText('From a file…', { selector: 'input' }), { target: { files: [new File([new Uint8Array([0, 255, 10])], 'id key')] } })
  await dialog.findByText(/id key, 3 bytes/)
  dialog.getByText("nomadlike secret set -mine -file 'id key' mine")
  await userEvent.click(make())
  await vi.waitFor(() => expect(asked.find((one) => one.method === 'PUT')).toEqual({ method: 'PUT', path: '/v1/secrets/mine?mine=true', body: { value: 'AP8K' } }))
  expect([bytesOf('a\n').length, bytesOf('a\nb\n').length, bytesOf('\n').length, base64(bytesOf('密'))]).toEqual([1, 4, 0, '5a+G'])
  expect([nameOK('A_1'), nameOK('_'), nameOK(''), nameOK('a-b'), nameOK('a b')]).toEqual([true, true, false, false, false])
})

test('operators see the keys by name and no secrets; administrators rotate', async () => {
  let asked = stub({ ...kept, '/v1/operator/secrets': { ...keys, lacking: ['s0'] } })
  show(<SecretsPage />, who('operator', 'operator'))
  await screen.findByText('This server lacks 1 key (s0): secrets that it seals cannot be read.')
  screen.getByText('Operators and viewers see no secrets, not even their names.')
  expect(asked.some((one) => one.path === '/v1/secrets')).toBe(false)
  expect(screen.queryByRole('button', { name: /Rotate|New secret/ })).toBeNull()
  cleanup()
  asked = stub(kept)
  show(<SecretsPage />, who('admin', 'admin'))
  await userEvent.click(await screen.findByRole('button', { name: 'Rotate' }))
  await userEvent.click(within(await screen.findByRole('dialog')).getByRole('button', { name: 'Rotate' }))
  await screen.findByText('The keys are new; 2 values were sealed anew.')
  expect(asked.find((one) => one.method === 'POST')?.path).toBe('/v1/operator/secrets/rotate')
})

test('the rail has what somebody has a use for', () => {
  const pages = (role: string) => ['use', 'project', 'secrets', 'limits', 'projects', 'people', 'audit'].filter((key) => opens(key, (right: Right) => allows(right, role)))
  expect(pages('viewer')).toEqual(['use', 'project', 'limits'])
  expect(pages('user')).toEqual(['use', 'project', 'secrets', 'limits'])
  expect(pages('operator')).toEqual(['use', 'project', 'secrets', 'limits', 'projects', 'people', 'audit'])
  expect(pages('admin')).toEqual(pages('operator'))
})
