import { useEffect, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useLocation, useNavigate } from 'react-router'
import { call } from '../api'
import type { LoginProvider, ProviderAnswer, Session, SessionBegun } from '../types'
import { Button } from './controls'

const kept = 'nomadlike.to' // page that was asked for, while the browser is at a provider

// ownPath is a path of these pages, and '/' for whatever else a browser could read as
// another site.
export const ownPath = (path: string | null) => (path && /^\/(?![/\\])[\x21-\x5b\x5d-\x7e]*$/.test(path) ? path : '/')

// brought is what a provider sent the browser back with, taken out of the address: it
// serves once, and stands in no history.
function brought(): { provider: string; answer: ProviderAnswer } | undefined {
  const found = /^\/sign-in\/([^/]+)$/.exec(location.pathname)
  const said = new URLSearchParams(location.search)
  if (!found || !said.get('state')) return undefined
  history.replaceState(history.state, '', location.pathname)
  const answer: ProviderAnswer = {}
  for (const name of ['code', 'state', 'iss', 'error'] as const) if (said.get(name)) answer[name] = said.get(name)!
  return { provider: decodeURIComponent(found[1]!), answer }
}

// Through are the buttons of the providers that people sign in through in a browser,
// and what happens when one of them has sent the browser back. The page that was asked
// for is then shown, which is kept here alone: no link can name another.
export function Through({ providers, enter, failed }: { providers: LoginProvider[]; enter: () => Promise<unknown>; failed: (error: unknown) => void }) {
  const { t } = useTranslation()
  const here = useLocation()
  const navigate = useNavigate()
  const [busy, setBusy] = useState(false)
  useEffect(() => {
    const back = brought()
    if (!back) return
    setBusy(true)
    void (async () => {
      try {
        await call<Session>('POST', '/v1/session', back)
        const to = ownPath(sessionStorage.getItem(kept))
        sessionStorage.removeItem(kept)
        await navigate(to, { replace: true })
        await enter()
      } catch (error) {
        setBusy(false)
        failed(error)
      }
    })()
  }, []) // eslint-disable-line react-hooks/exhaustive-deps
  const go = async (provider: string) => {
    setBusy(true)
    try {
      const { address } = await call<SessionBegun>('POST', '/v1/session/begin', { provider })
      if (!address.startsWith('https://')) throw new Error(address)
      if (!here.pathname.startsWith('/sign-in/')) sessionStorage.setItem(kept, here.pathname + here.search + here.hash)
      location.assign(address)
    } catch (error) {
      setBusy(false)
      failed(error)
    }
  }
  if (busy) return <p role="status">{t('signin.comes')}</p>
  return <>{providers.filter(({ kind }) => kind === 'oidc').map(({ name, caption }) => <Button key={name} onClick={() => void go(name)}>{t('signin.through', { name: caption || name })}</Button>)}</>
}
