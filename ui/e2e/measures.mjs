// What is measured of the page, for page.mjs, which holds the bounds that do not
// depend on how busy the machine is, and for figures.mjs, which prints figures.
import assert from 'node:assert/strict'
import { visit } from './agent.mjs'

const patience = 60_000

// eventToPixel measures from the answer to a change until the page shows it,
// without a click.
export async function eventToPixel(browser, agent, token, write) {
  const context = await browser.newContext({ ignoreHTTPSErrors: true, locale: 'en-US' })
  const page = await context.newPage()
  page.setDefaultTimeout(patience)
  await visit(page, agent.address + '/jobs')
  await page.getByLabel('Token', { exact: true }).fill(token)
  await page.getByRole('button', { name: 'Sign in' }).click()
  const times = []
  for (let i = 0; i < 5; i++) {
    const name = 'live-' + i
    await agent.cli('job', 'run', await write(name))
    await page.locator('.grid-row', { hasText: name }).locator('.state-running').waitFor()
    times.push(await page.evaluate(async (job) => {
      const row = [...document.querySelectorAll('.grid-row')].find((r) => r.textContent.includes(job))
      const changed = new Promise((done) => {
        const watch = new MutationObserver(() => {
          if (row.querySelector('.state-running')) return
          watch.disconnect()
          requestAnimationFrame(() => done(performance.now()))
        })
        watch.observe(row, { subtree: true, childList: true, attributes: true, characterData: true })
      })
      await fetch(`/v1/jobs/${job}/stop`, { method: 'POST', headers: { 'X-Nomadlike-Request': 'ui', 'Content-Type': 'application/json' }, body: '{}' })
      const begin = performance.now()
      return Math.max(0, (await changed) - begin)
    }, name))
  }
  await context.close()
  return times.sort((a, b) => a - b)[2]
}

// quiet waits until the browser has nothing of its own to do: a new window
// loads the pages of its address bar, which take longer than ours.
async function quiet(browser) {
  const inside = await browser.newBrowserCDPSession()
  const spent = async () => (await inside.send('SystemInfo.getProcessInfo')).processInfo.reduce((sum, process) => sum + process.cpuTime, 0)
  let before = await spent()
  for (let i = 0, still = 0; i < 100 && still < 2; i++) {
    await new Promise((done) => setTimeout(done, 100))
    const now = await spent()
    still = now - before < 0.02 ? still + 1 : 0
    before = now
  }
  await inside.detach()
}

// firstView measures with an empty cache, in a window that is there, from the
// address until what is looked for is drawn, rows of the list of jobs unless
// told. It gives the processor time of the page as well, which says more than
// the clock on a busy machine.
export async function firstView(browser, agent, token, { path = '/jobs', shown = '.rows .grid-row' } = {}) {
  const context = await browser.newContext({ ignoreHTTPSErrors: true, locale: 'en-US' })
  const page = await context.newPage()
  await visit(page, agent.address)
  await page.evaluate((text) => fetch('/v1/session', { method: 'POST', headers: { 'X-Nomadlike-Request': 'ui', 'Content-Type': 'application/json' }, body: JSON.stringify({ token: text }) }), token)
  const cookies = await context.cookies()
  await context.close()
  const fresh = await browser.newContext({ ignoreHTTPSErrors: true, locale: 'en-US' })
  await fresh.addCookies(cookies)
  const view = await fresh.newPage()
  view.setDefaultTimeout(patience)
  await view.addInitScript((what) => {
    const drawn = () => {
      if (!document.querySelector(what)?.checkVisibility({ visibilityProperty: true })) return void requestAnimationFrame(drawn)
      const after = new MessageChannel() // its message comes when the frame is drawn
      after.port1.onmessage = () => (globalThis.drawnAt = performance.now())
      after.port2.postMessage(0)
    }
    requestAnimationFrame(drawn)
  }, shown)
  const inside = await fresh.newCDPSession(view)
  await inside.send('Performance.enable')
  await quiet(browser)
  await visit(view, agent.address + path, { waitUntil: 'commit' })
  const took = Math.round(await (await view.waitForFunction(() => globalThis.drawnAt)).jsonValue())
  const { metrics } = await inside.send('Performance.getMetrics')
  const cpu = Math.round(1000 * metrics.find((metric) => metric.name === 'ProcessTime').value)
  const bytes = await view.evaluate(() => performance.getEntriesByType('resource').filter((r) => r.name.endsWith('.js')).reduce((sum, r) => sum + r.encodedBodySize, 0))
  await fresh.close()
  return { took, cpu, bytes }
}

const states = ['queued', 'starting', 'running', 'paused', 'stopping', 'succeeded', 'failed', 'stopped', 'expired']
const hex = (n) => n.toString(16).padStart(32, '0')
const at = (minutes) => new Date(Date.now() - minutes * 60_000).toISOString()

