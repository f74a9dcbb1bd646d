import { useTranslation } from 'react-i18next'
import { quote } from '../format'
import type { PoolCeilings } from '../types'
import type { Entry } from './entries'
import { Check, Field } from './controls/fields'

// Ceilings by the words that the files of pools and projects have for them.
export const ceilingSpans = ['time_limit', 'grace', 'hold'] as const
export const ceilingCounts = ['nodes', 'devices', 'max_resumes'] as const

export const numberOf = (text: string) => (text.trim() && Number.isFinite(Number(text)) ? Number(text) : undefined)
export const textOf = (n?: number) => (n === undefined || n === null ? '' : String(n))

// lengthFor is a length of time as servers read it: they count no days.
export const lengthFor = (text?: string) => text?.trim().replace(/(\d+)d/g, (_, days: string) => Number(days) * 24 + 'h') || undefined

// ceilingsFor are ceilings that were typed, as servers read them.
export const ceilingsFor = (ceilings: PoolCeilings): PoolCeilings => ({ ...ceilings, ...Object.fromEntries(ceilingSpans.map((key) => [key, lengthFor(ceilings[key])])) })

// ceilingFlags are the flags that have the cluster's ceilings say the same: of what is
// other than before.
export function ceilingFlags(before: PoolCeilings, after: PoolCeilings): string {
  const flag = (key: string) => ' -' + key.replace('_', '-') + ' '
  return [
    ...ceilingSpans.filter((key) => (before[key] ?? '') !== (after[key] ?? '')).map((key) => flag(key) + quote(lengthFor(after[key]) ?? 'none')),
    ...ceilingCounts.filter((key) => (before[key] ?? 0) !== (after[key] ?? 0)).map((key) => flag(key) + (after[key] ?? 0)),
    ...(!!before.no_checkpoint === !!after.no_checkpoint ? [] : [' -no-checkpoint' + (after.no_checkpoint ? '' : '=false')]),
  ].join('')
}

// CeilingFields are the ceilings of a cluster, a pool or a project; an empty one bounds
// nothing.
export function CeilingFields({ entry, ceilings, change }: { entry: Entry; ceilings: PoolCeilings; change: (ceilings: PoolCeilings) => void }) {
  const { t } = useTranslation()
  return (
    <>
      <div className="bar ends">
        {ceilingSpans.map((key) => <Field key={key} entry={entry} label={t('projects.' + key)} width={100} value={ceilings[key] ?? ''} change={(text) => change({ ...ceilings, [key]: text })} placeholder="∞" spellCheck={false} />)}
        {ceilingCounts.map((key) => <Field key={key} entry={entry} label={t('projects.' + key)} width={100} value={textOf(ceilings[key])} change={(text) => change({ ...ceilings, [key]: numberOf(text) })} inputMode="numeric" placeholder="∞" />)}
      </div>
      <Check entry={entry} checked={!!ceilings.no_checkpoint} change={(no_checkpoint) => change({ ...ceilings, no_checkpoint })}>{t('projects.no_checkpoint')}</Check>
    </>
  )
}
