import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { useEffect, useMemo, useState } from 'react'
import { createBrowserRouter, RouterProvider } from 'react-router'
import { dropWhenSwitched } from './acting'
import { ApiError, asked, onSignedOut } from './api'
import { Look, type Mode } from './look'
import { again } from './again'
import { withTexts } from './i18n'
import { Home } from './pages/home'
import { Jobs } from './pages/jobs'
import { Messages } from './parts/controls/messages'
import { firstJobs, firstNodes, firstQuery, nodesQuery } from './parts/lists'
import { Broken, NoPage, passing } from './parts/states'
import { sessionQuery, Shell } from './shell'

const client = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 10_000,
      refetchOnWindowFocus: true,
      // What failed because servers were away is asked for again until they are there.
      refetchInterval: ({ state }) => (state.status === 'error' && passing(state.error) ? 5000 : false),
      retry: (count, error) => count < 2 && (!(error instanceof ApiError) || error.status === 0 || error.status >= 500),
    },
  },
})
// One refusal may be of a moment: who is signed in is asked before the page goes.
onSignedOut(() => void client.invalidateQueries({ queryKey: ['session'] }))
dropWhenSwitched(client)

// takeFirst takes up what boot.js has asked for, while the texts are on their
// way: when they are there the first view is drawn once, and whole.
export async function takeFirst() {
  await client.prefetchQuery(sessionQuery)
  if (!client.getQueryData(sessionQuery.queryKey)) return // whoever signs in later asks anew
  if (asked(firstJobs)) void client.prefetchQuery(firstQuery(client))
  if (asked(firstNodes)) void client.prefetchQuery(nodesQuery)
}

// place is a page of people and projects, which come together.
const place = (path: string, page: keyof typeof import('./pages/places')) => ({ path, lazy: () => again(() => Promise.all([import('./pages/places'), withTexts('people', 'limits')])).then(([m]) => ({ Component: m[page] })) })

// Home and the list of jobs are seen first; the code of the other pages comes when
// they are opened.
const router = createBrowserRouter([
  {
    element: <Shell />,
    errorElement: <Broken />,
    children: [
      { index: true, element: <Home /> },
      { path: 'jobs', element: <Jobs /> },
      { path: 'cluster', lazy: () => again(() => Promise.all([import('./pages/cluster'), withTexts()])).then(([m]) => ({ Component: m.Cluster })) },
      { path: 'jobs/new', lazy: () => again(() => Promise.all([import('./pages/create'), withTexts('create', 'limits')])).then(([m]) => ({ Component: m.Create })) },
      { path: 'vip', lazy: () => again(() => Promise.all([import('./pages/vip'), withTexts('create', 'vip')])).then(([m]) => ({ Component: m.VipPage })) },
      { path: 'jobs/:id/:tab?', lazy: () => again(() => Promise.all([import('./pages/job'), withTexts('job')])).then(([m]) => ({ Component: m.JobPage })) },
      { path: 'compare', lazy: () => again(() => Promise.all([import('./pages/compare'), withTexts('compare')])).then(([m]) => ({ Component: m.Compare })) },
      { path: 'data', lazy: () => again(() => Promise.all([import('./pages/data'), withTexts('data')])).then(([m]) => ({ Component: m.DataPage })) },
      { path: 'data/:project/:kind/:name/:tab?', lazy: () => again(() => Promise.all([import('./pages/data/object'), withTexts('data')])).then(([m]) => ({ Component: m.DataObjectPage })) },
      { path: 'queue', lazy: () => again(() => Promise.all([import('./pages/queue'), withTexts()])).then(([m]) => ({ Component: m.QueuePage })) },
      { path: 'nodes/:id', lazy: () => again(() => Promise.all([import('./pages/node'), withTexts()])).then(([m]) => ({ Component: m.NodePage })) },
      { path: 'pools', lazy: () => again(() => Promise.all([import('./pages/pools'), withTexts()])).then(([m]) => ({ Component: m.Pools })) },
      place('use', 'UsePage'),
      place('project', 'ProjectPage'),
      place('projects', 'ProjectsPage'),
      place('projects/:name', 'ProjectPage'),
      place('people', 'People'),
      place('audit', 'AuditPage'),
      place('limits', 'LimitsPage'),
      place('secrets', 'SecretsPage'),
      { path: 'notifications', lazy: () => again(() => Promise.all([import('./pages/told'), withTexts('told')])).then(([m]) => ({ Component: m.ToldPage })) },
      { path: 'servers', lazy: () => again(() => Promise.all([import('./pages/servers'), withTexts('servers')])).then(([m]) => ({ Component: m.Servers })) },
      { path: '*', element: <NoPage /> },
    ],
  },
])

const keptMode = 'nomadlike.mode'

function useMode(): [Mode, boolean, (mode: Mode) => void] {
  const system = useMemo(() => matchMedia('(prefers-color-scheme: dark)'), [])
  const [mode, setMode] = useState<Mode>((localStorage.getItem(keptMode) as Mode | null) ?? 'auto')
  const [systemDark, setSystemDark] = useState(system.matches)
  useEffect(() => {
    const change = () => setSystemDark(system.matches)
    system.addEventListener('change', change)
    return () => system.removeEventListener('change', change)
  }, [system])
  const dark = mode === 'dark' || (mode === 'auto' && systemDark)
  useEffect(() => {
    document.documentElement.dataset.theme = dark ? 'dark' : 'light'
  }, [dark])
  return [
    mode,
    dark,
    (next) => {
      localStorage.setItem(keptMode, next)
      setMode(next)
    },
  ]
}

export function App() {
  const [mode, dark, setMode] = useMode()
  const look = useMemo(() => ({ mode, dark, setMode }), [mode, dark]) // eslint-disable-line react-hooks/exhaustive-deps
  return (
    <Look.Provider value={look}>
      <QueryClientProvider client={client}>
        <RouterProvider router={router} />
        <Messages />
      </QueryClientProvider>
    </Look.Provider>
  )
}
