// What somebody is told, on the pages: a job fails, the message stands there and leads to
// it, and what is ticked is what the server tells from then on; for page.mjs.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startAgent } from './agent.mjs'
import { signedIn } from './views.mjs'

const words = {
  en: { told: 'Notifications', failed: /^Job .*fails-en/, unread: '1 new notification', error: 'ValueError: boom', bell: 'this page', succeeds: 'A job succeeds', quiet: /^Quiet hours/, save: 'Save', saved: 'Saved', make: 'Make a channel', none: /has allowed no hosts/ },
  zh: { told: '通知', failed: /fails-zh/, unread: '1 条新通知', error: 'ValueError: boom', bell: '本页', succeeds: '任务成功', quiet: /^免打扰/, save: '保存', saved: '已保存', make: '新建通道', none: /尚未允许任何主机/ },
}

const file = (name) => `job "${name}" {
  resources {
    cpu    = 0.05
    memory = "32MiB"
  }
  task {
    driver  = "exec"
    command = "sh -c 'echo ValueError: boom >&2; exit 3'"
  }
}
`

async function round(browser, agent, lang, user, token, inspect) {
  const w = words[lang]
  const path = join(agent.place, user + '.hcl')
  writeFileSync(path, file('fails-' + lang))
  await agent.cliAs(token, 'job', 'run', '-detach', path)
  for (let tries = 0; JSON.parse(await agent.cliAs(token, 'notify', 'list', '-json')).unseen !== 1; tries++) {
    assert.ok(tries < 100, 'nobody was told')
    await new Promise((done) => setTimeout(done, 100))
  }
  const { context, page } = await signedIn(browser, agent, token, lang, '/jobs')
  await page.getByRole('link', { name: w.unread }).waitFor()
  await inspect(page, `told-${lang}-unread`)
  await page.locator('summary', { hasText: user }).click()
  await page.getByRole('link', { name: w.told, exact: true }).click()
  await page.locator('main h1', { hasText: w.told }).waitFor()
  await page.locator('main a strong', { hasText: w.failed }).waitFor()
  await page.locator('main pre', { hasText: w.error }).waitFor()
  await inspect(page, `told-${lang}`, true)
  await page.emulateMedia({ colorScheme: 'dark' })
  await inspect(page, `told-${lang}-dark`)
  await page.emulateMedia({ colorScheme: 'light' })
  await page.setViewportSize({ width: 390, height: 844 })
  const wide = await page.evaluate(() => document.documentElement.scrollWidth)
  await inspect(page, `told-${lang}-phone`)
  await page.setViewportSize({ width: 1440, height: 900 })
  assert.equal(wide, 390, 'wider than a phone')

  await page.getByRole('checkbox', { name: `${w.succeeds}: ${w.bell}` }).check()
  await page.getByRole('checkbox', { name: w.quiet }).check()
  await page.getByRole('button', { name: w.save, exact: true }).click()
  await page.getByRole('status').filter({ hasText: w.saved }).waitFor()
  const status = JSON.parse(await agent.cliAs(token, 'notify', 'status', '-json'))
  assert.ok(status.chosen && status.on.some(({ kind, channels }) => kind === 'succeeded' && channels.includes('bell')), JSON.stringify(status))
  assert.deepEqual([status.quiet.from, status.quiet.to], [22 * 60, 8 * 60])

  await page.getByRole('button', { name: w.make }).click()
  await page.getByRole('dialog').getByText(w.none).waitFor()
  await inspect(page, `told-${lang}-channel`)
  await page.keyboard.press('Escape')
  const seen = JSON.parse(await agent.cliAs(token, 'notify', 'list', '-json'))
  assert.equal(seen.unseen, 0, 'what was shown is seen')
  await page.locator('main li a', { hasText: w.failed }).click()
  await page.getByRole('heading', { name: 'fails-' + lang, exact: true }).waitFor()
  await context.close()
}

export async function told(browser, binary, inspect) {
  const agent = await startAgent(binary)
  try {
    for (const lang of ['zh', 'en']) {
      const user = 'ann-' + lang
      await agent.cli('user', 'create', '-member', 'default', user)
      const token = /nl_user_[a-z2-7]+/.exec(await agent.cli('token', 'create', '-role', 'account', '-user', user))[0]
      await round(browser, agent, lang, user, token, inspect)
    }
  } finally {
    await agent.stop()
  }
}
