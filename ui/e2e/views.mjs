// What a person sees and does besides a job of their own, against a real agent
// with eight cards: the wall that changes while one looks, the curves of a job
// that prints them, dragging in the timeline of the queue,
// a terminal inside a failed rank that is held, links for whoever is not signed in, and the wallboard; the list by keyboard
// and with kept filters; for page.mjs.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startAgent, visit } from './agent.mjs'

const patience = 60_000
const words = {
  en: { token: 'Token', signIn: 'Sign in', wall: /(\d+) nodes?, (\d+) cells held/, curves: 'Curves', whatIf: 'What if…', cancel: 'Cancel', confirm: 'Make these changes', share: 'Share', make: 'Make a link', end: 'End it', none: 'No links', stop: 'Stop', logs: 'Logs', lastWords: 'Why it failed', timeline: 'Timeline of the nodes', file: 'Job file', keys: 'Keys', columns: 'Columns', priority: 'Priority', saved: 'Views', filterName: 'Name of this view', save: 'Keep', clear: 'Clear', terminal: 'Terminal', held: /failed, and held until/, again: 'Connect again', noneHeld: 'No rank runs or is held now.' },
  zh: { token: '令牌', signIn: '登录', wall: /(\d+) 个节点，(\d+) 格占用/, curves: '曲线', whatIf: '假如……', cancel: '取消', confirm: '执行这些改动', share: '共享', make: '生成链接', end: '使其失效', none: '没有链接', stop: '停止', logs: '日志', lastWords: '失败原因', timeline: '节点时间线', file: '任务文件', keys: '快捷键', columns: '列', priority: '优先级', saved: '视图', filterName: '视图名称', save: '保存', clear: '清除', terminal: '终端', held: /已失败，保留至/, again: '重新连接', noneHeld: '当前没有运行中或保留的 rank。' },
}
export const cards = `client {
  device "test/card" {
    count  = 8
    model  = "T800"
    memory = "16GiB"
  }
}
`
const jobFile = (name, count, command) => `job "${name}" {
  time_limit = "1h"
  resources {
    cpu    = 0.05
    memory = "32MiB"
    device "test/card" {
      count = ${count}
    }
  }
  task {
    driver  = "exec"
    command = "${command}"
  }
}
`

// shots looks at a page in light, in dark and on a phone, whose width it must keep to.
export async function shots(page, name, inspect) {
  await inspect(page, name)
  await page.emulateMedia({ colorScheme: 'dark' })
  await inspect(page, name + '-dark')
  await page.emulateMedia({ colorScheme: 'light' })
  await page.setViewportSize({ width: 390, height: 844 })
  const wide = await page.evaluate(() => document.documentElement.scrollWidth)
  await inspect(page, name + '-phone')
  await page.setViewportSize({ width: 1440, height: 900 })
  assert.equal(wide, 390, `${name} is wider than a phone`)
}

// signedIn opens a page of somebody who has the token. It waits until they are in: a test that
// goes on to another page at once may take back the request that signs in.
export async function signedIn(browser, agent, token, lang, path) {
  const w = words[lang]
  const context = await browser.newContext({ ignoreHTTPSErrors: true, locale: lang === 'zh' ? 'zh-CN' : 'en-US', viewport: { width: 1440, height: 900 }, reducedMotion: 'reduce' })
  const page = await context.newPage()
  page.setDefaultTimeout(patience)
  await visit(page, agent.address + path)
  await page.getByLabel(w.token, { exact: true }).fill(token)
  const enter = page.getByRole('button', { name: w.signIn })
  await enter.click()
  await enter.waitFor({ state: 'detached' })
  return { context, page, w }
}

// submit gives a job to the agent as a person with a file does.
async function submit(agent, name, count, command = 'sleep 600') {
  const path = join(agent.place, name + '.hcl')
  writeFileSync(path, jobFile(name, count, command))
  await agent.cli('job', 'run', '-detach', path)
}

// drawnAt gives the colour of a place on the wall.
const drawnAt = (page, x, y) => page.locator('.wall canvas').evaluate((canvas, [x, y]) => [...canvas.getContext('2d').getImageData(x * devicePixelRatio, y * devicePixelRatio, 1, 1).data].join(), [x, y])

