// A person's day at the page, against a real agent: sign in, submit a job,
// watch it run, read its logs, use a terminal, stop and clone it, read why
// another one waits; in both languages, light and dark, with axe on every page.
//
//   node e2e/page.mjs [--binary ../bin/nomadlike] [--shots FOLDER] [--only PART]
import assert from 'node:assert/strict'
import { mkdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { chromium } from 'playwright-core'
import { startAgent, visit } from './agent.mjs'
import { attacks } from './attacks.mjs'
import { away } from './away.mjs'
import { create } from './create.mjs'
import { data } from './data.mjs'
import { guides } from './guides.mjs'
import { cardsOfAnySize } from './cards.mjs'
import { home } from './home.mjs'
import { maintenance } from './maintenance.mjs'
import { job } from './job.mjs'
import { eventToPixel, firstView, large } from './measures.mjs'
import { people } from './people.mjs'
import { projects } from './projects.mjs'
import { secrets } from './secrets.mjs'
import { through } from './through.mjs'
import { services } from './services.mjs'
import { told } from './told.mjs'
import { rights } from './rights.mjs'
import { views } from './views.mjs'
import { vip } from './vip.mjs'

const { values: options } = parseArgs({
  options: { binary: { type: 'string', default: '../bin/nomadlike' }, shots: { type: 'string' }, only: { type: 'string' }, chromium: { type: 'string', default: '/usr/bin/chromium' } },
})
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const patience = 60_000
const words = {
  en: { signIn: 'Sign in', token: 'Token', newJob: 'New job', submit: 'Submit', running: 'running', stopped: 'stopped', stop: 'Stop', logs: 'Logs', terminal: 'Terminal', port: 'Port', open: 'Open', clone: 'Clone', queue: 'Queue', jobs: 'Jobs', startsNow: 'Starts now', file: 'Job file', never: 'Never in this cluster', problem: '1 problem', node: 'Node', try: 'Try', whatIf: 'What if…', use: 'Use', attempts: 'Attempts', files: 'Files', checkpoints: 'Checkpoints', form: 'Form', nodes: 'Nodes', pause: 'Pause', resume: 'Continue', paused: 'paused', cancel: 'Cancel', openRow: 'Open the row' },
  zh: { signIn: '登录', token: '令牌', newJob: '新建任务', submit: '提交', running: '运行中', stopped: '停止', stop: '停止', logs: '日志', terminal: '终端', port: '端口', open: '打开', clone: '复制', queue: '队列', jobs: '任务', startsNow: '立即开始', file: '任务文件', never: '在本集群中无法开始', problem: '1 个问题', node: '节点', try: '试试', whatIf: '假如……', use: '用量', attempts: '各轮次', files: '文件', checkpoints: '检查点', form: '表单', nodes: '节点', pause: '暂停', resume: '继续', paused: '暂停', cancel: '取消', openRow: '展开' },
}
const jobFile = (name, cpu = 0.1) => `job "${name}" {
  resources {
    cpu    = ${cpu}
    memory = "32MiB"
  }
  task {
    driver  = "exec"
    command = "bash -c 'echo hello-$NOMADLIKE_JOB_NAME; echo \\"<img src=x onerror=alert(1)>\\"; sleep 600'"
  }
}
`

const failures = []
// settled waits until no colour is on its way to another: a button that was just
// clicked has for a moment one that nobody is to read.
async function settled(page) {
  await page.waitForFunction(() => document.getAnimations().every((one) => !(one instanceof CSSTransition) || one.playState !== 'running'))
}

// The contrast of a text follows from the styles of it and of what it lies in: of texts
// that share all of these one is looked at. That is most of what axe costs.
const oneOfEach = () => {
  const chains = new Map()
  const chainOf = (element) => {
    if (!element) return ''
    if (!chains.has(element)) {
      const s = getComputedStyle(element)
      const pseudo = ['::before', '::after'].map((part) => getComputedStyle(element, part)).map((p) => (p.content === 'none' ? '' : p.backgroundColor + p.position))
      chains.set(element, [chainOf(element.parentElement), s.color, s.backgroundColor, s.backgroundImage, s.opacity, s.fontSize, s.fontWeight, s.textShadow, s.position, s.filter, s.mixBlendMode, ...pseudo].join('|'))
    }
    return chains.get(element)
  }
  const seen = new Set()
  for (const element of document.querySelectorAll('body *')) {
    const speaks = [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim()) || 'value' in element
    const chain = speaks && element.checkVisibility({ visibilityProperty: true }) ? chainOf(element) + (element.disabled ? '|off' : '') : ''
    element.toggleAttribute('data-contrast', chain !== '' && !seen.has(chain))
    seen.add(chain)
  }
}

async function inspect(page, name, whole = false) {
  await settled(page)
  if (options.shots) await page.screenshot({ path: join(options.shots, name + '.png'), fullPage: whole })
  if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(axe)
  await page.evaluate(oneOfEach)
  const result = await page.evaluate(() => {
    globalThis.axe.configure({ rules: [{ id: 'color-contrast', selector: '[data-contrast]' }] })
    return globalThis.axe.run(document, { resultTypes: ['violations'], preload: false })
  })
  for (const violation of result.violations) {
    failures.push(`${name}: ${violation.id}: ${violation.help}\n` + violation.nodes.slice(0, 4).map((n) => `    ${n.target.join(' ')}  ${n.html.slice(0, 160)}\n    ${n.failureSummary?.split('\n').slice(1, 2).join(' ')}`).join('\n'))
  }
}

// inspects makes sure that inspect finds what it is there for, also where many texts look alike.
async function inspects(browser) {
  const context = await browser.newContext()
  const page = await context.newPage()
  const rows = (color) => Array.from({ length: 20 }, (_, i) => `<p style="color: ${color}">line ${i}</p>`).join('')
  for (const [body, found] of [[rows('#000'), 0], [rows('#000') + rows('#bbb'), 1], [rows('#000') + `<div style="background: #222">${rows('#000')}</div>`, 1], ['<input value="x">', 1]]) {
    await page.setContent(`<!doctype html><html lang="en"><title>t</title><body><main><h1>t</h1>${body}</main>`)
    await inspect(page, 'inspects')
    assert.equal(failures.splice(0).length, found, 'what inspect finds in ' + body.slice(-60))
  }
  await context.close()
}

async function day(browser, agent, token, lang, dark) {
  const w = words[lang]
  const mark = `${lang}-${dark ? 'dark' : 'light'}-`
  const context = await browser.newContext({ ignoreHTTPSErrors: true, locale: lang === 'zh' ? 'zh-CN' : 'en-US', colorScheme: dark ? 'dark' : 'light', viewport: { width: 1440, height: 900 }, reducedMotion: 'reduce' })
  const page = await context.newPage()
  page.setDefaultTimeout(patience)
  const complaints = []
  const urls = []
  page.on('console', (message) => message.type() === 'error' && !/status of 40[01]/.test(message.text()) && complaints.push(message.text() + ' at ' + message.location().url))
  page.on('pageerror', (error) => complaints.push(String(error)))
  page.on('request', (request) => urls.push(request.url()))
  page.on('dialog', (dialog) => { complaints.push('a dialog: ' + dialog.message()); void dialog.dismiss() })

  await visit(page, agent.address + '/queue')
  await page.getByRole('heading', { name: 'nomadlike' }).waitFor()
  assert.equal(await page.getAttribute('html', 'lang'), lang === 'zh' ? 'zh-CN' : 'en', 'the language that the browser asks for')
  await inspect(page, mark + 'signin')
  await page.getByLabel(w.token, { exact: true }).fill('nl_user_wrong')
  await page.getByRole('button', { name: w.signIn }).click()
  await page.getByRole('alert').waitFor()
  await page.getByLabel(w.token, { exact: true }).fill(token)
  await page.getByRole('button', { name: w.signIn }).click()
  await page.waitForFunction((title) => document.title.startsWith(title), w.queue) // the page that was asked for
  assert.equal(await page.evaluate(() => document.cookie), '', 'scripts see no cookie')
  const kept = await page.evaluate(() => JSON.stringify({ ...localStorage, ...sessionStorage }) + document.documentElement.outerHTML)
  assert.ok(!kept.includes(token), 'the page keeps no token')

  // A wrong file is told with its line; a right one with when it starts.
  const name = `day-${lang}-${dark ? 'dark' : 'light'}`
  await page.getByRole('link', { name: w.jobs, exact: true }).click()
  await page.locator('main').getByRole('link', { name: w.newJob }).click()
  const file = page.getByRole('textbox', { name: w.file })
  await file.fill(jobFile(name).replace('memory', 'memroy'))
  await page.locator('.gutter .wrong').waitFor()
  await inspect(page, mark + 'create-wrong')
  await file.fill(jobFile(name))
  await page.locator('.verdict', { hasText: w.startsNow }).waitFor()
  // The form changes the file where it is, and the file the form.
  const nodes = page.getByRole('spinbutton', { name: w.nodes, exact: true })
  await nodes.fill('2')
  await nodes.press('Enter')
  await page.waitForFunction(() => document.getElementById('jobfile').value.includes('nodes = 2'))
  await file.fill((await file.inputValue()).replace('nodes = 2', 'nodes = 1'))
  await page.waitForFunction((label) => [...document.querySelectorAll('input[type=number]')].some((i) => i.getAttribute('aria-label') === label && i.value === '1'), w.nodes)
  await page.locator('.verdict', { hasText: w.startsNow }).waitFor()
  await inspect(page, mark + 'create')
  await page.getByRole('button', { name: w.submit }).click()

  // Live: no reload, no click.
  await page.getByRole('heading', { name, exact: true }).waitFor()
  await page.locator('.tag.state-running').first().waitFor()
  await page.locator('.history li').nth(2).waitFor()
  await inspect(page, mark + 'job')
  await page.getByRole('tab', { name: w.use }).click()
  await page.locator('.heat i').first().waitFor()
  await page.locator('.uplot').waitFor()
  await inspect(page, mark + 'figures')
  await page.getByRole('tab', { name: w.attempts }).click()
  await page.getByRole('region', { name: w.checkpoints }).waitFor()
  await inspect(page, mark + 'attempts')
  await page.getByRole('tab', { name: w.logs }).click()
  await page.getByText('hello-' + name).waitFor()
  assert.equal(await page.locator('.logs img').count(), 0, 'what a task prints is text')
  await inspect(page, mark + 'logs')
  await page.getByRole('tab', { name: w.files, exact: true }).click()
  await page.getByRole('link', { name: 'logs/' }).click()
  await page.getByText(`nomadlike job download ${name} logs`).waitFor()
  const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name: /stdout/ }).first().click()])
  assert.ok(readFileSync(await download.path(), 'utf8').includes('hello-' + name), 'the file is what the rank printed')
  await inspect(page, mark + 'files')
  await page.getByRole('tab', { name: w.terminal }).click()
  await page.locator('.xterm-helper-textarea').waitFor()
  await page.keyboard.type('echo $((6*7))-terminal\n')
  await page.locator('.xterm-rows, .xterm-accessibility').getByText('42-terminal').first().waitFor()
  // What the rank serves is shown at an origin of its own, which reaches nothing of this one.
  await page.keyboard.type('python3 -m http.server 8123 --bind 127.0.0.1 >/dev/null 2>&1 &\n')
  await page.getByRole('textbox', { name: w.port, exact: true }).fill('8123')
  const [served] = await Promise.all([page.waitForEvent('popup'), page.getByRole('button', { name: w.open, exact: true }).click()])
  await served.getByRole('heading', { name: 'Directory listing for /' }).waitFor() // it may listen a moment later
  assert.match(new URL(served.url()).hostname, /^8123-[0-9a-f]+\.tasks\.localhost$/)
  assert.equal(served.url().includes('entry='), false, 'the address that signs in is gone')
  assert.deepEqual(await served.evaluate((api) => fetch(api, { credentials: 'include' }).then((answer) => [answer.status], () => [document.cookie, String(window.opener)]), new URL(page.url()).origin + '/v1/jobs'), ['', 'null'])
  await served.close()
  await inspect(page, mark + 'terminal')

  // What the cluster can never start says so, and why.
  const big = 'big-' + name
  await agent.cli('job', 'run', '-detach', await writeJob(agent, big, 4000))
  await page.getByRole('link', { name: w.queue }).click()
  await page.getByRole('link', { name: big }).waitFor()
  await page.locator('tr.row .tag', { hasText: w.never }).first().waitFor()
  await page.getByRole('button', { name: w.openRow }).first().click()
  await page.locator('.opened section.card').waitFor()
  await page.waitForTimeout(500)
  const panel = page.getByRole('region', { name: w.whatIf })
  await panel.getByRole('combobox', { name: w.node }).selectOption({ index: 1 })
  await panel.getByRole('button', { name: w.try, exact: true }).click()
  await panel.locator('.verdict').waitFor()
  await panel.getByText('nomadlike queue try -drain').waitFor()
  await inspect(page, mark + 'queue')
  await agent.cli('job', 'stop', big)
  await page.getByRole('link', { name: big }).waitFor({ state: 'detached' })

  for (const place of ['jobs', 'cluster', 'pools', 'servers']) {
    await page.locator(`nav a[href="/${place}"]`).click()
    await page.locator('main h1').waitFor()
    await page.waitForTimeout(600)
    await inspect(page, mark + place)
  }
  await visit(page, agent.address + '/cluster')
  await page.locator('.wall canvas').click({ position: { x: 30, y: 55 } }) // below the name of its pool
  await page.locator('.closer h2 a').click()
  await page.locator('.facts').first().waitFor()
  await inspect(page, mark + 'node')

  // Ctrl-K finds the job; stop it; clone it.
  await visit(page, agent.address + '/jobs')
  await page.getByRole('link', { name, exact: true }).waitFor()
  const palette = page.getByRole('dialog')
  for (let tries = 0; tries < 10 && !(await palette.isVisible()); tries++) { // a key that comes before the page listens is lost
    await page.keyboard.press('Control+k')
    await palette.waitFor({ timeout: 5000 }).catch(() => {})
  }
  await palette.getByRole('combobox').fill(name)
  await page.getByRole('option', { name: new RegExp('^' + name) }).first().waitFor()
  await page.waitForTimeout(300)
  await inspect(page, mark + 'palette')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name, exact: true }).waitFor()
  for (const [deed, line, state] of [[w.pause, 'pause', 'paused'], [w.resume, 'continue', 'running']]) {
    await page.getByRole('button', { name: deed, exact: true }).click()
    await page.getByRole('dialog').locator('.cli', { hasText: `nomadlike job ${line} ${name}` }).waitFor()
    await page.getByRole('dialog').getByRole('button', { name: deed, exact: true }).click()
    await page.locator('.tag.state-' + state).first().waitFor()
    await page.getByRole('dialog').waitFor({ state: 'detached' })
  }
  await page.getByRole('button', { name: w.stop, exact: true }).click()
  await page.getByRole('dialog').locator('.cli', { hasText: 'nomadlike job stop ' + name }).waitFor()
  await page.waitForTimeout(300)
  await inspect(page, mark + 'stop')
  await page.getByRole('dialog').getByRole('button', { name: w.stop, exact: true }).click()
  await page.locator('.tag.state-stopped').first().waitFor()
  await page.getByRole('button', { name: w.clone }).click()
  await page.getByRole('textbox', { name: w.file }).waitFor()
  assert.ok((await page.getByRole('textbox', { name: w.file }).inputValue()).includes(`job "${name}"`), 'the clone is the same file')

  // A phone: is it still running?
  await page.setViewportSize({ width: 390, height: 844 })
  await visit(page, agent.address + '/jobs/' + name)
  await page.getByRole('heading', { name, exact: true }).waitFor()
  await inspect(page, mark + 'phone')

  // Signing out ends it, also for the address bar.
  await page.setViewportSize({ width: 1440, height: 900 })
  const before = await page.evaluate(async () => (await fetch('/v1/jobs')).status)
  await page.evaluate(() => fetch('/v1/session', { method: 'DELETE', headers: { 'X-Nomadlike-Request': 'ui' } }))
  const after = await page.evaluate(async () => (await fetch('/v1/jobs')).status)
  assert.deepEqual([before, after], [200, 401])
  await page.reload()
  await page.getByRole('button', { name: w.signIn }).waitFor()
  assert.ok(!urls.some((url) => url.includes(token)), 'no address holds the token')
  assert.ok(urls.every((url) => url.startsWith(agent.address) || url.startsWith(agent.address.replace('https', 'wss')) || url.startsWith('data:')), 'everything comes from the agent')
  assert.deepEqual(complaints, [], 'the browser complains')
  await context.close()
}

