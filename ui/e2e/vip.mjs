// An operator makes a VIP job on its own page: sees who works on the machines and
// what ending it would lose, asks the scheduler, submits, and the owner of what was
// stopped reads who did it and why; another owner is asked, declines and agrees; for page.mjs.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { cards, signedIn } from './views.mjs'
import { startAgent } from './agent.mjs'

const words = {
  en: { new: 'New', vip: 'New VIP job', none: /Choose the machines/, choice: /^What becomes of/, wait: 'wait for its jobs', kill: 'stop its jobs', check: 'What the scheduler would do', stopped: 'Stopped for it', waited: 'Waited for', file: 'Job file', stops: /It stops 1 job of zhang/, submit: 'Submit, and stop 1 job', only: 'Submit', saved: /checkpoint .* ago, step 400/, ended: /was ended at .* for a job of olga/, ask: 'ask their owners', asking: 'How owners are asked', message: 'Message to them', kill_silent: 'stop the job', asks: /olga asks whether this job may be stopped/, needs: 'Answer', agree: 'Agree', decline: 'Decline', declined: /zhang declined/, answers: 'What owners were asked', no: 'declined', yes: 'agreed', running: 'running' },
  zh: { new: '新建', vip: '新建 VIP 任务', none: /请选择机器/, choice: /^如何处理/, wait: '等其任务结束', kill: '停止其任务', check: '调度器将如何处理', stopped: '将被停止', waited: '等待其结束', file: '任务文件', stops: /将停止 zhang 的 1 个任务/, submit: '提交，并停止 1 个任务', only: '提交', saved: /前的检查点，第 400 步/, ended: /为 olga 的任务让出/, ask: '征询所有者', asking: '如何征询所有者', message: '给他们的留言', kill_silent: '停止该任务', asks: /olga 征询是否可以/, needs: '答复', agree: '同意', decline: '不同意', declined: /zhang 不同意/, answers: '对所有者的征询', no: '不同意', yes: '已同意', running: '运行中' },
}

const training = (name, binary) => `job "${name}" {
  time_limit = "2h"
  resources {
    cpu    = 0.05
    memory = "64MiB"
    device "test/card" {
      count = 4
    }
  }
  checkpoint {
    grace = "2s"
  }
  task {
    driver  = "exec"
    command = "sh -c 'echo x > saved; ${binary} checkpoint -step 400 saved; sleep 600'"
  }
}
`

// looks looks at the page in both lights, wide and on a phone.
async function looks(page, name, inspect) {
  for (const dark of [false, true]) {
    await page.emulateMedia({ colorScheme: dark ? 'dark' : 'light' })
    for (const width of [1440, 390]) {
      await page.setViewportSize({ width, height: 900 })
      await page.waitForTimeout(200)
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth > innerWidth), false, `the page is no wider than ${width} pixels`)
      await inspect(page, `${name}-${dark ? 'dark' : 'light'}-${width}`, true)
    }
  }
  await page.emulateMedia({ colorScheme: 'light' })
  await page.setViewportSize({ width: 1440, height: 900 })
}

// stops chooses a machine with the keyboard, reads what the scheduler would do, and
// does it; the page of the stopped job says who it was.
async function stops(browser, agent, binary, lang, inspect) {
  const w = words[lang]
  const name = 'train-' + lang
  const [operator, owner] = [await agent.secret('operator', 'olga'), await agent.secret('user', 'zhang')]
  const path = join(agent.place, name + '.hcl')
  writeFileSync(path, training(name, binary))
  await agent.cliAs(owner, 'job', 'run', '-detach', path)
  const { context, page } = await signedIn(browser, agent, operator, lang, '/')
  await page.locator('.new > summary', { hasText: w.new }).click()
  await page.getByRole('link', { name: w.vip }).click()
  await page.getByRole('heading', { name: w.vip }).waitFor()
  await page.locator('.truth', { hasText: w.none }).waitFor()
  await page.locator('.work', { hasText: name }).filter({ hasText: 'zhang' }).filter({ hasText: w.saved }).waitFor()
  await looks(page, `${lang}-vip-choose`, inspect)
  const submit = page.getByRole('button', { name: w.only, exact: true })
  assert.equal(await submit.isDisabled(), true, 'nothing is submitted without machines')

  // With the keyboard alone: the choice is a list, and the file follows it.
  const choice = page.getByRole('combobox', { name: w.choice })
  await choice.focus()
  await page.keyboard.press('ArrowDown')
  const check = page.getByRole('region', { name: w.check })
  await check.getByRole('heading', { name: w.waited }).waitFor()
  assert.equal(await choice.evaluate((one) => one.selectedOptions[0].text), w.wait)
  await choice.focus()
  await page.keyboard.press('ArrowDown')
  await page.getByRole('region', { name: w.asking }).waitFor()
  await choice.focus()
  await page.keyboard.press('ArrowDown')
  await check.getByRole('heading', { name: w.stopped }).waitFor()
  await page.locator('.truth', { hasText: w.stops }).waitFor()
  await check.getByRole('row', { name }).filter({ hasText: 'zhang' }).waitFor()
  assert.match(await page.getByRole('textbox', { name: w.file }).inputValue(), /vip \{[^}]*kill/, 'the choice stands in the file')
  await looks(page, `${lang}-vip-stops`, inspect)
  await check.getByRole('button', { name: w.submit }).click()
  await page.locator('.tag', { hasText: 'VIP' }).first().waitFor()

  // Whoever lost the machine reads for whom, and the name leads there or is one.
  const theirs = await signedIn(browser, agent, owner, lang, '/jobs/' + name)
  await theirs.page.locator('.note', { hasText: w.ended }).waitFor()
  await inspect(theirs.page, `${lang}-vip-victim`)
  await theirs.context.close()
  await context.close()
  await agent.cli('job', 'stop', 'vip')
  await agent.cli('job', 'stop', name)
}

