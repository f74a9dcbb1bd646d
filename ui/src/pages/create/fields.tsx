import { createContext, use, useId, useRef, useState, type ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { Check, Choice, Count, Field, type Option } from '../../parts/controls/fields'
import { EntryMark, type Entry } from '../../parts/entries'
import type { FileChange } from '../../parts/jobfile'
import type { Error as Failure, Job } from '../../types'

// Filling is what the fields of the form have in common: the job as its file says it,
// what nobody wrote in it, what is wrong with it, and the way to change the file.
export interface Filling {
  job?: Job // undefined while the file cannot be read: then nothing can be changed
  left: (path: string) => boolean
  problems: Failure[]
  refused: Record<string, Failure> // what no file may hold, by the place of the change
  change: (set: FileChange[]) => Promise<boolean> // reports whether the file has it
  forget: (places: string[]) => void // that something at them was refused
  wait: (on: Promise<unknown>) => void // has a submission wait for it
}

export const FillingContext = createContext<Filling>({ left: () => true, problems: [], refused: {}, change: () => Promise.resolve(true), forget: () => {}, wait: () => {} })
export const useFilling = () => use(FillingContext)

// pathOf is where a change is, in the words of problems: the label of a block is a
// field of it with a name of its own.
export function pathOf(at: string): string {
  if (at === '#') return 'name'
  if (!at.endsWith('#')) return at
  const block = at.slice(0, -1)
  const name = /^distributed$/.test(block) ? '.mode' : /^resources\[\d+\]$/.test(block) ? '.label' : /\.device(\[\d+\])?$/.test(block) ? '.kind' : /hook\[\d+\]$/.test(block) ? '.when' : /^mount\[/.test(block) ? '.target' : block === 'output' ? '' : '.name'
  return block + name
}

// plainPath leaves out the number of a first block: problems say resources[0].cpu, and
// so do changes that need not.
const plainPath = (path: string) => path.replaceAll('[0]', '')

// wrongAt is the first problem of a field.
export const wrongAt = (problems: Failure[], at: string): Failure | undefined => {
  const path = plainPath(pathOf(at))
  return problems.find((one) => plainPath(one.params?.path ?? '') === path)
}

// wrongBelow counts the problems of what a part of the form holds.
export const wrongBelow = (problems: Failure[], heads: string[]): number =>
  problems.filter((one) => heads.some((head) => new RegExp(`^${head}($|[.[])`).test(one.params?.path ?? ''))).length

// useSent is what a field shows while its value is typed and on its way to the
// file. A value is sent once, though confirming a field and leaving it both send: a
// second time would write over what was typed into the file meanwhile.
function useSent<T>(value: T, set: (value: T) => Promise<boolean>, giveUp: () => void) {
  const [, redraw] = useState(0)
  const typed = useRef<T>(undefined)
  const sent = useRef<T>(undefined)
  const type = (now: T | undefined) => {
    typed.current = now
    redraw((n) => n + 1)
  }
  const send = () => {
    const now = typed.current
    if (now === undefined || now === sent.current) return
    if (now === value && sent.current === undefined) {
      giveUp()
      return type(undefined)
    }
    sent.current = now
    void set(now).then((taken) => {
      if (sent.current === now) sent.current = undefined
      if (taken && typed.current === now) type(undefined)
    })
  }
  return { shown: typed.current ?? value, type, send }
}

interface Placed {
  at: string // place of the change, see jobspec.Change
  label: string
  entry?: Entry
  bare?: boolean
  off?: boolean
}

// Wrong is what is wrong with a field, below it.
function Wrong({ failure, id }: { failure?: Failure; id: string }) {
  return failure ? <small id={id} className="tone-bad wrong-text">{failure.message || failure.id}{failure.hint && <span className="quiet"> {failure.hint}</span>}</small> : null
}

const boxed = (bare: boolean | undefined, grow: boolean | undefined, failure: Failure | undefined, children: ReactNode) =>
  bare && !failure ? children : <span className={grow ? 'control grow' : 'control'}>{children}</span>

// Text is a text that is carried into the file when it is left or confirmed; with
// options, what is usual is offered while one types.
export function Text({ at, label, entry, bare, off, value, hint, width = 140, grow, options, write }: Placed & { value: string; hint?: string; width?: number | string; grow?: boolean; options?: Option<string>[]; write?: (value: string) => FileChange[] }) {
  const { job, problems, refused, change, forget } = useFilling()
  const { shown, type, send } = useSent(value, (now) => change(write ? write(now) : [{ at, value: now || null }]), () => forget([at]))
  const [list, wrong] = [useId(), useId()]
  const failure = refused[at] ?? wrongAt(problems, at)
  return boxed(bare, grow, failure, <>
    <Field label={label} entry={entry} bare={bare} width={grow ? '100%' : width} placeholder={hint} off={off ?? !job} wrong={!!failure} value={shown} change={type} done={send} spellCheck={false} list={options ? list : undefined} aria-describedby={failure ? wrong : undefined} />
    {options && <datalist id={list}>{options.map((one) => <option key={one.value} value={one.value}>{one.label}</option>)}</datalist>}
    <Wrong failure={failure} id={wrong} />
  </>)
}

// Lines is a text of several lines.
export function Lines({ at, label, entry, value, hint }: Placed & { value: string; hint?: string }) {
  const { job, problems, refused, change, forget } = useFilling()
  const { shown, type, send } = useSent(value, (now) => change([{ at, value: now || null }]), () => forget([at]))
  const [id, wrong] = [useId(), useId()]
  const failure = refused[at] ?? wrongAt(problems, at)
  return (
    <span className="control whole">
      <span className="named"><label htmlFor={id}>{label}</label>{entry && <EntryMark entry={entry} label={label} />}</span>
      <textarea id={id} className={failure ? 'field mono wrong' : 'field mono'} rows={Math.min(12, Math.max(2, shown.split('\n').reduce((sum, line) => sum + 1 + Math.floor(line.length / 80), 0)))} disabled={!job} spellCheck={false} placeholder={hint} value={shown} aria-invalid={!!failure || undefined} aria-describedby={failure ? wrong : undefined}
        onChange={(event) => type(event.target.value)} onBlur={send} />
      <Wrong failure={failure} id={wrong} />
    </span>
  )
}

// Amount is a number that is carried into the file when it is left or confirmed, or
// with each step of its arrows. Where none may be none, 0 takes it out.
export function Amount({ at, label, entry, bare, off, value, least, most = 4096, none, write }: Placed & { value: number; least: number; most?: number; none?: boolean; write?: (value: number) => FileChange[] }) {
  const { job, problems, refused, change, forget } = useFilling()
  const { shown, type, send } = useSent(value, (now) => change(write ? write(now) : [{ at, value: none && now === 0 ? null : now }]), () => forget([at]))
  const failure = refused[at] ?? wrongAt(problems, at)
  return boxed(bare, false, failure, <>
    <Count label={label} entry={entry} bare={bare} width={80} least={least} most={most} off={off ?? !job} value={shown} change={type} done={send} />
    <Wrong failure={failure} id="" />
  </>)
}

// One is one of a few; what the file leaves out is called so, and taken out again.
export function One({ at, label, entry, bare, off, value, options, usual, width = 140, write }: Placed & { value: string; options: Option<string>[]; usual?: string; width?: number; write?: (value: string) => FileChange[] }) {
  const { job, problems, refused, change } = useFilling()
  const failure = refused[at] ?? wrongAt(problems, at)
  const known = value === usual || options.some((one) => one.value === value)
  return boxed(bare, false, failure, <>
    <Choice label={label} entry={entry} bare={bare} width={width} off={off ?? !job} value={value} options={known ? options : [...options, { value, label: value }]} change={(now) => void change(write ? write(now) : [{ at, value: now === usual || now === '' ? null : now }])} />
    <Wrong failure={failure} id="" />
  </>)
}

// Yes is yes or no; no is taken out of the file.
export function Yes({ at, label, entry, off, value, write }: Placed & { value: boolean; write?: (value: boolean) => FileChange[] }) {
  const { job, problems, refused, change } = useFilling()
  const failure = refused[at] ?? wrongAt(problems, at)
  return (
    <span className="control">
      <Check entry={entry} off={off ?? !job} checked={value} change={(now) => void change(write ? write(now) : [{ at, value: now || null }])}>{label}</Check>
      <Wrong failure={failure} id="" />
    </span>
  )
}

// Part is a part of the form with its heading. One that folds says in its heading what
// it holds, and how much of it is wrong.
export function Part({ title, said, folds, heads, children }: { title: string; said?: ReactNode; folds?: boolean; heads: string[]; children: ReactNode }) {
  const { t } = useTranslation()
  const wrong = wrongBelow(useFilling().problems, heads)
  if (!folds) return <section className="card part" aria-label={title}><header className="bar"><h2>{title}</h2><span className="grow" />{said && <span className="quiet">{said}</span>}</header>{children}</section>
  return (
    <details className="card part">
      <summary><h2>{title}</h2> <span className="quiet">{said}</span>{wrong > 0 && <span className="tone-bad"> {t('create.problems', { count: wrong })}</span>}</summary>
      {children}
    </details>
  )
}

