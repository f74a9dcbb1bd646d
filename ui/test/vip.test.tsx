import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { cleanup, configure, fireEvent, render, screen, within } from '@testing-library/react'
import i18next from 'i18next'
import { initReactI18next } from 'react-i18next'
import { MemoryRouter } from 'react-router'
import { afterEach, beforeAll, expect, test, vi } from 'vitest'
import { VipPage } from '../src/pages/vip'
import { Answers, consentLine, Questions } from '../src/parts/consent'
import { cardHours, choicesOf, choose, chosenOf, doneOf, fits, keepOrder, lostOf } from '../src/parts/vip'
import type { Asked, Machine, MachineWork, Victim } from '../src/types'
import { en } from './words'

const patience = { timeout: 30_000 }
const now = Date.parse('2026-11-26T12:00:00Z')
const at = (minutes: number) => new Date(now + minutes * 60_000).toISOString()
const work = (name: string, more: Partial<MachineWork> = {}): MachineWork => ({ job: { id: 'id-' + name, name, user: 'zhang' }, attempt: 1, nodes: 1, devices: 4, gang_devices: 8, priority: 'normal', since: at(-90), running_at: at(-60), p50: at(60), p90: at(90), lost: '1h', ...more })
const machine = (name: string, ...works: MachineWork[]): Machine => ({ id: 'n-' + name, name, pool: 'default', status: 'ready', eligibility: 'eligible', free: works.length === 0, cpu: 8, cpu_used: 0, memory: 1, memory_used: 0, devices: [{ model: 'A800', used: 4, total: 8 }], work: works } as unknown as Machine)

test('a machine is chosen by name or id, changed in its place, and let go', () => {
  const [a, b] = [machine('a'), machine('b')]
  const chosen = [{ node: 'n-a', busy: 'wait' }, { node: 'b' }]
  expect([chosenOf(chosen, a), chosenOf(chosen, b), chosenOf([], a)]).toEqual(['wait', 'wait', ''])
  expect(choose(chosen, a, 'kill')).toEqual([{ node: 'n-a', busy: 'kill' }, { node: 'b' }])
  expect(choose(chosen, b, '')).toEqual([{ node: 'n-a', busy: 'wait' }])
  expect(choose([], b, 'wait')).toEqual([{ node: 'b', busy: 'wait' }])
})

test('only what can be stopped can be chosen to be stopped', () => {
  expect(choicesOf(machine('free'))).toEqual(['', 'wait'])
  expect(choicesOf(machine('busy', work('x')))).toEqual(['', 'wait', 'ask', 'kill'])
  expect(choicesOf(machine('vip', work('x', { vip: true })))).toEqual(['', 'wait'])
  expect(choicesOf(machine('ends', work('x', { ending: true })))).toEqual(['', 'wait'])
})

test('machines stay where they were while one reads, and new ones come last', () => {
  const list = [machine('c'), machine('a'), machine('b')]
  expect(keepOrder(list, []).map((m) => m.name)).toEqual(['c', 'a', 'b'])
  expect(keepOrder(list, ['n-a', 'n-gone', 'n-b']).map((m) => m.name)).toEqual(['a', 'b', 'c'])
})

test('work that would be lost is counted in hours of all cards of the gang', () => {
  const hours = (count: string) => count + ' h'
  expect(cardHours('1h30m', 8, hours)).toBe('12 h')
  expect(cardHours('36s', 1, hours), 'a little is not nothing').toBe('0.01 h')
  expect(cardHours('90m', 0, hours)).toBe('1 h 30 min')
  const machines = [machine('a', work('x'), work('y', { gang_devices: 0 }))]
  const victim = (id: string, lost: string) => ({ job_id: id, subjob: 0, lost }) as Victim
  expect(lostOf([victim('id-x', '30m'), victim('id-y', '10m')], machines)).toEqual({ hours: 4, time: 600_000 })
})

test('how far a job is follows its end by the forecast', () => {
  expect(doneOf(work('x'), now)).toBe(0.5)
  expect(doneOf(work('x', { p50: undefined }), now)).toBeUndefined()
  expect(doneOf(work('x'), now + 10 * 3_600_000)).toBe(0.99)
})

test('a machine is found by name, card, job and owner', () => {
  const busy = machine('gpu-01', work('resnet'))
  for (const text of ['', 'GPU', 'a800 zhang', 'resnet']) expect(fits(busy, text), text).toBe(true)
  expect(fits(busy, 'gpu-02')).toBe(false)
})

