import { EntryMark } from './parts/entries'
import { useQueryClient } from '@tanstack/react-query'
import { useEffect, useState, type FormEvent, type InputHTMLAttributes } from 'react'
import { useTranslation } from 'react-i18next'
import { ApiError, call, get } from './api'
import { Button } from './parts/controls'
import { Alert, errorText } from './parts/states'
import { Through } from './parts/through'
import { whoOf } from './rights'
import { Preferences } from './shell'
import type { LoginProvider, LoginProviders, Self, Session } from './types'

const firstAsked = (error: unknown) => error instanceof ApiError && error.failure.id === 'auth.password_first'

// SignIn stands in the place of the page that was asked for, so there is no
// address to come back to that a link could forge. An account signs in with its
// password, or with the one of a directory that the cluster knows, whoever has a token
// with that. A first password asks for another.
export function SignIn() {
  const { t, i18n } = useTranslation()
  const client = useQueryClient()
  const [said, setSaid] = useState({ user: '', password: '', chosen: '', again: '', token: '' })
  const [first, setFirst] = useState(false)
  const [error, setError] = useState<unknown>()
  const [busy, setBusy] = useState(false)
  const [providers, setProviders] = useState<LoginProvider[]>([])
  const directories = providers.filter((one) => one.kind === 'ldap')
  const [from, setFrom] = useState('')
  useEffect(() => {
    get<LoginProviders>('/v1/login').then(({ providers }) => {
      setProviders(providers ?? [])
      const asked = (providers ?? []).find((one) => one.kind === 'ldap')
      if (asked) setFrom(asked.name)
    }, () => {}) // accounts and tokens are there all the same
  }, [])
  const token = said.token.trim()
  const differs = first && said.again !== '' && said.again !== said.chosen
  const ready = token || (said.user.trim() && said.password && (!first || (said.chosen && said.again === said.chosen)))
  const enter = async () => {
    const who = whoOf(await get<Self>('/v1/self'))
    setSaid({ user: '', password: '', chosen: '', again: '', token: '' })
    client.setQueryData(['session'], who)
  }
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    setBusy(true)
    setError(undefined)
    try {
      await call<Session>('POST', '/v1/session', token ? { token } : { user: said.user.trim(), password: said.password, ...(from && { provider: from }), ...(first && { new_password: said.chosen }) })
      await enter()
    } catch (failure) {
      if (firstAsked(failure)) setFirst(true)
      else setError(failure)
      setBusy(false)
    }
  }
  const field = (name: keyof typeof said, label: string, more: InputHTMLAttributes<HTMLInputElement> = {}) => (
    <>
      <span className="named"><label htmlFor={name}>{label}</label>{(name === 'token' || name === 'user') && <EntryMark entry="signin" label={label} />}</span>
      <input id={name} name={name} className="field" type="password" value={said[name]} spellCheck={false} {...more} onChange={(event) => setSaid((old) => ({ ...old, [name]: event.target.value }))} />
    </>
  )
  return (
    <main className="alone">
      <form className="signin" onSubmit={(event) => void submit(event)}>
        <div className="signin-top">
          <h1>nomadlike</h1>
          <Preferences />
        </div>
        <p>{t('signin.about')}</p>
        {directories.length > 0 && (
          <>
            <span className="named"><label htmlFor="from">{t('signin.from')}</label><EntryMark entry="signin" label={t('signin.from')} /></span>
            <select id="from" className="field" value={from} disabled={first} onChange={(event) => setFrom(event.target.value)}>
              {directories.map((one) => <option key={one.name} value={one.name}>{one.caption || one.name}</option>)}
              <option value="">{t('signin.own')}</option>
            </select>
          </>
        )}
        {field('user', t('signin.user'), { type: 'text', autoFocus: true, autoComplete: 'username', autoCapitalize: 'none', readOnly: first })}
        {field('password', t('signin.password'), { autoComplete: 'current-password', readOnly: first })}
        {first && (
          <>
            <p role="status"><strong>{t('signin.first')}</strong></p>
            {field('chosen', t('signin.new'), { autoComplete: 'new-password', autoFocus: true, 'aria-describedby': 'rule' })}
            <p id="rule" className="quiet">{t('signin.rule')}</p>
            {field('again', t('signin.again'), { autoComplete: 'new-password', 'aria-invalid': differs })}
            {differs && <p role="alert" className="tone-bad">{t('signin.differs')}</p>}
          </>
        )}
        {!first && (
          <>
            <p className="or quiet"><span>{t('signin.or')}</span></p>
            {field('token', t('signin.token'), { autoComplete: 'off', 'aria-describedby': 'token-help' })}
            <p id="token-help" className="quiet">{t('signin.help')}</p>
          </>
        )}
        {!first && <Through providers={providers} enter={enter} failed={setError} />}
        {error !== undefined && <Alert text={errorText(error, t)} />}
        <Button tone="first" type="submit" disabled={busy || !ready}>{t('signin.enter')}</Button>
        <p><a href={`/docs/${i18n.language === 'zh' ? 'zh' : 'en'}/`}>{t('menu.guides')}</a></p>
      </form>
    </main>
  )
}
