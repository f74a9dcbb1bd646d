import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import i18next from 'i18next'
import { beforeAll, expect, test } from 'vitest'
import { fill, reasonText, setCatalogue } from '../src/i18n'
import { en, zh } from './words'

// Every text of the pages and of the servers, with 0, 1 and many of whatever it
// counts, in both languages.
const counts = ['0', '1', '7']
const texts = { en, zh }
type Language = keyof typeof texts

beforeAll(() => i18next.init({ lng: 'en', resources: { zh: { translation: zh }, en: { translation: en } }, interpolation: { escapeValue: false } }))

function keys(tree: object, prefix = ''): [string, string][] {
  return Object.entries(tree).flatMap(([key, value]) => (typeof value === 'string' ? [[prefix + key, value] as [string, string]] : keys(value as object, prefix + key + '.')))
}

const catalogue = (language: Language): Record<string, string> => {
  const folder = join(__dirname, '../../internal/messages', language)
  const areas = ['', '.rest'].flatMap((half) => /'[^']*\{([a-z,]+)\}\.json'/.exec(readFileSync(join(__dirname, `../src/catalogue.${language}${half}.ts`), 'utf8'))![1]!.split(',')).concat('jobspec') // of job files
  return Object.assign({}, ...readdirSync(folder).filter((name) => areas.includes(name.replace('.json', ''))).map((name) => JSON.parse(readFileSync(join(folder, name), 'utf8')))) as Record<string, string>
}

// A one before the plural of what is counted.
const wrong = /(?<![\d.,:–-])\b1 (?:further |other )?(?:nodes|jobs|ranks|tasks|cards|devices|cores|subjobs|attempts|machines|bytes|links|allocations|previews|attributes|inodes|NVLinks|batches|hosts|operators|words|characters|digits|blocks|servers|users|projects|files|entries|problems|processes|times|hours|minutes|seconds|days|lines|points|variables|places|figures|pools|versions|copies|images)\b(?! or\b)/i

test('no text of the pages speaks of "1 nodes", and none keeps its braces', () => {
  for (const language of ['en', 'zh'] as const) {
    const t = i18next.getFixedT(language)
    for (const [key, text] of keys(texts[language])) {
      const name = key.replace(/_(one|other)$/, '')
      // What is nested is named by its own text.
      const params = [...text.matchAll(/\{\{(\w+)\}\}/g)].map((m) => m[1]!)
      if (params.length === 0) continue
      for (const count of counts) {
        const said = t(name, Object.fromEntries(params.map((param) => [param, param === 'count' || /\$t\(/.test(text) ? Number(count) : count])))
        expect(said, `${language} ${key}`).not.toMatch(/\{\{|\}\}|\$t|undefined/)
        if (language === 'en') expect(said, key).not.toMatch(wrong)
      }
    }
  }
})

test('no text of the servers does, as pages render it', async () => {
  for (const language of ['en', 'zh'] as const) {
    await i18next.changeLanguage(language)
    const all = catalogue(language)
    setCatalogue(all)
    for (const [id, text] of Object.entries(all)) {
      const params = [...text.matchAll(/\{([a-z0-9_]+)(?::words?|\|[^{}]*)?\}/g)].map((m) => m[1]!)
      for (const count of counts) {
        const said = fill(text, Object.fromEntries(params.map((param) => [param, count])))
        expect(said, `${language} ${id}`).not.toMatch(/\{[a-z_]+(:|\|)/)
        if (language === 'en') expect(said, id).not.toMatch(wrong)
      }
    }
  }
})

test('what a job needs is said in the language of the reader', async () => {
  await i18next.changeLanguage('zh')
  setCatalogue(catalogue('zh'))
  expect(fill('需要 {need:words}', { need: 'cpu 0.1, memory 128MiB' })).toBe('需要 CPU 0.1、内存 128MiB')
  expect(fill('{kind:word}', { kind: 'algorithm' })).toBe('算法')
  expect(fill('{kind:word}', { kind: 'unheard-of' })).toBe('unheard-of')
  setCatalogue({ ...catalogue('zh'), outer: '原因：{cause}', inner: '磁盘 {disk} 已满' })
  expect(reasonText({ id: 'outer', params: { cause: 'disk a is full', cause_id: 'inner', 'cause.disk': 'a' } })).toBe('原因：磁盘 a 已满')
})

test('a rank is never called a process in Chinese', () => {
  const processes = ['figures.processes', 'node.ask_reset', 'node.cure_processes', 'create.procs', 'create.mode_pytorch', 'create.mode_mpi', 'create.mode_horovod', 'create.mode_jax']
  for (const [key, text] of keys(zh)) if (!processes.includes(key)) expect(text, key).not.toContain('进程')
})
