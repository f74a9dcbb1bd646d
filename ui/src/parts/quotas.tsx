import { useTranslation } from 'react-i18next'
import { number } from '../format'
import type { QuotaUse } from '../types'

// idleOf counts the cards that are guaranteed and not held: others may borrow them.
export const idleOf = (quotas: QuotaUse[]) => quotas.filter(({ kind }) => kind !== 'cpu').reduce((sum, quota) => sum + Math.max(0, (quota.guaranteed ?? 0) - quota.held), 0)

// QuotaBars show what is held of each quota.
export function QuotaBars({ quotas }: { quotas: QuotaUse[] }) {
  const { t } = useTranslation()
  return (
    <div className="stack">
      {quotas.map((quota) => {
        const most = quota.maximum ?? Math.max(quota.guaranteed ?? 0, quota.held, 1)
        const text = t(quota.maximum === undefined ? 'projects.quota_open' : 'projects.quota', { held: number(quota.held), guaranteed: quota.guaranteed ?? 0, most: quota.maximum })
        return (
          <div key={quota.kind + quota.model}>
            <strong>{quota.kind === 'cpu' ? t('projects.cores') : quota.model || quota.kind}</strong> <span className="quiet">{text}</span>
            <div className="meter" role="img" aria-label={text}><i style={{ width: `${Math.min(100, (100 * quota.held) / (most || 1))}%` }} /></div>
          </div>
        )
      })}
    </div>
  )
}
