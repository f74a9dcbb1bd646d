import { EntryMark } from './parts/entries'
import { useQueryClient } from '@tanstack/react-query'
import { useState, type FormEvent } from 'react'
import { useTranslation } from 'react-i18next'
import { call, get } from './api'
import { Button } from './parts/controls'
import { Alert, errorText } from './parts/states'
import { whoOf } from './rights'
import { Preferences } from './shell'
import type { Self, Session } from './types'

// SignIn stands in the place of the page that was asked for, so there is no
// address to come back to that a link could forge.
export function SignIn() {
  const { t, i18n } = useTranslation()
  const client = useQueryClient()
  const [token, setToken] = useState('')
  const [error, setError] = useState<unknown>()
  const [busy, setBusy] = useState(false)
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    setBusy(true)
    try {
      await call<Session>('POST', '/v1/session', { token: token.trim() })
      const who = whoOf(await get<Self>('/v1/self'))
      setToken('')
      client.setQueryData(['session'], who)
    } catch (failure) {
      setError(failure)
      setBusy(false)
    }
  }
  return (
    <main className="alone">
      <form className="signin" onSubmit={(event) => void submit(event)}>
        <div className="signin-top">
          <h1>nomadlike</h1>
          <Preferences />
        </div>
        <p>{t('signin.about')}</p>
        <span className="named"><label htmlFor="token">{t('signin.token')}</label><EntryMark entry="signin" label={t('signin.token')} /></span>
        <input
          id="token"
          className="field"
          type="password"
          value={token}
          autoFocus
          autoComplete="off"
          spellCheck={false}
          aria-describedby="token-help"
          onChange={(event) => setToken(event.target.value)}
        />
        <p id="token-help" className="quiet">{t('signin.help')}</p>
        <pre className="cli">nomadlike token create -user ann -role user -project vision</pre>
        {error !== undefined && <Alert text={errorText(error, t)} />}
        <Button tone="first" type="submit" disabled={busy || !token.trim()}>{t('signin.enter')}</Button>
        <p><a href={`/docs/${i18n.language === 'zh' ? 'zh' : 'en'}/`}>{t('menu.guides')}</a></p>
      </form>
    </main>
  )
}
