// The guides that the agent serves: without sign-in, in both languages, with a
// search that finds the page that a person means first.
import assert from 'node:assert/strict'
import { startAgent, visit } from './agent.mjs'

// What people look for, and the page that has to stand first.
const wanted = {
  en: { queue: 'queue', 'resume checkpoint': 'checkpoints', 'first cluster': 'first-cluster', quota: 'queue', containers: 'docker', slurm: 'from-slurm', sweep: 'day', 'nvidia driver': 'first-gpu' },
  zh: { 检查点: 'checkpoints', 断点续训: 'checkpoints', 队列: 'queue', 第一个集群: 'first-cluster', 安全: 'security', 昇腾: 'first-npu', 扫参: 'day' },
}

export async function guides(browser, binary, inspect) {
  const agent = await startAgent(binary)
  try {
    for (const language of ['en', 'zh']) {
      const dark = language === 'zh'
      const context = await browser.newContext({ ignoreHTTPSErrors: true, locale: language === 'zh' ? 'zh-CN' : 'en-US', colorScheme: dark ? 'dark' : 'light', viewport: { width: 1440, height: 900 }, reducedMotion: 'reduce', permissions: ['clipboard-read', 'clipboard-write'] })
      const page = await context.newPage()
      page.setDefaultTimeout(60_000)
      const complaints = []
      page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()))
      page.on('pageerror', (error) => complaints.push(String(error)))

      await visit(page, agent.address + '/docs')
      await page.waitForURL(`**/docs/${language}/`)
      assert.equal(await page.getAttribute('html', 'lang'), language === 'zh' ? 'zh-CN' : 'en')
      await inspect(page, `guides-${language}`)
      const field = page.getByRole('searchbox')
      for (const [query, first] of Object.entries(wanted[language])) {
        await field.fill(query)
        const found = page.locator('#found a').first()
        await found.waitFor()
        await page.waitForFunction(([q, want]) => {
          const link = document.querySelector('#found a')
          return document.querySelector('.search input').value === q && link && new URL(link.href).pathname.endsWith('/' + want)
        }, [query, first]).catch(async () => assert.fail(`"${query}" finds ${await found.getAttribute('href')} first, not ${first}`))
      }
      await field.fill('zzzzqqqq')
      await page.locator('#found p').waitFor()
      await field.fill(Object.keys(wanted[language])[0])
      await page.locator('#found a').first().waitFor()
      await field.press('Enter')
      await page.waitForURL(`**/docs/${language}/${Object.values(wanted[language])[0]}*`)
      await inspect(page, `guides-${language}-found`)

      await visit(page, `${agent.address}/docs/${language}/first-cluster`)
      const block = page.locator('.block').first()
      await block.getByRole('button').click()
      const copied = await page.evaluate(() => navigator.clipboard.readText())
      assert.equal(copied, (await block.locator('pre').textContent()).replace(/^\$ /gm, ''), 'what the button copies')
      await page.setViewportSize({ width: 390, height: 844 })
      await page.reload()
      await inspect(page, `guides-${language}-phone`)
      const wide = await page.evaluate(() => document.documentElement.scrollWidth)
      assert.ok(wide <= 390, `the page is ${wide} wide on a phone`)
      await page.setViewportSize({ width: 1440, height: 900 })
      await page.locator('[data-dark]').click()
      assert.equal(await page.getAttribute('html', 'data-theme'), dark ? 'light' : 'dark')
      await inspect(page, `guides-${language}-other`)
      // A drawing stands in its page, and fits a phone by scrolling within itself.
      await visit(page, `${agent.address}/docs/${language}/gang`)
      assert.notEqual(await page.locator('.picture .run').first().evaluate((box) => getComputedStyle(box).fill), 'rgb(0, 0, 0)', 'a drawing has its colours')
      await inspect(page, `guides-${language}-picture`)
      await page.setViewportSize({ width: 390, height: 844 })
      assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 390, 'a drawing makes the page no wider')
      await page.setViewportSize({ width: 1440, height: 900 })
      await visit(page, `${agent.address}/docs/${language}/reference/errors#rpctimeout`)
      await page.locator('#rpctimeout').waitFor()
      await page.getByRole('link', { name: language === 'zh' ? 'English' : '中文' }).click()
      await page.waitForURL(`**/docs/${language === 'zh' ? 'en' : 'zh'}/reference/errors`)
      assert.deepEqual(complaints, [], 'what the browser complains of')
      await context.close()
    }
    // The search of the cluster's own pages finds guides, too.
    const context = await browser.newContext({ ignoreHTTPSErrors: true, locale: 'en-US', viewport: { width: 1440, height: 900 } })
    const page = await context.newPage()
    page.setDefaultTimeout(60_000)
    await visit(page, agent.address + '/jobs')
    await page.getByRole('link', { name: 'Guides' }).waitFor() // nobody is signed in yet
    await page.getByLabel('Token', { exact: true }).fill(await agent.secret('admin', 'ada'))
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('navigation').getByRole('link', { name: 'Guides' }).waitFor()
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox', { name: 'Go to or do' }).fill('resume checkpoint')
    const option = page.getByRole('option', { name: /Checkpoints/ }).first()
    await option.waitFor()
    await inspect(page, 'guides-palette')
    await option.click()
    await page.waitForURL('**/docs/en/checkpoints*')

    // What a job file lacks leads to what the guides say of it.
    await visit(page, agent.address + '/jobs/new')
    await page.getByRole('textbox', { name: 'Job file' }).fill('job "x" {\n  nodes = 2\n  resources {\n    cpu = 0.1\n    memory = "1KiB"\n  }\n  distributed "pytorch" {}\n  task {\n    command = "true"\n    driver = "dokcer"\n  }\n}\n')
    await page.locator('#problems li').first().waitFor()
    const links = await page.locator('#problems a.guide').all()
    assert.ok(links.length > 0, 'a problem with a cure has its link')
    for (const link of links) {
      const [, anchor] = (await link.getAttribute('href')).split('#')
      const text = await (await page.request.get(agent.address + '/docs/en/reference/errors')).text()
      assert.ok(text.includes(`id="${anchor}"`), `the guides know ${anchor}`)
    }
    await context.close()
  } finally {
    await agent.stop()
  }
}
