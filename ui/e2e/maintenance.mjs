// An operator plans a window of maintenance on the page of the queue, sees it on the
// timeline, and takes it back; for page.mjs.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { signedIn } from './views.mjs'

const words = {
  en: { add: 'Plan maintenance', which: 'Nodes, or pool:NAME, or * for all', reason: 'Reason', remove: 'Remove', region: 'Maintenance windows', none: 'None is planned', timeline: 'Timeline of the nodes', all: 'all nodes', whatIf: 'What if…', change: 'Change', submit: 'submit more like a job', quota: 'change a quota', job: 'Name', project: 'Project', counts: 'What counts', most: 'At most', many: 'How many', try: 'Try', never: 'Never in this cluster', starts: /about|between/i, empty: 'Nothing waits', one: /^1 waits; the first/ },
  zh: { add: '计划维护', which: '节点，或 pool:资源池，或 * 表示全部', reason: '原因', remove: '删除', region: '维护窗口', none: '没有计划', timeline: '节点时间线', all: '全部节点', whatIf: '假如……', change: '改动', submit: '再提交同样的任务', quota: '修改配额', job: '名称', project: '项目', counts: '计量对象', most: '上限', many: '数量', try: '试试', never: '在本集群中无法开始', starts: /约|之间/, empty: '没有等待的任务', one: /最早的/ },
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
    await whatIf(page, w, lang)
    for (const dark of [false, true]) {
      await page.emulateMedia({ colorScheme: dark ? 'dark' : 'light' })
      for (const width of [1440, 390]) {
        await page.setViewportSize({ width, height: 900 })
        await page.waitForTimeout(200)
        assert.equal(await page.evaluate(() => document.documentElement.scrollWidth > innerWidth), false, `the queue is no wider than ${width} pixels`)
        await inspect(page, `${lang}-${dark ? 'dark' : 'light'}-queue-${width}`, true)
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

// whatIf tries more jobs like one that waits for the end of the window, whose times are
// known, and a quota with which none of them starts.
async function whatIf(page, w, lang) {
  const region = page.getByRole('region', { name: w.whatIf })
  const choose = async (label, value) => region.getByLabel(label, { exact: true }).selectOption({ label: value })
  await choose(w.change, w.submit)
  await choose(w.job, 'could-' + lang)
  await region.getByLabel(w.many, { exact: true }).fill('3')
  await region.getByLabel(w.many, { exact: true }).blur()
  await region.getByRole('button', { name: w.try }).click()
  await region.locator('.cli', { hasText: `nomadlike queue try -clone could-${lang}=3` }).waitFor()
  await region.locator('tbody tr', { hasText: 'could-' + lang }).nth(2).waitFor()
  assert.equal(await region.locator('tbody tr', { hasText: w.never }).count(), 0, 'what waits for the window starts at its end')
  await choose(w.change, w.quota)
  await choose(w.project, 'default')
  await choose(w.counts, 'cpu')
  await region.getByLabel(w.most, { exact: true }).fill('0')
  await region.getByLabel(w.most, { exact: true }).blur()
  await region.getByRole('button', { name: w.try }).click()
  await region.locator('.cli', { hasText: '-quota default=cpu:0' }).waitFor()
  await region.locator('tbody tr', { hasText: w.never }).nth(3).waitFor()
}
