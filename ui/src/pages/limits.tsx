import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useSearchParams } from 'react-router'
import { ApiError, call, get, part } from '../api'
import { dateTime, quote, spelled } from '../format'
import { Cli } from '../parts/actions'
import { Refused } from '../parts/bounds'
import { ceilingFlags, ceilingsFor, CeilingFields } from '../parts/ceiling_fields'
import { mostText, settingsQuery, things, thingText, whoseText } from '../parts/ceilings'
import { Button, Pick } from '../parts/controls'
import { Dialog } from '../parts/controls/dialog'
import { Table } from '../parts/controls/table'
import { poolsQuery } from '../parts/rail'
import { Sharing } from '../parts/sharing'
import { Failed, failing, Loading, useTitle } from '../parts/states'
import { useRights } from '../rights'
import { useSession } from '../shell'
import type { Level, Pool, PoolCeilings, Project, ProjectDetail } from '../types'

// cellText is what a record says of one thing, '' where it says nothing.
export function cellText(ceilings: PoolCeilings | undefined, key: keyof PoolCeilings, never: string): string {
  const value = ceilings?.[key]
  if (!value || value === '0s') return ''
  return value === true ? never : typeof value === 'number' ? String(value) : spelled(value)
}

interface Place {
  level: Level
  name: string
  ceilings?: PoolCeilings
  by?: string
  at?: string
}

// LimitsPage is the most that jobs may ask for, by the cluster, a pool and the project
// that requests act in, with what counts and who set it, and whether owners may share
// their jobs. Administrators change both here.
export function LimitsPage() {
  const { t } = useTranslation()
  useTitle(t('limits.title'))
  const acting = useSession().data?.acting ?? ''
  const may = useRights()
  const [params, setParams] = useSearchParams()
  const [asks, setAsks] = useState<Level>()
  const pools = useQuery(poolsQuery)
  const chosen = params.get('pool') ?? ''
  const settings = useQuery(settingsQuery(acting, chosen))
  const read = useQuery({
    queryKey: ['projects', acting, 'limits'], enabled: acting !== '', retry: false, refetchInterval: 60_000,
    queryFn: ({ signal }) => get<ProjectDetail>('/v1/projects/' + part(acting), signal).catch((error: unknown) => {
      if (error instanceof ApiError && error.status === 404) return null // it has no record
      throw error
    }),
  })
  if (settings.isPending || pools.isPending || (acting && read.isPending)) return <Loading />
  if (failing(settings) || !settings.data) return <div className="page"><h1>{t('limits.title')}</h1><Failed error={settings.error} retry={() => void settings.refetch()} /></div>
  const name = chosen || 'default'
  const pool = pools.data?.find((one) => one.pool.name === name)?.pool
  const project = read.data?.project
  const { settings: cluster, shared } = settings.data
  const effective = settings.data.effective ?? []
  const access = effective.find((one) => one.path === 'access')
  const places: Place[] = [
    { level: 'cluster', name: '', ceilings: cluster.ceilings, by: cluster.ceilings_by, at: cluster.ceilings_at },
    { level: 'pool', name, ceilings: pool?.ceilings, by: pool?.ceilings_by, at: pool?.ceilings_at },
    ...(acting ? [{ level: 'project' as const, name: acting, ceilings: project?.ceilings, by: project?.bounds_by, at: project?.bounds_at }] : []),
  ]
  const bounded = effective.filter((one) => one.path !== 'access')
  const names = [...new Set(['default', name, ...(pools.data ?? []).map((one) => one.pool.name)])]
  return (
    <div className="page">
      <h1>{t('limits.title')}</h1>
      <p className="truth">{bounded.length ? t('limits.truth', { pool: name, limits: bounded.map((one) => `${thingText(t, one.path)} ${mostText(t, one.path, one.max)}`).join(t('limits.and')) }) : t('limits.truth_open', { pool: name })}{access && ' ' + t('limits.truth_unshared')}</p>
      <section className="card" aria-label={t('limits.most')}>
        <div className="bar"><h2>{t('limits.most')}</h2><span className="grow" /><Pick label={t('limits.pool')} value={name} change={(value) => setParams(value && value !== 'default' ? { pool: value } : {})} options={names.map((value) => ({ value, label: value }))} /></div>
        <Table label={t('limits.most')} idOf={([path]) => path} rows={things} least={acting ? 720 : 560} columns={[
          { title: t('limits.thing'), cell: ([path]) => <span title={path}>{thingText(t, path)}</span> },
          { title: t('limits.counts'), cell: ([path]) => { const one = effective.find((each) => each.path === path); return one ? <><b>{mostText(t, path, one.max)}</b><br /><span className="quiet">{whoseText(t, one)}</span></> : <span className="quiet">{t('limits.none')}</span> } },
          ...places.map((place) => ({
            title: t('limits.head_' + place.level, { name: place.name }),
            cell: ([path, key]: (typeof things)[number]) => <Cell text={cellText(place.ceilings, key, t('limits.never'))} counts={effective.some((one) => one.path === path && one.level === place.level)} />,
          })),
        ]} />
        {places.filter((place) => place.by).map((place) => <p key={place.level} className="quiet">{t('limits.set_by', { whose: t('limits.of_' + place.level, { name: place.name }), by: place.by, time: dateTime(place.at) })}</p>)}
        {may('settings') ? (
          <div className="bar">{places.map(({ level, name: of }) => <Button key={level} onClick={() => setAsks(level)}>{t('limits.change_' + level, { name: of })}</Button>)}</div>
        ) : <p className="quiet">{t('limits.whose')}</p>}
        <Cli text={'nomadlike operator ceilings' + (chosen ? ' -pool ' + quote(chosen) : '')} />
      </section>
      <Sharing settings={cluster} shared={shared} project={project} detail={read.data ?? undefined} />
      {asks && <CeilingsDialog place={places.find(({ level }) => level === asks)!} pool={pool} project={project} close={() => setAsks(undefined)} />}
    </div>
  )
}

