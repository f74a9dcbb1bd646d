import type { TFunction } from 'i18next'
import type { Attempt } from '../../types'

// outcomeOf is how an attempt ended. What was moved because a rank was slow lost nothing,
// though nobody pays for it, as for what is lost.
export const outcomeOf = (a: Attempt): string | undefined => (a.outcome === 'lost' && a.cause?.id === 'reason.slow' ? 'moved' : a.outcome)

// outcomeText says it, or where the attempt stands.
export const outcomeText = (a: Attempt, t: TFunction): string => (a.outcome ? t('outcome.' + outcomeOf(a), a.outcome) : t('attempt.' + a.state))
