import i18next from 'i18next'
import { expect, test } from 'vitest'
import { startLanguage, withTexts } from '../src/i18n'

test('the words of the first page may be asked for before the language is set up', async () => {
  const words = withTexts('job')
  await Promise.all([words, startLanguage()])
  expect(i18next.exists('rank.download')).toBe(true)
  expect(i18next.exists('vip.check')).toBe(false) // words of another page
  await withTexts('vip')
  expect(i18next.exists('vip.check') && i18next.exists('vip.title')).toBe(true)
})
