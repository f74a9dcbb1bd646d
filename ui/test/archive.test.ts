import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { chosen, largestOf, leavings, staysBehind, tarOf } from '../src/pages/create/archive'

test('tar reads what the page packs', async () => {
  const place = mkdtempSync(join(tmpdir(), 'archive-'))
  const long = 'a/'.repeat(70) + 'name 代码.py'
  const blob = await tarOf([{ path: 'empty' }, { path: 'run.sh', file: new Blob(['#!/bin/sh\necho hello\n']) }, { path: long, file: new Blob(['x'.repeat(1000)]) }, { path: 'full', file: new Blob(['y'.repeat(512)]) }])
  writeFileSync(join(place, 'a.tar'), new Uint8Array(await blob.arrayBuffer()))
  execFileSync('tar', ['-xf', 'a.tar'], { cwd: place })
  expect(readFileSync(join(place, long), 'utf8')).toBe('x'.repeat(1000))
  expect(readFileSync(join(place, 'full'), 'utf8')).toBe('y'.repeat(512))
  expect(statSync(join(place, 'run.sh')).mode & 0o777).toBe(0o755)
  expect(statSync(join(place, 'empty')).isDirectory()).toBe(true)
  rmSync(place, { recursive: true })
})

test('what never goes along is what servers leave out', () => {
  const source = readFileSync(join(__dirname, '../../nomadlike/tree/ignore.go'), 'utf8')
  const all = [.../func Leavings[^}]*\}/.exec(source)![0].matchAll(/"([^"]+)"/g)].map((one) => one[1]!)
  expect([...leavings].sort()).toEqual(all.filter((one) => !one.includes('*')).sort())
  expect(staysBehind('a/.git/config')).toBe(true)
  expect(staysBehind('a/git')).toBe(false)
})

test('a chosen folder is the directory itself, and its largest parts are named', () => {
  const file = (path: string, size: number) => Object.assign(new File(['z'.repeat(size)], path.split('/').at(-1)!), { webkitRelativePath: path })
  const all = chosen([file('code/train.py', 3), file('code/data/a.bin', 10), file('code/data/b.bin', 10), file('code/.git/HEAD', 5)])
  expect(all.map((one) => one.path)).toEqual(['train.py', 'data/a.bin', 'data/b.bin'])
  expect(largestOf(all, 1)).toEqual([['data/', 20]])
})
