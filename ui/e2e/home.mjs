// What somebody sees who opens the pages, against a real agent with eight cards: a
// job that runs, one that waits for its cards, one that failed and one that can never
// start; the rail and its counts, the keys that every page has; for page.mjs.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startAgent } from './agent.mjs'
import { cards, signedIn } from './views.mjs'

const words = {
  en: { home: 'Home', running: '1 running, 2 waiting.', needs: '2 need you.', failed: 'failed', lines: 'Last lines', queue: 'Queue', menu: 'Pages', cards: 'Cards', keys: 'Keys', free: '2 free', lesson: 'Your jobs are listed here', none: '0 running, 0 waiting.', ends: 'Probably ends', could: 'Could start now', stop: 'Stop', setting: 'setting, in the reference', guides: 'Guides', new: 'New', batch: 'Batch or sweep' },
  zh: { home: '首页', running: '1 个运行中，2 个排队中。', needs: '2 个需要您处理。', failed: '错误', lines: '查看末尾日志', queue: '队列', menu: '页面', cards: '加速卡', keys: '快捷键', free: '空闲 2', lesson: '这里会列出您的任务', none: '0 个运行中，0 个排队中。', ends: '预计', could: '现在可启动', stop: '停止', setting: '设置（参考手册）', guides: '指南', new: '新建', batch: '批量任务或参数搜索' },
}
const file = (name, count, command) => `job "${name}" {
  time_limit       = "4h"
  expected_runtime = "3h"
  resources {
    cpu    = 0.05
    memory = "32MiB"
    device "test/card" {
      count = ${count}
    }
  }
  task { command = "${command}" }
}
`

async function submit(agent, token, name, count, command) {
  const path = join(agent.place, name + '.hcl')
  writeFileSync(path, file(name, count, command))
  await agent.cliAs(token, 'job', 'run', '-detach', path)
}

// shifted is how far the page has moved under its reader since it was opened.
const shifted = (page) => page.evaluate(() => globalThis.shifted ?? 0)
const watchShifts = () => new PerformanceObserver((list) => { for (const one of list.getEntries()) if (!one.hadRecentInput) globalThis.shifted = (globalThis.shifted ?? 0) + one.value }).observe({ type: 'layout-shift', buffered: true })

