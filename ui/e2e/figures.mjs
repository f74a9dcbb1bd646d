// Prints the figures of the page: the first useful view with an empty cache at
// 1,000 jobs, which the agent really holds, and at 1,000 cards, which are
// answered for it; from an event to the pixel; and how 10,000 rows scroll.
//
//   node e2e/figures.mjs [--binary ../bin/nomadlike] [--runs 5]
import { join } from 'node:path'
import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { chromium } from 'playwright-core'
import { startAgent, visit } from './agent.mjs'
import { eventToPixel, firstView, large, manyNodes } from './measures.mjs'

const { values: options } = parseArgs({
  options: { binary: { type: 'string', default: '../bin/nomadlike' }, runs: { type: 'string', default: '5' }, chromium: { type: 'string', default: '/usr/bin/chromium' } },
})
const jobs = 1000
const middle = (times) => times.sort((a, b) => a - b)[times.length >> 1]
const jobFile = (name, cpu, nodes = 1) => `job "${name}" {\n  nodes = ${nodes}\n  resources {\n    cpu    = ${cpu}\n    memory = "16MiB"\n  }\n  task {\n    driver  = "exec"\n    command = "sleep 600"\n  }\n}\n`

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
  await visit(page, agent.address)
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

  const list = []
  const wall = []
  const cpu = { list: [], wall: [] }
  let bytes = 0
  const nodes = Buffer.from(JSON.stringify({ nodes: manyNodes(125) })).toString('base64')
  for (let i = 0; i < Number(options.runs); i++) {
    const one = await firstView(browser, agent, token)
    list.push(one.took)
    bytes = one.bytes
    const other = await firstView(browser, agent, token, { path: '/cluster', shown: '.wall canvas', answers: { '/v1/nodes?': nodes } })
    wall.push(other.took)
    cpu.list.push(one.cpu)
    cpu.wall.push(other.cpu)
  }
  console.log(`first view, ${made} jobs: ${middle(list)} ms (median of ${list.length}, ${list[0]} to ${list.at(-1)}; processor ${middle(cpu.list)} ms)`)
  console.log(`first view, wall of 1,000 cards: ${middle(wall)} ms (median of ${wall.length}, ${wall[0]} to ${wall.at(-1)}; processor ${middle(cpu.wall)} ms)`)
  console.log(`packed scripts of the first view: ${Math.round(bytes / 1024)} KiB`)
  const scroll = await large(browser, agent, token)
  console.log(`10,000 rows scroll: ${scroll.median.toFixed(1)} ms a frame (median), ${scroll.worst.toFixed(1)} ms at worst, moved by a script in every frame`)
  console.log(`10,000 rows by the wheel: ${scroll.shown} frames shown, ${scroll.dropped} dropped, ${scroll.holes} with rows missing`)
} finally {
  await browser.close()
  await agent.stop()
}
