import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { ApiError, call } from '../../api'
import { dateTime, quote } from '../../format'
import { Cli } from '../../parts/actions'
import { Button, Note } from '../../parts/controls'
import { Dialog } from '../../parts/controls/dialog'
import { Field, Radios } from '../../parts/controls/fields'
import { errorText } from '../../parts/states'
import type { Changed, TemplateInfo } from '../../types'
import { templateAt } from './begin'

// nameOK reports whether servers take a name, as they do of jobs.
export const nameOK = (name: string) => /^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$/.test(name)

// SaveDialog keeps a job file as a template.
export function SaveDialog({ text, name: first, known, project, close, done }: { text: string; name: string; known: TemplateInfo[]; project: string; close: () => void; done: (name: string) => void }) {
  const { t } = useTranslation()
  const client = useQueryClient()
  const [name, setName] = useState(nameOK(first) ? first : '')
  const [scope, setScope] = useState<'project' | 'mine'>('project')
  const [said, setSaid] = useState<string>()
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>()
  const own = scope === 'mine'
  const there = known.find((one) => one.name === name && one.own === own)
  const description = said ?? there?.description ?? ''
  const closed = there !== undefined && !there.verbs?.includes('write')
  const wrong = name !== '' && !nameOK(name)
  const run = async () => {
    setBusy(true)
    setError(undefined)
    try {
      await call<Changed>('PUT', templateAt({ name, own }), { description, hcl: text })
      await client.invalidateQueries({ queryKey: ['templates'] })
      done(name)
      close()
    } catch (failure) {
      setError(failure)
      setBusy(false)
    }
  }
  const more = `${own ? '-mine ' : ''}${there ? '-force ' : ''}${description ? `-description ${quote(description)} ` : ''}`
  return (
    <Dialog title={t('create.template_save')} close={close} act={t(there ? 'create.template_replace' : 'create.template_keep')} busy={busy} off={!nameOK(name) || closed} run={() => void run()}>
      <div className="stack">
        <Field entry="template" label={t('create.template_name')} value={name} change={(next) => setName(next.trim())} wrong={wrong} placeholder="ddp-16" autoComplete="off" spellCheck={false} />
        {wrong && <p role="alert" className="tone-bad">{t('create.template_name_wrong')}</p>}
        <Radios<'project' | 'mine'> entry="template.mine" label={t('create.template_for')} value={scope} change={setScope} options={[{ value: 'project', label: t('create.template_for_project', { project }) }, { value: 'mine', label: t('create.template_for_me') }]} />
        <Field entry="template" label={t('create.description')} width="100%" value={description} change={setSaid} maxLength={500} />
        {there && (closed ? <Note tone="error" title={t('create.template_not_yours', { name, by: there.created_by })} /> : <Note tone="warning" title={t('create.template_replaces', { name, by: there.updated_by, time: dateTime(there.updated_at) })} />)}
        <p className="quiet">{t(own ? 'create.template_about_mine' : 'create.template_about')}</p>
        {error !== undefined && (
          <Note tone="error" title={errorText(error, t)}>
            {error instanceof ApiError && <>{error.failure.hint}{(error.failure.details ?? []).map((one, i) => <div key={i}>{one.message}</div>)}</>}
          </Note>
        )}
        <Cli text={`nomadlike template save ${more}${quote(name || 'NAME')} job.hcl`} />
      </div>
    </Dialog>
  )
}

// ListDialog shows the saved templates: to begin with one, or to remove it.
export function ListDialog({ known, close, take }: { known: TemplateInfo[]; close: () => void; take: (one: TemplateInfo) => void }) {
  const { t } = useTranslation()
  const client = useQueryClient()
  const [sure, setSure] = useState<TemplateInfo>()
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>()
  const remove = async (one: TemplateInfo) => {
    setBusy(true)
    setError(undefined)
    try {
      await call<Changed>('DELETE', templateAt(one))
      setSure(undefined)
    } catch (failure) {
      setError(failure)
    }
    await client.invalidateQueries({ queryKey: ['templates'] })
    setBusy(false)
  }
  return (
    <Dialog title={t('create.templates')} close={close}>
      <div className="stack">
        {known.length === 0 ? <p>{t('create.templates_none')}</p> : (
          <ul className="plain templates">
            {known.map((one) => (
              <li key={(one.own ? '~' : '') + one.name} className="bar">
                <span className="grow">
                  <strong>{one.name}</strong> <span className="quiet">{t(one.own ? 'create.template_only_mine' : 'create.template_of', { project: one.project, by: one.created_by })} · {dateTime(one.updated_at)}</span>
                  {one.description && <span className="said">{one.description}</span>}
                </span>
                {sure === one ? <>
                  <span role="alert">{t('create.template_sure')}</span>
                  <Button small onClick={() => setSure(undefined)}>{t('deed.cancel')}</Button>
                  <Button small tone="danger" busy={busy} onClick={() => void remove(one)}>{t('create.template_remove')}</Button>
                </> : <>
                  <Button small aria-label={t('create.template_use_of', { name: one.name })} onClick={() => take(one)}>{t('create.template_use')}</Button>
                  {one.verbs?.includes('delete') && <Button small tone="danger" aria-label={t('create.template_remove_of', { name: one.name })} onClick={() => setSure(one)}>{t('create.template_remove')}</Button>}
                </>}
              </li>
            ))}
          </ul>
        )}
        {error !== undefined && <Note tone="error" title={errorText(error, t)} />}
        <Cli text="nomadlike template list" />
      </div>
    </Dialog>
  )
}
