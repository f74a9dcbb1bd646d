import { useQuery } from '@tanstack/react-query'
import { lazy, Suspense, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { Link, useNavigate, useParams } from 'react-router'
import { again } from '../../again'
import { dateTime, quote, size } from '../../format'
import { Cli } from '../../parts/actions'
import { Button, Note } from '../../parts/controls'
import { Tabs } from '../../parts/controls/tabs'
import { flagsOf, oneQuery, pageOf, usedQuery, type Ref } from '../../parts/data'
import { Failed, failing, Loading, useTitle } from '../../parts/states'
import { useSession } from '../../shell'
import type { DataDetail, DataVersion } from '../../types'
import { Star, useMark } from '../data'
import './data.css'
import { Files } from './files'
import { Used } from './used'
import { Versions } from './versions'

const deeds = { edit: 'EditDialog', remove: 'RemoveDialog', tag: 'TagDialog' } as const
const EditDialog = lazy(() => again(() => import('./deeds')).then((m) => ({ default: m[deeds.edit] })))
const RemoveDialog = lazy(() => again(() => import('./deeds')).then((m) => ({ default: m[deeds.remove] })))
const TagDialog = lazy(() => again(() => import('./deeds')).then((m) => ({ default: m[deeds.tag] })))

// Asks is what is to be done to the object, or to one version of it.
export interface Asks {
  what: keyof typeof deeds
  version?: DataVersion
}

export const usable = ({ state }: DataVersion) => state !== 'uploading'

// DataObjectPage is one object: what it is, its versions with their files, and who uses it.
export function DataObjectPage() {
  const { t } = useTranslation()
  const { project = '', kind = '', name = '', tab = 'files' } = useParams()
  const ref: Ref = { project, kind, name }
  useTitle(name)
  const acting = useSession().data?.acting ?? ''
  const go = useNavigate()
  const mark = useMark()
  const [asks, setAsks] = useState<Asks>()
  const read = useQuery(oneQuery(ref))
  const used = useQuery(usedQuery(ref))
  if (read.isPending) return <Loading />
  if (failing(read) || !read.data) return <div className="page"><h1>{name}</h1><Failed error={read.error} retry={() => void read.refetch()} /><p><Link to="/data">{t('data.back')}</Link></p></div>
  const detail = read.data
  const { object, verbs } = detail
  const may = (verb: string) => verbs?.includes(verb) ?? false
  const versions = object.versions ?? []
  const live = used.data?.jobs?.filter((job) => !job.finished_at).length ?? 0
  const tabs = [
    { key: 'files', label: t('data.tab_files'), children: <Files object={ref} versions={versions} acting={acting} /> },
    { key: 'versions', label: t('data.tab_versions', { count: versions.filter(usable).length }), children: <Versions object={ref} versions={versions} may={may} ask={setAsks} acting={acting} /> },
    { key: 'use', label: live ? t('data.tab_use_live', { count: live }) : t('data.tab_use'), children: <Used used={used} /> },
  ]
  const close = () => setAsks(undefined)
  return (
    <div className="page">
      <nav aria-label={t('data.place')}><Link to="/data">{t('menu.data')}</Link> <span className="quiet">/ {project} / {t('data.kind.' + kind, kind)}</span></nav>
      <div className="bar">
        <h1><Star detail={detail} mark={(of, on) => void mark(of, on)} /> {name}</h1>
        {object.published && <span className="tag tone-good">{t('data.published')}</span>}
        <span className="tag">{t('data.accesses.' + object.access, object.access)}</span>
        <span className="grow" />
        {may('write') && <Button onClick={() => setAsks({ what: 'edit' })}>{t('data.edit')}</Button>}
        {may('delete') && <Button tone="danger" onClick={() => setAsks({ what: 'remove' })}>{t('data.remove')}</Button>}
      </div>
      <Truth detail={detail} live={live} />
      {object.description && <p className="said">{object.description}</p>}
      <Facts detail={detail} />
      <Tabs label={name} active={tab} change={(key) => void go(pageOf(ref, key === 'files' ? '' : key), { replace: true })} tabs={tabs} />
      {asks && (
        <Suspense>
          {asks.what === 'edit' && <EditDialog detail={detail} owns={may('delete')} acting={acting} close={close} />}
          {asks.what === 'remove' && <RemoveDialog detail={detail} version={asks.version} used={used.data} acting={acting} close={close} gone={() => void go('/data')} />}
          {asks.what === 'tag' && asks.version && <TagDialog detail={detail} version={asks.version} acting={acting} close={close} />}
        </Suspense>
      )}
    </div>
  )
}

// Truth is the one sentence on top.
function Truth({ detail, live }: { detail: DataDetail; live: number }) {
  const { t } = useTranslation()
  const { newest, newest_at, newest_tag, files, bytes, object } = detail
  const acting = useSession().data?.acting ?? ''
  if (!newest) return <Note tone="info" title={t('data.empty_object')}><Cli text={`nomadlike data push ${flagsOf(object, acting)}DIR ${quote(object.name)}`} /></Note>
  const version = object.versions?.find(({ number }) => number === newest)
  const how = { version: newest, tag: newest_tag ? ` (${newest_tag})` : '', time: dateTime(newest_at), by: version?.made_by || '–' }
  return <p className="truth">{version?.state === 'registered' ? t('data.truth_registered', { ...how, source: version.source, storage: object.storage }) : t('data.truth_newest', { ...how, files: t('data.files', { count: files }), size: size(bytes) })} {live > 0 ? t('data.truth_used', { count: live }) : t('data.truth_unused')}</p>
}

function Facts({ detail }: { detail: DataDetail }) {
  const { t } = useTranslation()
  const { object, all_bytes, favourites } = detail
  const labels = Object.entries(object.labels ?? {}).sort(([a], [b]) => (a < b ? -1 : 1))
  return (
    <dl className="facts">
      <dt>{t('data.owner')}</dt><dd>{object.owner || '–'}</dd>
      {labels.length > 0 && <><dt>{t('data.labels')}</dt><dd>{labels.map(([key, value]) => <span key={key} className="tag">{key}={value}</span>)}</dd></>}
      <dt>{t('data.storage')}</dt><dd>{object.storage}</dd>
      <dt>{t('data.all_versions')}</dt><dd>{t('data.all_bytes', { size: size(all_bytes) })}</dd>
      {favourites > 0 && <><dt>{t('data.favourites')}</dt><dd>{t('data.marked', { count: favourites })}</dd></>}
    </dl>
  )
}
