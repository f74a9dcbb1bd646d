import { useId, useLayoutEffect, useRef, type ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { Button } from '../controls'

// Dialog asks for something, or shows it, before anything else of the page can
// be used. Escape and the cross leave it; the focus goes back to where it was.
// With act, what it does is on a button of that name.
export function Dialog({ title, close, children, act, run, danger, busy, off }: { title: string; close: () => void; children: ReactNode; act?: string; run?: () => void; danger?: boolean; busy?: boolean; off?: boolean }) {
  const { t } = useTranslation()
  const box = useRef<HTMLDialogElement>(null)
  const name = useId()
  useLayoutEffect(() => {
    const here = box.current!
    const before = document.activeElement as HTMLElement | null
    here.showModal()
    // The first field is what people come for; else what leaves everything as it is.
    ;(here.querySelector<HTMLElement>('.dialog-body :is(input, select, textarea)') ?? here.querySelector<HTMLElement>('[data-leaves]'))?.focus()
    return () => {
      here.close()
      const folded = before?.closest<HTMLDetailsElement>('details:not([open])')
      ;(folded?.querySelector('summary') ?? before)?.focus()
    }
  }, [])
  return (
    <dialog ref={box} className="dialog" aria-labelledby={name} onCancel={(event) => { event.preventDefault(); close() }}
      onPointerDown={(event) => event.target === box.current && !busy && close()}>
      <div className="dialog-frame">
        <div className="dialog-head">
          <h2 id={name}>{title}</h2>
          <Button tone="bare" small aria-label={t('controls.close')} data-leaves={act ? undefined : ''} onClick={close}><span aria-hidden="true">✕</span></Button>
        </div>
        <div className="dialog-body">{children}</div>
        {act && (
          <div className="dialog-foot">
            <Button data-leaves="" onClick={close}>{t('deed.cancel')}</Button>
            <Button tone={danger ? 'danger' : 'first'} busy={busy} disabled={off} onClick={run}>{act}</Button>
          </div>
        )}
      </div>
    </dialog>
  )
}
