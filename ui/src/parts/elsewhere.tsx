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