async function writeJob(agent, name, cpu) {
  const { writeFileSync } = await import('node:fs')
  const path = join(agent.place, name + '.hcl')
  writeFileSync(path, jobFile(name, cpu))
  return path
}

// byLink signs in with the link that development mode prints.
async function byLink(browser, agent) {
  const link = /https:\/\/\S+#code=\S+/.exec(agent.log())[0]
  for (const works of [true, false]) {
    const context = await browser.newContext({ ignoreHTTPSErrors: true, locale: 'en-US' })
    const page = await context.newPage()
    page.setDefaultTimeout(patience)
    await visit(page, link)
    if (works) await page.getByRole('heading', { name: '0 running' }).waitFor()
    else await page.getByLabel('Token', { exact: true }).waitFor()
    assert.ok(!page.url().includes('code'), 'the code is taken out of the address')
    await context.close()
  }
}

// brokenLoads gives up what the browser loads of the program, as it does when
// the machine's network changes: the page tries again, and when that is no use
// it says so and offers to load everything again.
async function brokenLoads(browser, agent, token) {
  const context = await browser.newContext({ ignoreHTTPSErrors: true, locale: 'en-US' })
  const page = await context.newPage()
  page.setDefaultTimeout(patience)
  let left = 2
  await page.route(/assets\/(first|index|en)-.*\.(js|css)$/, (route) => (left-- > 0 ? route.abort('connectionreset') : route.continue()))
  await visit(page, agent.address)
  await page.getByLabel('Token', { exact: true }).fill(token)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('heading', { name: /running/ }).waitFor()
  assert.ok(left <= 0, 'loads were given up')

  let given = 0
  await page.route(/assets\/pools-.*\.js$/, (route) => (given++ === 0 ? route.abort('connectionreset') : route.continue()))
  await page.locator('nav a[href="/pools"]').click()
  await page.getByRole('heading', { name: 'Pools' }).waitFor()
  assert.ok(given >= 2, 'the page of pools was asked for again')

  await page.route(/assets\/servers-.*\.js$/, (route) => route.abort('connectionreset'))
  await page.locator('nav a[href="/servers"]').click()
  await page.getByRole('alert').filter({ hasText: 'could not be loaded' }).waitFor()
  await inspect(page, 'part-missing')
  await page.unroute(/assets\/servers-.*\.js$/)
  await page.getByRole('button', { name: 'Load the page again' }).click()
  await page.getByRole('heading', { name: 'Servers' }).waitFor()
  await context.close()
}

