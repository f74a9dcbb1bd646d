import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { cleanup, configure, render, screen, within } from '@testing-library/react'
import i18next from 'i18next'
import { initReactI18next } from 'react-i18next'
import { createMemoryRouter, RouterProvider } from 'react-router'
import { afterEach, beforeAll, expect, test, vi } from 'vitest'
import { endCommand, lastUsed, Services, tokenCommand } from '../src/parts/services'
import type { ServiceAccountDetail, Token } from '../src/types'
import userEvent from './user'
import { en, zh } from './words'

beforeAll(async () => {
  configure({ asyncUtilTimeout: 30_000 }) // a busy machine is slow
  await i18next.use(initReactI18next).init({ lng: 'en', resources: { zh: { translation: zh }, en: { translation: en } }, interpolation: { escapeValue: false } })
  vi.stubGlobal('ResizeObserver', class { observe() {} unobserve() {} disconnect() {} })
})
afterEach(() => cleanup())

interface Asked {
  method: string
  path: string
  body: unknown
}

const token = { id: 't1', name: 'pipeline', role: 'account', project: 'vision', user: 'service+vision+ci', created_at: '2026-11-27T00:00:00Z', expires_at: '2026-12-27T00:00:00Z', used_at: '2026-11-27T08:00:00Z', used_from: '10.0.0.7', verbs: ['read'], modify_index: 1 } as unknown as Token
const account = (more: object = {}, live = 0, tokens: Token[] = [token]): ServiceAccountDetail => ({ account: { name: 'ci', project: 'vision', role: 'user', owner: 'pat', description: 'trains what is merged', ...more }, user: 'service+vision+ci', live, tokens, verbs: ['list', 'read', 'write'] }) as unknown as ServiceAccountDetail

function show(accounts: ServiceAccountDetail[], may = true, refuses = false): Asked[] {
  const asked: Asked[] = []
  vi.stubGlobal('fetch', vi.fn(async (path: string, init?: RequestInit) => {
    const one = { method: init?.method ?? 'GET', path, body: init?.body && JSON.parse(String(init.body)) }
    asked.push(one)
    if (refuses && one.method !== 'GET') return Response.json({ code: 'conflict', id: 'x', message: 'refused for a reason' }, { status: 409 })
    return Response.json(path.endsWith('/tokens') ? { token: { ...token, id: 't2' }, secret: 'nl_user_shownonce' } : { accounts, index: 1 })
  }))
  render(<QueryClientProvider client={new QueryClient({ defaultOptions: { queries: { retry: false, staleTime: Infinity } } })}><RouterProvider router={createMemoryRouter([{ path: '*', element: <Services project="vision" may={may} /> }])} /></QueryClientProvider>)
  return asked
}

const changes = (asked: Asked[]) => asked.filter(({ method }) => method !== 'GET')

test('commands say what the dialogs do', () => {
  expect(tokenCommand('ci', { label: 'a b', ttl: '30d', verbs: ['read'], addresses: ['10.0.0.0/8'] })).toBe("nomadlike service-account token create -name 'a b' -ttl 30d -verb read -from 10.0.0.0/8 ci")
  expect(endCommand('delete', 'ci')).toBe('nomadlike service-account delete ci')
  expect(endCommand('disable', 'ci', 'hand_over', 'mei')).toBe('nomadlike service-account disable -jobs hand-over -to mei ci')
  expect([lastUsed([]), lastUsed(null), lastUsed([token, { ...token, used_at: '2026-11-28T00:00:00Z' }, { ...token, used_at: undefined }])]).toEqual([undefined, undefined, '2026-11-28T00:00:00Z'])
})

test('whoever may not change them sees them without deeds, and those of the cluster are elsewhere', async () => {
  show([account(), account({ name: 'board', project: undefined })], false)
  expect(await screen.findByText('trains what is merged')).toBeTruthy()
  expect(screen.queryByText('board')).toBeNull()
  expect(screen.queryAllByRole('button').filter((one) => /token|Disable|Delete|New service/.test(one.textContent ?? ''))).toEqual([])
})

test('one is made, and its token shown once', async () => {
  const user = userEvent
  const asked = show([account({}, 0, [])])
  await user.click(await screen.findByRole('button', { name: 'New service account' }))
  const dialog = await screen.findByRole('dialog')
  await user.type(within(dialog).getByLabelText('Name'), 'ci')
  expect(within(dialog).getByRole('alert').textContent).toContain('There is a service account ci already')
  await user.type(within(dialog).getByLabelText('Name'), 'nightly')
  await user.click(within(dialog).getByRole('button', { name: 'New service account' }))
  await vi.waitFor(() => expect(changes(asked)).toEqual([{ method: 'PUT', path: '/v1/service-accounts/nightly', body: { description: '', role: 'user' } }]))
  cleanup()
  const second = show([account()])
  await user.click(await screen.findByRole('button', { name: 'Tokens of ci' }))
  const tokens = await screen.findByRole('dialog')
  expect(tokens.textContent).toContain('service+vision+ci')
  expect(tokens.textContent).toContain('10.0.0.7')
  await user.type(within(tokens).getByLabelText('Good from these addresses only'), '10.0.0.0/8, 192.0.2.1')
  await user.click(within(tokens).getByRole('button', { name: 'Make a token' }))
  expect(await within(tokens).findByText('nl_user_shownonce')).toBeTruthy()
  expect(changes(second)).toEqual([{ method: 'POST', path: '/v1/service-accounts/ci/tokens', body: { name: '', ttl: '720h', verbs: [], addresses: ['10.0.0.0/8', '192.0.2.1'] } }])
  await user.click(within(tokens).getByRole('button', { name: 'Revoke pipeline' }))
  await vi.waitFor(() => expect(changes(second).at(-1)).toEqual({ method: 'POST', path: '/v1/service-accounts/ci/revoke', body: { token: 't1' } }))
})

test('to end one says what becomes of its jobs, and a refusal stays in sight', async () => {
  const user = userEvent
  const asked = show([account({}, 2)], true, true)
  await user.click(await screen.findByRole('button', { name: 'Delete ci' }))
  const dialog = await screen.findByRole('dialog')
  const act = within(dialog).getByRole('button', { name: 'Delete' }) as HTMLButtonElement
  expect(act.disabled).toBe(true)
  expect(within(dialog).queryByLabelText('run on')).toBeNull()
  await user.click(within(dialog).getByLabelText('hand over to'))
  await user.type(within(dialog).getByLabelText('Hand over to'), 'mei')
  await user.click(act)
  expect(await within(dialog).findByText('refused for a reason')).toBeTruthy()
  expect(changes(asked)).toEqual([{ method: 'DELETE', path: '/v1/service-accounts/ci?jobs=hand_over&to=mei', body: undefined }])
})
