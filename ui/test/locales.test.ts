import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { en, first, zh } from './words'

function flat(tree: object, prefix = ''): Map<string, string> {
  const out = new Map<string, string>()
  for (const [key, value] of Object.entries(tree)) {
    if (typeof value === 'string') out.set(prefix + key, value)
    else for (const [inner, text] of flat(value as object, prefix + key + '.')) out.set(inner, text)
  }
  return out
}
const english = flat(en)
const chinese = flat(zh)
const plain = (key: string) => key.replace(/_(one|other)$/, '')
const params = (text: string) => [...text.matchAll(/\{\{(\w+)\}\}/g)].map((m) => m[1]).sort().join(' ')

test('both languages hold the same texts with the same parameters', () => {
  expect(new Set([...chinese.keys()].map(plain))).toEqual(new Set([...english.keys()].map(plain)))
  for (const [key, text] of english) {
    const other = chinese.get(key) ?? chinese.get(plain(key) + '_other')
    expect(params(other ?? ''), key).toBe(params(text))
  }
})

function sources(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? sources(join(folder, entry.name)) : /\.tsx?$/.test(entry.name) ? [join(folder, entry.name)] : []))
}

test('every text that the pages name exists', () => {
  const known = new Set([...english.keys()].map(plain))
  const heads = new Set([...known].map((key) => key.slice(0, key.lastIndexOf('.') + 1)))
  let found = 0
  for (const file of sources(join(__dirname, '../src'))) {
    const code = readFileSync(file, 'utf8')
    for (const match of code.matchAll(/\bt\('([a-z_.]+)'(\s*\+)?/gi)) {
      found++
      const key = match[1]!
      // A name that is put together begins with that of a group, or of several texts.
      if (match[2]) expect(heads.has(key) || [...known].some((one) => one.startsWith(key)), `${file}: ${key}`).toBe(true)
      else expect(known.has(key), `${file}: ${key}`).toBe(true)
    }
  }
  expect(found).toBeGreaterThan(150)
})

// What comes with the first view has its words, too: those of parts that are fetched
// later are not there yet.
test('the first view names no text that comes later', () => {
  const known = new Set([...flat(first).keys()].map(plain))
  const seen = new Set<string>()
  const walk = (file: string) => {
    if (seen.has(file)) return
    seen.add(file)
    for (const [, spec] of readFileSync(file, 'utf8').matchAll(/^(?:import|export)\b(?! type)[^'\n]*'(\.[^']+)'/gm)) {
      const at = ['.ts', '.tsx'].map((end) => join(dirname(file), spec + end)).find((path) => existsSync(path))
      if (at) walk(at)
    }
  }
  walk(join(__dirname, '../src/main.tsx'))
  walk(join(__dirname, '../src/parts/listmenu.tsx')) // which the list of jobs fetches at once
  let found = 0
  for (const file of seen) {
    for (const [, key, rest] of readFileSync(file, 'utf8').matchAll(/'([a-z_]+\.[a-z_.]+)'(\s*\+)?/g)) {
      if (rest || !english.has(key!) && !english.has(key + '_other')) continue
      found++
      expect(known.has(key!), `${file}: ${key}`).toBe(true)
    }
  }
  expect(seen.size).toBeGreaterThan(20)
  expect(found).toBeGreaterThan(100)
})

test('every state, outcome and step that servers name has its word', () => {
  const structs = join(__dirname, '../../nomadlike/structs')
  const source = readdirSync(structs).filter((name) => name.endsWith('.go') && !name.endsWith('_test.go')).map((name) => readFileSync(join(structs, name), 'utf8')).join('\n')
  const groups = { JobState: 'state', Outcome: 'outcome', AllocStatus: 'alloc', AttemptState: 'attempt', NodeStatus: 'node_status', Eligibility: 'eligibility', Priority: 'priority' }
  for (const [type, group] of Object.entries(groups)) {
    const values = [...source.matchAll(new RegExp(`^\\s*\\w+\\s+${type}\\s*=\\s*"([^"]+)"`, 'gm'))].map((m) => m[1]!)
    expect(values.length, type).toBeGreaterThan(2)
    for (const value of values) expect([english.has(`${group}.${value}`), chinese.has(`${group}.${value}`)], `${group}.${value}`).toEqual([true, true])
  }
  const steps = /Step\s+string\s+`json:"step,omitempty"`\s+\/\/ ([a-z| ]+) while preparing/.exec(source)![1]!.split('|').map((step) => step.trim())
  expect(steps).toContain('hooks')
  for (const step of steps) expect(chinese.has('step.' + step), step).toBe(true)
})
