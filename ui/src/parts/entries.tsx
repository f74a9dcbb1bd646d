import { useTranslation } from 'react-i18next'
import pages from './entries.json'

// Where the guides speak of what the pages show: a page of them and a place on it, for
// both languages or for each. A test of website/render follows them all.
export type Entry = keyof typeof pages

// entryAt is the address of an entry in a language.
export function entryAt(language: string, entry: Entry): string {
  const of = language === 'zh' ? 'zh' : 'en'
  const place: string | Record<'en' | 'zh', string> = pages[entry]
  return `/docs/${of}/${typeof place === 'string' ? place : place[of]}`
}

// EntryMark stands beside the name of a field and leads to what the reference says of it.
export function EntryMark({ entry, label }: { entry: Entry; label: string }) {
  const { t, i18n } = useTranslation()
  const said = t('controls.entry', { label })
  return <a className="entry" href={entryAt(i18n.language, entry)} target="_blank" rel="noreferrer" title={said}><span aria-hidden="true">?</span><span className="hidden">{said}</span></a>
}

// EntryLink leads to an entry, in a tab of its own.
export function EntryLink({ entry }: { entry: Entry }) {
  const { t, i18n } = useTranslation()
  return <a className="guide" href={entryAt(i18n.language, entry)} target="_blank" rel="noreferrer">{t('states.guide')}</a>
}
