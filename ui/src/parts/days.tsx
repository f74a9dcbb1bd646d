import { useTranslation } from 'react-i18next'
import { dateTime, number } from '../format'
import type { DayUse, UseOverTime } from '../types'
import { Note } from './controls'
import { Table } from './controls/table'

// zone is how far the reader's days begin east of UTC, in minutes.
export const zone = () => -new Date().getTimezoneOffset()

// dayOf is the date of a day, short: the year is known.
const dayOf = (day: DayUse) => dateTime(day.start).slice(5, 10)

const height = 120 // pixels of the longest bar

// Days draw what was used on each day, and list it by kind of card below. The last
// day is not over, and drawn so.
export function Days({ use, label }: { use: UseOverTime; label: string }) {
  const { t } = useTranslation()
  const days = use.days ?? []
  const cards = days.some((day) => day.device_hours > 0)
  const of = (day: DayUse) => (cards ? day.device_hours : day.cpu_hours)
  const most = Math.max(...days.map(of), 0)
  const kinds = (day: DayUse) => (day.kinds ?? []).map((kind) => `${kind.model || kind.kind || t('use.forgotten')} ${number(kind.device_hours)}`).join(t('people.and')) || '–'
  if (most < 0.005) return <p className="quiet">{t('use.none')}</p>
  return (
    <>
      <div role="img" aria-label={label} style={{ display: 'flex', alignItems: 'flex-end', gap: days.length > 14 ? 2 : 8, height: height + 24, margin: '8px 0 16px' }}>
        {days.map((day, i) => {
          const open = i === days.length - 1
          return (
            <div key={day.start} title={`${dayOf(day)}: ${number(of(day))}${open ? ' ' + t('use.open') : ''}`} style={{ flex: 1, minWidth: 0, textAlign: 'center' }}>
              <div style={{ height: Math.max(of(day) > 0 ? 2 : 0, (height * of(day)) / most), borderRadius: '3px 3px 0 0', background: open ? 'repeating-linear-gradient(135deg, var(--run) 0 4px, var(--shade) 4px 7px)' : 'var(--run)' }} />
              <span className="quiet" style={{ display: 'block', height: 20, fontSize: 'var(--t12)', borderTop: '1px solid var(--line)', overflow: 'hidden', whiteSpace: 'nowrap' }}>{days.length <= 8 ? dayOf(day) : i % 5 === 0 ? dayOf(day).slice(3) : ''}</span>
            </div>
          )
        })}
      </div>
      {use.known_since && <Note tone="info" title={t('use.known_since', { time: dateTime(use.known_since) })} />}
      <Table<DayUse> label={label} idOf={(day) => day.start ?? ''} rows={[...days].reverse()} page={7} least={420} columns={[
        { title: t('use.day'), cell: (day) => dateTime(day.start).slice(0, 10) },
        { title: t('use.card_hours'), right: true, cell: (day) => number(day.device_hours) },
        { title: t('use.core_hours'), right: true, cell: (day) => number(day.cpu_hours) },
        { title: t('use.kinds'), cell: kinds },
      ]} />
    </>
  )
}
