import { useTranslation } from 'react-i18next'
import { Button } from './controls'
import './hours.css'

export const hoursBack = 24
export const hoursAhead = 12
const thumb = 8 // pixels from a range's edge to the middle of its thumb at the end

// hoursOf reads the hours of an address: before now with a minus, 0 for now.
export const hoursOf = (text: string | null) => Math.min(hoursAhead, Math.max(-hoursBack, Number(text) || 0))

// Hours is a slider over the last day and the hours ahead, on one scale.
export function Hours({ hours, put }: { hours: number; put: (hours: string) => void }) {
  const { t } = useTranslation()
  const word = hours > 0 ? t('cluster.in_hours', { count: hours }) : hours < 0 ? t('cluster.hours_ago', { count: -hours }) : t('cluster.now')
  return (
    <div className="hours">
      <span className="hours-word">{word}</span>
      <span className="hours-line">
        <input type="range" min={-hoursBack} max={hoursAhead} step={0.5} value={hours} aria-label={t('cluster.time')} aria-valuetext={word} onChange={(e) => put(Number(e.target.value) === 0 ? '' : e.target.value)} />
        <i aria-hidden="true">{t('cluster.mark_back', { count: hoursBack })}</i>
        <i aria-hidden="true" className="hours-now" style={{ left: `calc(${thumb}px + (100% - ${2 * thumb}px) * ${hoursBack / (hoursBack + hoursAhead)})` }}>{t('cluster.now')}</i>
        <i aria-hidden="true">{t('cluster.mark_ahead', { count: hoursAhead })}</i>
      </span>
      <Button small style={{ visibility: hours ? undefined : 'hidden' }} onClick={() => put('')}>{t('cluster.to_now')}</Button>
    </div>
  )
}
