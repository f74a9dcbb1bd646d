import { lazy, Suspense, useEffect, useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { again } from '../again'
import { withTexts } from '../i18n'
import { operates, type Who } from '../rights'
import { Button } from './controls'
import { askSwitch } from './keys'

const load = () => again(() => Promise.all([import('./switch'), withTexts('people')])).then(([part]) => part)
const Switch = lazy(load)

// Acting says in which project requests act and as what, and opens what switches it, on
// a click or the keys g and a. Who belongs to one project reads it and chooses nothing.
export function Acting({ who }: { who: Who }) {
  const { t } = useTranslation()
  const [open, setOpen] = useState(false)
  const box = useRef<HTMLDivElement>(null)
  const several = operates(who) || who.memberships.length > 1
  useEffect(() => {
    if (!several) return
    const ask = () => setOpen(true)
    addEventListener(askSwitch, ask)
    return () => removeEventListener(askSwitch, ask)
  }, [several])
  const shown = <><b>{who.acting}</b> <span className="quiet">{t('role.' + who.role, who.role)}</span></>
  if (!several) return <span className="acting" title={t('acting.title')}>{shown}</span>
  return (
    <div className="acting" ref={box}>
      <Button aria-haspopup="dialog" aria-expanded={open} aria-label={t('acting.switch', { project: who.acting, role: t('role.' + who.role, who.role) })} onClick={() => setOpen(!open)} onPointerEnter={() => void load().catch(() => {})}>{shown} <i aria-hidden="true">▾</i></Button>
      {open && <Suspense><Switch who={who} within={box} close={() => setOpen(false)} /></Suspense>}
    </div>
  )
}
