import type { TFunction } from 'i18next'
import { clock } from '../format'
import type { When } from '../types'

// startText is the short answer to "when does it start?".
export function startText(t: TFunction, when: When, now = Date.now()): string {
  switch (when.verdict) {
    case 'now':
      return t('forecast.now')
    case 'later':
      if (when.beyond === 'p50') return t('forecast.after', { time: clock(when.p50, now) })
      if (!when.beyond && clock(when.p50, now) === clock(when.p90, now)) return t('forecast.about', { p50: clock(when.p50, now) })
      return when.beyond === 'p90' ? t('forecast.open', { p50: clock(when.p50, now) }) : t('forecast.later', { p50: clock(when.p50, now), p90: clock(when.p90, now) })
    case 'never':
      return t('forecast.never')
  }
  return t('forecast.unknown')
}