// wall sees cards being taken and given back while the page stands open, with
// their job and its owner, and as a wallboard.
async function wall(browser, agent, token, lang, inspect) {
  const { context, page, w } = await signedIn(browser, agent, token, lang, '/cluster')
  const held = (count) => page.waitForFunction(([source, count]) => {
    const told = new RegExp(source).exec(document.querySelector('.wall canvas')?.getAttribute('aria-label') ?? '')
    return told && Number(told[2]) === count
  }, [w.wall.source, count])
  await held(0)
  const [x, y] = [4 + 8, 26 + 4 + 14 + 8] // within the first card, below the names of its pool and its node
  const free = await drawnAt(page, x, y)
  const name = 'wall-' + lang
  await submit(agent, name, 8)
  await held(8)
  assert.notEqual(await drawnAt(page, x, y), free, 'a held card has a colour')
  await page.locator('.wall canvas').hover({ position: { x, y } })
  await page.locator('.wall .tip', { hasText: name }).waitFor()
  await inspect(page, `views-${lang}-wall`)
  await visit(page, agent.address + '/cluster?board')
  await held(8)
  assert.equal(await page.locator('header.top').isVisible(), false, 'a wallboard has nothing around it')
  await inspect(page, `views-${lang}-board`)
  await agent.cli('job', 'stop', name)
  await held(0)
  assert.equal(await drawnAt(page, x, y), free, 'a card that is given back looks as before')
  await context.close()
}

// list finds, sorts out and stops jobs with the keyboard and the filters, which
// it keeps under a name.
async function list(browser, agent, token, lang, inspect) {
  const names = ['bulk-1', 'bulk-2']
  for (const name of names) await submit(agent, name, 1)
  const { context, page, w } = await signedIn(browser, agent, token, lang, '/jobs?text=bulk-')
  await page.waitForFunction(() => document.querySelectorAll('.rows .grid-row .state-running').length === 2)
  await page.locator('h1').click()
  await page.keyboard.press('?')
  const keys = page.getByRole('dialog', { name: w.keys })
  await keys.waitFor()
  await inspect(page, `views-${lang}-keys`)
  await page.keyboard.press('Escape')
  await keys.waitFor({ state: 'hidden' })

  await page.locator('summary', { hasText: w.columns }).click()
  await page.getByLabel(w.priority, { exact: true }).last().check()
  await page.getByRole('columnheader', { name: w.priority }).waitFor()
  await page.locator('summary', { hasText: w.saved }).click()
  await page.getByLabel(w.filterName).fill('mine')
  await page.getByRole('button', { name: w.save, exact: true }).click()
  await page.getByRole('button', { name: w.clear, exact: true }).click()
  assert.ok(!page.url().includes('bulk-'))
  if (!(await page.getByRole('button', { name: 'mine', exact: true }).isVisible())) await page.locator('summary', { hasText: w.saved }).click()
  await page.getByRole('button', { name: 'mine', exact: true }).click()
  await page.waitForURL(/text=bulk-/)
  await page.waitForFunction(() => document.querySelectorAll('.rows .grid-row').length === 2)

  await page.locator('h1').click()
  for (const key of 'jxjx') await page.keyboard.press(key)
  await page.locator('.bar.card', { hasText: '2' }).waitFor() // both are ticked
  await page.locator('.bar.card').getByRole('button', { name: w.stop, exact: true }).click()
  await page.getByRole('dialog').locator('.cli', { hasText: 'nomadlike job stop' }).waitFor()
  await page.getByRole('dialog').getByRole('button', { name: w.stop, exact: true }).click()
  await page.waitForFunction(() => document.querySelectorAll('.rows .grid-row .state-stopped').length === 2)
  await inspect(page, `views-${lang}-bulk`)
  await context.close()
}

// failing reads why a job has failed: on its first page, and in its logs, which
// open on the stream that says something.
async function failing(browser, agent, token, lang, inspect) {
  const name = 'fails-' + lang
  await submit(agent, name, 1, `bash -c 'echo Traceback: >&2; echo ValueError: bad data >&2; exit 3'`)
  const { context, page, w } = await signedIn(browser, agent, token, lang, '/jobs/' + name)
  await page.locator('.tag.state-failed').first().waitFor()
  const words = page.getByRole('region', { name: w.lastWords })
  await words.locator('.verdict', { hasText: 'ValueError: bad data' }).waitFor()
  await inspect(page, `views-${lang}-failed`)
  await page.getByRole('tab', { name: w.logs }).click()
  await page.locator('.logs', { hasText: 'ValueError: bad data' }).waitFor()
  assert.match(await page.locator('.logs time').first().textContent(), /^\d\d:\d\d:\d\d$/)
  await inspect(page, `views-${lang}-failed-logs`)
  await agent.cli('job', 'delete', name)
  await context.close()
}

