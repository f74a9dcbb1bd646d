import { useTranslation } from 'react-i18next'
import { Link } from 'react-router'
import { part } from '../../api'
import { inActing } from '../../acting'
import { dateTime, millis, quote, shortID, size } from '../../format'
import { Cli } from '../../parts/actions'
import { Button } from '../../parts/controls'
import { Table } from '../../parts/controls/table'
import { fileAddress, flagsOf, pageOf, type Ref } from '../../parts/data'
import { WordTag } from '../../parts/states'
import type { DataVersion } from '../../types'
import { usable, type Asks } from './object'

const tones = { ready: 'good', registered: 'plain', uploading: 'busy' } as const

// Versions lists the versions, the newest first.
export function Versions({ object, versions, may, ask, acting }: { object: Ref; versions: DataVersion[]; may: (verb: string) => boolean; ask: (asks: Asks) => void; acting: string }) {
  const { t } = useTranslation()
  const flags = flagsOf(object, acting)
  const name = quote(object.name)
  return (
    <div className="stack">
      <Table<DataVersion>
        label={t('data.versions')}
        idOf={(one) => one.number}
        page={50}
        least={860}
        empty={t('data.no_version')}
        rows={[...versions].reverse()}
        columns={[
          { title: t('data.version'), cell: (one) => <>{usable(one) ? <Link to={`${pageOf(object)}?version=${one.number}`}>{one.number}</Link> : one.number}{one.tag && <> <span className="tag">{one.tag}</span></>}</>, compare: (a, b) => a.number - b.number },
          { title: t('data.state'), cell: (one) => <WordTag tone={tones[one.state as keyof typeof tones] ?? 'plain'}>{t('data.states.' + one.state, one.state)}</WordTag> },
          { title: t('data.size'), right: true, cell: (one) => (one.state === 'registered' ? '–' : size(one.bytes ?? 0)), compare: (a, b) => (a.bytes ?? 0) - (b.bytes ?? 0) },
          { title: t('data.files_head'), right: true, cell: (one) => (one.state === 'registered' ? '–' : one.files ?? 0), compare: (a, b) => (a.files ?? 0) - (b.files ?? 0) },
          { title: t('data.made'), cell: (one) => <>{one.made_by}<br /><span className="quiet">{dateTime(one.made_at)}</span></>, compare: (a, b) => millis(a.made_at) - millis(b.made_at) },
          { title: t('data.from'), cell: (one) => (one.job_id ? <Link to={'/jobs/' + part(one.job_id)}>{t('data.from_job', { id: shortID(one.job_id) })}</Link> : one.source ? <code>{one.source}</code> : one.digest ? <code title={one.digest}>{one.digest.replace('sha256:', '').slice(0, 12)}</code> : '–') },
          {
            title: <span className="hidden">{t('data.deeds')}</span>, right: true, cell: (one) => (
              <span className="bar deeds">
                {one.state === 'ready' && <a className="button small" href={inActing(fileAddress(object, '/archive', one.number, ''))} download aria-label={t('data.download_of', { version: one.number })}>{t('data.download')}</a>}
                {may('write') && usable(one) && <Button small aria-label={t('data.tag_of', { version: one.number })} onClick={() => ask({ what: 'tag', version: one })}>{t('data.tag')}</Button>}
                {may('delete') && <Button small tone="danger" aria-label={t('data.remove_of', { version: one.number })} onClick={() => ask({ what: 'remove', version: one })}>{t('data.remove')}</Button>}
              </span>
            ),
          },
        ]}
      />
      <Cli text={[`nomadlike data versions ${flags}${name}`, `nomadlike data push ${flags}DIR ${name}`, ...(versions.some(({ state }) => state === 'ready') ? [`nomadlike data verify ${flags}${name}`] : [])].join('\n')} />
    </div>
  )
}
