import { cleanup, configure, render, screen } from '@testing-library/react'
import userEvent from './user'
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import i18next from 'i18next'
import { initReactI18next } from 'react-i18next'
import { BrowserRouter } from 'react-router'
import { afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { ownPath } from '../src/parts/through'
import { SignIn } from '../src/signin'
import { en } from './words'

const patience = { timeout: 30_000 } // a busy machine is slow

beforeAll(async () => {
  configure({ asyncUtilTimeout: patience.timeout })
  await i18next.use(initReactI18next).init({ lng: 'en', resources: { en: { translation: en } }, interpolation: { escapeValue: false } })
})
beforeEach(() => vi.stubGlobal('matchMedia', () => ({ matches: false, addListener() {}, removeListener() {}, addEventListener() {}, removeEventListener() {} })))
afterEach(() => {
  cleanup()
  vi.unstubAllGlobals()
  sessionStorage.clear()
})

// at shows the sign-in at an address, to servers that answer these paths.
function at(address: string, answers: Record<string, unknown>) {
  history.replaceState(null, '', address)
  const sent: [string, unknown][] = []
  vi.stubGlobal('fetch', vi.fn(async (path: string, init: RequestInit) => {
    if (init.method !== 'GET') sent.push([path, JSON.parse(String(init.body))])
    const answer = answers[path]
    if (answer instanceof Error) return new Response(JSON.stringify({ code: 'unauthorized', id: 'oidc.begin_again', message: answer.message }), { status: 401 })
    return new Response(JSON.stringify(answer))
  }))
  const client = new QueryClient()
  render(<BrowserRouter><QueryClientProvider client={client}><SignIn /></QueryClientProvider></BrowserRouter>)
  return { client, sent }
}

const providers = { providers: [{ name: 'platform', kind: 'oidc', caption: 'Platform' }, { name: 'company', kind: 'ldap' }] }
const self = { token: { id: 't1', role: 'account', user: 'li', method: 'oidc' }, role: 'user', project: 'vision' }

test('a button for each provider with a browser, which is sent there and nowhere else', async () => {
  const { sent } = at('/jobs?state=running', { '/v1/login': providers, '/v1/session/begin': { address: 'javascript:alert(1)' } })
  await userEvent.click(await screen.findByRole('button', { name: 'Sign in with Platform' }))
  await screen.findByRole('alert')
  expect(sent).toEqual([['/v1/session/begin', { provider: 'platform' }]])
  expect(screen.queryByRole('button', { name: /company/ })).toBeNull()
  expect(sessionStorage.getItem('nomadlike.to')).toBeNull()
})

test('whoever comes back sees the page that was asked for, and the answer nowhere', async () => {
  sessionStorage.setItem('nomadlike.to', '/jobs?state=running')
  const { client, sent } = at('/sign-in/platform?code=the-code&state=the-state&iss=https%3A%2F%2Fp&session_state=x', { '/v1/login': providers, '/v1/session': { token: { id: 't1' } }, '/v1/self': self })
  expect(location.search).toBe('')
  await vi.waitFor(() => expect(client.getQueryData<{ user: string }>(['session'])?.user).toBe('li'), patience)
  expect(sent).toEqual([['/v1/session', { provider: 'platform', answer: { code: 'the-code', state: 'the-state', iss: 'https://p' } }]])
  expect(location.pathname + location.search).toBe('/jobs?state=running')
  expect(JSON.stringify({ ...localStorage, ...sessionStorage }) + document.body.innerHTML).not.toMatch(/the-code|the-state/)
})

test('a refusal is told, and the page that was asked for is kept for the next try', async () => {
  sessionStorage.setItem('nomadlike.to', '/queue')
  at('/sign-in/platform?error=access_denied&state=s', { '/v1/login': providers, '/v1/session': new Error('it was used already') })
  expect((await screen.findByRole('alert')).textContent).toContain('it was used already')
  expect(await screen.findByRole('button', { name: 'Sign in with Platform' })).toBeTruthy()
  expect(sessionStorage.getItem('nomadlike.to')).toBe('/queue')
})

test('an address without a state finishes nothing', async () => {
  const { sent } = at('/sign-in/platform?code=evil', { '/v1/login': providers })
  await screen.findByRole('button', { name: 'Sign in with Platform' })
  expect(sent).toEqual([])
})

test('no page of another site is shown after signing in', () => {
  for (const path of ['/', '/jobs?state=running#top', '/jobs/a%20b']) expect(ownPath(path)).toBe(path)
  for (const path of [null, '', 'jobs', '//evil.test', '/\\evil.test', '/\t/evil.test', 'https://evil.test', 'javascript:alert(1)', '/a\nb', '/a\\b']) expect(ownPath(path)).toBe('/')
})
