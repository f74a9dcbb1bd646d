import { useEffect, useSyncExternalStore } from 'react'
import { useTranslation } from 'react-i18next'
import { dateTime } from '../format'

// One moment of a page, in seconds, that all of its charts, timelines and logs
// show: whoever points at one of them sees the same moment on the others. It stays
// until another one is pointed at, or the page is left.

let moment: number | undefined
const listeners = new Set<() => void>()

export const pointed = () => moment

export function pointAt(seconds: number | undefined) {
  if (seconds === moment) return
  moment = seconds
  for (const listener of listeners) listener()
}

export function onPoint(listener: () => void) {
  listeners.add(listener)
  return () => void listeners.delete(listener)
}

export const usePointed = () => useSyncExternalStore(onPoint, pointed)

// usePointing forgets the moment when a page is left, or another object is shown.
export function usePointing(of: string) {
  useEffect(() => () => pointAt(undefined), [of])
}

// nearest is the place of the time that is nearest to a moment, -1 when it lies
// outside of what there is. Times that nobody knows are null.
export function nearest(times: readonly (number | null | undefined)[], at: number): number {
  let best = -1
  let [first, last] = [Infinity, -Infinity]
  for (const [i, time] of times.entries()) {
    if (time === null || time === undefined) continue
    first = Math.min(first, time)
    last = Math.max(last, time)
    if (best < 0 || Math.abs(time - at) < Math.abs(times[best]! - at)) best = i
  }
  const slack = Math.max(1, (last - first) / 100)
  return at < first - slack || at > last + slack ? -1 : best
}

// Cursor moves the moment with keys, for those who do not point.
export function Cursor({ from, to }: { from: number; to: number }) {
  const { t } = useTranslation()
  const at = usePointed()
  if (!(to > from)) return null
  const text = at === undefined ? t('cursor.none') : dateTime(new Date(at * 1000).toISOString(), true)
  return (
    <label className="cursor">
      <span>{t('cursor.label')}</span>
      <input type="range" min={Math.floor(from)} max={Math.ceil(to)} step="any" value={at === undefined ? to : Math.min(to, Math.max(from, at))} aria-valuetext={text}
        onChange={(event) => pointAt(Number(event.target.value))}
        onKeyDown={(event) => {
          const step = (to - from) / 100
          const next = { ArrowRight: step, ArrowUp: step, ArrowLeft: -step, ArrowDown: -step, PageUp: 10 * step, PageDown: -10 * step }[event.key]
          if (event.key === 'Escape') pointAt(undefined)
          if (next === undefined) return
          event.preventDefault()
          pointAt(Math.min(to, Math.max(from, (at ?? to) + next)))
        }} />
      <output className="quiet">{text}</output>
    </label>
  )
}
