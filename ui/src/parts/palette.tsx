import { lazy, Suspense, useEffect, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { again } from '../again'
import { withTexts } from '../i18n'
import { Button } from './controls'

const load = () => again(() => Promise.all([import('./finder'), withTexts()])).then(([m]) => m)
const Finder = lazy(load)

// Palette opens with Ctrl-K, and finds anything. The code of that is fetched as soon as
// somebody is about to open it.
export function Palette({ signOut }: { signOut: () => void }) {
  const { t } = useTranslation()
  const [open, setOpen] = useState(false)
  useEffect(() => {
    const key = (event: KeyboardEvent) => {
      if (event.key === 'Control' || event.key === 'Meta') void load().catch(() => {}) // it is tried again when it is opened
      if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== 'k') return
      event.preventDefault()
      setOpen(true)
    }
    addEventListener('keydown', key)
    return () => removeEventListener('keydown', key)
  }, [])
  return (
    <>
      <Button className="find" onClick={() => setOpen(true)} onPointerEnter={() => void load().catch(() => {})} aria-keyshortcuts="Control+K">
        <span>{t('palette.find')}</span> <kbd>Ctrl K</kbd>
      </Button>
      {open && <Suspense><Finder signOut={signOut} close={() => setOpen(false)} /></Suspense>}
    </>
  )
}
