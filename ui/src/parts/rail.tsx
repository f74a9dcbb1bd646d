import { useQuery } from '@tanstack/react-query'
import { useEffect, type ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { Link, useLocation } from 'react-router'
import { get } from '../api'
import { useRights, type Right } from '../rights'
import type { JobSummary, PoolList } from '../types'

// poolsQuery asks for all pools, with what they hold and what waits for them.
export const poolsQuery = { queryKey: ['pools'], queryFn: ({ signal }: { signal: AbortSignal }) => get<PoolList>('/v1/pools', signal).then((list) => list.pools ?? []) }

// What people do, by whom it is about.
const groups = [
  ['', ['home']],
  ['work', ['jobs', 'data']],
  ['cluster', ['queue', 'cluster', 'pools']],
  ['project', ['use', 'project', 'secrets', 'limits']],
  ['administration', ['projects', 'people', 'audit', 'servers']],
] as const

// Who has no use for a page: of these one of the rights is needed.
const needs: Partial<Record<string, Right[]>> = { secrets: ['secrets', 'operator_read'], projects: ['operator_read'], people: ['user_list'], audit: ['audit'] }

// opens reports whether a page is for somebody with these rights.
export const opens = (key: string, may: (right: Right) => boolean) => needs[key]?.some(may) ?? true

// placeOf is the entry of the rail that a page belongs to.
export function placeOf(pathname: string): string {
  const first = pathname.split('/')[1] ?? ''
  return { '': 'home', nodes: 'cluster', vip: 'jobs' }[first] ?? first
}

// Rail is the way to every page, on the left; on a phone it is a sheet that is
// called and goes, and holds what the top has no room for there.
export function Rail({ open, close, children }: { open: boolean; close: () => void; children: ReactNode }) {
  const { t, i18n } = useTranslation()
  const { pathname } = useLocation()
  const counts = useCounts()
  const may = useRights()
  useEffect(close, [pathname]) // eslint-disable-line react-hooks/exhaustive-deps
  useEffect(() => {
    if (!open) return
    document.querySelector<HTMLElement>('.rail a[aria-current], .rail a')?.focus()
    const away = (event: Event) => {
      if (event instanceof KeyboardEvent ? event.key === 'Escape' : !(event.target as Element).closest('.rail')) close()
    }
    addEventListener('keydown', away)
    addEventListener('pointerdown', away)
    return () => {
      removeEventListener('keydown', away)
      removeEventListener('pointerdown', away)
    }
  }, [open]) // eslint-disable-line react-hooks/exhaustive-deps
  const here = placeOf(pathname)
  return (
    <nav className={open ? 'rail open' : 'rail'} aria-label={t('shell.menu')}>
      <Link to="/" className="brand"><i aria-hidden="true"><b /><b /><b /><b /></i>nomadlike</Link>
      {groups.map(([group, places]) => (
        <section key={group}>
          {group && <h2>{t('menu.group_' + group)}</h2>}
          <ul>
            {places.filter((key) => opens(key, may)).map((key) => (
              <li key={key}>
                <Link to={key === 'home' ? '/' : '/' + key} aria-current={key === here ? 'page' : undefined} aria-describedby={counts[key] ? 'count-' + key : undefined}>{t('menu.' + key)}</Link>
                {counts[key] && <span id={'count-' + key}>{counts[key]}</span>}
              </li>
            ))}
            {group === 'administration' && <li><a href={`/docs/${i18n.language === 'zh' ? 'zh' : 'en'}/`}>{t('menu.guides')}</a></li>}
          </ul>
        </section>
      ))}
      {open && <div className="bar preferences">{children}</div>}
    </nav>
  )
}

// useCounts are the figures beside the entries: jobs that are not over, of those
// that pages have asked for; what waits, and cards that are free, by the pools.
function useCounts(): Partial<Record<string, string>> {
  const { t } = useTranslation()
  const pools = useQuery({ ...poolsQuery, staleTime: 30_000, refetchInterval: 30_000, retry: false }).data
  const jobs = useQuery<JobSummary[]>({ queryKey: ['jobs'], enabled: false }).data
  if (!pools) return {}
  const waiting = pools.reduce((sum, pool) => sum + pool.queued, 0)
  const free = pools.reduce((sum, pool) => sum + freeOf(pool.models ?? []), 0)
  const cards = pools.reduce((sum, pool) => sum + pool.devices, 0)
  const live = jobs?.filter((job) => !job.finished_at).length
  return {
    jobs: live ? String(live) : undefined,
    queue: waiting ? String(waiting) : undefined,
    cluster: cards ? t('menu.free', { count: free }) : undefined,
  }
}

// freeOf counts the cards that nodes which take work have free.
export const freeOf = (models: { free: number }[]) => models.reduce((sum, model) => sum + model.free, 0)
