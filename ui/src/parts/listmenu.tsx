import { useMemo, useState } from 'react'
import { useTranslation } from 'react-i18next'
import type { JobSummary } from '../types'
import { Button } from './controls'
import { say } from './controls/messages'
import { namesIn, useResults } from './results'
import { figureKinds, figureOf, linkOf, withView, type FigureKind, type Views } from './views'

// What unfolds above the list of jobs: its code comes when the list is there.

// ViewMenu lists the views that this browser keeps, and keeps or sends the one that is
// shown.
export function ViewMenu({ saved, current, choose, change }: { saved: Views; current: string; choose: (name: string) => void; change: (next: Views) => void }) {
  const { t } = useTranslation()
  const [name, setName] = useState('')
  const names = Object.keys(saved).sort()
  const copy = async (of: string, params: string) => {
    const link = location.origin + linkOf(of, params)
    try {
      await navigator.clipboard.writeText(link)
      say('good', t('jobs.view_copied'))
    } catch {
      say('bad', link) // no clipboard, or not allowed: it can be copied by hand
    }
  }
  return (
    <div className="stack">
      {names.length === 0 && <span className="quiet">{t('jobs.no_saved')}</span>}
      {names.map((key) => (
        <div key={key} className="bar">
          <Button tone="bare" onClick={() => choose(key)}>☆ {key}</Button>
          <span className="grow" />
          <Button data-stays="" small tone="bare" onClick={() => void copy(key, saved[key]!)}>{t('jobs.view_copy')}</Button>
          <Button data-stays="" small tone="danger" aria-label={t('jobs.view_delete', { name: key })} onClick={() => { const next = { ...saved }; delete next[key]; change(next) }}>{t('deed.delete')}</Button>
        </div>
      ))}
      <div className="bar">
        <input className="field" style={{ width: 170 }} maxLength={40} aria-label={t('jobs.filter_name')} placeholder={t('jobs.filter_name')} value={name} onChange={(event) => setName(event.target.value)} />
        <Button data-stays="" disabled={!name.trim()} onClick={() => { change(withView(saved, name, current)); setName('') }}>{t('jobs.save_filter')}</Button>
        <Button data-stays="" tone="bare" onClick={() => void copy(name.trim() || t('menu.jobs'), current)}>{t('jobs.view_copy')}</Button>
      </div>
    </div>
  )
}

const asked = 50 // jobs that are looked at for names of metrics

// ColumnMenu chooses the columns: what is known of jobs, and figures that they wrote of
// themselves.
export function ColumnMenu({ optional, chosen, choose, jobs }: { optional: readonly string[]; chosen: string[]; choose: (next: string[]) => void; jobs: JobSummary[] }) {
  const { t } = useTranslation()
  const [open, setOpen] = useState(false)
  const first = useMemo(() => jobs.filter((job) => job.started_at).slice(0, asked), [jobs])
  const results = useResults(first, [], open)
  const figures = chosen.filter((key) => figureOf(key))
  const names = useMemo(() => [...new Set([...figures.map((key) => figureOf(key)!.name), ...namesIn(results)])], [figures, results])
  const turn = (key: string, on: boolean) => choose([...optional.filter((one) => (one === key ? on : chosen.includes(one))), ...figures.filter((one) => one !== key), ...(on && figureOf(key) ? [key] : [])])
  return (
    <div className="columns-menu">
      {optional.map((key) => (
        <label key={key} className="tick"><input type="checkbox" checked={chosen.includes(key)} onChange={(event) => turn(key, event.target.checked)} />{t('jobs.' + key)}</label>
      ))}
      <details onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>{t('jobs.figures')}</summary>
        {names.length === 0 && <p className="quiet">{t('jobs.no_figures')}</p>}
        {names.map((name) => (
          <fieldset key={name} className="figures">
            <legend>{name}</legend>
            {figureKinds.map((kind: FigureKind) => {
              const key = `${kind}:${name}`
              return <label key={kind} className="tick"><input type="checkbox" checked={chosen.includes(key)} onChange={(event) => turn(key, event.target.checked)} />{t('jobs.kind_' + kind)}</label>
            })}
          </fieldset>
        ))}
      </details>
    </div>
  )
}
