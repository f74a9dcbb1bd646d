// What each may find and do: Ctrl-K finds what no page has loaded, a viewer is
// offered nothing that would be refused, a time limit is changed and never
// removed by accident, and what is ticked in the list is paused together; for
// page.mjs.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startAgent, visit } from './agent.mjs'
import { cards, signedIn } from './views.mjs'

const words = {
  en: { limit: 'Time limit', more: 'More', file: 'Job file', whatIf: 'What if…', ofModel: 'Cards of', newJob: 'New job', stop: 'Stop', clone: 'Clone', cordon: 'Cordon', hours: '4 h', day: 'A day more', none: 'No limit', sure: 'Yes, let it expire', over: /at once/, pause: 'Pause', resume: 'Continue', longest: /^Longest run time/, jobs: 'Jobs', logs: 'Logs', wanted: /2 wanted by the queue/ },
  zh: { limit: '使用时长', more: '更多', file: '任务文件', whatIf: '假如……', ofModel: '卡型号', newJob: '新建任务', stop: '停止', clone: '复制', cordon: '停止调度', hours: '4 小时', day: '延长 1 天', none: '不限', sure: '确认，让它过期', over: /立即过期/, pause: '暂停', resume: '继续', longest: /^最长运行时间/, jobs: '任务', logs: '日志', wanted: /排队共需 2/ },
}

const file = (name, more = '', devices = 0) => `job "${name}" {
  time_limit = "1h"
  access     = "read-only"
  ${more}
  resources {
    cpu    = 0.05
    memory = "32MiB"
${devices ? `    device "test/card" {\n      count = ${devices}\n    }\n` : ''}  }
  task {
    driver  = "exec"
    command = "sleep 600"
  }
}
`

async function submit(agent, name, more, devices) {
  const path = join(agent.place, name + '.hcl')
  writeFileSync(path, file(name, more, devices))
  await agent.cli('job', 'run', '-detach', path)
}

// palette finds a job and the machine from a page that has loaded neither.
async function palette(browser, agent, token, lang, name, inspect) {
  const { context, page } = await signedIn(browser, agent, token, lang, '/servers')
  await page.locator('main h1').waitFor()
  const dialog = page.getByRole('dialog')
  for (let tries = 0; tries < 10 && !(await dialog.isVisible()); tries++) { // a key that comes before the page listens is lost
    await page.keyboard.press('Control+k')
    await dialog.waitFor({ timeout: 5000 }).catch(() => {})
  }
  const box = dialog.getByRole('combobox')
  const [node] = JSON.parse(await agent.cli('node', 'status', '-json'))
  await box.fill(node.name)
  await page.getByRole('option', { name: new RegExp('^' + node.name) }).waitFor()
  await box.fill('nothing-like-it')
  await dialog.getByRole('status').filter({ hasText: /./ }).waitFor()
  await box.fill(name.toUpperCase())
  await page.getByRole('option', { name: new RegExp('^' + name) }).waitFor()
  await inspect(page, `rights-${lang}-palette`)
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name, exact: true }).waitFor()
  await context.close()
}

// looks is a viewer's round: what there is to see, and nothing to press that
// would be refused.
async function looks(browser, agent, token, lang, name, waits, inspect) {
  const { context, page } = await signedIn(browser, agent, token, lang, '/jobs/' + name)
  const w = words[lang]
  const refused = []
  page.on('response', (answer) => answer.status() === 403 && refused.push(answer.request().method() + ' ' + new URL(answer.url()).pathname))
  const button = (text) => page.getByRole('button', { name: text, exact: true })
  await page.locator('.tag.state-running').first().waitFor()
  await page.getByRole('tab', { name: w.logs }).waitFor()
  for (const text of [w.stop, w.clone, w.pause, w.more]) assert.equal(await button(text).count(), 0, `a viewer is offered ${text}`)
  await inspect(page, `rights-${lang}-viewer-job`)
  await page.locator('nav a[href="/queue"]').click()
  await page.getByRole('link', { name: waits }).first().waitFor()
  await page.locator('tr.row button[aria-expanded=false]').first().click()
  await page.locator('.opened section.card').waitFor()
  assert.equal(await button(w.stop).count() + (await page.getByRole('region', { name: w.whatIf }).count()), 0, 'a viewer tries nothing')
  await inspect(page, `rights-${lang}-viewer-queue`)
  await page.locator('nav a[href="/jobs"]').click()
  await page.locator('.rows a', { hasText: name }).first().waitFor()
  assert.equal(await page.getByRole('link', { name: w.newJob }).count(), 0, 'a viewer makes no job')
  await page.getByRole('checkbox', { name }).check() // jobs are compared by whoever reads them
  await page.locator('.bar.card').waitFor()
  assert.equal(await button(w.stop).count(), 0, 'a viewer changes no ticked job')
  await page.getByRole('checkbox', { name }).uncheck()
  await page.locator('nav a[href="/cluster"]').click()
  await page.locator('.wall canvas').click({ position: { x: 30, y: 55 } }) // below the name of its pool
  await page.locator('.closer h2 a').click()
  await page.locator('.facts').first().waitFor()
  assert.equal(await button(w.cordon).count(), 0, 'a viewer changes no node')
  assert.deepEqual(refused.filter((one) => !one.endsWith('/v1/nodes/available')), [], 'a viewer asks for nothing that is refused')
  await context.close()
}

