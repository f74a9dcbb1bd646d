import i18next from 'i18next'
import { initReactI18next } from 'react-i18next'
import { again } from './again'
import { speak } from './api'
import { clock, lengthOf } from './format'
import type { Reason } from './types'

export type Language = 'zh' | 'en'
export const languages: Language[] = ['zh', 'en']
const kept = 'nomadlike.language'

// The page's own words, and the catalogue of the servers' reasons and events,
// which come as ids with parameters. Only the language in use is loaded, and of the
// catalogue what lists of jobs and nodes say; the rest comes with other pages, or
// when something of it is to be read, and what is wrong with job files where they are written.
const pageTexts = { zh: () => import('./locales/zh.json'), en: () => import('./locales/en.json') }
const catalogues = { zh: () => import('./catalogue.zh'), en: () => import('./catalogue.en') }
const files = { zh: () => import('./catalogue.zh.file'), en: () => import('./catalogue.en.file') }
const rests = { zh: () => import('./catalogue.zh.rest'), en: () => import('./catalogue.en.rest') }

// The words of pages that few open come with them.
const partTexts = {
  compare: { zh: () => import('./locales/compare/zh.json'), en: () => import('./locales/compare/en.json') },
  create: { zh: () => import('./locales/create/zh.json'), en: () => import('./locales/create/en.json') },
  data: { zh: () => import('./locales/data/zh.json'), en: () => import('./locales/data/en.json') },
  job: { zh: () => import('./locales/job/zh.json'), en: () => import('./locales/job/en.json') },
  limits: { zh: () => import('./locales/limits/zh.json'), en: () => import('./locales/limits/en.json') },
  more: { zh: () => import('./locales/more/zh.json'), en: () => import('./locales/more/en.json') },
  people: { zh: () => import('./locales/people/zh.json'), en: () => import('./locales/people/en.json') },
  signin: { zh: () => import('./locales/signin/zh.json'), en: () => import('./locales/signin/en.json') },
  servers: { zh: () => import('./locales/servers/zh.json'), en: () => import('./locales/servers/en.json') },
  told: { zh: () => import('./locales/told/zh.json'), en: () => import('./locales/told/en.json') },
  upload: { zh: () => import('./locales/upload/zh.json'), en: () => import('./locales/upload/en.json') },
  vip: { zh: () => import('./locales/vip/zh.json'), en: () => import('./locales/vip/en.json') },
}
type Part = keyof typeof partTexts
const opened = new Set<Part>()

const loadPart = async (part: Part, language: Language) => void i18next.addResourceBundle(language, 'translation', (await again<{ default: object }>(partTexts[part][language])).default, true, true)

let begun = () => {}
const beginning = new Promise<void>((done) => (begun = done))

// withTexts loads the words of parts in the language in use, and in each that is
// chosen later, with those that home and the list of jobs do without. The first page
// asks for them before the language is set up.
export async function withTexts(...parts: Part[]) {
  const all: Part[] = ['more', ...parts]
  for (const part of all) {
    opened.add(part)
    again(partTexts[part][currentLanguage()]).catch(() => {}) // on its way meanwhile; it is asked for again below
  }
  const rest = Promise.all([loadRest(), parts.includes('create') ? loadFile() : undefined])
  if (!i18next.isInitialized) await beginning
  await Promise.all([rest, ...all.map((part) => loadPart(part, i18next.language as Language))])
}

let catalogue: Record<string, string> = {}

// Whether the rest of the catalogue is still to come, and what waits for it.
let whole = true
let coming: Promise<void> | undefined

// loadRest loads what the catalogue lacks, once, and has what is shown drawn anew. What
// does not come leaves ids, which say something, too.
function loadRest(): Promise<void> {
  if (whole) return Promise.resolve()
  const language = currentLanguage()
  return (coming ??= again(rests[language]).catch(() => undefined).then((rest) => {
    if (language !== currentLanguage()) return // another one was chosen meanwhile, and asks for its own
    whole = true
    Object.assign(catalogue, rest?.default)
    i18next.emit('catalogue')
  }))
}

// The same of what is wrong with job files.
let filed = true
let filing: Promise<void> | undefined

function loadFile(): Promise<void> {
  if (filed) return Promise.resolve()
  const language = currentLanguage()
  return (filing ??= again(files[language]).catch(() => undefined).then((file) => {
    if (language !== currentLanguage()) return
    filed = true
    Object.assign(catalogue, file?.default)
    i18next.emit('catalogue')
  }))
}

// textOf is the text of an id; '…' while it may be in what is on its way.
function textOf(id: string): string | undefined {
  if (id in catalogue) return catalogue[id]
  const ofJobs = /^job(spec)?\./.test(id)
  if (whole && (filed || !ofJobs)) return undefined
  void loadRest()
  if (ofJobs) void loadFile()
  return '…'
}

// preferred is the language that the person chose before, else Chinese when
// the browser asks for it before English.
export function preferred(asked: readonly string[], chosen: string | null): Language {
  if (chosen === 'zh' || chosen === 'en') return chosen
  for (const tag of asked) {
    const primary = tag.toLowerCase().split('-')[0]
    if (primary === 'zh' || primary === 'en') return primary
  }
  return 'en'
}

export const currentLanguage = (): Language => preferred(navigator.languages, localStorage.getItem(kept))

