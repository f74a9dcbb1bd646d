// An operator plans a window of maintenance on the page of the queue, sees it on the
// timeline, and takes it back; for page.mjs.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { signedIn } from './views.mjs'

const words = {
  en: { add: 'Plan maintenance', which: 'Nodes, or pool:NAME, or * for all', reason: 'Reason', remove: 'Remove', region: 'Maintenance windows', none: 'None is planned', timeline: 'Timeline of the nodes', all: 'all nodes', empty: 'Nothing waits', one: /^1 waits; the first/ },
  zh: { add: '计划维护', which: '节点，或 pool:资源池，或 * 表示全部', reason: '原因', remove: '删除', region: '维护窗口', none: '没有计划', timeline: '节点时间线', all: '全部节点', empty: '没有等待的任务', one: /最早的/ },
}

export async function maintenance(browser, agent, token, inspect) {
  for (const lang of ['en', 'zh']) {
    const w = words[lang]
    const { context, page } = await signedIn(browser, agent, token, lang, '/queue')
    const region = page.getByRole('region', { name: w.region })
    await region.getByText(w.none).waitFor()
    await region.getByRole('button', { name: w.add }).click()
    const dialog = page.getByRole('dialog', { name: w.add })
    await dialog.getByLabel(w.which).fill('nobody-here')
    await dialog.getByRole('button', { name: w.add }).click()
    await dialog.getByRole('alert').filter({ hasText: 'nobody-here' }).waitFor()
    await dialog.getByLabel(w.which).fill('*')
    await dialog.getByLabel(w.reason).fill('firmware')
    await dialog.locator('.cli', { hasText: 'nomadlike maintenance add -all -start' }).waitFor()
    await inspect(page, `${lang}-maintenance-add`)
    await dialog.getByRole('button', { name: w.add }).click()
    await dialog.waitFor({ state: 'detached' })
    await region.getByText(w.all).waitFor()
    await page.locator('.legend .hatch').waitFor()
    // A job that could run into it waits, and says why.
    const path = join(agent.place, `could-${lang}.hcl`)
    writeFileSync(path, `job "could-${lang}" {\n  resources {\n    cpu    = 0.01\n    memory = "16MiB"\n  }\n  task { command = "sleep 600" }\n}\n`)
    await agent.cli('job', 'run', '-detach', path)
    await page.locator('tr.row', { hasText: 'firmware' }).filter({ hasText: 'could-' + lang }).waitFor()
    for (const dark of [false, true]) {
      await page.emulateMedia({ colorScheme: dark ? 'dark' : 'light' })
      for (const width of [1440, 390]) {
        await page.setViewportSize({ width, height: 900 })
        await page.waitForTimeout(200)
        assert.equal(await page.evaluate(() => document.documentElement.scrollWidth > innerWidth), false, `the queue is no wider than ${width} pixels`)
        await inspect(page, `${lang}-${dark ? 'dark' : 'light'}-queue-${width}`)
      }
    }
    await page.setViewportSize({ width: 1440, height: 900 })
    await region.getByRole('button', { name: w.remove }).click()
    await page.getByRole('dialog').locator('.cli', { hasText: 'nomadlike maintenance end' }).waitFor()
    await page.getByRole('dialog').getByRole('button', { name: w.remove }).click()
    await region.getByText(w.none).waitFor()
    await agent.cli('job', 'stop', 'could-' + lang)
    await page.getByRole('heading', { name: w.empty }).waitFor()
    await context.close()
  }
}
