import { act, cleanup, fireEvent, render, screen, within } from '@testing-library/react'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import i18next from 'i18next'
import { useState } from 'react'
import { initReactI18next } from 'react-i18next'
import { afterEach, beforeAll, expect, test, vi } from 'vitest'
import { entryAt } from '../src/parts/entries'
import { Dialog } from '../src/parts/controls/dialog'
import { Check, Choice, Count, Field } from '../src/parts/controls/fields'
import { Messages, say } from '../src/parts/controls/messages'
import { Table } from '../src/parts/controls/table'
import { Tabs } from '../src/parts/controls/tabs'
import userEvent from './user'
import { en } from './words'

beforeAll(async () => {
  vi.stubGlobal('ResizeObserver', class { observe() {} unobserve() {} disconnect() {} })
  await i18next.use(initReactI18next).init({ lng: 'en', resources: { en: { translation: en } }, interpolation: { escapeValue: false } })
})
afterEach(cleanup)

test('a field leads to what the reference says of it, in the language of the reader', async () => {
  render(<><Field label="Nodes" entry="job.nodes" value="" change={() => {}} /><Check checked={false} change={() => {}} entry="job.preemptible">may yield</Check><Field label="Bare" value="" change={() => {}} /></>)
  const links = () => screen.getAllByRole('link').map((link) => [link.querySelector('.hidden')!.textContent, link.getAttribute('href')])
  expect(links()).toEqual([['Nodes: what the reference says', '/docs/en/reference/job-file#job.nodes'], ['may yield: what the reference says', '/docs/en/reference/job-file#job.preemptible']])
  expect(screen.getByLabelText('Nodes').tagName).toBe('INPUT')
  expect([entryAt('en', 'upgrade'), entryAt('zh', 'upgrade'), entryAt('zh', 'job.cpu')]).toEqual(['/docs/en/upgrade#how', '/docs/zh/upgrade#步骤', '/docs/zh/reference/job-file#resources.cpu'])
})

// What only looks through what a page shows, and what confirms, has no entry.
const looking = new Set(["t('create.of_model')", 't(\'training.log\')', "t('logs.follow')", "t('logs.differ')", "t('job.difference')", "t('limit.sure')", "t('create.resume_sure')", "t('audit.user')", "t('audit.object')", "t('audit.action')", "t('audit.since')", "t('audit.only_refused')", "t('projects.show_archived')"])

test('every field of a form has its entry in the reference', () => {
  const root = join(__dirname, '../src')
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.tsx') && !name.startsWith('parts/controls'))
  let fields = 0
  for (const name of files) {
    const source = readFileSync(join(root, name), 'utf8')
    for (const [whole] of source.matchAll(/<(?:Field|Count|Choice|Radios|SentField|SentCount|Check)(?:<[^>]+>)? [^]*?(?:\/>|<\/Check>|=> [^\n]*\n)/g)) {
      if (/ bare /.test(whole) || [...looking].some((one) => whole.includes(one))) continue
      fields++
      expect(whole, name).toMatch(/ entry=/)
    }
  }
  expect(fields).toBeGreaterThan(25)
})

test('arrows move between tabs and open none before Enter does', async () => {
  const change = vi.fn()
  render(<Tabs label="Parts" active="a" change={change} tabs={['a', 'b', 'c'].map((key) => ({ key, label: 'Tab ' + key, children: <p>{'Panel ' + key}</p> }))} />)
  const tabs = screen.getAllByRole('tab')
  expect(tabs.map((tab) => tab.tabIndex)).toEqual([0, -1, -1])
  tabs[0]!.focus()
  fireEvent.keyDown(tabs[0]!, { key: 'ArrowLeft' }) // round the end
  expect(document.activeElement).toBe(tabs[2])
  expect(change).not.toHaveBeenCalled()
  expect(screen.getByRole('tabpanel', { name: 'Tab a' }).textContent).toBe('Panel a')
  await userEvent.click(tabs[2]!)
  expect(change).toHaveBeenCalledWith('c')
})

