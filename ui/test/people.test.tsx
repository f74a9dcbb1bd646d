import { QueryClient, QueryClientProvider, QueryObserver } from '@tanstack/react-query'
import { act as acts, cleanup, configure, fireEvent, render, screen, within } from '@testing-library/react'
import i18next from 'i18next'
import { initReactI18next } from 'react-i18next'
import { createMemoryRouter, RouterProvider } from 'react-router'
import { afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { act, acting, dropWhenSwitched } from '../src/acting'
import { ApiError, call, get } from '../src/api'
import { People } from '../src/pages/people'
import { membersOf, ProjectPage } from '../src/pages/project'
import { FailedHere, useMissed } from '../src/parts/elsewhere'
import { Acting } from '../src/parts/acting'
import { askSwitch } from '../src/parts/keys'
import { changeOf, disableOf } from '../src/parts/people'
import { placesOf } from '../src/parts/switch'
import { allows, mayDo, whoOf, type Who } from '../src/rights'
import type { Self } from '../src/types'
import userEvent from './user'
import { en, zh } from './words'

beforeAll(async () => {
  configure({ asyncUtilTimeout: 30_000 }) // a busy machine is slow
  await i18next.use(initReactI18next).init({ lng: 'en', resources: { zh: { translation: zh }, en: { translation: en } }, interpolation: { escapeValue: false } })
  vi.stubGlobal('ResizeObserver', class { observe() {} unobserve() {} disconnect() {} })
})
beforeEach(() => act(''))
afterEach(async () => {
  cleanup()
  await i18next.changeLanguage('en')
})

const selfOf = (more: Partial<Self> = {}): Self => ({ token: { id: 't1', user: 'ann', role: 'account' }, name: 'ann', project: 'vision', role: 'user', memberships: [{ project: 'vision', role: 'user' }, { project: 'speech', role: 'project-admin' }], ...more }) as unknown as Self
const who = (more: Partial<Self> = {}): Who => whoOf(selfOf(more))

interface Asked {
  method: string
  path: string
  project: string
  body: unknown
}

// stub answers as an agent does that has the paths that are given.
function stub(answers: Record<string, unknown>, refuses?: (asked: Asked) => { id: string; message?: string } | undefined): Asked[] {
  const asked: Asked[] = []
  vi.stubGlobal('fetch', vi.fn(async (path: string, init?: RequestInit) => {
    const one = { method: init?.method ?? 'GET', path, project: (init?.headers as Record<string, string>)['X-Nomadlike-Project'] ?? '', body: init?.body && JSON.parse(String(init.body)) }
    asked.push(one)
    const refused = refuses?.(one)
    return refused ? Response.json({ code: 'forbidden', message: 'refused', ...refused }, { status: 403 }) : Response.json(answers[path] ?? {})
  }))
  return asked
}

function show(page: React.ReactNode, signedIn: Who) {
  const client = new QueryClient({ defaultOptions: { queries: { retry: false, staleTime: Infinity } } })
  client.setQueryData(['session'], signedIn)
  render(<QueryClientProvider client={client}><RouterProvider router={createMemoryRouter([{ path: '*', element: page }])} /></QueryClientProvider>)
}

test('rights are those of the role in the project, and of the role in the cluster beside it', () => {
  const member = who()
  expect([member.role, member.project, member.acting]).toEqual(['user', 'vision', 'vision'])
  expect([mayDo({ user: 'ann', project: 'vision' }, member).includes('stop'), mayDo({ user: 'ann', project: 'speech' }, member)]).toEqual([true, []])
  const both = who({ cluster: 'operator' })
  expect(mayDo({ user: 'li', project: 'speech' }, both)).toEqual(['stop', 'control', 'annotate', 'priority', 'move'])
  const wide = who({ cluster: 'operator', role: 'operator' })
  expect([wide.project, allows('submit', wide.role), allows('members', wide.role)]).toEqual(['', false, false])
})

test('requests carry the project that was chosen, and signing in does not', async () => {
  const asked = stub({})
  act('speech')
  await get('/v1/jobs')
  await call('POST', '/v1/session', { token: 'x' })
  act('')
  await get('/v1/jobs')
  expect(asked.map((one) => one.project)).toEqual(['speech', '', ''])
})

test('a project that may be acted in no more is left: what is read is read again, what changes something is not done elsewhere', async () => {
  for (const id of ['auth.not_member', 'auth.token_project']) {
    const asked = stub({ '/v1/self': selfOf() }, ({ project }) => (project === 'gone' ? { id } : undefined))
    act('gone')
    expect(await get('/v1/self')).toEqual(selfOf())
    expect([acting(), localStorage.getItem('nomadlike.project'), asked.length]).toEqual(['', null, 2])
    act('gone')
    await expect(call('POST', '/v1/jobs', {})).rejects.toThrow('refused')
    expect([acting(), asked.length]).toEqual(['', 3])
  }
  stub({}, () => ({ id: 'auth.forbidden' }))
  act('vision')
  await expect(get('/v1/jobs')).rejects.toThrow('refused')
  expect(acting(), 'another refusal is not about the project').toBe('vision')
})

test('what another tab chooses holds here as well', () => {
  act('vision')
  dispatchEvent(new StorageEvent('storage', { key: 'nomadlike.project', newValue: 'speech' }))
  expect(acting()).toBe('speech')
  dispatchEvent(new StorageEvent('storage', { key: 'nomadlike.language', newValue: 'zh' }))
  expect(acting()).toBe('speech')
})

test('what was read in one project is dropped in another, and read again', async () => {
  const asked = stub({})
  const client = new QueryClient()
  const end = dropWhenSwitched(client)
  client.setQueryData(['jobs'], ['of vision'])
  const watch = new QueryObserver(client, { queryKey: ['nodes'], queryFn: () => get('/v1/nodes'), initialData: 'of vision', staleTime: Infinity }).subscribe(() => {})
  act('speech')
  await vi.waitFor(() => expect(asked.map((one) => one.path + ' ' + one.project)).toEqual(['/v1/nodes speech']))
  expect(client.getQueryData(['jobs'])).toBeUndefined()
  act('speech')
  expect(asked, 'the same project is no other').toHaveLength(1)
  watch()
  end()
})

test('a job of another project offers to switch there', async () => {
  const refusal = (id: string) => new ApiError(403, { code: 'forbidden', id, message: 'job train is in project speech', params: { project: 'speech' } })
  show(<FailedHere error={refusal('auth.elsewhere')} />, who())
  expect(screen.getByRole('alert').textContent).toContain('job train is in project speech')
  await userEvent.click(screen.getByRole('button', { name: 'Switch to speech' }))
  expect(acting()).toBe('speech')
  cleanup()
  show(<FailedHere error={refusal('auth.forbidden')} />, who())
  expect([screen.queryByRole('button'), !!screen.getByRole('alert')]).toEqual([null, true])
})

test('a refusal stays while the same is asked for again, and until something else is', () => {
  const Missed = ({ name, error, data }: { name: string; error: Error | null; data?: unknown }) => <output>{useMissed(name, { error, data })?.message ?? 'none'}</output>
  const { container, rerender } = render(<Missed name="a" error={null} />)
  const after = (missed: React.ReactNode) => { rerender(missed); return container.textContent }
  expect(container.textContent).toBe('none')
  expect(after(<Missed name="a" error={new Error('refused')} />)).toBe('refused')
  expect(after(<Missed name="a" error={null} />)).toBe('refused')
  expect(after(<Missed name="b" error={null} />)).toBe('none')
  expect(after(<Missed name="a" error={null} />)).toBe('none')
  expect(after(<Missed name="a" error={new Error('away')} />)).toBe('away')
  expect(after(<Missed name="a" error={null} data={1} />)).toBe('none')
  expect(after(<Missed name="a" error={null} />)).toBe('none')
})

test('the switch lists the projects with the role there, and who has one only reads it', async () => {
  expect(placesOf(who())).toEqual([{ project: 'speech', role: 'project-admin' }, { project: 'vision', role: 'user' }])
  expect(placesOf(who({ role: 'admin', cluster: 'admin' }), ['data']).map((one) => one.project + ':' + one.role)).toEqual(['data:admin', 'speech:admin', 'vision:admin'])
  show(<Acting who={who({ memberships: [{ project: 'vision', role: 'user' }] })} />, who())
  expect([screen.queryByRole('button'), document.querySelector('.acting')!.textContent]).toEqual([null, 'vision user'])
  cleanup()
  stub({})
  show(<Acting who={who()} />, who())
  await acts(async () => void dispatchEvent(new Event(askSwitch))) // as the keys g and a do
  const list = await screen.findByRole('dialog', { name: 'Project' })
  await vi.waitFor(() => expect(document.activeElement!.textContent).toBe('vision user'))
  fireEvent.keyDown(document.activeElement!, { key: 'ArrowUp' })
  expect(document.activeElement!.textContent).toBe('speech project administrator')
  await userEvent.click(within(list).getByRole('button', { name: /speech/ }))
  expect([acting(), screen.queryByRole('dialog')]).toEqual(['speech', null])
  await userEvent.click(screen.getByRole('button'))
  await screen.findByRole('dialog')
  await acts(async () => void fireEvent.keyDown(document.body, { key: 'Escape' }))
  expect([screen.queryByRole('dialog'), document.activeElement!.tagName]).toEqual([null, 'BUTTON'])
})

test('an operator may act in every project', async () => {
  stub({ '/v1/projects': { projects: [{ project: { name: 'data' } }, { project: { name: 'vision' } }] } })
  const operator = who({ role: 'operator', cluster: 'operator', memberships: [] })
  show(<Acting who={operator} />, operator)
  await userEvent.click(screen.getByRole('button'))
  expect((await screen.findByRole('button', { name: /^data/ })).textContent).toBe('data operator')
})

const vision = { '/v1/self': selfOf({ role: 'project-admin' }), '/v1/projects/vision': { defined: true, project: { name: 'vision', admins: ['li'], members: ['ann'], viewers: ['vic'] } } }

test('whom a provider lets in is shown with its name, and nobody changes that here', async () => {
  stub({ '/v1/self': selfOf({ role: 'project-admin' }), '/v1/projects/vision': { defined: true, project: { name: 'vision', granted: [{ user: 'ann', role: 'user', provider: 'company' }] } } })
  show(<ProjectPage />, who({ role: 'project-admin' }))
  const row = (await screen.findByText('from company')).closest('tr')!
  expect(row.textContent).toContain('ann')
  expect([within(row).queryByRole('combobox'), within(row).queryByRole('button'), screen.queryByText(en.people.open)]).toEqual([null, null, null])
})

test('members are added, changed and removed by who may, and errors stand where they are made', async () => {
  expect(membersOf(vision['/v1/projects/vision'].project).map((one) => one.name + ':' + one.role)).toEqual(['ann:user', 'li:project-admin', 'vic:viewer'])
  const asked = stub(vision, ({ method, body }) => (method === 'POST' && (body as { user: string }).user === 'nobody' ? { id: 'agent.member_no_account', message: 'no account nobody' } : undefined))
  const admin = who({ role: 'project-admin' })
  show(<ProjectPage />, admin)
  const posted = () => asked.filter((one) => one.method === 'POST').map((one) => one.body)
  await userEvent.type(await screen.findByRole('combobox', { name: 'User name' }), 'nobody')
  await userEvent.click(screen.getByRole('button', { name: 'Add a member' }))
  expect((await screen.findByRole('alert')).textContent).toBe('no account nobody')
  expect(screen.getByRole('combobox', { name: 'User name' }).getAttribute('aria-invalid')).toBe('true')
  await userEvent.type(screen.getByRole('combobox', { name: 'User name' }), 'ann')
  expect(screen.getByRole('alert').textContent).toContain('ann is a member already')
  await userEvent.type(screen.getByRole('combobox', { name: 'Role of vic' }), '1')
  await vi.waitFor(() => expect(posted().at(-1)).toEqual({ user: 'vic', role: 'user' }))
  await userEvent.click(screen.getByRole('button', { name: 'Remove li' }))
  const dialog = await screen.findByRole('dialog')
  expect(dialog.textContent).toContain('nomadlike project member remove vision li')
  await userEvent.click(within(dialog).getByRole('button', { name: 'Remove' }))
  await vi.waitFor(() => expect(posted().at(-1)).toEqual({ user: 'li' }))
  expect(asked.some((one) => one.path === '/v1/users'), 'accounts are not this reader\'s to list').toBe(false)
})

test('who may not change members reads them', async () => {
  stub(vision)
  await i18next.changeLanguage('zh')
  show(<ProjectPage />, who())
  const row = (await screen.findByText('li')).closest('tr')!
  expect(row.textContent).toBe('li 项目管理员')
  expect([screen.queryByRole('button', { name: /移除/ }), screen.queryByRole('combobox')]).toEqual([null, null])
})

const accounts = { '/v1/users': { users: [
  { user: { name: 'ann', display_name: 'Ann Li', email: 'ann@example.org', ssh_keys: ['ssh-ed25519 AAAA'] }, memberships: [{ project: 'vision', role: 'user' }, { project: 'speech', role: 'viewer' }], live: 3 },
  { user: { name: 'bob', disabled: true }, memberships: [], live: 0 },
  { user: { name: 'root', role: 'admin' }, memberships: [], live: 0 },
] } }
const root = who({ token: { id: 't', user: 'root', role: 'account' } as Self['token'], name: 'root', role: 'admin', cluster: 'admin', memberships: [] })

test('an account is disabled once it is said what becomes of its jobs', async () => {
  const asked = stub(accounts)
  show(<People />, root)
  expect((await screen.findByText('ann')).closest('tr')!.textContent).toContain('vision (user), speech (viewer)3')
  expect(screen.queryByRole('button', { name: 'Disable root' }), 'nobody disables themselves').toBeNull()
  await userEvent.click(screen.getByRole('button', { name: 'Disable ann' }))
  const dialog = within(await screen.findByRole('dialog'))
  const ok = dialog.getByRole('button', { name: 'Disable' }) as HTMLButtonElement
  expect([dialog.getByText('ann has 3 subjobs that wait or run.') && ok.disabled]).toEqual([true])
  await userEvent.click(dialog.getByRole('radio', { name: 'hand over to' }))
  expect(ok.disabled, 'to whom is not said').toBe(true)
  await userEvent.type(dialog.getByRole('combobox', { name: 'Hand over to' }), 'root')
  expect(dialog.getByText('nomadlike user disable -jobs hand-over -to root ann')).toBeTruthy()
  await userEvent.click(ok)
  await vi.waitFor(() => expect(asked.find((one) => one.method === 'PUT')).toMatchObject({ path: '/v1/users/ann/state', body: { disabled: true, jobs: 'hand_over', to: 'root' } }))
})

test('an account is made once, and changing it keeps what the dialog does not show', async () => {
  const asked = stub(accounts)
  show(<People />, root)
  await userEvent.click(await screen.findByRole('button', { name: 'New account' }))
  let dialog = within(await screen.findByRole('dialog'))
  await userEvent.type(dialog.getByRole('textbox', { name: 'User name' }), 'ann')
  expect(dialog.getByRole('alert').textContent).toBe('There is an account ann already')
  await userEvent.click(dialog.getByRole('button', { name: 'Cancel' }))
  await userEvent.click(await screen.findByRole('button', { name: 'Change ann' }))
  dialog = within(await screen.findByRole('dialog'))
  await userEvent.type(dialog.getByRole('textbox', { name: 'Name' }), 'Ann')
  await userEvent.click(dialog.getByRole('button', { name: 'Change' }))
  await vi.waitFor(() => expect(asked.find((one) => one.method === 'PUT')?.body).toEqual({ ...accounts['/v1/users'].users[0]!.user, display_name: 'Ann' }))
  expect([changeOf({ name: 'x', role: 'operator' }), changeOf({ name: 'x', email: '' }, { name: 'x', email: 'a@b' }), disableOf('x', 'run_on')]).toEqual(['nomadlike user create -role operator x', "nomadlike user update -email '' x", 'nomadlike user disable -jobs run-on x'])
})

test('an operator reads accounts and changes none', async () => {
  stub(accounts)
  show(<People />, who({ role: 'operator', cluster: 'operator' }))
  await screen.findByText('ann')
  expect(screen.queryAllByRole('button').filter((one) => /Change|Disable|Delete|Enable|New/.test(one.textContent!))).toEqual([])
})
