import { useId, useState, type InputHTMLAttributes, type ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { Drop } from '../controls'
import { EntryMark, type Entry } from '../entries'

// Fields hold one value each. Their name stands above them; a bare one stands in
// a table or a bar that says what it is, and its name is told to those who hear it.

interface Named {
  label: string
  bare?: boolean
  off?: boolean
  width?: number | string
  entry?: Entry // what the reference says of it
}

function Labelled({ label, bare, grow, children, htmlFor, entry }: { label: string; bare?: boolean; grow?: boolean; children: ReactNode; htmlFor: string; entry?: Entry }) {
  if (bare) return children
  return <span className={grow ? 'control grow' : 'control'}><span className="named"><label htmlFor={htmlFor}>{label}</label>{entry && <EntryMark entry={entry} label={label} />}</span>{children}</span>
}

// Field is a text of one line.
export function Field({ label, entry, bare, grow, off, width, value, change, wrong, done, className = '', ...rest }: Named & Omit<InputHTMLAttributes<HTMLInputElement>, 'value'> & { value: string; change: (value: string) => void; wrong?: boolean; grow?: boolean; done?: () => void }) {
  const id = useId()
  return (
    <Labelled label={label} entry={entry} bare={bare} grow={grow} htmlFor={rest.id ?? id}>
      <input id={id} {...rest} className={`field ${wrong ? 'wrong ' : ''}${className}`} style={{ width }} aria-label={label} aria-invalid={wrong || undefined} disabled={off} value={value}
        onChange={(event) => change(event.target.value)}
        onBlur={done} onKeyDown={done && ((event) => { if (event.key === 'Enter') done() })} />
    </Labelled>
  )
}

// Count is a number between two bounds. What is typed counts while it is within
// them; the rest is mended when the field is left or confirmed. done is called
// then, and with each step of the arrows, behind the change.
export function Count({ label, entry, bare, off, width = 88, value, change, done, least, most, step = 1 }: Named & { value: number; change: (value: number) => void; done?: () => void; least: number; most: number; step?: number }) {
  const id = useId()
  const [typed, setTyped] = useState<string>()
  const within = (n: number) => Math.min(most, Math.max(least, n))
  const mend = () => {
    if (typed?.trim() && Number.isFinite(Number(typed))) change(within(Number(typed)))
    setTyped(undefined)
    done?.()
  }
  const turn = (by: number) => {
    const from = typed?.trim() && Number.isFinite(Number(typed)) ? Number(typed) : value
    setTyped(undefined)
    change(within(Number((from + by).toFixed(6))))
    done?.()
  }
  return (
    <Labelled label={label} entry={entry} bare={bare} htmlFor={id}>
      <input id={id} className="field count" type="number" inputMode="decimal" step="any" min={least} max={most} style={{ width }} aria-label={label} disabled={off} value={typed ?? value}
        onChange={(event) => {
          const text = event.target.value
          setTyped(text)
          const n = Number(text)
          if (text.trim() && n >= least && n <= most) change(n)
        }}
        onBlur={mend}
        onKeyDown={(event) => {
          if (event.key === 'Enter') return mend()
          const by = event.key === 'ArrowUp' ? step : event.key === 'ArrowDown' ? -step : 0
          if (!by) return
          event.preventDefault()
          turn(by)
        }} />
    </Labelled>
  )
}

export interface Option<V> {
  value: V
  label: string
  off?: boolean
}

// Choice is one of many. Where it may be none, none is called empty.
export function Choice<V extends string | number>({ label, entry, bare, off, width, value, change, options, empty, small }: Named & { value: V | undefined; change: (value: V) => void; options: Option<V>[]; empty?: string; small?: boolean }) {
  const id = useId()
  const place = options.findIndex((option) => option.value === value)
  return (
    <Labelled label={label} entry={entry} bare={bare} htmlFor={id}>
      <select id={id} className={small ? 'field small' : 'field'} style={{ width }} aria-label={label} disabled={off} value={place < 0 ? '' : place} onChange={(event) => { const taken = options[Number(event.target.value)]; if (event.target.value !== '' && taken) change(taken.value) }}>
        {(empty !== undefined || place < 0) && <option value="" disabled>{empty ?? ''}</option>}
        {options.map((option, i) => <option key={option.value} value={i} disabled={option.off}>{option.label}</option>)}
      </select>
    </Labelled>
  )
}

// Check is yes or no.
export function Check({ checked, change, off, entry, children }: { checked: boolean; change: (checked: boolean) => void; off?: boolean; entry?: Entry; children: ReactNode }) {
  const box = (
    <label className={off ? 'check off' : 'check'}>
      <input type="checkbox" checked={checked} disabled={off} onChange={(event) => change(event.target.checked)} /> <span>{children}</span>
    </label>
  )
  return entry ? <span className="named">{box}<EntryMark entry={entry} label={String(children)} /></span> : box
}

// Radios choose one of a few that are read before they are taken.
export function Radios<V extends string>({ label, entry, value, change, options }: { label: string; entry?: Entry; value: V | undefined; change: (value: V) => void; options: Option<V>[] }) {
  const name = useId()
  return (
    <div className="bar" role="radiogroup" aria-label={label}>
      {options.map((option) => (
        <label key={option.value} className="check"><input type="radio" name={name} checked={option.value === value} onChange={() => change(option.value)} /> <span>{option.label}</span></label>
      ))}
      {entry && <EntryMark entry={entry} label={label} />}
    </div>
  )
}

const namedMost = 6 // of those that are ticked, on the button

// Ticks choose some of many, in a list that unfolds.
export function Ticks<V extends string | number>({ label, value, change, options }: { label: string; value: V[]; change: (value: V[]) => void; options: Option<V>[] }) {
  const { t } = useTranslation()
  const taken = options.filter((option) => value.includes(option.value))
  const more = taken.length - namedMost
  return (
    <Drop name={label} label={(taken.length ? taken.slice(0, namedMost).map((option) => option.label).join(', ') : label) + (more > 0 ? ' ' + t('controls.more', { count: more }) : '')}>
      {options.map((option) => (
        <label key={option.value} className="tick">
          <input type="checkbox" checked={value.includes(option.value)} onChange={(event) => change(options.map((one) => one.value).filter((one) => (one === option.value ? event.target.checked : value.includes(one))))} />
          {option.label}
        </label>
      ))}
    </Drop>
  )
}
