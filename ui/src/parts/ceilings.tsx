import { useQuery } from '@tanstack/react-query'
import type { TFunction } from 'i18next'
import { useTranslation } from 'react-i18next'
import { Link } from 'react-router'
import { get, part } from '../api'
import { dateTime, spelled } from '../format'
import type { Ceiling, Job, PoolCeilings, SettingsAnswer } from '../types'

// What ceilings bound, by the paths of job files, and where a record says it.
export const things: [path: string, key: keyof PoolCeilings][] = [
  ['time_limit', 'time_limit'], ['nodes', 'nodes'], ['devices', 'devices'], ['checkpoint.max_resumes', 'max_resumes'],
  ['checkpoint.grace', 'grace'], ['debug.hold', 'hold'], ['checkpoint', 'no_checkpoint'],
]

// thingText names what a ceiling bounds.
export const thingText = (t: TFunction, path: string) => t('limits.' + path.replaceAll('.', '_'))

// mostText is the most of a thing, as people read it.
export const mostText = (t: TFunction, path: string, max: string) => (max === 'none' ? t(path === 'access' ? 'limits.unshared' : 'limits.never') : spelled(max))

// whoseText says whose word a ceiling is, and who set it when, where that is known.
export function whoseText(t: TFunction, { level, name, by, at }: Pick<Ceiling, 'level' | 'name' | 'by' | 'at'>): string {
  const whose = t('limits.of_' + level, { name })
  return by ? t('limits.set', { whose, by, time: dateTime(at) }) : whose
}

// settingsQuery asks what is set for the whole cluster, and what comes of it for one's
// own jobs in a pool; named of those that name their nodes.
export const settingsQuery = (acting: string, pool: string, named = false) => ({
  queryKey: ['settings', acting, pool, named], refetchInterval: 60_000,
  queryFn: ({ signal }: { signal: AbortSignal }) => get<SettingsAnswer>('/v1/settings?' + [pool && 'pool=' + part(pool), named && 'named=true'].filter(Boolean).join('&'), signal),
})

// Ceilings lists the most that jobs may ask for, with whose word that is.
export function Ceilings({ ceilings }: { ceilings: Ceiling[] }) {
  const { t } = useTranslation()
  if (!ceilings.length) return <p className="quiet">{t('limits.open')}</p>
  return (
    <dl className="facts">
      {ceilings.map((one) => (
        <div key={one.path} style={{ display: 'contents' }}>
          <dt>{thingText(t, one.path)}</dt>
          <dd><b>{mostText(t, one.path, one.max)}</b> <span className="quiet">{whoseText(t, one)}</span></dd>
        </div>
      ))}
    </dl>
  )
}

// Most is what a job may ask for where it is to stand, before it is submitted.
export function Most({ acting, job }: { acting: string; job?: Job }) {
  const { t } = useTranslation()
  const named = !!job?.placement?.nodes?.length
  const pool = named ? '' : (job?.placement?.pool ?? '')
  const found = useQuery({ ...settingsQuery(acting, pool, named), retry: false }).data
  if (!found) return null
  return (
    <section className="card" aria-label={t('limits.most')}>
      <h2>{t('limits.most')}</h2>
      <Ceilings ceilings={found.effective ?? []} />
      <p><Link to={'/limits' + (pool && '?pool=' + part(pool))}>{t('limits.all')}</Link></p>
    </section>
  )
}
