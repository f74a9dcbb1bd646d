import { useQuery } from '@tanstack/react-query'
import { lazy, Suspense, useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { again } from '../../again'
import { get, part } from '../../api'
import { Button, Note } from '../../parts/controls'
import { Choice } from '../../parts/controls/fields'
import { starts } from '../../parts/jobfile'
import { errorText } from '../../parts/states'
import { useSession } from '../../shell'
import type { Template, TemplateInfo, TemplateList } from '../../types'
import type { useDraft } from './draft'

const SaveDialog = lazy(() => again(() => import('./templates')).then((m) => ({ default: m.SaveDialog })))
const ListDialog = lazy(() => again(() => import('./templates')).then((m) => ({ default: m.ListDialog })))

const fileMost = 1 << 20 // bytes, as servers take of a job file
const builtIn = ['ddp', 'one', 'sweep'] as const
const saved = (one: Pick<TemplateInfo, 'name' | 'own'>) => (one.own ? 'mine/' : 'project/') + one.name

// templateAt is where the API has a template.
export const templateAt = ({ name, own }: Pick<TemplateInfo, 'name' | 'own'>) => '/v1/templates/' + part(name) + (own ? '?mine=true' : '')

// useBegin is what the file may begin with: an example, a saved template, or a file of
// this machine. What was there before comes back with a click.
export function useBegin(draft: ReturnType<typeof useDraft>) {
  const { t } = useTranslation()
  const acting = useSession().data?.acting ?? ''
  const known = useQuery({ queryKey: ['templates', acting], retry: false, queryFn: ({ signal }) => get<TemplateList>('/v1/templates', signal).then((list) => list.templates ?? []) })
  const templates = known.data ?? []
  const [before, setBefore] = useState<string>()
  const [wrong, setWrong] = useState('')
  const [done, setDone] = useState('')
  const [asks, setAsks] = useState<'save' | 'list'>()
  const input = useRef<HTMLInputElement>(null)
  const begin = (text: string) => {
    setWrong('')
    setDone('')
    setBefore(draft.text)
    draft.setText(text)
  }
  const open = async (file?: File) => {
    if (!file) return
    const text = file.size > fileMost ? '\0' : await file.text()
    if (text.includes('\0')) setWrong(t('create.no_job_file', { file: file.name }))
    else begin(text)
  }
  const take = async (one: TemplateInfo) => {
    try {
      begin((await get<Template>(templateAt(one))).hcl)
    } catch (failure) {
      setWrong(errorText(failure, t))
      void known.refetch()
    }
  }
  const choose = (value: string) => {
    const example = builtIn.find((one) => one === value)
    const template = templates.find((one) => saved(one) === value)
    if (example) begin(starts[example])
    else if (template) void take(template)
  }
  const close = () => setAsks(undefined)
  return {
    bar: <>
      <Choice<string> bare small label={t('create.begin')} empty={t('create.begin')} value={undefined} change={choose} options={[
        ...builtIn.map((value) => ({ value: value as string, label: t('create.begin_' + value) })),
        ...templates.map((one) => ({ value: saved(one), label: t(one.own ? 'create.template_mine' : 'create.template_by', { name: one.name, by: one.created_by }) })),
      ]} />
      <Button small onClick={() => input.current?.click()}>{t('create.open')}</Button>
      <input ref={input} type="file" hidden aria-label={t('create.open')} accept=".hcl,.nomadlike,.txt" onChange={(event) => { void open(event.target.files?.[0]); event.target.value = '' }} />
      <Button small disabled={!draft.text.trim()} onClick={() => setAsks('save')}>{t('create.template_save')}</Button>
      {templates.length > 0 && <Button small onClick={() => setAsks('list')}>{t('create.templates')}</Button>}
      {asks && (
        <Suspense fallback={null}>
          {asks === 'save' && <SaveDialog text={draft.text} name={draft.job?.name ?? ''} known={templates} project={acting} close={close} done={setDone} />}
          {asks === 'list' && <ListDialog known={templates} close={close} take={(one) => { close(); void take(one) }} />}
        </Suspense>
      )}
    </>,
    note: wrong ? <Note tone="error" title={wrong} />
      : done ? <Note tone="info" title={t('create.template_saved', { name: done })} action={<Button small onClick={() => setDone('')}>{t('controls.close')}</Button>} />
      : before !== undefined && <Note tone="info" title={t('create.began')} action={<Button small onClick={() => { draft.setText(before); setBefore(undefined) }}>{t('create.back')}</Button>} />,
  }
}