async function measures(browser, agent, token) {
  await agent.cli('job', 'run', '-detach', await writeJob(agent, 'seen', 0.01)) // the list has a row, also without the day before
  const view = await firstView(browser, agent, token)
  const start = await firstView(browser, agent, token, { path: '/', shown: '.keycards' })
  console.log(`home: ${start.took} ms, ${start.cpu} ms of the processor, ${Math.round(start.bytes / 1024)} KiB of packed scripts`)
  console.log(`first view: ${view.took} ms, ${view.cpu} ms of the processor, ${Math.round(view.bytes / 1024)} KiB of packed scripts`)
  const [node] = JSON.parse(await agent.cli('node', 'status', '-json'))
  for (const [name, path, shown] of [['job', '/jobs/seen', '.truth'], ['new job', '/jobs/new', '.verdict'], ['queue', '/queue', 'main table'], ['node', '/nodes/' + node.id, '.facts'], ['pools', '/pools', 'main tbody tr'], ['servers', '/servers', 'main tbody tr'], ['cluster', '/cluster', '.wall canvas']]) {
    const one = await firstView(browser, agent, token, { path, shown })
    console.log(`page ${name}: ${one.took} ms, ${one.cpu} ms of the processor, ${Math.round(one.bytes / 1024)} KiB of packed scripts`)
    assert.ok(one.bytes < 250 * 1024, `the page ${name} loads at most 250 KiB of packed scripts`)
  }
  const live = await eventToPixel(browser, agent, token, (name) => writeJob(agent, name, 0.01))
  console.log(`from an event to the page: ${live.toFixed(0)} ms (median of 5)`)
  const scroll = await large(browser, agent, token, inspect)
  console.log(`10,000 jobs scroll with ${scroll.median.toFixed(1)} ms a frame (median), ${scroll.worst.toFixed(1)} ms at worst`)
  for (const { bytes } of [view, start]) assert.ok(bytes < 200 * 1024, 'a first view loads at most 200 KiB of packed scripts')
}

