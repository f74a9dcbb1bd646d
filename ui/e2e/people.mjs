// People and projects: an administrator makes accounts, lists them in projects and ends
// one; a person who belongs to two projects switches between them, is led to a job of the
// other one, and is told when a project is not theirs any more; for page.mjs.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startAgent, visit } from './agent.mjs'
import { shots, signedIn } from './views.mjs'

const words = {
  en: { create: 'New account', user: 'User name', name: 'Name', cancel: 'Cancel', change: (user) => 'Change ' + user, disable: 'Disable', disableOf: (user) => 'Disable ' + user, enableOf: (user) => 'Enable ' + user, handOver: 'hand over to', heir: 'Hand over to', live: /has 1 subjob /, members: 'Members', role: 'Role', roleOf: (user) => 'Role of ' + user, add: 'Add a member', noAccount: /nobody has an account named nobody/, switch: /: switch$/, to: 'Switch to speech', lost: /You may not act in speech any more/, close: 'Close', account: 'Account', password: 'Password', passwordOf: (user) => 'Password of ' + user, draw: 'Draw a first password', done: 'Done', enter: 'Sign in', chosen: 'New password', again: 'The new password again', wrong: /account or the password is wrong/, whose: 'Account', own: 'Change password', current: 'Present password', changed: /The password is changed/, out: 'Sign out' },
  zh: { create: '新建账号', user: '用户名', name: '姓名', cancel: '取消', change: (user) => '修改 ' + user, disable: '停用', disableOf: (user) => '停用 ' + user, enableOf: (user) => '启用 ' + user, handOver: '转交', heir: '转交给', live: /有 1 个/, members: '成员', role: '角色', roleOf: (user) => user + ' 的角色', add: '添加成员', noAccount: /没有名为 nobody 的账号/, switch: /：切换$/, to: '切换到 speech', lost: /您已无权在项目 speech 中操作/, close: '关闭', account: '账号', password: '密码', passwordOf: (user) => user + ' 的密码', draw: '生成首次密码', done: '完成', enter: '登录', chosen: '新密码', again: '再输入一次新密码', wrong: /账号或密码错误/, whose: '账号', own: '更改密码', current: '当前密码', changed: /密码已更改/, out: '退出登录' },
}

const file = (name) => `job "${name}" {
  resources {
    cpu    = 0.05
    memory = "32MiB"
  }
  task {
    driver  = "exec"
    command = "sleep 600"
  }
}
`

const act = (page, project, w) => page.getByRole('button', { name: w.switch }).click().then(() => page.locator('.places button', { hasText: project }).click())
const acts = (page, project) => page.locator('.acting b', { hasText: new RegExp(`^${project}$`) }).waitFor()

// administers makes an account and gives it a role on the pages.
async function administers(browser, agent, admin, lang, user, inspect) {
  const w = words[lang]
  const { context, page } = await signedIn(browser, agent, admin, lang, '/people')
  const dialog = page.getByRole('dialog')
  await page.getByRole('button', { name: w.create }).click()
  await dialog.getByLabel(w.user, { exact: true }).fill(user)
  await dialog.getByLabel(w.name, { exact: true }).fill('李安')
  await dialog.locator('.cli', { hasText: `nomadlike user create -display-name '李安' ${user}` }).or(dialog.locator('.cli', { hasText: `nomadlike user create -display-name 李安 ${user}` })).waitFor()
  await shots(page, `people-${lang}-create`, inspect)
  await dialog.getByRole('button', { name: w.create }).click()
  await page.getByRole('button', { name: w.change(user), exact: true }).waitFor()
  assert.equal(JSON.parse(await agent.cli('user', 'status', '-json', user)).user.display_name, '李安')
  await shots(page, `people-${lang}-accounts`, inspect)

  await act(page, 'speech', w)
  await acts(page, 'speech')
  await page.locator('nav a[href="/project"]').click()
  const field = page.getByRole('form', { name: w.add }).getByRole('combobox', { name: w.user })
  await field.fill('nobody')
  await page.getByRole('button', { name: w.add }).click()
  await page.getByRole('alert').filter({ hasText: w.noAccount }).waitFor()
  await field.fill(user)
  await page.getByRole('button', { name: w.add }).click()
  const role = page.getByRole('combobox', { name: w.roleOf(user), exact: true })
  await role.waitFor()
  await role.selectOption('2') // project administrator
  await page.waitForFunction((label) => document.querySelector(`select[aria-label="${label}"]`)?.value === '2' && !document.querySelector(`select[aria-label="${label}"]`).disabled, w.roleOf(user))
  await shots(page, `people-${lang}-members`, inspect)
  const { memberships } = JSON.parse(await agent.cli('user', 'status', '-json', user))
  assert.deepEqual(memberships, [{ project: 'speech', role: 'project-admin' }])
  await context.close()
}

