import { QueryClient, QueryClientProvider, useQuery } from '@tanstack/react-query'
import { act, cleanup, render } from '@testing-library/react'
import i18next from 'i18next'
import { initReactI18next } from 'react-i18next'
import { createMemoryRouter, Outlet, RouterProvider } from 'react-router'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Loading } from '../src/parts/states'
import { Content } from '../src/shell'
import { en } from './words'

beforeEach(async () => {
  await i18next.use(initReactI18next).init({ lng: 'en', resources: { en: { translation: en } }, interpolation: { escapeValue: false } })
  vi.useFakeTimers()
})
afterEach(() => {
  cleanup()
  vi.useRealTimers()
})

const after = (ms: number) => act(() => vi.advanceTimersByTimeAsync(ms))
const later = (ms: number, fails = false) => new Promise<string>((done, fail) => setTimeout(() => (fails ? fail(new Error('no')) : done('there')), ms))

// Asks shows what an answer that takes ms says, and below it one that is asked for then.
function Asks({ ms, more, fails, meta }: { ms: number; more?: number; fails?: boolean; meta?: { later: boolean } }) {
  const { data, error } = useQuery({ queryKey: [ms], queryFn: () => later(ms, fails), retry: 2, retryDelay: 1000, meta })
  return <div>{error ? 'failed' : (data ?? 'nothing')}{data && more && <Asks ms={more} />}</div>
}

function open(path: string) {
  const router = createMemoryRouter([{
    element: <Content><Outlet /></Content>,
    children: [
      { path: '/still', element: <p>still</p> },
      { path: '/jobs/:id/:tab?', element: <Asks ms={100} more={120} /> },
      { path: '/slow', element: <Asks ms={60_000} /> },
      { path: '/fails', element: <Asks ms={50} fails /> },
      { path: '/long-list', element: <Asks ms={50_000} meta={{ later: true }} /> },
      { path: '/part', element: <Loading /> },
    ],
  }], { initialEntries: [path] })
  render(<QueryClientProvider client={new QueryClient()}><RouterProvider router={router} /></QueryClientProvider>)
  return { router, hidden: () => document.querySelector('main')!.ariaBusy === 'true' }
}

test('a page is hidden until its first answers are there, and those that they ask for', async () => {
  const { hidden, router } = open('/jobs/a')
  expect(hidden()).toBe(true)
  await after(150)
  expect(hidden()).toBe(true) // the first answer has asked for the second
  await after(150)
  expect(hidden()).toBe(false)
  await act(() => router.navigate('/jobs/a/logs?rank=1'))
  expect(hidden()).toBe(false) // a tab is of the same page
  await act(() => router.navigate('/jobs/b'))
  expect(hidden()).toBe(true)
  await act(() => router.navigate('/still'))
  await after(60)
  expect(hidden()).toBe(false)
})

test('a page that asks for nothing, one that fails and one whose list is long are there at once', async () => {
  for (const path of ['/still', '/fails', '/long-list']) {
    const { hidden } = open(path)
    await after(120)
    expect([path, hidden()]).toEqual([path, false])
    cleanup()
  }
})

test('a page is shown as far as it is there when servers or a part of the program take long', async () => {
  for (const path of ['/slow', '/part']) {
    const { hidden } = open(path)
    await after(1400)
    expect([path, hidden()]).toEqual([path, true])
    await after(200)
    expect([path, hidden()]).toEqual([path, false])
    cleanup()
  }
})