async function load(language: Language) {
  const [texts, reasons] = await Promise.all([again(pageTexts[language]), again(catalogues[language])])
  await Promise.all([...opened].map((part) => loadPart(part, language)))
  catalogue = { ...reasons.default }
  whole = filed = false
  coming = filing = undefined
  if (opened.size) await Promise.all([loadRest(), opened.has('create') ? loadFile() : undefined])
  i18next.addResourceBundle(language, 'translation', texts.default, true, true)
  document.documentElement.lang = language === 'zh' ? 'zh-CN' : 'en'
  speak(language === 'zh' ? 'zh-CN' : 'en')
}

export async function startLanguage() {
  const language = currentLanguage()
  await i18next.use(initReactI18next).init({
    lng: language,
    resources: {},
    interpolation: { escapeValue: false }, // React escapes
    returnNull: false,
    react: { bindI18n: 'languageChanged catalogue' },
  })
  begun()
  await load(language)
  await i18next.changeLanguage(language)
}

export async function chooseLanguage(language: Language) {
  localStorage.setItem(kept, language)
  await load(language)
  await i18next.changeLanguage(language)
}

// fill puts parameters into a template of the catalogue, once: braces inside a
// value are not looked at again. {count|job|jobs} is the form of a word that goes
// with the parameter count; {kind:word} is a word of the catalogue, and
// {need:words} a list of such words with something behind each.
export function fill(template: string, params: Record<string, string> = {}): string {
  return template.replace(place, (whole, name: string, form?: string, one?: string, many?: string) => {
    const value = params[name]
    if (value === undefined) return whole
    if (form === ':word') return wordOf(value)
    if (form === ':words') return value.split(', ').map((item) => item.split(' | ').map(firstWord).join(' | ')).join(catalogue['word.and'] ?? ', ')
    if (form === undefined) return spanText(value)
    return value === '1' ? one! : (many ?? one!)
  })
}

const place = /\{([a-z0-9_]+)(:words?|\|([^{}|]*)\|([^{}|]*))?\}/g
const wholeSpan = /^(\d+h)?(\d+m)?\d+(\.\d+)?(ms|µs|ns|s)$/

const wholeTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/

// spanText writes a length of time as people read it, as the catalogue's other
// reader does: 2h42m43.713342491s is 2h42m44s, 1h0m0s is 1h. A moment is told in the reader's zone.
export function spanText(value: string): string {
  if (wholeTime.test(value)) return clock(value)
  if (!wholeSpan.test(value)) return value
  const ms = lengthOf(value)
  if (ms < 1000) return value.replace(/(\.\d{3})\d+/, '$1')
  if (ms < 60_000) return `${Number((ms / 1000).toFixed(3))}s`
  const s = Math.round(ms / 1000)
  const [h, m] = [Math.floor(s / 3600), Math.floor(s / 60) % 60]
  return (h ? `${h}h` : '') + (m || (h && s % 60) ? `${m}m` : '') + (s % 60 ? `${s % 60}s` : '')
}

const wordOf = (value: string) => catalogue['word.' + value] ?? value
const firstWord = (item: string) => {
  const end = item.indexOf(' ')
  return end < 0 ? wordOf(item) : wordOf(item.slice(0, end)) + item.slice(end)
}

// reasonText renders what a server says by id; an id that this page does not
// know is shown with its parameters, so that a reader always sees something true.
export function reasonText(reason?: Reason | null): string {
  if (!reason?.id) return ''
  const template = textOf(reason.id)
  if (template) return fill(template, spoken(reason))
  const params = Object.entries(reason.params ?? {}).sort(([a], [b]) => (a < b ? -1 : 1))
  return [reason.id, ...params.map(([name, value]) => `${name}=${value}`)].join(' ')
}

// causeText names a kind of reason, whatever it was about each time.
export const causeText = (id: string): string => textOf(id)?.replace(place, (_, __, ___, ____, many?: string) => many ?? '…') ?? id

// What the words of a parameter are of: servers send them as the API spells
// them.
const groups: Record<string, string> = { state: 'state', outcome: 'outcome', status: 'node_status', eligibility: 'eligibility', priority: 'priority', tier: 'priority', other: 'priority' }

// spoken gives the parameters of a reason with states, outcomes and priorities
// in the reader's language.
function spoken({ id, params = {} }: Reason): Record<string, string> {
  const out = { ...params }
  for (const [name, value] of Object.entries(params)) {
    const group = groups[name] ?? (id === 'event.job.priority' ? 'priority' : id === 'state.node_status' ? 'node_status' : '')
    if (name.endsWith('_zh') && i18next.language.startsWith('zh')) out[name.slice(0, -3)] = value // the sentence in Chinese
    if (group && i18next.exists(`${group}.${value}`)) out[name] = i18next.t(`${group}.${value}`)
    // A parameter that came from an error names the text of that in another one.
    const inner = params[name + '_id']
    if (inner && textOf(inner)) out[name] = reasonText({ id: inner, params: Object.fromEntries(Object.entries(params).flatMap(([key, of]) => (key.startsWith(name + '.') ? [[key.slice(name.length + 1), of]] : []))) })
  }
  return out
}

// setCatalogue replaces the catalogue; tests use it.
export function setCatalogue(texts: Record<string, string>) {
  catalogue = texts
  whole = filed = true
}