export async function home(browser, binary, inspect) {
  const agent = await startAgent(binary, cards)
  try {
    const token = await agent.secret('admin', 'ada')
    const empty = await signedIn(browser, agent, token, 'en', '/')
    await empty.page.getByRole('heading', { name: words.en.none }).waitFor()
    await empty.page.getByText(words.en.lesson).waitFor()
    await inspect(empty.page, 'home-empty')
    await empty.context.close()

    await submit(agent, token, 'breaks', 1, "bash -c 'echo no such batch >&2; exit 3'")
    await submit(agent, token, 'trains', 6, "bash -c 'for i in 1 2 3 4 5; do echo step=$i loss=$((9 - i)).5; done; sleep 600'")
    await submit(agent, token, 'waits', 4, 'sleep 600')
    await submit(agent, token, 'never', 9, 'sleep 600')
    for (const lang of ['en', 'zh']) {
      const { page, context } = await signedIn(browser, agent, token, lang, '/')
      const w = words[lang]
      await page.getByRole('heading', { name: w.running }).waitFor()
      await page.getByRole('heading', { name: w.needs }).waitFor()
      await page.locator('.jobrow', { hasText: 'trains' }).locator('.state-running').waitFor()
      await page.locator('.load svg').waitFor()
      const trend = page.locator('.jobrow', { hasText: 'trains' }).locator('.trend')
      await trend.getByText('loss 4.5').waitFor()
      await trend.locator('svg.spark').waitFor()
      // The page, the command line and the API say the same: all three read one answer.
      const told = JSON.parse(await agent.cliAs(token, 'outlook', '-json'))
      const now = (series) => series[told.now]
      assert.equal(now(told.all.used), 6, 'six cards are used')
      assert.equal(now(told.all.total), 8)
      assert.equal(told.could_start.length, 1, 'one model of cards')
      const [start] = told.could_start
      await page.getByRole('region', { name: w.could }).locator('.big', { hasText: new RegExp(`^${start.most} `) }).waitFor()
      assert.match(await page.locator('.load svg').getAttribute('aria-label'), /6/)
      await page.locator('.need', { hasText: 'breaks' }).getByRole('link', { name: w.lines }).waitFor()
      const rail = page.getByRole('navigation', { name: w.menu })
      await rail.getByText(w.free).waitFor()
      for (const dark of [false, true]) {
        await page.emulateMedia({ colorScheme: dark ? 'dark' : 'light' })
        for (const width of [1440, 1024, 390]) {
          await page.setViewportSize({ width, height: 900 })
          await page.waitForTimeout(200)
          assert.equal(await page.evaluate(() => document.documentElement.scrollWidth > innerWidth), false, `home is no wider than ${width} pixels`)
          await inspect(page, `${lang}-${dark ? 'dark' : 'light'}-home-${width}`)
        }
      }
      // On a phone the rail is a sheet.
      await page.getByRole('button', { name: w.menu }).click()
      await rail.waitFor()
      await inspect(page, `${lang}-dark-rail-390`)
      await page.keyboard.press('Escape')
      await rail.waitFor({ state: 'hidden' })
      await page.setViewportSize({ width: 1440, height: 900 })

      // Keys work on every page.
      await page.keyboard.press('g')
      await page.keyboard.press('q')
      await page.waitForFunction((title) => document.title.startsWith(title), w.queue)
      await page.keyboard.press('?')
      await page.getByRole('dialog', { name: w.keys }).waitFor()
      await inspect(page, `${lang}-keys`)
      await page.keyboard.press('Escape')
      await page.keyboard.press('g')
      await page.keyboard.press('h')
      await page.getByRole('heading', { name: w.running }).waitFor()

      // The palette finds what may be done to a job, a setting and a page of the guides.
      await page.keyboard.press('Control+k')
      await page.getByRole('combobox').fill(`${w.stop} trains`)
      await page.getByRole('option', { name: `${w.stop} trains` }).waitFor()
      await inspect(page, `${lang}-palette-deeds`)
      await page.getByRole('option', { name: `${w.stop} trains` }).click()
      await page.getByRole('dialog', { name: `${w.stop} · trains` }).waitFor()
      await inspect(page, `${lang}-palette-stop`)
      await page.keyboard.press('Escape')
      await page.keyboard.press('Control+k')
      await page.getByRole('combobox').fill('time_limit')
      await page.getByRole('option', { name: w.setting }).first().waitFor()
      await page.getByRole('option', { name: w.guides }).first().waitFor()
      await page.keyboard.press('Escape')

      // A batch begins with a file of its own, which the server takes.
      await page.getByRole('button', { name: w.new }).or(page.locator('.top .new > summary')).first().click()
      await page.getByRole('link', { name: w.batch }).click()
      await page.locator('#jobfile').waitFor()
      assert.match(await page.locator('#jobfile').inputValue(), /batch \{/)
      await page.locator('.verdict:not(.tone-bad)').first().waitFor()
      await page.locator('details.card > summary').first().click()
      await inspect(page, `${lang}-batch`)
      const help = page.locator('.entry').first()
      assert.match(await help.getAttribute('href'), new RegExp(`^/docs/${lang}/reference/job-file#job.label$`))
      assert.equal((await page.request.get(agent.address + (await help.getAttribute('href')))).status(), 200)
      await page.goto(agent.address + '/')

      // A job says when it ends, and its timeline goes on hatched until then.
      await page.locator('.jobrow').getByRole('link', { name: 'trains' }).click()
      await page.locator('.truth', { hasText: w.ends }).waitFor()
      await page.locator('.strip .seg-foreseen').waitFor()
      await inspect(page, `${lang}-job-ends`)
      await page.goBack()
      await page.getByRole('heading', { name: w.running }).waitFor()

      // The page does not move while it comes.
      await page.addInitScript(watchShifts)
      await page.reload()
      await page.locator('.load svg').waitFor()
      await page.locator('.wall canvas').waitFor()
      await page.waitForTimeout(500)
      const moved = await shifted(page)
      assert.ok(moved <= 0.02, `home moves by ${moved} while it comes`)
      await context.close()
    }
    for (const name of ['trains', 'waits', 'never']) await agent.cli('job', 'stop', name)
  } finally {
    await agent.stop()
  }
}
