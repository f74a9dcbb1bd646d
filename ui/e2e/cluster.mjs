// A person's day on a cluster of three machines: submit a job, watch it run on
// all three, read their logs, enter one, stop it, clone it, and read the
// forecast of a job that has to wait for the clone; in both languages, with
// axe on every page.
//
//   node e2e/cluster.mjs [--binary ../bin/nomadlike] [--shots FOLDER]
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { chromium } from 'playwright-core'
import { visit } from './agent.mjs'

const { values: options } = parseArgs({
  options: { binary: { type: 'string', default: '../bin/nomadlike' }, shots: { type: 'string' }, chromium: { type: 'string', default: '/usr/bin/chromium' } },
})
const here = dirname(fileURLToPath(import.meta.url))
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const patience = 90_000
const words = {
  en: { token: 'Token', signIn: 'Sign in', newJob: 'New job', file: 'Job file', submit: 'Submit', logs: 'Logs', use: 'Use', terminal: 'Terminal', stop: 'Stop', clone: 'Clone', about: /About (\d{4}-\d\d-\d\d )?\d\d:\d\d/, overview: 'Overview', cluster: 'Cluster', queue: 'Queue', forecast: 'Forecast' },
  zh: { token: '令牌', signIn: '登录', newJob: '新建任务', file: '任务文件', submit: '提交', logs: '日志', use: '用量', terminal: '终端', stop: '停止', clone: '复制', about: /\d\d:\d\d/, overview: '概览', cluster: '集群', queue: '队列', forecast: '排队预测' },
}
const jobFile = (name) => `# Three machines say hello.
job "${name}" {
  nodes      = 3
  time_limit = "1h"
  resources {
    cpu    = 1.2
    memory = "32MiB"
  }
  distributed "none" {}
  task {
    driver  = "exec"
    command = "bash -c 'echo hello from rank $NOMADLIKE_RANK; sleep 2; echo later from rank $NOMADLIKE_RANK; sleep 3600'"
  }
}
`

function startCluster() {
  const script = spawn(join(here, 'cluster.sh'), { env: { ...process.env, NOMADLIKE: resolve(options.binary), LANG: 'en_US.UTF-8' }, stdio: ['pipe', 'pipe', 'pipe'] })
  let out = ''
  let log = ''
  const ended = new Promise((done) => script.on('exit', done))
  const ready = new Promise((done, fail) => {
    script.stdout.on('data', (text) => {
      out += text
      const found = /ready (\S+) (\S+)/.exec(out)
      if (found) done({ address: found[1], token: found[2] })
    })
    script.stderr.on('data', (text) => (log += text))
    script.on('exit', () => fail(new Error('the cluster did not start:\n' + out + log)))
  })
  return { ready, stop: async () => { script.stdin.end(); await ended } }
}

// settled waits until the addresses of the machines' links are no longer being
// made: the browser drops what it loads whenever one appears.
async function settled() {
  for (let i = 0; i < 150; i++) {
    const left = spawnSync('ip', ['-6', '-o', 'addr', 'show', 'tentative'], { encoding: 'utf8' })
    if (left.status !== 0 || left.stdout.trim() === '') return
    await new Promise((done) => setTimeout(done, 100))
  }
}

const failures = []
async function inspect(page, name) {
  await page.waitForFunction(() => document.getAnimations().every((one) => !(one instanceof CSSTransition) || one.playState !== 'running'))
  if (options.shots) await page.screenshot({ path: join(options.shots, 'three-' + name + '.png') })
  await page.evaluate(axe)
  const result = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'], preload: false }))
  for (const violation of result.violations) failures.push(`${name}: ${violation.id}: ${violation.help}\n` + violation.nodes.slice(0, 4).map((n) => `    ${n.target.join(' ')}  ${n.html.slice(0, 160)}`).join('\n'))
}

