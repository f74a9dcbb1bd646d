import { useQueryClient, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { call, get, part } from '../api'
import { dateTime, quote } from '../format'
import type { NewShare, ShareList } from '../types'
import { Cli } from './actions'
import { Button } from './controls'
import { Dialog } from './controls/dialog'
import { Choice } from './controls/fields'
import { Table } from './controls/table'
import { errorText, Failed, failing } from './states'

const spans: Record<string, string> = { '1h': '1h', '24h': '24h', '7d': '168h', '30d': '720h' } // as people and as the API spell them

// ShareButton opens the dialog that makes and ends links which show one thing
// to whoever has them, without signing in. Without a job it is the wall.
export function ShareButton({ name, path }: { name?: string; path: string }) {
  const { t } = useTranslation()
  const [open, setOpen] = useState(false)
  return (
    <>
      <Button onClick={() => setOpen(true)}>{t('share.share')}</Button>
      {open && <ShareDialog name={name} path={path} close={() => setOpen(false)} />}
    </>
  )
}

export function ShareDialog({ name, path, close }: { name?: string; path: string; close: () => void }) {
  const { t } = useTranslation()
  const client = useQueryClient()
  const [ttl, setTTL] = useState('7d')
  const [link, setLink] = useState('')
  const [error, setError] = useState<unknown>()
  const list = useQuery({ queryKey: ['shares', path], retry: false, queryFn: ({ signal }) => get<ShareList>(path, signal).then((all) => all.shares ?? []) })
  const renew = () => client.invalidateQueries({ queryKey: ['shares', path] })
  const make = async () => {
    try {
      const made = await call<NewShare>('POST', path, { ttl: spans[ttl] })
      setLink(location.origin + made.path)
      setError(undefined)
      await renew()
    } catch (failure) {
      setError(failure)
    }
  }
  const end = async (id: string) => {
    await call('DELETE', '/v1/tokens/' + part(id)).catch(setError)
    await renew()
  }
  return (
    <Dialog title={t('share.title')} close={close}>
      <div className="stack">
        <p>{t(name ? 'share.about_job' : 'share.about_wall')}</p>
        <div className="bar">
          <Choice bare label={t('share.span')} value={ttl} change={setTTL} options={Object.keys(spans).map((value) => ({ value, label: t('share.' + value) }))} />
          <Button tone="first" onClick={() => void make()}>{t('share.make')}</Button>
        </div>
        {error !== undefined && <p role="alert">{errorText(error, t)}</p>}
        {link && <><p>{t('share.once')}</p><pre className="cli">{link}</pre><Button onClick={() => void navigator.clipboard.writeText(link)}>{t('share.copy')}</Button></>}
        {failing(list) ? <Failed error={list.error} /> : (
          <Table label={t('share.title')} idOf={(share) => share.id} rows={list.data ?? []} empty={t('share.none')} columns={[
            { title: t('share.made_by'), cell: (share) => share.user },
            { title: t('share.until'), cell: (share) => dateTime(share.expires_at) },
            { title: <span className="hidden">{t('share.end')}</span>, cell: (share) => <Button small tone="danger" onClick={() => void end(share.id)}>{t('share.end')}</Button> },
          ]} />
        )}
        <Cli text={(name ? `nomadlike job share -ttl ${ttl} ${quote(name)}` : `nomadlike node share -ttl ${ttl}`)} />
      </div>
    </Dialog>
  )
}
