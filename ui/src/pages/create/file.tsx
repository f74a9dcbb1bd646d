import { useMemo, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { clock } from '../../format'
import { Button, Note } from '../../parts/controls'
import { Field } from '../../parts/controls/fields'
import { heredoc, readLine, runLine } from '../../parts/jobfile'
import { GuideLink } from '../../parts/states'
import type { Error as Failure } from '../../types'
import type { Resume, useDraft } from './draft'

// lineOf finds the line that a diagnostic of the server speaks of.
export function lineOf(failure: Failure): number {
  const range = failure.params?.range ?? ''
  const found = failure.params?.line ?? /:(\d+)/.exec(range)?.[1] ?? /(?:^|\s)\S+\.hcl:(\d+)/.exec(failure.message ?? '')?.[1]
  return found ? Number(found) : 0
}

// problemsOf lists what a refusal is made of.
export const problemsOf = (failure: Failure): Failure[] => (failure.details?.length ? failure.details : [failure])

// CommandLine is the same submission on a command line. Values of variables
// may be changed in it or beside it.
export function CommandLine({ text, names, given, set, resume, name }: { text: string; names: string[]; given: Record<string, string>; set: (given: Record<string, string>) => void; resume?: Resume; name: string }) {
  const { t } = useTranslation()
  const line = runLine(names, given, resume && { name, step: resume.step })
  const [typed, setTyped] = useState<string>()
  const shown = typed ?? line
  return (
    <div className="card stack">
      {names.length > 0 && (
        <div className="form">
          {names.map((one) => <Field key={one} entry="run.var" label={one} width={130} value={given[one] ?? ''} placeholder={t('create.default')} change={(value) => set({ ...given, [one]: value })} />)}
        </div>
      )}
      <Field entry="run" label={t('deed.cli')} id="cli" className="mono" width="100%" spellCheck={false} value={shown} readOnly={names.length === 0}
        change={(value) => { setTyped(value); set(readLine(value, names)) }} done={() => setTyped(undefined)} />
      <details>
        <summary>{t('create.with_file')}</summary>
        <pre className="cli" tabIndex={0}>{heredoc(text) + line}</pre>
      </details>
    </div>
  )
}

export function Editor({ text, change, problems }: { text: string; change: (text: string) => void; problems: Failure[] }) {
  const { t } = useTranslation()
  const wrong = useMemo(() => new Map(problems.map((p) => [lineOf(p), p.message ?? p.id])), [problems])
  const count = text.split('\n').length
  return (
    <div className="editor mono">
      <div className="gutter" aria-hidden="true">{Array.from({ length: count }, (_, i) => <span key={i} className={wrong.has(i + 1) ? 'wrong' : undefined} title={wrong.get(i + 1)}>{i + 1}</span>)}</div>
      <textarea
        id="jobfile"
        className="mono"
        aria-label={t('create.file')}
        aria-invalid={problems.length > 0}
        aria-describedby="problems"
        spellCheck={false}
        rows={count + 1}
        value={text}
        onChange={(event) => change(event.target.value)}
      />
    </div>
  )
}

// jump puts the cursor at the beginning of a line of the job file.
function jump(line: number) {
  const area = document.getElementById('jobfile') as HTMLTextAreaElement
  const at = area.value.split('\n').slice(0, line - 1).join('\n').length + (line > 1 ? 1 : 0)
  area.focus()
  area.setSelectionRange(at, at)
}

export function Problems({ problems, warnings }: { problems: Failure[]; warnings?: Failure[] }) {
  const { t } = useTranslation()
  const list = (items: Failure[]) => (
    <ul className="problems">
      {items.map((p, i) => (
        <li key={i}>
          {lineOf(p) > 0 && <button type="button" onClick={() => jump(lineOf(p))}>{t('create.line', { line: lineOf(p) })}</button>} {p.message || p.id}
          {p.hint && <div className="quiet">{p.hint} <GuideLink failure={p} /></div>}
        </li>
      ))}
    </ul>
  )
  return (
    <div id="problems" aria-live="polite">
      {problems.length > 0 && <Note tone="error" title={t('create.problems', { count: problems.length })}>{list(problems)}</Note>}
      {warnings && warnings.length > 0 && <Note tone="warning" title={t('create.warnings')}>{list(warnings)}</Note>}
    </div>
  )
}

// Kept says that the file is what somebody typed before, and lets them begin anew.
export function Kept({ draft }: { draft: ReturnType<typeof useDraft> }) {
  const { t } = useTranslation()
  if (!draft.before) return null
  return <Note tone="info" title={t('create.draft', { time: clock(new Date(draft.before.at).toISOString()) })} action={<Button small onClick={draft.anew}>{t('create.draft_drop')}</Button>} />
}
