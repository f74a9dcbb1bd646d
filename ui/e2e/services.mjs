// Service accounts: whoever administers a project makes one for a pipeline, with a token
// that is shown once; the pipeline uses it, the page says so, and it is taken back; for
// page.mjs.
import assert from 'node:assert/strict'
import { startAgent } from './agent.mjs'
import { shots, signedIn } from './views.mjs'

const words = {
  en: { create: 'New service account', name: 'Name', about: 'What it is and does', tokensOf: 'Tokens of ci', label: 'Name of the token', verbs: 'Good for these verbs only', make: 'Make a token', done: 'Done', revoke: 'Revoke nightly', disableOf: 'Disable ci', disable: 'Disable', disabled: 'disabled', deleteOf: 'Delete ci', delete: 'Delete', none: /^No service accounts/, text: 'trains what is merged', token: 'Token', refused: /for people/ },
  zh: { create: '新建服务账号', name: '名称', about: '用途', tokensOf: 'ci 的令牌', label: '令牌名称', verbs: '仅可用于这些操作', make: '创建令牌', done: '完成', revoke: '吊销 nightly', disableOf: '停用 ci', disable: '停用', disabled: '已停用', deleteOf: '删除 ci', delete: '删除', none: /^没有服务账号/, text: '训练已合并的代码', token: '令牌', refused: /供人使用/ },
}

async function manages(browser, agent, token, lang, project, inspect) {
  const w = words[lang]
  const { context, page } = await signedIn(browser, agent, token, lang, '/project')
  const dialog = page.getByRole('dialog')
  const button = (name, within = page) => within.getByRole('button', { name, exact: true })
  await page.getByText(w.none).waitFor()
  await button(w.create).click()
  await dialog.getByLabel(w.name, { exact: true }).fill('ci')
  await dialog.getByLabel(w.about, { exact: true }).fill(w.text)
  await shots(page, `services-${lang}-create`, inspect)
  await button(w.create, dialog).click()
  await dialog.getByLabel(w.label, { exact: true }).fill('nightly')
  await dialog.getByLabel(w.verbs, { exact: true }).fill('list, read')
  await shots(page, `services-${lang}-token`, inspect)
  await button(w.make, dialog).click()
  const shown = dialog.locator('pre.cli', { hasText: 'nl_user_' })
  await shown.waitFor()
  const secret = /nl_user_[a-z2-7]+/.exec(await shown.textContent())[0]
  const self = JSON.parse(await agent.cliAs(secret, 'whoami', '-json'))
  assert.deepEqual([self.name, self.project, self.role], [`service+${project}+ci`, project, 'user'])
  await button(w.done, dialog).click()
  let used
  for (let tries = 0; !used && tries < 100; tries++) { // a second, and the log
    await new Promise((next) => setTimeout(next, 200))
    used = JSON.parse(await agent.cliAs(token, 'service-account', 'status', '-json', 'ci')).tokens[0].used_from
  }
  assert.equal(used, '127.0.0.1')
  await page.reload()
  await page.getByText(w.text).waitFor()
  await shots(page, `services-${lang}-list`, inspect)
  await button(w.tokensOf).click()
  await dialog.getByText('127.0.0.1').waitFor()
  await shots(page, `services-${lang}-tokens`, inspect)
  await button(w.revoke, dialog).click()
  await button(w.revoke, dialog).waitFor({ state: 'detached' })
  await agent.cliAs(secret, 'whoami').then(() => assert.fail('a revoked token is good'), () => {})
  await page.keyboard.press('Escape')
  await button(w.disableOf).click()
  await button(w.disable, dialog).click()
  await page.locator('main tbody').getByText(w.disabled, { exact: true }).waitFor()
  await button(w.deleteOf).click()
  await shots(page, `services-${lang}-delete`, inspect)
  await button(w.delete, dialog).click()
  await page.getByText(w.none).waitFor()
  await context.close()
}

// enters tries to sign in at the page with a token of a service account.
async function enters(browser, agent, admin, lang) {
  const secret = /nl_user_[a-z2-7]+/.exec(await agent.cliAs(admin, 'service-account', 'token', 'create', '-cluster', 'wall'))[0]
  const context = await browser.newContext({ ignoreHTTPSErrors: true, locale: lang === 'zh' ? 'zh-CN' : 'en-US' })
  const page = await context.newPage()
  await page.goto(agent.address + '/jobs')
  await page.getByLabel(words[lang].token, { exact: true }).fill(secret)
  await page.keyboard.press('Enter')
  await page.getByText(words[lang].refused).first().waitFor()
  await context.close()
}

export async function services(browser, binary, inspect) {
  const agent = await startAgent(binary)
  try {
    const admin = await agent.secret('admin', 'ada')
    await agent.cliAs(admin, 'service-account', 'create', '-cluster', 'wall')
    for (const lang of ['zh', 'en']) {
      const [user, project] = ['pat-' + lang, 'lab-' + lang]
      await agent.cli('user', 'create', '-member', project + ':project-admin', user)
      const token = /nl_user_[a-z2-7]+/.exec(await agent.cli('token', 'create', '-role', 'account', '-user', user))[0]
      await manages(browser, agent, token, lang, project, inspect)
      await enters(browser, agent, admin, lang)
    }
  } finally {
    await agent.stop()
  }
}
