// Upload takes a folder or files from the browser to a new version of named data, and is
// loaded when somebody opens it:
//
//   const Upload = lazy(() => import('../parts/upload'))
//   <Upload project="vision" kind="dataset" name="cifar10" onDone={(version, name) => …} />
//
// project is where the data is, kind one of dataset, model and algorithm; without a name
// it asks for one. onDone is told the number of the version, once, when it is there. It
// draws everything but a heading, and fits a panel or a dialog. While it sends, taking it
// away from the page pauses the upload: it goes on when the same folder is chosen again.
import { useEffect, useReducer, useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { ApiError } from '../api'
import { number, size, span } from '../format'
import { withTexts } from '../i18n'
import { Button, Note } from './controls'
import { Choice, Field } from './controls/fields'
import { Table } from './controls/table'
import { errorText, Loading } from './states'
import { fromDrop, fromInput } from './upload_choose'
import { itemsOf, Sending, type Chosen, type Item } from './upload_send'

const shown = 200 // rows of the list

interface Props {
  project: string
  kind: 'dataset' | 'model' | 'algorithm'
  name?: string
  onDone?: (version: number, name: string) => void
}

export default function Upload(props: Props) {
  const [ready, setReady] = useState(false)
  useEffect(() => void withTexts('upload').then(() => setReady(true)), [])
  return ready ? <Uploading {...props} /> : <Loading />
}

function Uploading({ project, kind, name: fixed, onDone }: Props) {
  const { t } = useTranslation()
  const [name, setName] = useState(fixed ?? '')
  const [storage, setStorage] = useState('')
  const [items, setItems] = useState<Item[]>()
  const [reading, setReading] = useState<number>()
  const [error, setError] = useState<unknown>()
  const [sending, setSending] = useState<Sending>()
  const [, draw] = useReducer((n: number) => n + 1, 0)
  const frame = useRef(0)
  const told = useRef(onDone)
  useEffect(() => {
    told.current = onDone
  })
  useEffect(() => () => sending?.stop(), [sending])
  useEffect(() => {
    if (!sending || sending.stage === 'done') return
    const stay = (event: BeforeUnloadEvent) => event.preventDefault()
    addEventListener('beforeunload', stay)
    return () => removeEventListener('beforeunload', stay)
  }, [sending, sending?.stage])

  const take = (chosen: Chosen[]) => {
    setReading(undefined)
    setError(undefined)
    setItems(itemsOf(chosen))
  }
  const drop = (data: DataTransfer) => {
    setReading(0)
    fromDrop(data, setReading).then(take, (failure: unknown) => {
      setReading(undefined)
      setError(failure)
    })
  }
  const start = () => {
    const one = new Sending({ project, kind, name: name.trim(), storage: storage || undefined }, items!, () => {
      cancelAnimationFrame(frame.current)
      frame.current = requestAnimationFrame(draw)
    })
    setSending(one)
    void one.run().then(() => one.finished && told.current?.(one.finished.version, name.trim()))
  }
  const clear = () => {
    setSending(undefined)
    setItems(undefined)
    setError(undefined)
  }

  if (sending) return <Going sending={sending} name={name} clear={clear} storage={storage} retry={(where) => { setStorage(where); setSending(undefined) }} draw={draw} />
  if (!items) return <Choosing reading={reading} error={error} take={take} drop={drop} />
  const files = items.filter((one) => one.file)
  const bytes = files.reduce((sum, one) => sum + one.size, 0)
  return (
    <div className="stack upload">
      <p className="bar"><strong>{t('upload.chosen', { count: files.length, size: size(bytes) })}</strong>{items.length > files.length && <span className="quiet">{t('upload.dirs', { count: items.length - files.length })}</span>}</p>
      {!files.length && <Note tone="warning" title={t('upload.empty')} />}
      <Rows items={items} />
      <form className="bar ends" onSubmit={(event) => { event.preventDefault(); start() }}>
        {fixed === undefined && <Field entry="data.name" label={t('upload.name')} value={name} change={setName} autoFocus />}
        <Button tone="first" type="submit" disabled={!files.length || !name.trim()}>{t('upload.start', { size: size(bytes) })}</Button>
        <Button onClick={clear}>{t('upload.other')}</Button>
      </form>
    </div>
  )
}

// Choosing is where things are dropped.
function Choosing({ reading, error, take, drop }: { reading: number | undefined; error: unknown; take: (chosen: Chosen[]) => void; drop: (data: DataTransfer) => void }) {
  const { t } = useTranslation()
  const [over, setOver] = useState(false)
  const folder = useRef<HTMLInputElement>(null)
  const files = useRef<HTMLInputElement>(null)
  const chosen = (event: React.ChangeEvent<HTMLInputElement>) => {
    if (event.target.files?.length) take(fromInput(event.target.files))
    event.target.value = ''
  }
  return (
    <div className="stack upload">
      {error !== undefined && <Note tone="error" title={errorText(error, t)} />}
      <div className={over ? 'dropzone over' : 'dropzone'}
        onDragOver={(event) => { event.preventDefault(); setOver(true) }}
        onDragLeave={() => setOver(false)}
        onDrop={(event) => { event.preventDefault(); setOver(false); drop(event.dataTransfer) }}>
        <strong>{t('upload.drop')}</strong>
        <span className="quiet">{t('upload.drop_more')}</span>
        <span className="bar">
          <Button tone="first" onClick={() => folder.current?.click()}>{t('upload.folder')}</Button>
          <Button onClick={() => files.current?.click()}>{t('upload.files')}</Button>
        </span>
        {reading !== undefined && <span role="status">{t('upload.reading', { count: reading })}</span>}
        <input ref={folder} type="file" hidden multiple onChange={chosen} data-pick="folder" {...{ webkitdirectory: '' }} />
        <input ref={files} type="file" hidden multiple onChange={chosen} data-pick="files" />
      </div>
    </div>
  )
}

// Going is an upload on its way, and what became of it.
function Going({ sending, name, clear, retry, storage, draw }: { sending: Sending; name: string; clear: () => void; retry: (storage: string) => void; storage: string; draw: () => void }) {
  const { t } = useTranslation()
  const [sure, setSure] = useState(false)
  const [where, setWhere] = useState(storage)
  const { stage, bytes, sent, finished } = sending
  useEffect(() => {
    if (stage !== 'sending') return
    const timer = setInterval(draw, 1000) // the rate falls also when nothing comes
    return () => clearInterval(timer)
  }, [stage, draw])
  if (finished) {
    const params = { name, version: finished.version, count: finished.files, size: size(finished.bytes) }
    return (
      <div className="stack upload">
        <Note tone="info" title={finished.known ? t('upload.known', params) : t('upload.made', params)}>{t('upload.digest', { digest: finished.digest?.replace('sha256:', '').slice(0, 12) })}</Note>
        <p className="bar"><Button onClick={clear}>{t('upload.next')}</Button></p>
      </div>
    )
  }
  const rate = sending.rate()
  const failed = sending.items.filter((one) => one.state === 'failed').length
  const done = stage === 'checking' ? sending.checked : sent
  const text = stage === 'checking' ? t('upload.checking', { sent: size(done), size: size(bytes) })
    : sending.paused ? t('upload.paused')
    : rate > 0 ? t('upload.progress', { sent: size(sent), size: size(bytes), rate: size(rate), left: span(((bytes - sent) / rate) * 1000) })
    : t('upload.progress_only', { sent: size(sent), size: size(bytes) })
  const percent = bytes ? Math.floor((done / bytes) * 100) : 100
  const failure = sending.error
  const storages = failure instanceof ApiError && failure.failure.id === 'agent.data_storage_which' ? (failure.failure.params?.storages ?? '').split(', ') : []
  return (
    <div className="stack upload">
      <div>
        <span className="quiet">{text}</span>
        <div className={sending.paused ? 'progress waits' : 'progress'} role="progressbar" aria-label={text} aria-valuemin={0} aria-valuemax={100} aria-valuenow={percent}><i style={{ width: percent + '%' }} /></div>
      </div>
      {failure !== undefined && <Note tone="error" title={problemText(failure, t)}>{failure instanceof ApiError && failure.failure.hint}</Note>}
      {failure === undefined && failed > 0 && <Note tone="warning" title={t('upload.files_failed', { count: failed })} />}
      <div className="bar ends">
        {stage === 'sending' && (sending.paused ? <Button tone="first" onClick={() => sending.resume()}>{t('upload.resume')}</Button> : <Button onClick={() => sending.pause()}>{t('upload.pause')}</Button>)}
        {storages.length > 0 && <Choice entry="data.storage" label={t('upload.storage')} value={where} change={setWhere} empty="" options={storages.map((one) => ({ value: one, label: one }))} />}
        {stage === 'failed' && <Button tone="first" disabled={storages.length > 0 && !where} onClick={() => (storages.length ? retry(where) : void sending.again())}>{t('upload.again')}</Button>}
        {stage !== 'checking' && (sure
          ? <><span>{t('upload.give_up_sure')}</span><Button tone="danger" onClick={() => void sending.giveUp().catch(() => {}).then(clear)}>{t('upload.give_up')}</Button></>
          : <Button tone="bare" onClick={() => setSure(true)}>{t('upload.give_up')}</Button>)}
      </div>
      {stage === 'sending' && <p className="quiet">{t('upload.keeps')}</p>}
      <Rows items={sending.items} />
    </div>
  )
}

function problemText(error: unknown, t: ReturnType<typeof useTranslation>['t']): string {
  return error instanceof ApiError && error.failure.id === 'ui.file_changed' ? t('upload.changed') : errorText(error, t)
}

const order = { failed: 0, sending: 1, waiting: 2, done: 3 }

// Rows lists files, what needs somebody first.
function Rows({ items }: { items: readonly Item[] }) {
  const { t } = useTranslation()
  const rows = [...items].sort((a, b) => order[a.state] - order[b.state]).slice(0, shown)
  const state = (one: Item) => {
    if (one.state === 'failed') return <span className="bad">{t('upload.failed')}: {problemText(one.error, t)} {one.error instanceof ApiError && one.error.failure.hint}</span>
    if (one.state === 'sending') return t('upload.sending', { percent: one.size ? Math.floor((one.sent / one.size) * 100) : 100 })
    return one.state === 'done' ? t('upload.done') : one.sent > 0 && one.sent < one.size ? t('upload.sending', { percent: Math.floor((one.sent / one.size) * 100) }) : t('upload.waiting')
  }
  return (
    <>
      <Table label={t('upload.list')} rows={rows} idOf={(one) => one.path} columns={[
        { title: t('upload.path'), cell: (one) => one.path },
        { title: t('upload.size'), right: true, width: 110, cell: (one) => (one.file ? size(one.size) : '') },
        { title: t('upload.state'), width: 220, cell: state },
      ]} />
      {items.length > shown && <p className="quiet">{t('upload.more', { count: Number(number(items.length - shown)) })}</p>}
    </>
  )
}