beforeAll(async () => {
  configure({ asyncUtilTimeout: patience.timeout })
  await i18next.use(initReactI18next).init({ lng: 'en', resources: { en: { translation: en } }, interpolation: { escapeValue: false } })
})
afterEach(() => {
  cleanup()
  localStorage.clear()
  vi.unstubAllGlobals()
})

// A server with a free machine and a busy one; it reads the chosen machines out of
// the changes that it is told.
function stubServer() {
  vi.stubGlobal('matchMedia', () => ({ matches: false, addListener() {}, removeListener() {}, addEventListener() {}, removeEventListener() {} }))
  vi.stubGlobal('ResizeObserver', class { observe() {} unobserve() {} disconnect() {} })
  const machines = [machine('free-1'), machine('busy-1', work('resnet', { checkpoint_at: at(-6), checkpoint_step: 400 }))]
  const sent: string[] = []
  const chosen = (hcl: string) => [...hcl.matchAll(/machine "([^"]+)" \{ busy = "(\w+)" \}/g)].map(([, node, busy]) => ({ node: node!, busy: busy! }))
  const job = (hcl: string) => ({ name: 'vip', nodes: 1, distributed: { mode: 'single' }, resources: [], task: { command: 'x' }, vip: { machines: chosen(hcl) } })
  vi.stubGlobal('fetch', vi.fn(async (path: string, init?: RequestInit) => {
    const body = init?.body ? (JSON.parse(init.body as string) as { hcl: string; set?: { at: string; value: string | null }[] }) : { hcl: '' }
    if (path.endsWith('/machines')) return new Response(JSON.stringify({ machines }))
    if (path.endsWith('/format')) {
      const list = chosen(body.hcl)
      for (const { at: place, value } of body.set ?? []) {
        const i = Number(/\[(\d+)\]/.exec(place)?.[1])
        if (place.endsWith('#') && value === null) list.splice(i, 1)
        else if (place.endsWith('#')) list[i] = { node: value!, busy: 'wait' }
        else if (place.endsWith('.busy')) list[i]!.busy = value!
      }
      const hcl = body.set ? `job "vip" {\n  vip {\n${list.map((m) => `    machine "${m.node}" { busy = "${m.busy}" }\n`).join('')}  }\n}\n` : body.hcl
      return new Response(JSON.stringify({ hcl, job: job(hcl), defaults: [] }))
    }
    if (path.endsWith('/validate')) return new Response(JSON.stringify(chosen(body.hcl).length ? { valid: true } : { valid: false, problems: [{ id: 'job.missing' }] }))
    if (path.endsWith('/forecast')) return new Response(JSON.stringify({ verdict: 'now', position: 1, pool: 'default', victims: body.hcl.includes('kill') ? [{ job_id: 'id-resnet', job_name: 'resnet', user: 'zhang', subjob: 0, lost: '6m', grace: '30s', nodes: ['n-busy-1'] }] : [] }))
    if (path.endsWith('/jobs')) {
      sent.push(body.hcl)
      return new Response(JSON.stringify({ job_id: 'made' }))
    }
    return new Response(JSON.stringify({ id: 'no' }), { status: 404 })
  }))
  return sent
}

test('whoever chooses to stop a job reads whose it is and what is lost before it is done', async () => {
  const sent = stubServer()
  render(<MemoryRouter><QueryClientProvider client={new QueryClient()}><VipPage /></QueryClientProvider></MemoryRouter>)
  const choice = (await screen.findByRole('combobox', { name: 'What becomes of busy-1' })) as HTMLSelectElement
  await vi.waitFor(() => expect(choice.disabled).toBe(false), patience)
  expect((screen.getByRole('button', { name: 'Submit' }) as HTMLButtonElement).disabled).toBe(true)
  const option = (text: string) => within(choice).getByRole('option', { name: text }).getAttribute('value')!
  fireEvent.change(choice, { target: { value: option('stop its jobs') } })
  await screen.findByRole('button', { name: 'Submit, and stop 1 job' })
  const check = screen.getByRole('region', { name: 'What the scheduler would do' })
  const row = within(check).getByRole('row', { name: /resnet/ })
  expect(row.textContent).toContain('zhang')
  expect(row.textContent).toContain('0.8 card-hours')
  expect(screen.getByText(/It stops 1 job of zhang: 0.8 card-hours of work would be lost/)).toBeTruthy()
  fireEvent.change(choice, { target: { value: option('wait for its jobs') } })
  await within(check).findByText('Nobody would be stopped.')
  await within(check).findByRole('heading', { name: 'Waited for' })
  fireEvent.change(choice, { target: { value: option('stop its jobs') } })
  fireEvent.click(await screen.findByRole('button', { name: 'Submit, and stop 1 job' }))
  await vi.waitFor(() => expect(sent).toHaveLength(1), patience)
  expect(sent[0]).toContain('machine "busy-1" { busy = "kill" }')
}, patience.timeout)