// manyJobs and manyNodes stand in for a cluster of a size that this machine
// has not: the page is what is measured.
export const manyJobs = (from, count) => Array.from({ length: count }, (_, i) => {
  const n = from + i
  const state = states[n % states.length]
  return { id: hex(n + 1), name: `train-${n}`, project: 'vision', user: 'ann', type: 'training', priority: n % 7 ? 'normal' : 'urgent', nodes: 1 + (n % 8), subjobs: 1, submitted_at: at(n), state, counts: { [state]: 1 }, attempt: 1, exit_code: 0, started_at: state === 'queued' ? null : at(n - 1), finished_at: n % states.length > 4 ? at(n - 2) : null }
})
export const manyNodes = (count) => Array.from({ length: count }, (_, i) => ({
  id: hex(9e6 + i), name: `gpu-${String(i).padStart(3, '0')}`, addr: '10.0.0.1', pool: i % 2 ? 'a' : 'b', version: 'test', capacity: { cpu: 128, memory: 2 ** 40 }, status: i === 7 ? 'lost' : 'ready', eligibility: i === 9 ? 'draining' : 'eligible',
  devices: Array.from({ length: 8 }, (_, d) => ({ id: `${i}-${d}`, index: d, kind: 'nvidia/gpu', model: i % 3 ? 'H800' : 'A800', memory: 80 * 2 ** 30, healthy: !(i === 3 && d === 5), numa_node: d >> 2 })),
  used: { cpu: 64, memory: 2 ** 39, allocs: 1, devices: Object.fromEntries(Array.from({ length: i % 5 ? 8 : 3 }, (_, d) => [`${i}-${d}`, 'alloc' + (i >> 1)])) },
}))

// wheel scrolls the list as a person does, 6,000 pixels a second for two
// seconds, and counts in the browser's trace the frames that were shown, those
// that were not, and those with rows missing in them.
async function wheel(browser, page) {
  const inside = await page.context().newCDPSession(page)
  await browser.startTracing(page, { categories: ['benchmark', 'cc'] })
  await inside.send('Input.synthesizeScrollGesture', { x: 600, y: 500, yDistance: -12_000, speed: 6000, gestureSourceType: 'mouse' })
  const { traceEvents } = JSON.parse(await browser.stopTracing())
  const frames = traceEvents.filter((event) => event.name === 'PipelineReporter' && event.ph === 'b').map((event) => event.args.frame_reporter).filter((frame) => frame?.affects_smoothness)
  const dropped = frames.filter((frame) => frame.state === 'STATE_DROPPED').length
  return { shown: frames.length - dropped, dropped, holes: frames.filter((frame) => frame.has_missing_content).length }
}

// large measures the page with 10,000 jobs and 1,000 cards.
export async function large(browser, agent, token, inspect = async () => {}) {
  const context = await browser.newContext({ ignoreHTTPSErrors: true, locale: 'en-US', viewport: { width: 1440, height: 900 } })
  const page = await context.newPage()
  page.setDefaultTimeout(patience)
  await page.route(/\/v1\/jobs\?/, (route) => {
    const from = Number(new URL(route.request().url()).searchParams.get('after') ?? 0)
    return route.fulfill({ json: { jobs: manyJobs(from, 1000), next: from < 9000 ? String(from + 1000) : '' } })
  })
  await page.route(/\/v1\/nodes\?/, (route) => route.fulfill({ json: { nodes: manyNodes(125) } }))
  await visit(page, agent.address + '/jobs')
  await page.getByLabel('Token', { exact: true }).fill(token)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByText('10000 of 10000').waitFor()
  const frames = await page.evaluate(async () => {
    const list = document.querySelector('.grid')
    const times = []
    let last = performance.now()
    for (let i = 0; i < 120; i++) {
      list.scrollTop += 180
      await new Promise(requestAnimationFrame)
      const now = performance.now()
      times.push(now - last)
      last = now
    }
    return times.sort((a, b) => a - b)
  })
  const rows = await page.locator('.rows .grid-row').count()
  assert.ok(rows > 5 && rows < 200, `only what is seen is drawn, not ${rows} rows`)
  const wheeled = await wheel(browser, page)
  assert.ok(wheeled.shown > 0, 'the trace knows frames')
  await inspect(page, 'large-jobs')
  await page.locator('nav a[href="/cluster"]').click()
  await page.locator('.wall canvas').waitFor()
  await page.waitForTimeout(400)
  const wall = await page.locator('.wall canvas').boundingBox()
  assert.ok(wall.y + wall.height < 900, 'a thousand cards are on one screen')
  await inspect(page, 'large-cluster')
  await context.close()
  return { median: frames[60], worst: frames.at(-1), ...wheeled }
}