async function day(browser, { address, token }, lang) {
  const w = words[lang]
  const context = await browser.newContext({ ignoreHTTPSErrors: true, locale: lang === 'zh' ? 'zh-CN' : 'en-US', viewport: { width: 1440, height: 900 }, reducedMotion: 'reduce' })
  const page = await context.newPage()
  page.setDefaultTimeout(patience)
  const complaints = []
  page.on('console', (message) => message.type() === 'error' && !/status of 40[01]/.test(message.text()) && complaints.push(message.text() + ' at ' + message.location().url))
  page.on('pageerror', (error) => complaints.push(String(error)))
  await visit(page, address + '/jobs')
  await page.getByLabel(w.token, { exact: true }).fill(token)
  await page.getByRole('button', { name: w.signIn }).click()

  const name = 'three-' + lang
  await page.getByRole('link', { name: w.newJob }).click()
  await page.getByRole('textbox', { name: w.file }).fill(jobFile(name))
  await page.locator('.verdict').waitFor()
  await page.getByRole('button', { name: w.submit }).click()
  await page.getByRole('heading', { name, exact: true }).waitFor()
  await page.locator('.tag.state-running').first().waitFor()
  for (const node of ['c1', 'c2', 'c3']) await page.getByRole('link', { name: node, exact: true }).first().waitFor()
  await inspect(page, lang + '-job')

  await page.getByRole('tab', { name: w.logs }).click()
  for (const rank of [0, 1, 2]) await page.getByText(`hello from rank ${rank}`).first().waitFor()
  for (const rank of [0, 1, 2]) await page.getByText(`later from rank ${rank}`).first().waitFor()
  await page.reload() // all of it comes at once, rank by rank
  await page.waitForFunction(() => document.querySelectorAll('.logs div').length >= 6)
  const printed = await page.locator('.logs div').allTextContents()
  assert.deepEqual(printed.map((line) => /hello|later/.exec(line)?.[0]), ['hello', 'hello', 'hello', 'later', 'later', 'later'], 'lines stand in the order in which they were printed')
  await inspect(page, lang + '-logs')
  await page.getByRole('tab', { name: w.use }).click()
  await page.waitForFunction(() => document.querySelectorAll('.heat-row:first-child .heat i, .heat-row .heat i').length >= 3)
  await inspect(page, lang + '-use')
  await page.getByRole('tab', { name: w.terminal }).click()
  await page.locator('.xterm-helper-textarea').waitFor()
  await page.keyboard.type('echo in-$((6*7))-$NOMADLIKE_RANK\n')
  await page.locator('.xterm-rows, .xterm-accessibility').getByText(/in-42-\d/).first().waitFor()
  await inspect(page, lang + '-terminal')

  await page.getByRole('button', { name: w.stop, exact: true }).click()
  await page.getByRole('dialog').getByRole('button', { name: w.stop, exact: true }).click()
  await page.locator('.tag.state-stopped').first().waitFor()

  // The clone is the same file; it takes the place of the first, and then
  // another one has to wait for it.
  await page.getByRole('button', { name: w.clone }).click()
  const file = page.getByRole('textbox', { name: w.file })
  await file.waitFor()
  assert.equal(await file.inputValue(), jobFile(name), 'the clone is the same file')
  await file.fill(jobFile(name + '-again'))
  await page.getByRole('button', { name: w.submit }).click()
  await page.getByRole('heading', { name: name + '-again', exact: true }).waitFor()
  await page.locator('.tag.state-running').first().waitFor()
  const second = page.url()

  await visit(page, address + '/jobs/new')
  await page.getByRole('textbox', { name: w.file }).fill(jobFile(name + '-waits'))
  await page.locator('.verdict', { hasText: w.about }).waitFor() // before it is submitted
  await inspect(page, lang + '-create-waits')
  await page.getByRole('button', { name: w.submit }).click()
  await page.getByRole('heading', { name: name + '-waits', exact: true }).waitFor()
  await page.locator('.tag.state-queued').first().waitFor()
  const forecast = page.getByRole('region', { name: w.forecast })
  await forecast.locator('.verdict', { hasText: w.about }).waitFor()
  await forecast.getByText(name + '-again').first().waitFor() // who holds what it needs
  await inspect(page, lang + '-waits')
  const waits = page.url()

  await page.locator('nav a[href="/queue"]').click()
  await page.getByRole('link', { name: name + '-waits' }).waitFor()
  await page.locator('.wall canvas').waitFor()
  await inspect(page, lang + '-queue')
  await page.locator('nav a[href="/cluster"]').click()
  await page.waitForURL('**/cluster') // the queue has a heading and a wall, too
  await page.getByRole('heading', { level: 1 }).waitFor()
  await page.locator('.wall canvas').waitFor()
  await inspect(page, lang + '-cluster')

  for (const [url, state] of [[waits, 'stopped'], [second, 'stopped']]) {
    await visit(page, url)
    await page.getByRole('button', { name: w.stop, exact: true }).click()
    await page.getByRole('dialog').getByRole('button', { name: w.stop, exact: true }).click()
    await page.locator('.tag.state-' + state).first().waitFor()
  }
  assert.deepEqual(complaints, [], 'the browser complains')
  await context.close()
}

if (options.shots) mkdirSync(options.shots, { recursive: true })
const cluster = startCluster()
let browser
let failed = false
try {
  const place = await cluster.ready
  await settled()
  browser = await chromium.launch({ executablePath: options.chromium, args: ['--no-sandbox'] })
  await day(browser, place, 'zh')
  await day(browser, place, 'en')
  if (failures.length) throw new Error('axe:\n' + failures.join('\n'))
  console.log('cluster test passed')
} catch (error) {
  failed = true
  console.error(error)
  if (failures.length) console.error('axe so far:\n' + failures.join('\n'))
  if (options.shots && browser) {
    for (const context of browser.contexts()) for (const page of context.pages()) await page.screenshot({ path: join(options.shots, 'three-failed.png') })
  }
} finally {
  await browser?.close()
  await cluster.stop()
}
process.exit(failed ? 1 : 0)
