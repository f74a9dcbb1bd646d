import { lazy, Suspense, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { again } from '../../again'
import { quote } from '../../format'
import { Cli } from '../../parts/actions'
import { Button } from '../../parts/controls'
import { Dialog } from '../../parts/controls/dialog'
import { Field, Radios } from '../../parts/controls/fields'
import { flagsOf } from '../../parts/data'
import { Loading } from '../../parts/states'
import type { DataDetail } from '../../types'

const kinds = ['dataset', 'model', 'algorithm'] as const
type Kind = (typeof kinds)[number]

const Upload = lazy(() => again(() => import('../../parts/upload')))

// MakeDialog says how data gets a name: from this browser, or by lines to type.
export function MakeDialog({ known, project, close }: { known: DataDetail[]; project: string; close: () => void }) {
  const { t } = useTranslation()
  const [kind, setKind] = useState<Kind>('dataset')
  const [name, setName] = useState('')
  const [brings, setBrings] = useState(false)
  const there = known.find(({ object }) => object.project === project && object.kind === kind && object.name === name)
  const flags = flagsOf({ project, kind, name }, project)
  if (brings) {
    return (
      <Dialog title={t('data.bring', { name })} close={close}>
        <Suspense fallback={<Loading />}><Upload project={project} kind={kind} name={name} /></Suspense>
      </Dialog>
    )
  }
  return (
    <Dialog title={t('data.make')} close={close}>
      <div className="stack">
        <Radios<Kind> entry="data.kind" label={t('data.kind_label')} value={kind} change={setKind} options={kinds.map((value) => ({ value, label: t('data.kind.' + value) }))} />
        <Field entry="data.name" label={t('data.name')} value={name} change={(next) => setName(next.trim())} placeholder="cifar10" autoComplete="off" spellCheck={false} />
        {there && <p>{t('data.make_next', { name, version: there.object.next })}</p>}
        <p className="bar"><Button tone="first" disabled={!name} onClick={() => setBrings(true)}>{t('data.make_bring')}</Button>{!name && <span className="quiet">{t('data.make_name_first')}</span>}</p>
        <h3>{t('data.make_push')}</h3>
        <Cli text={`nomadlike data push ${flags}DIR ${quote(name || 'NAME')}`} />
        <h3>{t('data.make_register')}</h3>
        <Cli text={`nomadlike data register ${flags}-storage STORAGE -source PATH ${quote(name || 'NAME')}`} />
      </div>
    </Dialog>
  )
}