// asks asks the owner, who declines and then agrees, each on their own pages.
async function asks(browser, agent, binary, lang, inspect) {
  const w = words[lang]
  const name = 'asked-' + lang
  const [operator, owner] = [await agent.secret('operator', 'olga'), await agent.secret('user', 'zhang')]
  const path = join(agent.place, name + '.hcl')
  writeFileSync(path, training(name, binary))
  await agent.cliAs(owner, 'job', 'run', '-detach', path)
  const { context, page } = await signedIn(browser, agent, operator, lang, '/vip')
  await page.locator('.work', { hasText: name }).waitFor()
  const choice = page.getByRole('combobox', { name: w.choice })
  await choice.selectOption(await choice.locator('option', { hasText: w.ask }).getAttribute('value'))
  const how = page.getByRole('region', { name: w.asking })
  await how.getByText('zhang').waitFor()
  await how.getByLabel(w.message).fill('the review is at three')
  await how.getByLabel(w.message).press('Enter')
  await how.getByRole('radio', { name: w.kill_silent }).check()
  await page.waitForFunction(() => /ask \{[^}]*silence = "kill"/.test(document.getElementById('jobfile').value) && /review is at three/.test(document.getElementById('jobfile').value))
  const check = page.getByRole('region', { name: w.check })
  await check.getByRole('heading', { name: w.waited }).waitFor() // nobody is stopped without a word
  await looks(page, `${lang}-vip-asks`, inspect)
  await check.getByRole('button', { name: w.only, exact: true }).click()
  const answers = page.getByRole('region', { name: w.answers })
  await answers.getByRole('row', { name }).waitFor()

  const theirs = await signedIn(browser, agent, owner, lang, '/')
  await theirs.page.locator('.need', { hasText: name }).getByRole('link', { name: w.needs, exact: true }).click()
  const note = theirs.page.locator('.note', { hasText: w.asks })
  await note.getByText('the review is at three').waitFor()
  await looks(theirs.page, `${lang}-vip-asked`, inspect)
  await note.getByRole('button', { name: w.decline, exact: true }).click()
  await theirs.page.getByRole('dialog').locator('.cli', { hasText: 'nomadlike job consent -to vip ' + name + ' no' }).waitFor()
  await theirs.page.getByRole('dialog').getByRole('button', { name: w.decline, exact: true }).click()
  await theirs.page.locator('.note', { hasText: w.declined }).waitFor()
  await answers.getByRole('row', { name }).filter({ hasText: w.no }).waitFor() // live on the other side
  await theirs.page.getByRole('button', { name: w.agree, exact: true }).click()
  await inspect(theirs.page, `${lang}-vip-agree`)
  await theirs.page.getByRole('dialog').getByRole('button', { name: w.agree, exact: true }).click()
  await page.locator('.tag.state-running').first().waitFor()
  await answers.getByRole('row', { name }).filter({ hasText: w.yes }).waitFor()
  await inspect(page, `${lang}-vip-answered`)
  await theirs.context.close()
  await context.close()
  await agent.cli('job', 'stop', 'vip')
  await agent.cli('job', 'stop', name)
}

export async function vip(browser, binary, inspect) {
  const agent = await startAgent(binary, cards)
  try {
    for (const lang of ['en', 'zh']) {
      await stops(browser, agent, resolve(binary), lang, inspect)
      await asks(browser, agent, resolve(binary), lang, inspect)
    }
  } finally {
    await agent.stop()
  }
}