// switches is a person's round between two projects.
async function switches(browser, agent, token, lang, user, inspect) {
  const w = words[lang]
  const { context, page } = await signedIn(browser, agent, token, lang, '/jobs')
  await acts(page, 'speech') // the first by name
  const sent = []
  page.on('request', (request) => request.url().includes('/v1/') && sent.push([new URL(request.url()).pathname, request.headers()['x-nomadlike-project'] ?? '']))
  await act(page, 'vision', w)
  await acts(page, 'vision')
  await page.locator('.rows a', { hasText: 'seen-' + lang }).waitFor()
  sent.length = 0
  await page.reload()
  await acts(page, 'vision')
  await page.locator('.rows a', { hasText: 'seen-' + lang }).waitFor()
  await page.waitForTimeout(300)
  assert.ok(sent.some(([path]) => path === '/v1/events') && sent.some(([path]) => path === '/v1/self'), 'the first data and the stream of events')
  assert.deepEqual(sent.filter(([path, project]) => project !== 'vision' && path !== '/v1/agent/health'), [], 'every request names the project')
  await page.keyboard.press('g')
  await page.keyboard.press('a')
  await page.locator('.places button').first().waitFor()
  await shots(page, `people-${lang}-switch`, inspect)
  await page.keyboard.press('Escape')

  // A terminal is a websocket, which says it in its address.
  const socket = page.waitForEvent('websocket')
  await visit(page, `${agent.address}/jobs/seen-${lang}/terminal`)
  assert.ok((await socket).url().endsWith('/exec?acting=vision'), (await socket).url())

  // Names are of a project; an id is found in any of one's own.
  const { job } = JSON.parse(await agent.cli('job', 'status', '-json', '-project', 'speech', 'other-' + lang))
  await visit(page, `${agent.address}/jobs/${job.id}`)
  await page.getByRole('button', { name: w.to }).waitFor()
  await shots(page, `people-${lang}-elsewhere`, inspect)
  await page.getByRole('button', { name: w.to }).click()
  await page.getByRole('heading', { name: 'other-' + lang, exact: true }).waitFor()
  await acts(page, 'speech')

  // The project is taken away while the page is open: it goes back by itself.
  await agent.cli('project', 'member', 'remove', 'speech', user)
  await page.locator('nav a[href="/jobs"]').click()
  await page.locator('.note', { hasText: w.lost }).waitFor()
  await acts(page, 'vision')
  await page.locator('.rows a', { hasText: 'seen-' + lang }).waitFor()
  assert.equal(await page.getByRole('button', { name: w.switch }).count(), 0, 'one project is text')
  await shots(page, `people-${lang}-lost`, inspect)
  await context.close()
}

// ends disables the account and hands its job over.
async function ends(browser, agent, admin, lang, user, inspect) {
  const w = words[lang]
  const { context, page } = await signedIn(browser, agent, admin, lang, '/people')
  const dialog = page.getByRole('dialog')
  await page.getByRole('button', { name: w.disableOf(user), exact: true }).click()
  await dialog.getByText(w.live).waitFor()
  await dialog.getByRole('radio', { name: w.handOver }).check()
  await dialog.getByRole('combobox', { name: w.heir }).fill('heir')
  await dialog.locator('.cli', { hasText: `nomadlike user disable -jobs hand-over -to heir ${user}` }).waitFor()
  await shots(page, `people-${lang}-disable`, inspect)
  await dialog.getByRole('button', { name: w.disable, exact: true }).click()
  await page.getByRole('button', { name: w.enableOf(user), exact: true }).waitFor()
  assert.equal(JSON.parse(await agent.cli('job', 'status', '-json', '-project', 'vision', 'seen-' + lang)).job.user, 'heir')
  await context.close()
}

