import i18next from 'i18next'
import type { JobSummary, Resources } from './types'

// Time is RFC 3339 text, or that nobody knows it.
export type Time = string | null | undefined

const two = (n: number) => String(n).padStart(2, '0')

// Dates read 2026-11-21 15:04 in both languages.
export function dateTime(time: Time, seconds = false): string {
  if (!time) return '–'
  const d = new Date(time)
  const text = `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${two(d.getHours())}:${two(d.getMinutes())}`
  return seconds ? `${text}:${two(d.getSeconds())}` : text
}

// clock leaves out the date of today.
export function clock(time: Time, now = Date.now()): string {
  if (!time) return '–'
  const full = dateTime(time)
  return full.slice(0, 10) === dateTime(new Date(now).toISOString()).slice(0, 10) ? full.slice(11) : full
}

export const millis = (time: Time): number => (time ? Date.parse(time) : 0)

const spanUnits = { en: { d: 'd', h: 'h', m: 'min', s: 's' }, zh: { d: '天', h: '小时', m: '分', s: '秒' } }

// span writes a length of time with its two largest units.
export function span(ms: number): string {
  const units = spanUnits[i18next.language === 'zh' ? 'zh' : 'en']
  const s = Math.max(0, Math.round(ms / 1000))
  if (s === 0 && ms > 0) return `< 1 ${units.s}`
  if (s < 60) return `${s} ${units.s}`
  const m = Math.floor(s / 60)
  if (m < 60) return s % 60 && m < 10 ? `${m} ${units.m} ${s % 60} ${units.s}` : `${m} ${units.m}`
  const h = Math.floor(m / 60)
  if (h < 48) return m % 60 ? `${h} ${units.h} ${m % 60} ${units.m}` : `${h} ${units.h}`
  return h % 24 ? `${Math.floor(h / 24)} ${units.d} ${h % 24} ${units.h}` : `${Math.floor(h / 24)} ${units.d}`
}

export function since(from: Time, to: Time, now = Date.now()): string {
  return from ? span((to ? millis(to) : now) - millis(from)) : '–'
}

const lengths: Record<string, number> = { h: 3_600_000, m: 60_000, s: 1000, ms: 1, µs: 0.001, us: 0.001, ns: 0.000_001 }

// lengthOf reads a length of time as the API writes it, such as 1h2m3.5s.
export function lengthOf(text: string): number {
  let ms = 0
  for (const [, count, unit] of text.matchAll(/([\d.]+)(h|ms|m|s|µs|us|ns)/g)) ms += Number(count) * lengths[unit!]!
  return ms
}

// spelled writes such a length as people read it.
export const spelled = (text: string): string => (lengthOf(text) ? span(lengthOf(text)) : text)

// difference writes by how much something changes: earlier with a minus, later
// with a plus.
export function difference(text: string): string {
  const ms = lengthOf(text)
  if (Math.round(ms / 1000) === 0) return '–'
  return (text.startsWith('-') ? '−' : '+') + span(ms)
}

const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB']

export function size(bytes: number): string {
  let i = 0
  let n = bytes
  while (n >= 1024 && i < units.length - 1) {
    n /= 1024
    i++
  }
  return `${n >= 100 || Number.isInteger(n) ? Math.round(n) : n.toFixed(1)} ${units[i]}`
}

export const number = (n: number) => (Number.isInteger(n) ? String(n) : n.toFixed(n < 10 ? 2 : 1).replace(/\.?0+$/, ''))

// devicesOf counts the accelerator cards of a spec.
export const devicesOf = (spec?: Resources) => (spec?.devices ?? []).reduce((sum, d) => sum + Math.max(0, d.count ?? 1), 0)

export const shortID = (id: string) => id.slice(0, 8)

// progress tells how many of a batch's subjobs have succeeded.
export function progress(job: JobSummary): string {
  return job.subjobs > 1 ? `${job.counts?.succeeded ?? 0}/${job.subjobs}` : ''
}

// quote spells a word of a command line.
export const quote = (word: string) => (/^[A-Za-z0-9_\-.,:/=@+]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`)
