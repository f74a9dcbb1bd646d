import { cleanup, fireEvent, render } from '@testing-library/react'
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { createMemoryRouter, RouterProvider } from 'react-router'
import { afterEach, expect, test, vi } from 'vitest'
import { Keys } from '../src/parts/keys'

afterEach(cleanup)

function show() {
  const router = createMemoryRouter([{ path: '*', element: <Keys /> }], { initialEntries: ['/jobs?text=bulk-'] })
  render(<QueryClientProvider client={new QueryClient()}><RouterProvider router={router} /></QueryClientProvider>)
  return router
}

// press is a key so many milliseconds after the page was opened.
function press(key: string, at: number) {
  const event = new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true })
  Object.defineProperty(event, 'timeStamp', { value: at })
  fireEvent(document.body, event)
}

test('a letter leads to a page behind g alone, also when the page has just been opened', async () => {
  const router = show()
  for (const key of 'jqx') press(key, 10)
  await new Promise((done) => setTimeout(done))
  expect(router.state.location.search, 'j moves in the list, and leaves its filter').toBe('?text=bulk-')
  expect(router.state.location.pathname).toBe('/jobs')
  press('g', 20)
  press('q', 30)
  await vi.waitFor(() => expect(router.state.location.pathname).toBe('/queue'))
  press('j', 40)
  await new Promise((done) => setTimeout(done))
  expect(router.state.location.pathname, 'g counts once').toBe('/queue')
})