// limit changes a time limit: by a length that many take, by a typed one, and by
// one that would end the job only once that is confirmed.
async function limit(browser, agent, token, lang, name, inspect) {
  const { context, page } = await signedIn(browser, agent, token, lang, '/jobs/' + name)
  const w = words[lang]
  const now = async () => JSON.parse(await agent.cli('job', 'status', '-json', name)).job.time_limit
  const dialog = page.getByRole('dialog')
  const field = dialog.getByLabel(w.longest)
  const ok = dialog.getByRole('button', { name: w.limit, exact: true })
  const open = async () => {
    await page.locator('summary', { hasText: w.more }).click()
    await page.locator('.deed-list').getByRole('button', { name: w.limit }).click()
    await field.waitFor()
  }
  await page.locator('.tag.state-running').first().waitFor()
  await open()
  assert.equal(await field.inputValue(), '1h', 'the limit that there is')
  assert.ok(await ok.isDisabled(), 'nothing is changed so far')
  await field.fill('')
  assert.ok(await ok.isDisabled(), 'an empty field removes no limit')
  await dialog.getByRole('button', { name: w.hours, exact: true }).click()
  await dialog.getByRole('button', { name: w.day, exact: true }).click()
  assert.equal(await field.inputValue(), '28h')
  await dialog.locator('.cli', { hasText: `nomadlike job limit ${name} 28h` }).waitFor()
  await ok.click()
  await dialog.waitFor({ state: 'detached' })
  assert.equal(await now(), '28h0m0s')
  await open()
  await field.fill('1s')
  await dialog.locator('.note', { hasText: w.over }).waitFor()
  assert.ok(await ok.isDisabled(), 'what would end the job is confirmed first')
  await inspect(page, `rights-${lang}-limit`)
  await dialog.getByRole('checkbox', { name: w.sure }).check()
  assert.ok(!(await ok.isDisabled()))
  await dialog.getByRole('button', { name: w.none, exact: true }).click()
  await ok.click()
  await dialog.waitFor({ state: 'detached' })
  assert.ok(['0s', undefined].includes(await now()), 'no limit is a choice of its own')
  await context.close()
}

// together pauses what is ticked in the list, and lets it go on.
async function together(browser, agent, token, lang, names, inspect) {
  const { context, page } = await signedIn(browser, agent, token, lang, '/jobs?text=' + names[0].slice(0, -2))
  const w = words[lang]
  await page.waitForFunction(() => document.querySelectorAll('.rows .grid-row .state-running').length === 2)
  const tick = async () => { for (const name of names) await page.getByRole('checkbox', { name }).check() }
  for (const [deed, line, state] of [[w.pause, 'pause', 'paused'], [w.resume, 'continue', 'running']]) {
    await tick()
    await page.locator('.bar.card').getByRole('button', { name: deed, exact: true }).click()
    await page.getByRole('dialog').locator('.cli', { hasText: `nomadlike job ${line} ${names[0]}` }).waitFor()
    if (line === 'pause') await inspect(page, `rights-${lang}-together`)
    await page.getByRole('dialog').getByRole('button', { name: deed, exact: true }).click()
    await page.waitForFunction((state) => document.querySelectorAll('.rows .grid-row .state-' + state).length === 2, state)
    await page.getByRole('dialog').waitFor({ state: 'detached' })
  }
  await page.getByRole('link', { name: 'VIP', exact: true }).click()
  await page.waitForURL(/\/vip$/)
  await context.close()
}

