import { useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { Button, Note } from '../../parts/controls'
import { Choice } from '../../parts/controls/fields'
import { starts } from '../../parts/jobfile'
import type { useDraft } from './draft'

const fileMost = 1 << 20 // bytes, as servers take of a job file

// useBegin is what the file may begin with: an example, or a file of this machine. What
// was there before comes back with a click.
export function useBegin(draft: ReturnType<typeof useDraft>) {
  const { t } = useTranslation()
  const [before, setBefore] = useState<string>()
  const [wrong, setWrong] = useState('')
  const input = useRef<HTMLInputElement>(null)
  const begin = (text: string) => {
    setWrong('')
    setBefore(draft.text)
    draft.setText(text)
  }
  const open = async (file?: File) => {
    if (!file) return
    const text = file.size > fileMost ? '\0' : await file.text()
    if (text.includes('\0')) setWrong(t('create.no_job_file', { file: file.name }))
    else begin(text)
  }
  return {
    bar: <>
      <Choice bare small label={t('create.begin')} empty={t('create.begin')} value={undefined} options={(['ddp', 'one', 'sweep'] as const).map((value) => ({ value, label: t('create.begin_' + value) }))} change={(value) => begin(starts[value])} />
      <Button small onClick={() => input.current?.click()}>{t('create.open')}</Button>
      <input ref={input} type="file" hidden aria-label={t('create.open')} accept=".hcl,.nomadlike,.txt" onChange={(event) => { void open(event.target.files?.[0]); event.target.value = '' }} />
    </>,
    note: wrong ? <Note tone="error" title={wrong} /> : before !== undefined && <Note tone="info" title={t('create.began')} action={<Button small onClick={() => { draft.setText(before); setBefore(undefined) }}>{t('create.back')}</Button>} />,
  }
}
