import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { call, part } from '../api'
import { quote } from '../format'
import { reasonText } from '../i18n'
import type { DeviceState, NodeSummary } from '../types'
import { Cli } from './actions'
import { Note } from './controls'
import { Dialog } from './controls/dialog'
import { Field } from './controls/fields'
import { say } from './controls/messages'
import { errorText } from './states'

// What operators do to nodes and cards, each with a dialog that says what happens
// and the command line that does the same.

export type Deed = 'cordon' | 'uncordon' | 'drain'

export interface Treatment {
  device: DeviceState
  act: 'clear' | 'reset' | 'quarantine'
}

// actsOf is what an operator may do to a card as it is now.
export const actsOf = (d: DeviceState): Treatment['act'][] => (d.healthy ? ['quarantine'] : d.attrs?.fault === 'quarantine' ? ['clear'] : ['reset', 'clear'])

export function TreatDialog({ node, treat, close }: { node: Pick<NodeSummary, 'id' | 'name'>; treat: Treatment; close: () => void }) {
  const { t } = useTranslation()
  const client = useQueryClient()
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>()
  const [reason, setReason] = useState('')
  const why = treat.act === 'quarantine' ? reason.trim() : ''
  const run = async () => {
    setBusy(true)
    setError(undefined)
    try {
      await call('POST', `/v1/nodes/${part(node.id)}/devices`, { device: treat.device.id, act: treat.act, ...(why && { reason: why }) })
      await client.invalidateQueries({ queryKey: ['node', node.id] })
      say('good', t('node.done_' + treat.act))
      close()
    } catch (failure) {
      setError(failure)
      setBusy(false)
    }
  }
  return (
    <Dialog title={`${t('node.' + treat.act)} · ${node.name} · ${treat.device.index}`} close={close} act={t('node.' + treat.act)} run={() => void run()} danger={treat.act !== 'reset'} busy={busy}>
      <p>{t('node.ask_' + treat.act)}</p>
      <p className="quiet">{reasonText(treat.device.health)}</p>
      {treat.act === 'quarantine' && <Field entry="quarantine" label={t('deed.reason')} maxLength={80} value={reason} change={setReason} />}
      <Cli text={`nomadlike device ${treat.act} ${why ? `-reason ${quote(why)} ` : ''}${quote(node.name)} ${quote(treat.device.id)}`} />
      {error !== undefined && <Note tone="error" title={errorText(error, t)} />}
    </Dialog>
  )
}

export function NodeDialog({ deed, node, close }: { deed: Deed; node: Pick<NodeSummary, 'id' | 'name'>; close: () => void }) {
  const { t } = useTranslation()
  const client = useQueryClient()
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>()
  const run = async () => {
    setBusy(true)
    setError(undefined)
    try {
      await call('POST', `/v1/nodes/${part(node.id)}/${deed}`, deed === 'drain' ? {} : undefined)
      await client.invalidateQueries({ predicate: (query) => ['node', 'nodes'].includes(query.queryKey[0] as string) })
      close()
    } catch (failure) {
      setError(failure)
      setBusy(false)
    }
  }
  return (
    <Dialog title={`${t('node.' + deed)} · ${node.name}`} close={close} act={t('node.' + deed)} run={() => void run()} danger={deed === 'drain'} busy={busy}>
      <p>{t('node.ask_' + deed)}</p>
      <Cli text={`nomadlike node ${deed} ${quote(node.name)}`} />
      {error !== undefined && <Note tone="error" title={errorText(error, t)} />}
    </Dialog>
  )
}
