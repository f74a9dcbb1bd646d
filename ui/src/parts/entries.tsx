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

// EntryLink leads to an entry, in a tab of its own.
export function EntryLink({ entry }: { entry: Entry }) {
  const { t, i18n } = useTranslation()
  return <a className="guide" href={entryAt(i18n.language, entry)} target="_blank" rel="noreferrer">{t('states.guide')}</a>
}