test('a table is sorted by a column, comes in pages and opens its rows', async () => {
  const rows = Array.from({ length: 5 }, (_, i) => ({ id: 'r' + i, size: (i * 3) % 5 }))
  render(<Table label="Files" idOf={(row) => row.id} rows={rows} page={2} unfold={(row) => 'more of ' + row.id} unfolds={(row) => row.id !== 'r1'} columns={[{ title: 'Name', cell: (row) => row.id }, { title: 'Size', cell: (row) => row.size, compare: (a, b) => a.size - b.size }]} />)
  const table = screen.getByRole('table', { name: 'Files' })
  const names = () => [...table.querySelectorAll('tr.row')].map((row) => row.children[1]!.textContent)
  expect(names()).toEqual(['r0', 'r1'])
  expect(within(table).getAllByRole('button', { name: en.queue.open_row })).toHaveLength(1) // r1 has nothing to open
  await userEvent.click(within(table).getByRole('button', { name: en.queue.open_row }))
  expect(screen.getByText('more of r0')).toBeTruthy()
  await userEvent.click(screen.getByRole('button', { name: en.controls.next }))
  expect(names()).toEqual(['r2', 'r3'])
  expect(screen.getByText('3–4 of 5')).toBeTruthy()
  const size = within(table).getByRole('columnheader', { name: /Size/ })
  await userEvent.click(within(size).getByRole('button'))
  expect([size.getAttribute('aria-sort'), names()]).toEqual(['ascending', ['r0', 'r2']]) // from the first page on
  await userEvent.click(within(size).getByRole('button'))
  expect([size.getAttribute('aria-sort'), names()]).toEqual(['descending', ['r3', 'r1']])
})

test('a dialog takes the focus and gives it back; Escape leaves it', async () => {
  const ran = vi.fn()
  function Page() {
    const [open, setOpen] = useState(false)
    return <><button onClick={() => setOpen(true)}>Drain it</button>{open && <Dialog title="Drain gpu-01" close={() => setOpen(false)} act="Drain" run={ran} danger><p>No new work.</p></Dialog>}</>
  }
  render(<Page />)
  const opener = screen.getByText('Drain it')
  opener.focus()
  await userEvent.click(opener)
  const dialog = screen.getByRole('dialog', { name: 'Drain gpu-01' })
  expect(document.activeElement!.textContent).toBe(en.deed.cancel) // not what cannot be undone
  await userEvent.click(within(dialog).getByRole('button', { name: 'Drain' }))
  expect(ran).toHaveBeenCalledTimes(1)
  fireEvent(dialog, new Event('cancel', { cancelable: true }))
  expect(screen.queryByRole('dialog')).toBeNull()
  expect(document.activeElement).toBe(opener)
})

test('a number is mended when it is left, and a choice keeps the type of its values', () => {
  const count = vi.fn()
  const choice = vi.fn()
  render(<><Count label="Nodes" least={1} most={8} value={2} change={count} /><Choice label="Step" value={undefined} empty="newest" change={choice} options={[{ value: 100, label: 'at 100' }, { value: 200, label: 'at 200' }]} /></>)
  const nodes = screen.getByRole('spinbutton', { name: 'Nodes' })
  fireEvent.change(nodes, { target: { value: '99' } })
  expect(count).not.toHaveBeenCalled() // beyond what there may be
  fireEvent.blur(nodes)
  expect(count.mock.calls).toEqual([[8]])
  fireEvent.keyDown(nodes, { key: 'ArrowDown' })
  expect(count.mock.calls.at(-1)).toEqual([1])
  fireEvent.change(screen.getByRole('combobox', { name: 'Step' }), { target: { value: (screen.getByRole('option', { name: 'at 200' }) as HTMLOptionElement).value } })
  expect(choice).toHaveBeenCalledWith(200)
})

test('what was done is told, and can be put away', async () => {
  render(<Messages />)
  await act(async () => say('bad', 'no such node'))
  expect(screen.getByRole('status').textContent).toContain('no such node')
  await userEvent.click(screen.getByRole('button', { name: en.controls.close }))
  expect(screen.queryByText('no such node')).toBeNull()
})
