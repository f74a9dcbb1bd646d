import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { part, send } from '../api'
import type { Allocation, TaskPage } from '../types'
import { Button } from './controls'
import { Field } from './controls/fields'
import { errorText } from './states'

// open shows what a rank serves on a port, in a window of its own. The window is made
// before the answer, while the browser still knows that somebody clicked.
export async function open(alloc: string, port: string): Promise<void> {
  const page = window.open('', '_blank')
  if (page) page.opener = null
  try {
    const { address } = (await (await send('POST', `/v1/allocations/${part(alloc)}/page`, { port })).json()) as TaskPage
    if (page) page.location.replace(address)
    else location.assign(address) // no windows here
  } catch (error) {
    page?.close()
    throw error
  }
}

// TaskPages leads to what a rank serves on its ports.
export function TaskPages({ alloc }: { alloc: Allocation }) {
  const { t } = useTranslation()
  const [port, setPort] = useState('')
  const [failed, setFailed] = useState<unknown>()
  const named = Object.entries(alloc.ports ?? {}).sort(([a], [b]) => a.localeCompare(b))
  const show = (which: string) => {
    setFailed(undefined)
    open(alloc.id, which).catch(setFailed)
  }
  return (
    <section className="stack" aria-label={t('taskpage.title')}>
      <div className="bar">
        <strong>{t('taskpage.title')}</strong>
        {named.map(([name, number]) => <Button key={name} onClick={() => show(name)}>{t('taskpage.named', { name, number })}</Button>)}
        <Field bare entry="taskpage.port" width={96} label={t('taskpage.port')} placeholder="8888" inputMode="numeric" value={port} change={setPort} done={() => port && show(port)} />
        <Button disabled={!port} onClick={() => show(port)}>{t('taskpage.open')}</Button>
      </div>
      {failed !== undefined && <p role="alert" className="tone-bad">{errorText(failed, t)}</p>}
    </section>
  )
}
