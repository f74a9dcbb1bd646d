import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { act } from '../acting'
import { ApiError } from '../api'
import { Button } from './controls'
import { Alert, errorText, Failed } from './states'

// FailedHere is what stands in the place of something that could not be read. What is in
// another project of the reader's is shown after a switch to that.
export function FailedHere({ error, retry }: { error: unknown; retry?: () => void }) {
  const { t } = useTranslation()
  const project = error instanceof ApiError && error.failure.id === 'auth.elsewhere' ? error.failure.params?.project : undefined
  if (!project) return <Failed error={error} retry={retry} />
  return <Alert text={errorText(error, t)} action={<Button tone="first" onClick={() => act(project)}>{t('acting.to', { project })}</Button>} />
}

// useMissed returns why what is called name could not be read. It stays while the same is
// asked for again, so that a refusal does not blink at each event; a read that succeeded
// ends it.
export function useMissed(name: string, { error, data }: { error: Error | null; data?: unknown }): Error | null {
  const [kept, keep] = useState<{ name: string; error: Error }>()
  const missed = data !== undefined ? null : (error ?? (kept?.name === name ? kept.error : null))
  if (missed && (missed !== kept?.error || name !== kept.name)) keep({ name, error: missed })
  if (!missed && kept && (data !== undefined || kept.name !== name)) keep(undefined)
  return missed
}