function Cell({ text, counts }: { text: string; counts: boolean }) {
  if (!text) return <span className="quiet">–</span>
  return counts ? <b>{text}</b> : <>{text}</>
}

// putCeilings puts the ceilings of one level, and leaves the rest of its record alone.
async function putCeilings({ level, name }: Place, ceilings: PoolCeilings, pool?: Pool, project?: Project): Promise<unknown> {
  if (level === 'cluster') return call('PUT', '/v1/settings', { ceilings })
  if (level === 'pool') return call('PUT', '/v1/pools/' + part(name), { ...pool, name, ceilings })
  return call('PUT', '/v1/projects/' + part(name), { ...project, name, ceilings })
}

function CeilingsDialog({ place, pool, project, close }: { place: Place; pool?: Pool; project?: Project; close: () => void }) {
  const { t } = useTranslation()
  const client = useQueryClient()
  const [ceilings, setCeilings] = useState<PoolCeilings>(place.ceilings ?? {})
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>()
  const run = async () => {
    setBusy(true)
    setError(undefined)
    try {
      await putCeilings(place, ceilingsFor(ceilings), pool, project)
      await client.invalidateQueries({ predicate: ({ queryKey }) => ['settings', 'pools', 'projects', 'self'].includes(queryKey[0] as string) })
      close()
    } catch (failure) {
      setError(failure)
      setBusy(false)
    }
  }
  const cli = { cluster: 'nomadlike operator ceilings' + ceilingFlags(place.ceilings ?? {}, ceilings), pool: 'nomadlike pool apply FILE', project: 'nomadlike project apply FILE' }[place.level]
  return (
    <Dialog title={t('limits.change_' + place.level, { name: place.name })} close={close} act={t('limits.save')} busy={busy} run={() => void run()}>
      <div className="stack">
        <p>{t('limits.changes_' + place.level, { name: place.name })}</p>
        <CeilingFields entry={({ cluster: 'settings.ceilings', pool: 'pool.ceilings', project: 'project.ceilings' } as const)[place.level]} ceilings={ceilings} change={setCeilings} />
        <p className="quiet">{t('limits.admitted')}</p>
        <Refused error={error} />
        <Cli text={cli} />
      </div>
    </Dialog>
  )
}
