import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { call, get } from '../api'
import { useRights } from '../rights'
import type { SecretKeys } from '../types'
import { Cli } from './actions'
import { Button, Note } from './controls'
import { Dialog } from './controls/dialog'
import { EntryLink } from './entries'
import { errorText, Failed, failing, WordTag } from './states'

// Keyring is what operators and administrators see of the keys that seal secrets: which
// they are, by name, and whether the server that answers has them.
export function Keyring() {
  const { t } = useTranslation()
  const may = useRights()
  const [asks, setAsks] = useState(false)
  const [done, setDone] = useState<SecretKeys>()
  const read = useQuery({ queryKey: ['secret-keys'], refetchInterval: 60_000, queryFn: ({ signal }) => get<SecretKeys>('/v1/operator/secrets', signal) })
  if (read.isPending) return null
  if (failing(read) || !read.data) return <Failed error={read.error} retry={() => void read.refetch()} />
  const keys = read.data
  const lacking = keys.lacking ?? []
  const facts: [string, React.ReactNode][] = [
    ['state', lacking.length ? <WordTag tone="bad">{t('keyring.lacking')}</WordTag> : keys.keys > 1 ? <WordTag tone="busy">{t('keyring.rotating')}</WordTag> : keys.current ? <WordTag tone="good">{t('keyring.whole')}</WordTag> : <WordTag tone="plain">{t('keyring.none')}</WordTag>],
    ['current', keys.current ? <code>{keys.current}</code> : '–'], ['server_key', keys.server_key ? <code>{keys.server_key}</code> : '–'], ['secrets', keys.secrets],
  ]
  return (
    <section className="card" aria-label={t('keyring.title')}>
      <div className="bar"><h2>{t('keyring.title')}</h2><span className="grow" />{may('keys_rotate') && !!keys.current && <Button onClick={() => setAsks(true)}>{t('keyring.rotate')}</Button>}</div>
      {lacking.length > 0 && <Note tone="error" title={t('keyring.lacks', { count: lacking.length, keys: lacking.join(t('limits.and')) })}>{t('keyring.cure')} <EntryLink entry="keyring" /></Note>}
      {done && <Note tone="info" title={t('keyring.rotated', { count: done.resealed })} action={<Button small onClick={() => setDone(undefined)}>{t('controls.close')}</Button>} />}
      <dl className="facts">{facts.map(([key, value]) => <div key={key} style={{ display: 'contents' }}><dt>{t('keyring.' + key)}</dt><dd>{value}</dd></div>)}</dl>
      <p className="quiet">{t('keyring.about')}</p>
      <Cli text="nomadlike operator secrets status" />
      {asks && <RotateDialog secrets={keys.secrets} close={() => setAsks(false)} done={setDone} />}
    </section>
  )
}

function RotateDialog({ secrets, close, done }: { secrets: number; close: () => void; done: (keys: SecretKeys) => void }) {
  const { t } = useTranslation()
  const client = useQueryClient()
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>()
  const run = async () => {
    setBusy(true)
    setError(undefined)
    try {
      done(await call<SecretKeys>('POST', '/v1/operator/secrets/rotate'))
      await client.invalidateQueries({ queryKey: ['secret-keys'] })
      close()
    } catch (failure) {
      setError(failure)
      setBusy(false)
    }
  }
  return (
    <Dialog title={t('keyring.rotate_title')} close={close} act={t('keyring.rotate')} busy={busy} run={() => void run()}>
      <div className="stack">
        <p>{t('keyring.rotates', { count: secrets })}</p>
        <p className="quiet">{t('keyring.keep')}</p>
        {error !== undefined && <Note tone="error" title={errorText(error, t)} />}
        <Cli text="nomadlike operator secrets rotate" />
      </div>
    </Dialog>
  )
}
