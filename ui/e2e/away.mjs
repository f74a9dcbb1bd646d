// What an open page does while the agent behind it is away: killed and started
// anew, frozen, or cut off. Its content stays and says how old it is, the header
// says nothing of "live", what was typed is there, and the page goes on by
// itself, with the same person signed in; for page.mjs.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { startAgent, visit } from './agent.mjs'

const patience = 60_000
const words = {
  en: { token: 'Token', signIn: 'Sign in', away: /No answer since \d\d:\d\d:\d\d/, file: 'Job file', jobs: 'Jobs', live: 'live', logs: 'Logs' },
  zh: { token: '令牌', signIn: '登录', away: /自 \d\d:\d\d:\d\d 起没有应答/, file: '任务文件', jobs: '任务', live: '实时', logs: '日志' },
}
const jobFile = (name) => `job "${name}" {
  resources {
    cpu    = 0.05
    memory = "32MiB"
  }
  task {
    driver  = "exec"
    command = "bash -c 'i=0; while true; do i=$((i+1)); echo tick-$i; sleep 1; done'"
  }
}
`

// cable leads to the agent until it is pulled: then nothing passes, and nothing
// says so.
async function cable(port) {
  const ends = new Set()
  let pulled = false
  const server = createServer((near) => {
    const far = connect(port, '127.0.0.1')
    for (const [one, other] of [[near, far], [far, near]]) {
      ends.add(one)
      one.on('error', () => other.destroy())
      one.on('close', () => { ends.delete(one); other.destroy() })
      one.on('data', (data) => other.write(data))
      if (pulled) one.pause()
    }
  })
  await new Promise((done) => server.listen(0, '127.0.0.1', done))
  return {
    address: `https://127.0.0.1:${server.address().port}`,
    pull: (is) => {
      pulled = is
      for (const end of ends) is ? end.pause() : end.resume()
    },
    close: () => {
      for (const end of ends) end.destroy()
      server.close()
    },
  }
}

// away follows one person through all of it.
export async function away(browser, binary, lang, inspect) {
  const w = words[lang]
  const agent = await startAgent(binary, '', true)
  const line = await cable(new URL(agent.address).port)
  try {
    const token = await agent.secret('user', 'ann')
    const context = await browser.newContext({ ignoreHTTPSErrors: true, locale: lang === 'zh' ? 'zh-CN' : 'en-US', viewport: { width: 1440, height: 900 }, reducedMotion: 'reduce' })
    const page = await context.newPage()
    page.setDefaultTimeout(patience)
    await visit(page, line.address + '/jobs')
    await page.getByLabel(w.token, { exact: true }).fill(token)
    await page.getByRole('button', { name: w.signIn }).click()
    const submit = async (name) => {
      writeFileSync(join(agent.place, name + '.hcl'), jobFile(name))
      await agent.cli('job', 'run', '-detach', join(agent.place, name + '.hcl'))
    }
    const live = page.locator('.top .live:not(.connecting)')
    const lost = async (content) => {
      await page.locator('.away', { hasText: w.away }).waitFor()
      assert.equal(await live.count(), 0, 'the header says live while nothing is heard')
      await content.waitFor() // what was there is still there
      assert.equal(await page.locator('[role=alert]').count(), 0, 'no box in the place of the content')
    }
    const back = async () => {
      await live.waitFor()
      await page.locator('.away').waitFor({ state: 'detached' })
      assert.equal(await page.getByLabel(w.token, { exact: true }).count(), 0, 'nobody is asked to sign in again')
    }

    await submit('before')
    const before = page.getByRole('link', { name: 'before', exact: true })
    await before.waitFor()

    // A second tab holds what somebody types.
    const draft = await context.newPage()
    draft.setDefaultTimeout(patience)
    await visit(draft, line.address + '/jobs/new')
    await draft.getByRole('textbox', { name: w.file }).fill(jobFile('typed-for-an-hour'))

    await agent.signal('SIGKILL')
    await lost(before)
    await inspect(page, `away-${lang}-killed`)
    await page.waitForTimeout(6000) // as long as it was tried
    await agent.launch()
    await back()
    await submit('after-kill') // and it is heard of
    await page.getByRole('link', { name: 'after-kill', exact: true }).waitFor()
    await draft.locator('.top .live:not(.connecting)').waitFor()
    assert.ok((await draft.getByRole('textbox', { name: w.file }).inputValue()).includes('typed-for-an-hour'), 'the typed file is there')
    await draft.close()
    const again = await context.newPage()
    again.setDefaultTimeout(patience)
    await visit(again, line.address + '/jobs/new')
    await again.getByRole('textbox', { name: w.file }).waitFor()
    assert.ok((await again.getByRole('textbox', { name: w.file }).inputValue()).includes('typed-for-an-hour'), 'also in a new tab')
    await again.close()

    // Logs go on where they were.
    await page.getByRole('link', { name: 'after-kill', exact: true }).click()
    await page.getByRole('tab', { name: w.logs }).click()
    // The overview, which is there for a moment more, shows last lines too.
    const tick = page.getByRole('log').getByText(/^(\d\d:\d\d:\d\d\s*)?tick-1$/)
    await tick.waitFor()

    await agent.signal('SIGSTOP')
    await lost(tick)
    await inspect(page, `away-${lang}-frozen`)
    await agent.signal('SIGCONT')
    await back()
    const ticks = () => page.evaluate(() => Math.max(...[...document.querySelectorAll('.logs div')].map((line) => Number(/tick-(\d+)/.exec(line.textContent)?.[1] ?? 0))))
    const last = await ticks()
    await page.waitForFunction((last) => [...document.querySelectorAll('.logs div')].some((line) => Number(/tick-(\d+)/.exec(line.textContent)?.[1] ?? 0) > last + 2), last)
    assert.equal(await tick.count(), 1, 'no line stands twice')

    // Cut off: no packet passes, and nobody is told.
    line.pull(true)
    await lost(tick)
    line.pull(false)
    await back()
    await context.close()
  } finally {
    line.close()
    await agent.signal('SIGCONT')
    // Tasks outlive a lasting agent: they end before it does.
    for (const name of ['before', 'after-kill']) await agent.cli('job', 'stop', name).catch(() => {})
    await agent.stop()
  }
}
