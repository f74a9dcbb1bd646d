import { App, ConfigProvider, theme } from 'antd'
import enUS from 'antd/locale/en_US'
import zhCN from 'antd/locale/zh_CN'
import type { ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { Outlet } from 'react-router'
import { useLook } from '../look'
import { nonce } from '../nonce'
import { useReachable } from './reachable'

// Contrast of antd's own greys and blues is below 4.5 to 1: these are not.
const light = {
  colorPrimary: '#0b57c9',
  colorPrimaryHover: '#1c63cb',
  colorLink: '#0b57c9',
  colorLinkHover: '#083f92',
  colorLinkActive: '#083f92',
  colorError: '#c5221f',
  colorErrorHover: '#b01c19',
  colorSuccess: '#1a7f37',
  colorWarning: '#9a5b00',
  colorWarningBg: '#fff8e8',
  colorErrorBg: '#fff1f0',
  colorSuccessBg: '#effaf1',
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

// Frame is what antd's components need around them: the language, the colours
// and where their messages go.
export function Frame({ children }: { children: ReactNode }) {
  const { i18n } = useTranslation()
  const { dark } = useLook()
  useReachable()
  return (
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
        components: dark ? { Button: { colorPrimary: '#1b62cc', colorPrimaryHover: '#2470dd', dangerColor: '#1b0907', defaultHoverColor: '#8cc0ff', defaultHoverBorderColor: '#8cc0ff', defaultActiveColor: '#6fb0ff', defaultActiveBorderColor: '#6fb0ff' } } : {},
      }}
    >
      <App>{children}</App>
    </ConfigProvider>
  )
}

export const FramedPages = () => <Frame><Outlet /></Frame>
