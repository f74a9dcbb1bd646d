import { Fragment, useEffect, useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useLocation, useNavigate } from 'react-router'
import { useRights } from '../rights'
import { Button } from './controls'

// typing reports whether a key belongs to what has the focus, or to a dialog.
export const typing = (event: KeyboardEvent) =>
  event.ctrlKey || event.metaKey || event.altKey || (event.target instanceof HTMLElement && (event.target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName))) || document.querySelector('dialog[open]') !== null

// Where g and a letter go.
export const places: Record<string, string> = { h: '/', j: '/jobs', d: '/data', q: '/queue', c: '/cluster', p: '/pools', m: '/project', s: '/servers' }
export const askSwitch = 'nomadlike.acting' // the event that g and a send: who can switch the project listens
const pause = 1500 // milliseconds between g and its letter

const everywhere = [['Ctrl+K', 'all'], ['g h', 'home'], ['g j', 'jobs'], ['g d', 'data'], ['g q', 'queue'], ['g c', 'cluster'], ['g p', 'pools'], ['g m', 'project'], ['g s', 'servers'], ['g a', 'acting'], ['n', 'new'], ['?', 'help'], ['Esc', 'close']] as const
const inLists = [['j k', 'move'], ['x', 'pick'], ['o', 'open'], ['f', 'fold'], ['c', 'compare'], ['/', 'search']] as const
const inPalette = [['↑ ↓', 'choose'], ['Enter', 'do']] as const
const ofJob = [['← →', 'moment'], ['PageUp PageDown', 'moments'], ['Home End', 'tabs']] as const

// sheetOf is what the sheet of keys lists, in groups with a title of the catalogue:
// those of the list of jobs first where that is open.
export const sheetOf = (pathname: string): { title: string; keys: readonly (readonly [string, string])[] }[] => {
  const list = { title: 'jobs.keys_list', keys: inLists }
  const others = [{ title: 'jobs.keys_everywhere', keys: everywhere }, { title: 'jobs.keys_palette', keys: inPalette }, { title: 'jobs.keys_job', keys: ofJob }]
  return pathname === '/jobs' ? [list, ...others] : [...others, list]
}

// Keys are those that every page has, and the sheet that tells of all.
export function Keys() {
  const { t } = useTranslation()
  const go = useNavigate()
  const may = useRights()
  const { pathname } = useLocation()
  const sheet = useRef<HTMLDialogElement>(null)
  const [open, setOpen] = useState(false)
  useEffect(() => {
    if (open) sheet.current?.showModal()
  }, [open])
  useEffect(() => {
    let began = -Infinity // when g was pressed
    const key = (event: KeyboardEvent) => {
      if (typing(event) || event.defaultPrevented) return
      const after = event.timeStamp - began < pause
      began = -Infinity
      if (after && places[event.key]) void go(places[event.key]!)
      else if (after && event.key === 'a') dispatchEvent(new Event(askSwitch))
      else if (event.key === 'g') began = event.timeStamp
      else if (event.key === '?') setOpen(true)
      else if (event.key === 'n' && may('submit')) void go('/jobs/new')
      else return
      event.preventDefault()
    }
    addEventListener('keydown', key)
    return () => removeEventListener('keydown', key)
  }, [go, may('submit')]) // eslint-disable-line react-hooks/exhaustive-deps
  if (!open) return null
  return (
    <dialog ref={sheet} className="card" aria-label={t('jobs.keys_title')} onClose={() => setOpen(false)} onClick={(event) => event.target === sheet.current && sheet.current.close()}>
      <h2>{t('jobs.keys_title')}</h2>
      <div className="keysheet">
        {sheetOf(pathname).map(({ title, keys }) => (
          <section key={title}>
            <h3>{t(title)}</h3>
            <dl className="facts">
              {keys.map(([key, text]) => <Fragment key={key}><dt>{key.split(' ').map((one) => <kbd key={one}>{one}</kbd>)}</dt><dd>{t('jobs.key_' + text)}</dd></Fragment>)}
            </dl>
          </section>
        ))}
      </div>
      <p><Button onClick={() => sheet.current?.close()}>{t('jobs.keys_close')}</Button></p>
    </dialog>
  )
}
