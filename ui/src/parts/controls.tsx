import { useEffect, useRef, type ButtonHTMLAttributes, type ReactNode } from 'react'

// The controls of every page, which are the browser's own. These here are seen
// first; those that other pages need stand below controls/.

export interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  tone?: 'plain' | 'first' | 'danger' | 'bare'
  small?: boolean
  busy?: boolean // what it began is not done yet: it cannot be pressed meanwhile
}

export function Button({ tone = 'plain', className = '', small, busy, disabled, children, ...rest }: ButtonProps) {
  return (
    <button type="button" {...rest} disabled={disabled || busy} aria-busy={busy || undefined} className={`button ${tone} ${small ? 'small ' : ''}${className}`}>
      {busy && <span className="spin" aria-hidden="true" />}
      {children}
    </button>
  )
}

const noteMarks = { info: 'i', warning: '!', error: '✕' }

// Note says something that a reader should know before going on. An error is
// told at once to those who hear the page.
export function Note({ tone, title, children, action }: { tone: 'info' | 'warning' | 'error'; title: ReactNode; children?: ReactNode; action?: ReactNode }) {
  return (
    <div className={'note ' + tone} role={tone === 'error' ? 'alert' : 'status'}>
      <span className="note-mark" aria-hidden="true">{noteMarks[tone]}</span>
      <div className="note-text"><strong>{title}</strong>{children && <div>{children}</div>}</div>
      {action}
    </div>
  )
}

// Segments choose one of a few.
export function Segments<V extends string>({ label, value, change, options }: { label: string; value: string; change: (value: V) => void; options: { value: V; label: string }[] }) {
  return (
    <span className="segments" role="group" aria-label={label}>
      {options.map((option) => (
        <button key={option.value} type="button" aria-pressed={option.value === value} onClick={() => change(option.value)}>{option.label}</button>
      ))}
    </span>
  )
}

// Pick chooses one of many, or none.
export function Pick({ label, value, change, options, width = 130 }: { label: string; value: string; change: (value: string) => void; options: { value: string; label: string }[]; width?: number }) {
  const unknown = value && !options.some((option) => option.value === value)
  return (
    <select className={value ? 'field chosen' : 'field'} style={{ width }} aria-label={label} value={value} onChange={(event) => change(event.target.value)}>
      <option value="">{label}</option>
      {unknown && <option value={value}>{value}</option>}
      {options.map((option) => <option key={option.value} value={option.value}>{option.label}</option>)}
    </select>
  )
}

// Drop unfolds below its button, and folds when one clicks elsewhere, presses
// Escape, or takes one of the buttons and links in it that do not stay.
export function Drop({ label, name, children, right, className = '' }: { label: ReactNode; name?: string; children: ReactNode; right?: boolean; className?: string }) {
  const box = useRef<HTMLDetailsElement>(null)
  useEffect(() => {
    const close = (event: Event) => {
      const here = box.current
      if (!here?.open) return
      if (event instanceof KeyboardEvent) {
        if (event.key !== 'Escape') return
        here.querySelector('summary')?.focus()
      } else if (here.contains(event.target as Element)) return
      here.open = false
    }
    addEventListener('pointerdown', close)
    addEventListener('keydown', close)
    return () => {
      removeEventListener('pointerdown', close)
      removeEventListener('keydown', close)
    }
  }, [])
  const take = (event: React.MouseEvent) => {
    const taken = (event.target as Element).closest('button, a')
    if (taken && !taken.hasAttribute('data-stays') && box.current) box.current.open = false
  }
  return (
    <details ref={box} className={`drop ${className}`}>
      <summary className="button plain" aria-label={name}>{label}</summary>
      <div className={right ? 'card unfolded right' : 'card unfolded'} onClick={take}>{children}</div>
    </details>
  )
}
