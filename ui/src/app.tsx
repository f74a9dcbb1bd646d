import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { App as Frame, ConfigProvider, theme } from 'antd'
import enUS from 'antd/locale/en_US'
import zhCN from 'antd/locale/zh_CN'
import { useEffect, useMemo, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { createBrowserRouter, RouterProvider } from 'react-router'
import { ApiError, onSignedOut } from './api'
import { Look, type Mode } from './look'
import { nonce } from './nonce'
import { Broken } from './parts/states'
import { Shell } from './shell'

const client = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 10_000,
      refetchOnWindowFocus: true,
      retry: (count, error) => count < 2 && (!(error instanceof ApiError) || error.status === 0 || error.status >= 500),
    },
  },
})
onSignedOut(() => client.setQueryData(['session'], null))

const router = createBrowserRouter([
  {
    element: <Shell />,
    errorElement: <Broken />,
    children: [
      { index: true, lazy: () => import('./pages/jobs').then((m) => ({ Component: m.Jobs })) },
      { path: 'jobs', lazy: () => import('./pages/jobs').then((m) => ({ Component: m.Jobs })) },
      { path: 'jobs/new', lazy: () => import('./pages/create').then((m) => ({ Component: m.Create })) },
      { path: 'jobs/:id/:tab?', lazy: () => import('./pages/job').then((m) => ({ Component: m.JobPage })) },
      { path: 'queue', lazy: () => import('./pages/queue').then((m) => ({ Component: m.QueuePage })) },
      { path: 'cluster', lazy: () => import('./pages/cluster').then((m) => ({ Component: m.Cluster })) },
      { path: 'nodes/:id', lazy: () => import('./pages/node').then((m) => ({ Component: m.NodePage })) },
      { path: 'pools', lazy: () => import('./pages/pools').then((m) => ({ Component: m.Pools })) },
      { path: 'servers', lazy: () => import('./pages/servers').then((m) => ({ Component: m.Servers })) },
      { path: '*', lazy: () => import('./parts/states').then((m) => ({ Component: m.NoPage })) },
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

// Contrast of antd's own greys and blues is below 4.5 to 1: these are not.
const light = {
  colorPrimary: '#0b57c9',
  colorLink: '#0b57c9',
  colorLinkHover: '#083f92',
  colorLinkActive: '#083f92',
  colorError: '#c5221f',
  colorSuccess: '#1a7f37',
  colorWarning: '#9a5b00',
  colorTextTertiary: 'rgba(0,0,0,0.65)',
  colorTextQuaternary: 'rgba(0,0,0,0.62)',
  colorTextPlaceholder: 'rgba(0,0,0,0.62)',
  colorTextDescription: 'rgba(0,0,0,0.65)',
}
const darkTokens = {
  colorBgContainer: '#16191d',
  colorBgElevated: '#1d2126',
  colorPrimary: '#6fb0ff',
  colorLink: '#7ab7ff',
  colorLinkHover: '#a8d0ff',
  colorLinkActive: '#a8d0ff',
  colorError: '#ff8a80',
  colorErrorText: '#ff8a80',
  colorTextTertiary: 'rgba(255,255,255,0.68)',
  colorTextQuaternary: 'rgba(255,255,255,0.64)',
  colorTextPlaceholder: 'rgba(255,255,255,0.64)',
  colorTextDescription: 'rgba(255,255,255,0.68)',
}

export function App() {
  const { i18n } = useTranslation()
  const [mode, dark, setMode] = useMode()
  const look = useMemo(() => ({ mode, dark, setMode }), [mode, dark]) // eslint-disable-line react-hooks/exhaustive-deps
  return (
    <Look.Provider value={look}>
      <ConfigProvider
        csp={{ nonce }}
        button={{ autoInsertSpace: false }}
        locale={i18n.language === 'zh' ? zhCN : enUS}
        theme={{
          algorithm: dark ? [theme.darkAlgorithm, theme.compactAlgorithm] : [theme.defaultAlgorithm, theme.compactAlgorithm],
          token: {
            ...(dark ? darkTokens : light),
            fontSize: 15,
            borderRadius: 4,
            fontFamily: "system-ui, -apple-system, 'Segoe UI', 'PingFang SC', 'Microsoft YaHei', 'Noto Sans CJK SC', 'Noto Sans SC', sans-serif",
          },
          components: dark ? { Button: { colorPrimary: '#1b62cc', colorPrimaryHover: '#2470dd', dangerColor: '#1b0907' } } : {},
        }}
      >
        <Frame>
          <QueryClientProvider client={client}>
            <RouterProvider router={router} />
          </QueryClientProvider>
        </Frame>
      </ConfigProvider>
    </Look.Provider>
  )
}
