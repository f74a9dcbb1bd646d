import { useEffect, useRef, type ButtonHTMLAttributes, type ReactNode } from 'react'

// The controls of what is seen first, which are the browser's own: a page that
// uses nothing else is there without the library of components, which is most
// of the code that this site has.

export function Button({ tone = 'plain', className = '', ...rest }: ButtonHTMLAttributes<HTMLButtonElement> & { tone?: 'plain' | 'first' | 'danger' | 'bare' }) {
  return <button type="button" {...rest} className={`button ${tone} ${className}`} />
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