// curves reads what a job prints of itself.
async function curves(browser, agent, token, lang, inspect) {
  const name = 'curves-' + lang
  await submit(agent, name, 1, `bash -c 'for i in 1 2 3 4 5 6 7 8; do echo step $i loss 0.$((9-i)) lr 0.01; done; sleep 600'`)
  const { context, page, w } = await signedIn(browser, agent, token, lang, '/jobs/' + name)
  await page.getByRole('tab', { name: w.curves }).click()
  const loss = page.getByRole('region', { name: 'loss', exact: true })
  await loss.locator('.uplot canvas').waitFor()
  await loss.locator('summary').click()
  await loss.getByRole('row').filter({ hasText: /0\.1.*0\.1.*0\.8/ }).waitFor() // last, least and greatest
  await page.getByRole('region', { name: 'lr', exact: true }).waitFor()
  await inspect(page, `views-${lang}-curves`)
  await agent.cli('job', 'stop', name)
  await context.close()
}

// drags tries a place in the queue by dragging, sees what it would change,
// gives it up, tries again and confirms.
async function drags(browser, agent, token, lang, inspect) {
  const [holds, first, second] = ['holds-', 'first-', 'second-'].map((part) => part + lang)
  for (const name of [holds, first, second]) await submit(agent, name, 8)
  const { context, page, w } = await signedIn(browser, agent, token, lang, '/queue')
  const order = () => page.locator('table.table').first().locator('tr.row a').allTextContents()
  await page.getByRole('link', { name: second }).first().waitFor()
  assert.deepEqual((await order()).filter((name) => name === first || name === second), [first, second])
  const timeline = page.getByRole('region', { name: w.timeline })
  const canvas = timeline.locator('canvas')
  await canvas.waitFor()
  // Bars are where the pointer meets them: the tip names the job.
  const find = async (name) => {
    const box = await canvas.boundingBox()
    for (let x = 132; x < box.width; x += 12) {
      for (const y of [31, 46, 61].filter((y) => y < box.height)) { // its lanes
        await canvas.hover({ position: { x, y } })
        const tip = timeline.locator('.tip')
        if (await tip.count() && (await tip.locator('strong').textContent()) === name) return { x, y }
      }
    }
    return undefined
  }
  let [from, to] = []
  for (let tries = 0; tries < 20 && !(from && to); tries++) [from, to] = [await find(second), await find(first)] // the forecast may be on its way
  assert.ok(from && to, 'both jobs that wait are in the timeline')
  const drag = async () => {
    const box = await canvas.boundingBox()
    await page.mouse.move(box.x + from.x, box.y + from.y)
    await page.mouse.down()
    await page.mouse.move(box.x + from.x - 20, box.y + from.y, { steps: 4 })
    await page.mouse.move(box.x + to.x, box.y + to.y, { steps: 4 })
    await timeline.locator('.ghost', { hasText: second }).waitFor()
    await page.mouse.up()
  }
  const panel = page.getByRole('region', { name: w.whatIf })
  await canvas.scrollIntoViewIfNeeded()
  await drag()
  await panel.locator('.problems li', { hasText: second }).waitFor()
  await panel.locator('.verdict').waitFor()
  await panel.getByRole('row').filter({ hasText: first }).waitFor() // it would start later
  await panel.getByText(`nomadlike queue try -move ${second}=before:${first}`).waitFor()
  await inspect(page, `views-${lang}-drag`)
  await panel.getByRole('button', { name: w.cancel, exact: true }).click()
  await panel.locator('.problems').waitFor({ state: 'detached' })
  const names = async () => JSON.parse(await agent.cli('queue', '-json')).map((entry) => entry.job_name)
  assert.deepEqual((await names()).filter((name) => name === first || name === second), [first, second], 'nothing is moved before it is confirmed')
  await canvas.scrollIntoViewIfNeeded()
  await drag()
  await panel.locator('.verdict').waitFor()
  await panel.getByRole('button', { name: w.confirm }).click()
  await page.waitForFunction(([one, other]) => {
    const rows = [...document.querySelectorAll('table.table tr.row a')].map((a) => a.textContent)
    return rows.indexOf(other) >= 0 && rows.indexOf(other) < rows.indexOf(one)
  }, [first, second])
  for (const name of [second, first, holds]) await agent.cli('job', 'stop', name)
  await context.close()
}