// others ticks a job that its owner shows and keeps: it may be cloned, and no more.
async function others(browser, agent, token, lang, name, inspect) {
  const { context, page } = await signedIn(browser, agent, token, lang, '/jobs?text=' + name)
  const w = words[lang]
  await page.getByRole('checkbox', { name }).check()
  const bar = page.locator('.bar.card')
  await page.waitForFunction((stop) => [...document.querySelectorAll('.bar.card button')].some((one) => one.textContent === stop && one.disabled && one.title), w.stop)
  assert.ok(await bar.getByRole('button', { name: w.pause, exact: true }).isDisabled())
  assert.ok(await bar.getByRole('button', { name: w.clone, exact: true }).isEnabled())
  assert.equal(await page.getByRole('link', { name: 'VIP', exact: true }).count(), 0, 'who may not choose machines is not offered it')
  await inspect(page, `rights-${lang}-others`)
  await context.close()
}

// model chooses among the resources by the model of their cards, and takes a
// usual time limit into the file.
async function model(browser, agent, token, lang, inspect) {
  const { context, page } = await signedIn(browser, agent, token, lang, '/jobs/new')
  const w = words[lang]
  await page.getByRole('button', { name: w.hours, exact: true }).click()
  await page.waitForFunction(() => /time_limit\s*=\s*"4h"/.test(document.getElementById('jobfile').value))
  const models = page.getByRole('combobox', { name: w.ofModel })
  await models.selectOption(await models.locator('option', { hasText: 'T800' }).filter({ hasText: w.wanted }).getAttribute('value'))
  await page.getByRole('row').filter({ hasText: 'T800' }).first().waitFor()
  await inspect(page, `rights-${lang}-model`)
  await context.close()
}

// phones looks at the widest pages on a phone: nothing of them is wider than it.
async function phones(browser, agent, token, lang, name, inspect) {
  const { context, page } = await signedIn(browser, agent, token, lang, '/jobs/' + name)
  await page.getByRole('heading', { name, exact: true }).waitFor()
  await page.setViewportSize({ width: 390, height: 844 })
  const [node] = JSON.parse(await agent.cli('node', 'status', '-json'))
  const tooWide = []
  for (const [place, path, ready] of [['create', '/jobs/new', '.verdict'], ['vip', '/vip', '.work'], ['queue', '/queue', 'tr.row'], ['node', '/nodes/' + node.id, 'tr.row'], ['job', '/jobs/' + name, '.history li'], ['jobs', '/jobs', '.rows a'], ['cluster', '/cluster', '.wall canvas']]) {
    await visit(page, agent.address + path)
    await page.locator(ready).first().waitFor()
    if (place === 'create') for (const folded of await page.locator('.filling summary').all()) await folded.click()
    if (place === 'jobs') await page.locator('[role=search] .drop > summary').first().click() // what folds open fits as well
    const wide = await page.evaluate(() => [document.documentElement.scrollWidth, ...[...document.querySelectorAll('main button, main input, main select, main summary, main h1, main .tag')].filter((one) => one.getBoundingClientRect().right > innerWidth + 1 && !one.closest('details:not([open]) > :not(summary)') && !one.closest('.scroll, .tab-list, .wall, .rows, .editor, .grid, table')).map((one) => one.outerHTML.slice(0, 120))])
    await inspect(page, `rights-${lang}-phone-${place}`)
    if (wide.length > 1 || wide[0] !== 390) tooWide.push(place, ...wide)
  }
  assert.deepEqual(tooWide, [], 'pages are wider than a phone')
  await context.close()
}

export async function rights(browser, binary, inspect) {
  const agent = await startAgent(binary, cards)
  try {
    const [admin, viewer, user] = [await agent.secret('admin', 'ada'), await agent.secret('viewer', 'vic'), await agent.secret('user', 'ann')]
    for (const lang of ['zh', 'en']) {
      const [name, waits, pair] = ['found-' + lang, 'waits-' + lang, [`pair-${lang}-1`, `pair-${lang}-2`]]
      for (const one of [name, ...pair]) await submit(agent, one)
      await submit(agent, 'holds-' + lang, '', 8)
      await submit(agent, waits, '', 2)
      await palette(browser, agent, admin, lang, name, inspect)
      await looks(browser, agent, viewer, lang, name, waits, inspect)
      await others(browser, agent, user, lang, name, inspect)
      await limit(browser, agent, admin, lang, name, inspect)
      await together(browser, agent, admin, lang, pair, inspect)
      await model(browser, agent, admin, lang, inspect)
      await phones(browser, agent, admin, lang, name, inspect)
      for (const one of [waits, 'holds-' + lang, name, ...pair]) await agent.cli('job', 'stop', one)
    }
  } finally {
    await agent.stop()
  }
}
