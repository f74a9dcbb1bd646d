// Prints the figures of the page: the first useful view with an empty cache at
// 1,000 jobs, which the agent really holds, and at 1,000 cards, of 125 nodes
// that have registered with a server and half of which work; from an event to
// the pixel; and how 10,000 rows scroll.
//
//   node e2e/figures.mjs [--binary ../bin/nomadlike] [--runs 5]
import { join } from 'node:path'
import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { chromium } from 'playwright-core'
import { startAgent, visit } from './agent.mjs'
import { startFleet } from './fleet.mjs'
import { eventToPixel, firstView, large } from './measures.mjs'

const { values: options } = parseArgs({
  options: { binary: { type: 'string', default: '../bin/nomadlike' }, runs: { type: 'string', default: '5' }, chromium: { type: 'string', default: '/usr/bin/chromium' } },
})
const jobs = 1000
const nodes = 125
const middle = (times) => times.sort((a, b) => a - b)[times.length >> 1]
const jobFile = (name, cpu, nodes = 1) => `job "${name}" {\n  nodes = ${nodes}\n  resources {\n    cpu    = ${cpu}\n    memory = "16MiB"\n  }\n  task {\n    driver  = "exec"\n    command = "sleep 600"\n  }\n}\n`

// views prints what several first views took, and gives the bytes of their scripts.
async function views(what, look) {
  const all = []
  for (let i = 0; i < Number(options.runs); i++) all.push(await look())
  const took = all.map((one) => one.took)
  const cpu = all.map((one) => one.cpu)
  console.log(`first view, ${what}: ${middle(took)} ms (median of ${took.length}, ${took[0]} to ${took.at(-1)}; processor ${middle(cpu)} ms)`)
  return all[0].bytes
}

const agent = await startAgent(options.binary)
const browser = await chromium.launch({ executablePath: options.chromium, args: ['--no-sandbox'] })
try {
  const token = await agent.secret('admin', 'ada')
  const write = (name) => {
    const path = join(agent.place, name + '.hcl')
    writeFileSync(path, jobFile(name, 0.01))
    return path
  }
  const live = await eventToPixel(browser, agent, token, write)
  console.log(`event to pixel: ${live.toFixed(0)} ms (median of 5)`)

  // The jobs are submitted by a page, which is signed in; they ask for more
  // than there is, and wait.
  const context = await browser.newContext({ ignoreHTTPSErrors: true })
  const page = await context.newPage()
  await visit(page, agent.address + '/jobs')
  const headers = { 'X-Nomadlike-Request': 'ui', 'Content-Type': 'application/json' }
  await page.evaluate(([secret, head]) => fetch('/v1/session', { method: 'POST', headers: head, body: JSON.stringify({ token: secret }) }), [token, headers])
  const made = await page.evaluate(async ([files, head]) => {
    let count = 0
    for (let i = 0; i < files.length; i += 8) {
      const answers = await Promise.all(files.slice(i, i + 8).map((hcl) => fetch('/v1/jobs', { method: 'POST', headers: head, body: JSON.stringify({ hcl }) })))
      for (const answer of answers) {
        if (answer.status === 429) await new Promise((done) => setTimeout(done, 1000))
        if (answer.ok) count++
      }
    }
    return count
  }, [Array.from({ length: jobs }, (_, i) => jobFile('many-' + i, 4000)), headers])
  await context.close()

  const bytes = await views(`${made} jobs`, () => firstView(browser, agent, token))
  console.log(`packed scripts of the first view: ${Math.round(bytes / 1024)} KiB`)
  const scroll = await large(browser, agent, token)
  console.log(`10,000 rows scroll: ${scroll.median.toFixed(1)} ms a frame (median), ${scroll.worst.toFixed(1)} ms at worst, moved by a script in every frame`)
  console.log(`10,000 rows by the wheel: ${scroll.shown} frames shown, ${scroll.dropped} dropped, ${scroll.holes} with rows missing`)
  await agent.stop()

  const fleet = await startFleet(options.binary, nodes)
  try {
    const shown = `.wall canvas[aria-label^="${nodes} nodes, ${fleet.held} cells held"]`
    await views(`wall of ${fleet.cards} cards`, () => firstView(browser, fleet, fleet.token, { path: '/cluster', shown }))
  } finally {
    await fleet.stop()
  }
} finally {
  await browser.close()
  await agent.stop()
}
