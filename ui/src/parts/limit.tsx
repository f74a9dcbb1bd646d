import { useQuery } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'
import { get, part } from '../api'
import { lengthOf, millis } from '../format'
import type { AttemptList, JobDetail } from '../types'
import { Button } from './controls'
import { Field } from './controls/fields'

// How long a job may run: the lengths that most ask for, a day more than now,
// and any other that is typed.
const presets = ['1h', '4h', '12h', '24h']
const day = 24 * 3_600_000

const typed = /^(\d+(\.\d+)?(h|m|s))+$/

// isLimit reports whether a text is a length of time as the API takes it.
export const isLimit = (text: string) => typed.test(text.trim()) && lengthOf(text) > 0

// shortLimit writes a length of time as people type it: 36h, 1h30m.
export function shortLimit(ms: number): string {
  const s = Math.round(ms / 1000)
  const text = [[Math.floor(s / 3600), 'h'], [Math.floor(s / 60) % 60, 'm'], [s % 60, 's']].map(([n, unit]) => (n ? `${n}${unit}` : '')).join('')
  return text || '0s'
}

// LimitField is a length of time that is typed or taken from a few; with none, no
// limit at all is one of them.
export function LimitField({ value, set, none, off }: { value: string; set: (value: string) => void; none?: boolean; off?: boolean }) {
  const { t } = useTranslation()
  const unlimited = value === '' || value === '0s'
  const wrong = !unlimited && !isLimit(value)
  return (
    <div className="stack">
      <Field entry="limit" label={t('deed.limit_label')} width={120} placeholder="36h" off={off} wrong={wrong} value={unlimited ? '' : value} change={set} />
      <LimitPresets value={value} set={set} none={none} off={off} />
    </div>
  )
}

// LimitPresets are the lengths that are taken with one click.
export function LimitPresets({ value, set, none, off }: { value: string; set: (value: string) => void; none?: boolean; off?: boolean }) {
  const { t } = useTranslation()
  const choose = (next: string, label: string) => <Button key={label} small disabled={off} tone={next === value ? 'first' : 'plain'} aria-pressed={next === value} onClick={() => set(next)}>{label}</Button>
  return (
    <span className="bar" role="group" aria-label={t('limit.presets')}>
      {presets.map((one) => choose(one, t('limit.hours', { count: parseInt(one) })))}
      {isLimit(value) && <Button small disabled={off} onClick={() => set(shortLimit(lengthOf(value) + day))}>{t('limit.day_more')}</Button>}
      {none && choose('0s', t('limit.none'))}
    </span>
  )
}

// useElapsed reads the limit that a job has and for how long it has run, since
// what is shorter than that ends it at once.
export function useElapsed(id: string, enabled: boolean) {
  const found = useQuery({
    queryKey: ['job', id, 'limit'],
    enabled,
    gcTime: 0,
    queryFn: async ({ signal }) => {
      const path = '/v1/jobs/' + part(id)
      const [detail, attempts] = await Promise.all([get<JobDetail>(path, signal), get<AttemptList>(path + '/attempts', signal)])
      const begun = (attempts.attempts ?? []).filter((a) => a.state === 'running' && a.running_at).map((a) => millis(a.running_at))
      return { limit: detail.job.time_limit || '0s', elapsed: begun.length ? Date.now() - Math.min(...begun) : 0 }
    },
  })
  const { limit, elapsed = 0 } = found.data ?? {}
  return {
    ready: found.data !== undefined,
    limit: limit === undefined || limit === '0s' ? limit : shortLimit(lengthOf(limit)),
    elapsed,
    // changes reports whether a text is a limit, and another than there is.
    changes: (text: string) => (text === '0s' ? limit !== '0s' : isLimit(text) && lengthOf(text) !== lengthOf(limit ?? '')),
    over: (text: string) => isLimit(text) && elapsed > 0 && lengthOf(text) <= elapsed,
  }
}