const question = (more: Partial<Asked> = {}): Asked => ({ to: { id: 'boss', name: 'demo', user: 'olga', vip: true }, subjob: 0, attempt: 1, machines: ['gpu-01'], asked_at: new Date().toISOString(), until: new Date(Date.now() + 25 * 60_000).toISOString(), silence: 'kill', message: 'the review is at three', ...more })

test('an owner reads who asks and until when, and an answer names its job', async () => {
  const sent: { path: string; body: unknown }[] = []
  HTMLDialogElement.prototype.showModal ??= function () { this.open = true }
  HTMLDialogElement.prototype.close ??= function () { this.open = false }
  vi.stubGlobal('fetch', vi.fn(async (path: string, init?: RequestInit) => {
    sent.push({ path, body: JSON.parse(init!.body as string) })
    return new Response(JSON.stringify({ asked: [] }))
  }))
  const two = [question(), question({ subjob: 1 })] // of a batch: asked together
  render(<MemoryRouter><QueryClientProvider client={new QueryClient()}><Questions id="id-train" name="train" asked={two} may saved={null} /></QueryClientProvider></MemoryRouter>)
  const note = screen.getByRole('status')
  expect(note.textContent).toMatch(/olga asks whether this job may be stopped on gpu-01 for demo/)
  expect(note.textContent).toMatch(/25 min left/)
  expect(note.textContent).toContain('Without an answer it is stopped then.')
  expect(note.textContent).toContain('the review is at three')
  fireEvent.click(within(note).getByRole('button', { name: 'Agree' }))
  const dialog = screen.getByRole('dialog', { name: 'Let train be stopped' })
  expect(dialog.textContent).toContain('nomadlike job consent -to demo train yes')
  fireEvent.click(within(dialog).getByRole('button', { name: 'Agree' }))
  await vi.waitFor(() => expect(sent).toEqual([{ path: '/v1/jobs/id-train/consent', body: { to: 'boss', answer: 'yes' } }]), patience)
}, patience.timeout)

test('an answer can be changed, and who may not answer has no buttons', () => {
  const { rerender } = render(<MemoryRouter><QueryClientProvider client={new QueryClient()}><Questions id="x" name="x" asked={[question({ answer: 'no', by: 'zhang' })]} may /></QueryClientProvider></MemoryRouter>)
  expect(screen.queryByRole('button', { name: 'Decline' })).toBeNull()
  expect(screen.getByRole('button', { name: 'Agree' })).toBeTruthy()
  rerender(<MemoryRouter><QueryClientProvider client={new QueryClient()}><Questions id="x" name="x" asked={[question()]} may={false} /></QueryClientProvider></MemoryRouter>)
  expect(screen.queryByRole('button')).toBeNull()
  expect(consentLine('train 2', 'demo', 'no', 'two hours left')).toBe("nomadlike job consent -to demo -reason 'two hours left' 'train 2' no")
})

test('a VIP job shows who answered what, and until when the others may', () => {
  vi.stubGlobal('ResizeObserver', class { observe() {} unobserve() {} disconnect() {} })
  const soon = new Date(Date.now() + 10 * 60_000).toISOString()
  render(<MemoryRouter><Answers silence="wait" answers={[
    { of: { id: 'a', name: 'a', user: 'ann' }, asked_at: soon, until: soon, answer: 'yes', by: 'ann', at: soon },
    { of: { id: 'b', name: 'b', user: 'bob' }, asked_at: soon, until: soon },
    { of: { id: '' }, asked_at: soon, until: soon, over: true },
  ]} /></MemoryRouter>)
  const rows = screen.getAllByRole('row').map((row) => row.textContent ?? '')
  expect(rows.some((row) => /^aann.*agreed/.test(row))).toBe(true)
  expect(rows.some((row) => /^bbob.*no answer yet.*10 min left/.test(row))).toBe(true)
  expect(rows.some((row) => /no longer runs/.test(row))).toBe(true)
})
