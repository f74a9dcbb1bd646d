import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { cleanup, configure, fireEvent, render, screen, within } from '@testing-library/react'
import i18next from 'i18next'
import { initReactI18next } from 'react-i18next'
import { createMemoryRouter, RouterProvider } from 'react-router'
import { afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { clockOf, minutesOf, toggled, ToldPage } from '../src/pages/told'
import { Unread } from '../src/parts/unread'
import { whoOf } from '../src/rights'
import type { NotificationList, NotifyStatus, Self } from '../src/types'
import userEvent from './user'
import { en, zh } from './words'

beforeAll(async () => {
  configure({ asyncUtilTimeout: 30_000 }) // a busy machine is slow
  await i18next.use(initReactI18next).init({ lng: 'en', resources: { zh: { translation: zh }, en: { translation: en } }, interpolation: { escapeValue: false } })
  vi.stubGlobal('ResizeObserver', class { observe() {} unobserve() {} disconnect() {} })
})
afterEach(cleanup)

let status: NotifyStatus
let asked: { method: string; path: string; body: unknown }[]
const list: NotificationList = {
  unseen: 1, through: 7,
  notifications: [
    { id: 'n2', kind: 'failed', title: 'Job train failed', what: ['rank 3 ended with 1'], do: 'Look at its log.', job_id: 'abc', time: '2026-11-27T05:00:00Z', seen: false, lines: ['ValueError: <b>boom</b>'], deliveries: [] },
    { id: 'n1', kind: 'nodes', title: 'Node gpu-03 is lost', what: [], time: '2026-11-27T04:00:00Z', seen: true, deliveries: [] },
  ],
}

beforeEach(() => {
  asked = []
  status = { user: 'ann', email: 'ann@example.com', mail: true, allowed: ['hooks.example.com'], chosen: false, expire_in: '1h0m0s', wait_longer: '2h0m0s', kinds: ['failed', 'nodes'], on: [{ kind: 'failed', channels: ['bell'] }], channels: [], version: 1 }
  vi.stubGlobal('fetch', vi.fn(async (path: string, init?: RequestInit) => {
    const method = init?.method ?? 'GET'
    asked.push({ method, path, body: init?.body && JSON.parse(String(init.body)) })
    if (method === 'GET') return Response.json(path === '/v1/self/notify' ? status : list)
    if (path.endsWith('/test')) return Response.json({ sent: false, problem: 'it answered 500' })
    if (path.includes('/channels/') && method === 'PUT') {
      status = { ...status, version: 2, channels: [{ name: 'team', kind: 'webhook', host: 'hooks.example.com' }] }
      return Response.json({ index: 9, secret: 'whsec_drawn' })
    }
    return Response.json({ index: 9 })
  }))
  const client = new QueryClient({ defaultOptions: { queries: { retry: false, staleTime: Infinity } } })
  client.setQueryData(['session'], whoOf({ token: { id: 't1', user: 'ann', role: 'account' }, name: 'ann', project: 'vision', role: 'user', memberships: [] } as unknown as Self))
  render(<QueryClientProvider client={client}><RouterProvider router={createMemoryRouter([{ path: '*', element: <><Unread /><ToldPage /></> }])} /></QueryClientProvider>)
})

const done = (method: string) => asked.filter((one) => one.method === method).map(({ path, body }) => [path, body])

test('what was not seen is marked, leads to its job, and is seen from then on', async () => {
  const told = await screen.findByRole('link', { name: 'Job train failed' })
  expect([told.getAttribute('href'), told.querySelector('strong') !== null]).toEqual(['/jobs/abc', true])
  expect(screen.getByLabelText(en.told.lines).textContent).toBe('ValueError: <b>boom</b>')
  expect(screen.getByText('Node gpu-03 is lost').tagName).toBe('SPAN')
  expect(done('POST')).toEqual([['/v1/self/notifications/seen', { through: 7 }]])
})

test('what is new is counted beside the account, and leads to the list', async () => {
  const link = await screen.findByRole('link', { name: '1 new notification' })
  expect([link.textContent, link.getAttribute('href')]).toEqual(['1', '/notifications'])
})

test('kinds are told where one ticks them, and quiet hours are of the zone', async () => {
  expect(toggled([{ kind: 'failed', channels: ['bell'] }], 'failed', 'bell', false)).toEqual([])
  expect([minutesOf('07:05'), clockOf(425)]).toEqual([425, '07:05'])
  await userEvent.click(await screen.findByRole('checkbox', { name: 'A node is lost: this page' }))
  await userEvent.click(screen.getByRole('checkbox', { name: en.told.quiet }))
  await userEvent.type(screen.getByLabelText(en.told.to), '07:30')
  await userEvent.type(screen.getByLabelText(en.told.wait), '90')
  fireEvent.blur(screen.getByLabelText(en.told.wait))
  await userEvent.click(screen.getByRole('button', { name: en.told.save }))
  await screen.findByText(en.told.saved)
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone
  expect(done('PUT')).toEqual([['/v1/self/notify', { on: [{ kind: 'failed', channels: ['bell'] }, { kind: 'nodes', channels: ['bell'] }], wait_longer: '90m', expire_in: '60m', quiet: { from: 1320, to: 450, zone } }]])
})

test('a channel is made with a secret that is shown once, tried, and removed after a question', async () => {
  await userEvent.click(await screen.findByRole('button', { name: en.told.make }))
  const dialog = within(screen.getByRole('dialog'))
  await userEvent.type(dialog.getByLabelText(en.told.name), 'team')
  await userEvent.type(dialog.getByLabelText(en.told.address), 'https://hooks.example.com/x')
  await userEvent.click(dialog.getByRole('button', { name: en.told.make }))
  await screen.findByText('whsec_drawn')
  expect(done('PUT')).toEqual([['/v1/self/notify/channels/team', { kind: 'webhook', url: 'https://hooks.example.com/x', secret: '' }]])
  fireEvent.keyDown(document.body, { key: 'Escape' })
  await userEvent.click(await screen.findByRole('button', { name: 'Send a message to team' }))
  await screen.findByText('team did not take the message: it answered 500')
  await userEvent.click(screen.getByRole('button', { name: 'Remove team' }))
  expect(done('DELETE')).toEqual([])
  await userEvent.click(within(screen.getByRole('dialog')).getByRole('button', { name: en.told.remove }))
  await vi.waitFor(() => expect(done('DELETE')).toEqual([['/v1/self/notify/channels/team', undefined]]))
})