// shares makes a link to a job in the dialog of its page, opens it where nobody
// is signed in, and ends it: then it opens nothing any more.
async function shares(browser, agent, token, lang, inspect) {
  const name = 'shared-' + lang
  await submit(agent, name, 1)
  const { context, page, w } = await signedIn(browser, agent, token, lang, '/jobs/' + name)
  await page.getByRole('button', { name: w.share }).click()
  await page.getByRole('button', { name: w.make }).click()
  const line = page.locator('.cli', { hasText: '#share=nl_share_' })
  await line.waitFor()
  const link = await line.textContent()
  await inspect(page, `views-${lang}-share`)

  const other = lang === 'zh' ? 'en' : 'zh'
  const outside = await browser.newContext({ ignoreHTTPSErrors: true, locale: other === 'zh' ? 'zh-CN' : 'en-US', viewport: { width: 390, height: 844 }, reducedMotion: 'reduce' })
  const guest = await outside.newPage()
  guest.setDefaultTimeout(patience)
  await visit(guest, link)
  await guest.getByRole('heading', { name, exact: true }).waitFor()
  await guest.locator('.tag.state-running').first().waitFor()
  assert.ok(!guest.url().includes('nl_share'), 'the secret is taken out of the address')
  assert.equal(await guest.getByRole('button', { name: words[other].stop, exact: true }).count() + (await guest.locator('nav a').count()) + (await guest.getByRole('tab', { name: words[other].logs }).count()), 0, 'a guest has nothing to press')
  await guest.locator('tr.row').first().waitFor() // its ranks, on machines
  assert.equal(await guest.locator('a[href]').count(), 0, 'nor anywhere to go')
  const refused = await guest.evaluate((job) => Promise.all(['/v1/jobs', '/v1/nodes', '/v1/queue', '/v1/events', '/v1/tokens', `/v1/jobs/${job}/files?path=`].map((path) => fetch(path).then((answer) => answer.status))), name)
  assert.ok(refused.every((status) => status >= 400), 'nothing else is reachable: ' + refused)
  await inspect(guest, `views-${other}-guest`)

  await page.getByRole('button', { name: w.end }).click()
  await page.getByText(w.none).waitFor()
  for (const place of [agent.address + '/jobs/' + name, link]) { // nor does the link open it again
    await visit(guest, 'about:blank')
    await visit(guest, place)
    await guest.getByLabel(words[other].token, { exact: true }).waitFor()
  }

  const [wall] = (await agent.cli('node', 'share', '-ttl', '1h')).match(/https:\/\/\S+/)
  await visit(guest, 'about:blank')
  await visit(guest, wall)
  await guest.locator('.wall canvas').waitFor()
  await inspect(guest, `views-${other}-guest-wall`)
  await outside.close()
  await agent.cli('job', 'stop', name)
  await context.close()
}

// views does all of it, in both languages by turns.
// held enters a rank that has failed and is held, from the page of its job.
async function held(browser, agent, token, lang, inspect) {
  const name = 'held-' + lang
  const path = join(agent.place, name + '.hcl')
  writeFileSync(path, `job "${name}" {
  resources {
    cpu    = 0.05
    memory = "32MiB"
  }
  debug {
    hold = "1h"
  }
  task {
    driver  = "exec"
    command = "sh -c 'echo 42 >result; exit 7'"
  }
}
`)
  await agent.cli('job', 'run', '-detach', path)
  const { context, page, w } = await signedIn(browser, agent, token, lang, '/jobs/' + name)
  await page.locator('.tag.state-failed').first().waitFor()
  await page.getByRole('tab', { name: w.terminal }).click()
  await page.getByText(w.held).waitFor() // the rank's own page knows of the hold

  // The hold is being made ready for some time: whoever comes early is told so,
  // and connects again.
  const rows = page.locator('.xterm-rows, .xterm-accessibility')
  const prompt = rows.getByText(/[$#]\s*$/).first()
  const again = page.getByRole('button', { name: w.again })
  for (const begin = Date.now(); ; ) {
    await prompt.or(again).first().waitFor()
    if (!(await again.isVisible())) break
    assert.ok(Date.now() - begin < patience, 'the hold can be entered: ' + (await page.getByRole('status').allTextContents()).join(' '))
    await again.click()
    await again.waitFor({ state: 'detached' }).catch(() => {})
  }
  await page.locator('.xterm-helper-textarea').focus()
  await page.keyboard.type('echo $(cat result)-of-$NOMADLIKE_JOB_NAME\n')
  await rows.getByText('42-of-' + name).first().waitFor()
  await inspect(page, 'held-' + lang)
  await agent.cli('job', 'release', name)
  await page.getByText(w.noneHeld).waitFor()
  await context.close()
}

export async function views(browser, binary, inspect) {
  const agent = await startAgent(binary, cards)
  try {
    const token = await agent.secret('admin', 'ada')
    for (const lang of ['zh', 'en']) {
      await wall(browser, agent, token, lang, inspect)
      await drags(browser, agent, token, lang, inspect)
      await held(browser, agent, token, lang, inspect)
      await failing(browser, agent, token, lang, inspect)
    }
    await list(browser, agent, token, 'en', inspect)
    await curves(browser, agent, token, 'zh', inspect)
    await shares(browser, agent, token, 'en', inspect)
  } finally {
    await agent.stop()
  }
}
