import './form.css'
import { useTranslation } from 'react-i18next'
import { Data } from './data'
import type { useDraft } from './draft'
import { Fails, More } from './fails'
import { FillingContext } from './fields'
import { Runs } from './runs'
import { What } from './what'
import { Where } from './where'

// Form shows what the file says and changes it there; what it has no field
// for stays as it is. While the file cannot be read, nothing can be changed. Without
// nodes, which of them the job takes is chosen elsewhere.
export function Form({ draft, nodes }: { draft: ReturnType<typeof useDraft>; nodes?: boolean }) {
  const { t } = useTranslation()
  const { job, problems, refused, change, forget, wait } = draft
  const defaults = draft.read.data?.defaults ?? []
  const filling = { job, problems, refused, change, forget, wait, left: (path: string) => defaults.some((one) => one.path === path) }
  const room = { hcl: draft.later, body: draft.asked, valid: draft.valid }
  return (
    <FillingContext value={filling}>
      <section className="stack filling" aria-label={t('create.form')}>
        {!job && <p className="note info" role="status">{t('create.form_off')}</p>}
        <What />
        <Where room={room} nodes={nodes} />
        <Runs />
        <Data />
        <Fails />
        <More />
      </section>
    </FillingContext>
  )
}
