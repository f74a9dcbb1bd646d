import { useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { call, sendBlob } from '../../api'
import { number, size, span } from '../../format'
import { Button, Note } from '../../parts/controls'
import { EntryMark } from '../../parts/entries'
import { errorText } from '../../parts/states'
import type { CodeArchived, CodeMissing } from '../../types'
import { Code } from '../job/code'
import { chosen, dropped, isArchive, largestOf, tarOf, type Carried } from './archive'
import { useFilling, wrongAt } from './fields'

interface Way {
  done: number
  all: number
  since: number
}

// JobCode is the directory that goes with the job: dropped or chosen here, it is sent at
// once, and the file names it by its digest.
export function JobCode() {
  const { t } = useTranslation()
  const { job, problems, change, wait } = useFilling()
  const [way, setWay] = useState<Way>()
  const [made, setMade] = useState<CodeArchived>()
  const [error, setError] = useState<unknown>()
  const [large, setLarge] = useState<{ bytes: number; max: number; parts: [string, number][] }>()
  const [over, setOver] = useState(false)
  const stop = useRef<AbortController>(undefined)
  const [folder, archive] = [useRef<HTMLInputElement>(null), useRef<HTMLInputElement>(null)]
  const workdir = job?.workdir

  const carry = async (what: Promise<Carried[]> | Blob) => {
    stop.current?.abort()
    const mine = (stop.current = new AbortController())
    setError(undefined)
    setLarge(undefined)
    setMade(undefined)
    try {
      const all = what instanceof Blob ? [] : await what
      if (!(what instanceof Blob) && !all.some((one) => one.file)) return
      const bytes = what instanceof Blob ? what.size : all.reduce((sum, one) => sum + (one.file?.size ?? 0), 0)
      const { max } = await call<CodeMissing>('POST', '/v1/code/missing', { tree: '' }, mine.signal)
      if (bytes > max) return setLarge({ bytes, max, parts: largestOf(all, 10) })
      const body = what instanceof Blob ? what : await tarOf(all)
      const since = Date.now()
      setWay({ done: 0, all: body.size, since })
      const answer = await sendBlob<CodeArchived>('/v1/code/archive', body, (done) => setWay({ done, all: body.size, since }), mine.signal)
      if (await change([{ at: 'workdir#', value: null }, { at: 'workdir', value: answer.tree }])) setMade(answer)
    } catch (failure) {
      if (!mine.signal.aborted) setError(failure)
      throw failure
    } finally {
      if (stop.current === mine) setWay(undefined)
    }
  }
  const begin = (what: Promise<Carried[]> | Blob) => wait(carry(what))
  const take = (files: FileList | null) => {
    if (!files?.length) return
    if (files.length === 1 && isArchive(files[0]!.name)) begin(files[0]!)
    else begin(Promise.resolve(chosen(files)))
  }
  const failure = wrongAt(problems, 'workdir')
  const left = way && way.done > 0 && Date.now() - way.since > 1000 ? { rate: (way.done * 1000) / (Date.now() - way.since), ms: ((way.all - way.done) * (Date.now() - way.since)) / way.done } : undefined
  return (
    <div className={over ? 'drop-here over' : 'drop-here'} role="group" aria-label={t('create.code')}
      onDragOver={(event) => { event.preventDefault(); setOver(true) }} onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault()
        setOver(false)
        const { items, files } = event.dataTransfer
        if (files.length === 1 && isArchive(files[0]!.name)) begin(files[0]!)
        else begin(dropped(items))
      }}>
      <div className="bar">
        <span className="named"><b>{t('create.code')}</b><EntryMark entry="job.workdir" label={t('create.code')} /></span>
        <span className="quiet grow">{t('create.code_drop')}</span>
        <Button small disabled={!job} onClick={() => folder.current?.click()}>{t('create.code_folder')}</Button>
        <Button small disabled={!job} onClick={() => archive.current?.click()}>{t('create.code_archive')}</Button>
        {workdir && <Button small aria-label={t('create.remove', { name: t('create.code') })} onClick={() => { setMade(undefined); void change([{ at: 'workdir#', value: null }, { at: 'workdir', value: null }]) }}>✕</Button>}
      </div>
      <input ref={folder} type="file" hidden aria-label={t('create.code_folder')} {...{ webkitdirectory: '' }} onChange={(event) => { take(event.target.files); event.target.value = '' }} />
      <input ref={archive} type="file" hidden aria-label={t('create.code_archive')} accept=".tar,.tgz,.gz" onChange={(event) => { take(event.target.files); event.target.value = '' }} />
      {way && <div role="status"><progress max={way.all} value={way.done} aria-label={t('create.code_sending')} /> {t('create.code_way', { done: size(way.done), all: size(way.all) })}{left && <span className="quiet"> {t('create.code_rate', { rate: size(Math.round(left.rate)), time: span(left.ms) })}</span>} <Button small onClick={() => stop.current?.abort()}>{t('deed.cancel')}</Button></div>}
      {error !== undefined && <Note tone="error" title={errorText(error, t)} />}
      {large && <Note tone="error" title={t('create.code_large', { size: size(large.bytes), max: size(large.max) })}>{large.parts.map(([path, bytes]) => <div key={path} className="mono">{path} {size(bytes)}</div>)}</Note>}
      {made ? (
        <div role="status">{t('create.code_sent', { count: made.files, size: size(made.bytes), tree: made.tree.replace('sha256:', '').slice(0, 12) })}
          {made.left > 0 && <details><summary>{t('create.code_left', { count: made.left })}</summary><ul className="plain-list">{(made.left_out ?? []).map((one) => <li key={one.path}><span className="mono">{one.path}{one.dir && '/'}</span> <span className="quiet">{one.rule}{one.file && ` · ${one.file}:${number(one.line ?? 0)}`}</span></li>)}</ul></details>}
        </div>
      ) : workdir && <div><Code workdir={workdir} />{workdir.source && !workdir.tree && <p className="quiet">{t('create.code_here')}</p>}</div>}
      {failure && <small className="tone-bad wrong-text">{failure.message || failure.id}</small>}
    </div>
  )
}
