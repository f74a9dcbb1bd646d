import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { call, part } from '../api'
import { Note } from './controls'
import { Dialog } from './controls/dialog'
import { Field } from './controls/fields'
import { errorText } from './states'

// OwnPassword makes the password of whoever is signed in another.
export function OwnPassword({ user, close }: { user: string; close: () => void }) {
  const { t } = useTranslation()
  const [said, setSaid] = useState({ current: '', password: '', again: '' })
  const [busy, setBusy] = useState(false)
  const [done, setDone] = useState(false)
  const [error, setError] = useState<unknown>()
  const differs = said.again !== '' && said.again !== said.password
  const run = async () => {
    setBusy(true)
    setError(undefined)
    try {
      await call('POST', `/v1/users/${part(user)}/password`, { current: said.current, password: said.password })
      setDone(true)
    } catch (failure) {
      setError(failure)
    }
    setBusy(false)
  }
  const field = (name: keyof typeof said, label: string) => <Field entry="user.password" label={label} type="password" autoComplete={name === 'current' ? 'current-password' : 'new-password'} value={said[name]} wrong={name === 'again' && differs} change={(value) => setSaid((old) => ({ ...old, [name]: value }))} />
  if (done) return <Dialog title={t('shell.password')} close={close}><p role="status">{t('people.own_changed')}</p></Dialog>
  return (
    <Dialog title={t('shell.password')} close={close} act={t('shell.password')} busy={busy} off={!said.current || !said.password || said.again !== said.password} run={() => void run()}>
      <div className="stack">
        {field('current', t('people.current'))}
        {field('password', t('people.new'))}
        {field('again', t('people.again'))}
        {error !== undefined && <Note tone="error" title={errorText(error, t)} />}
      </div>
    </Dialog>
  )
}