// signsIn draws a first password on the page, signs in with it, chooses another, and
// changes that; what is signed in with the one before ends.
async function signsIn(browser, agent, admin, lang, user, inspect) {
  const w = words[lang]
  const { context, page } = await signedIn(browser, agent, admin, lang, '/people')
  const dialog = page.getByRole('dialog')
  await page.getByRole('button', { name: w.passwordOf(user), exact: true }).click()
  await dialog.getByRole('button', { name: w.draw }).click()
  const first = await dialog.locator('pre', { hasText: /^[a-z2-9]{4}(-[a-z2-9]{4}){4}$/ }).textContent()
  await shots(page, `people-${lang}-drawn`, inspect)
  await dialog.getByRole('button', { name: w.done }).click()
  await context.close()

  const own = await browser.newContext({ ignoreHTTPSErrors: true, locale: lang === 'zh' ? 'zh-CN' : 'en-US', viewport: { width: 1440, height: 900 } })
  const there = await own.newPage()
  await visit(there, agent.address + '/')
  const field = (label) => there.getByLabel(label, { exact: true })
  const enter = there.getByRole('button', { name: w.enter })
  await field(w.account).waitFor()
  await shots(there, `people-${lang}-signin`, inspect)
  await field(w.account).fill(user)
  await field(w.password).fill('somebody guesses this')
  await enter.click()
  await there.getByRole('alert').filter({ hasText: w.wrong }).waitFor()
  await field(w.password).fill(first)
  await enter.click()
  await field(w.chosen).fill('three pandas eat bamboo')
  await field(w.again).fill('three pandas eat bamboo')
  await shots(there, `people-${lang}-first`, inspect)
  await enter.click()
  await there.locator('.acting').first().waitFor()
  await agent.cli('user', 'status', user)
  await there.locator('summary', { hasText: user }).click()
  await there.getByRole('button', { name: w.own }).click()
  const asked = there.getByRole('dialog')
  await asked.getByLabel(w.current, { exact: true }).fill('three pandas eat bamboo')
  await asked.getByLabel(w.chosen, { exact: true }).fill('and a fourth one sleeps')
  await asked.getByLabel(w.again, { exact: true }).fill('and a fourth one sleeps')
  await shots(there, `people-${lang}-own`, inspect)
  await asked.getByRole('button', { name: w.own }).click()
  await asked.getByText(w.changed).waitFor()
  await asked.getByRole('button', { name: w.close }).click()
  await there.locator('summary', { hasText: user }).click()
  await there.getByRole('button', { name: w.out }).click()
  await field(w.account).waitFor()
  const tokens = JSON.parse(await agent.cli('token', 'list', '-json'))
  assert.ok(!tokens.some(({ user: of, method }) => of === user && method), 'signing out revokes the token')
  assert.ok(!JSON.stringify(await there.evaluate(() => ({ ...localStorage, ...sessionStorage }))).includes('pandas'))
  await own.close()
}

export async function people(browser, binary, inspect) {
  const agent = await startAgent(binary)
  try {
    const admin = await agent.secret('admin', 'ada')
    await agent.cli('user', 'create', '-member', 'vision', '-member', 'speech', 'heir')
    for (const lang of ['zh', 'en']) {
      const user = 'ann-' + lang
      await administers(browser, agent, admin, lang, user, inspect)
      await agent.cli('project', 'member', 'set', 'vision', user)
      const token = /nl_user_[a-z2-7]+/.exec(await agent.cli('token', 'create', '-role', 'account', '-user', user))[0]
      for (const [name, project] of [['seen', 'vision'], ['other', 'speech']]) {
        const path = join(agent.place, name + '.hcl')
        writeFileSync(path, file(`${name}-${lang}`))
        await agent.cliAs(token, 'job', 'run', '-project', project, path)
      }
      await signsIn(browser, agent, admin, lang, user, inspect)
      await switches(browser, agent, token, lang, user, inspect)
      await agent.cli('job', 'stop', '-project', 'speech', 'other-' + lang)
      await ends(browser, agent, admin, lang, user, inspect)
    }
  } finally {
    await agent.stop()
  }
}