if (options.shots) mkdirSync(options.shots, { recursive: true })
const agent = await startAgent(options.binary)
const browser = await chromium.launch({ executablePath: options.chromium, args: ['--no-sandbox'] })
const parts = {
  day: async (token) => {
    await day(browser, agent, token, 'zh', false)
    await day(browser, agent, token, 'en', true)
  },
  doors: async (token) => {
    await byLink(browser, agent)
    await brokenLoads(browser, agent, token)
    await attacks(browser, agent, token, patience)
  },
  away: async () => { for (const lang of ['en', 'zh']) await away(browser, options.binary, lang, inspect) },
  views: () => views(browser, options.binary, inspect),
  cards: (token) => cardsOfAnySize(browser, agent, token, inspect),
  maintenance: (token) => maintenance(browser, agent, token, inspect),
  home: () => home(browser, options.binary, inspect),
  job: () => job(browser, options.binary, inspect),
  rights: () => rights(browser, options.binary, inspect),
  people: () => people(browser, options.binary, inspect),
  projects: () => projects(browser, options.binary, inspect),
  secrets: () => secrets(browser, options.binary, inspect),
  through: () => through(browser, options.binary, inspect),
  services: () => services(browser, options.binary, inspect),
  told: () => told(browser, options.binary, inspect),
  vip: () => vip(browser, options.binary, inspect),
  create: () => create(browser, options.binary, inspect),
  data: () => data(browser, options.binary, inspect),
  guides: () => guides(browser, options.binary, inspect),
  measures: (token) => measures(browser, agent, token),
}
let failed = false
try {
  if (options.only && !parts[options.only]) throw new Error(`--only ${options.only}: the parts are ${Object.keys(parts).join(', ')}`)
  const token = await agent.secret('admin', 'ada')
  await inspects(browser)
  for (const name of options.only ? [options.only] : Object.keys(parts)) {
    const begun = performance.now()
    try {
      await parts[name](token)
    } finally {
      console.log(`part ${name}: ${((performance.now() - begun) / 1000).toFixed(0)} s`)
    }
  }
  assert.ok(!agent.log().includes(token), 'the log holds no token')
  if (failures.length) throw new Error('axe:\n' + failures.join('\n'))
  console.log('page test passed')
} catch (error) {
  failed = true
  console.error(error)
  if (failures.length) console.error('axe so far:\n' + failures.join('\n'))
  if (options.shots) {
    for (const context of browser.contexts()) for (const page of context.pages()) await page.screenshot({ path: join(options.shots, 'failed.png') })
  }
} finally {
  await browser.close()
  await agent.stop()
}
process.exit(failed ? 1 : 0)
