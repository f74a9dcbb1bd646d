// A person makes a job without ever touching its file: what it is, where it runs and
// on what, what it does when something fails; for page.mjs.
import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startAgent, visit } from './agent.mjs'
import { cards, signedIn } from './views.mjs'

const words = {
  en: { what: 'What it is', name: 'Name', category: 'Category', training: 'training', limit: 'Time limit', none: 'No cards', command: 'Command', add: 'Add a variable', fails: 'When something fails', again: 'After a failure', restart: 'restart (from the beginning)', most: 'Restarts at most', more: 'More', hook: 'Add a script', file: 'Job file', submit: 'Submit', starts: 'Starts now', secret: 'secret', tags: 'Tags', begin: 'Start from', back: 'Back to what was there', one: 'one node', save: 'Save as template', keep: 'Save', about: 'Description', mine: 'me alone', saved: 'Saved templates', remove: 'Remove ours-en', drop: 'Remove', empty: 'No template was saved yet' },
  zh: { what: '基本信息', name: '名称', category: '分类', training: '训练', limit: '使用时长', none: '不用加速卡', command: '启动命令', add: '添加变量', fails: '出错时', again: '失败之后', restart: '故障重启', most: '最大重启次数', more: '更多', hook: '添加脚本', file: '任务文件', submit: '提交', starts: '立即开始', secret: '密钥', tags: '标签', begin: '从模板开始', back: '恢复原内容', one: '单机', save: '另存为模板', keep: '保存', about: '描述', mine: '仅自己', only: '（仅自己）', saved: '已存模板', remove: '删除 ours-zh', drop: '删除', empty: '还没有保存的模板' },
}

// put types into a field and confirms it, and waits until the file says so.
async function put(page, field, value, said) {
  await field.fill(value)
  await field.press('Enter')
  await says(page, said)
}

const says = (page, said) => page.waitForFunction((text) => document.getElementById('jobfile').value.replace(/ +/g, ' ').includes(text), said)

async function fills(browser, agent, token, lang, inspect) {
  const w = words[lang]
  const { context, page } = await signedIn(browser, agent, token, lang, '/jobs/new')
  const complaints = []
  page.on('console', (message) => message.type() === 'error' && !/status of 40[01]/.test(message.text()) && complaints.push(message.text()))
  page.on('pageerror', (error) => complaints.push(String(error)))
  const form = page.locator('.filling')
  const part = (name) => form.locator('.card', { has: page.getByRole('heading', { name, exact: true }) })
  const name = 'filled-' + lang
  await page.locator('.verdict', { hasText: w.starts }).waitFor()

  await put(page, part(w.what).getByLabel(w.name, { exact: true }), name, `job "${name}"`)
  await part(w.what).getByLabel(w.category, { exact: true }).selectOption({ label: w.training })
  await says(page, 'category = "training"')
  await put(page, part(w.what).getByLabel(w.limit, { exact: true }), '1h', 'time_limit = "1h"')
  await put(page, part(w.what).getByLabel(w.tags, { exact: true }), 'paper-3, first', 'tags = ["paper-3", "first"]')

  // A card of the cluster is taken by its row, and given back.
  await page.getByRole('radio', { name: 'T800 test/card' }).click()
  await says(page, 'device "test/card" {')
  await page.getByRole('radio', { name: w.none }).click()
  await page.waitForFunction(() => !document.getElementById('jobfile').value.includes('device'))

  await page.getByLabel(w.command, { exact: true }).first().fill('sh -c \'echo "$GREETING with $TOKEN"; ls /workspace/dataset/private 2>/dev/null; cat "$NOMADLIKE_TASK_DIR"/x 2>/dev/null; true\'')
  await page.getByLabel(w.command, { exact: true }).first().blur()
  await says(page, 'GREETING with')
  await put(page, page.getByLabel(w.add, { exact: true }), 'GREETING=hello from the form', 'GREETING = "hello from the form"')
  await put(page, page.getByLabel(w.add, { exact: true }), 'TOKEN=', 'TOKEN = ""')
  await page.getByLabel(lang === 'zh' ? 'TOKEN 的种类' : 'Kind of TOKEN').selectOption({ label: w.secret })
  await says(page, 'TOKEN = secret("wandb")')

  await page.locator('summary', { hasText: w.fails }).click()
  await page.getByLabel(w.again, { exact: true }).selectOption({ label: w.restart })
  await says(page, 'max_restarts = 3')
  await put(page, page.getByLabel(w.most, { exact: true }), '2', 'max_restarts = 2')

  await page.locator('summary', { hasText: w.more }).filter({ has: page.getByRole('heading', { name: w.more, exact: true }) }).click()
  await put(page, page.getByLabel(w.hook, { exact: true }), 'sh -c "echo first"', 'hook "prestart"')

  // What is wrong is told at its field, also in a part that is folded.
  const named = part(w.what).getByLabel(w.name, { exact: true })
  await named.fill('No Name')
  await named.press('Enter')
  await part(w.what).locator('.wrong-text').waitFor()
  await inspect(page, `create-wrong-field-${lang}`, true)
  assert.ok(await page.getByRole('button', { name: w.submit, exact: true }).isDisabled(), 'what the file does not have is not submitted')
  await put(page, named, name, `job "${name}"`)
  await part(w.what).locator('.wrong-text').waitFor({ state: 'detached' })
  await page.locator('.verdict', { hasText: w.starts }).waitFor()

  // The file is changed, and the form follows; its comments stay.
  const file = page.getByRole('textbox', { name: w.file })
  await file.fill((await file.inputValue()).replace('max_restarts = 2', 'max_restarts = 4 # as the others').replace(/nodes\s*=\s*1\n/, ''))
  await page.waitForFunction((label) => document.querySelector(`input[aria-label="${label}"]`)?.value === '4', w.most)
  await put(page, part(w.what).getByLabel(w.limit, { exact: true }), '2h', 'time_limit = "2h"')
  assert.match(await file.inputValue(), /# as the others/)
  for (const dark of [false, true]) {
    await page.emulateMedia({ colorScheme: dark ? 'dark' : 'light' })
    for (const width of [1440, 390]) {
      await page.setViewportSize({ width, height: 900 })
      await page.waitForTimeout(200)
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth > innerWidth), false, `the page is no wider than ${width} pixels`)
      await inspect(page, `create-form-${lang}-${dark ? 'dark' : 'light'}-${width}`, true)
    }
  }
  await page.emulateMedia({ colorScheme: 'light' })
  await page.setViewportSize({ width: 1440, height: 900 })

  await page.locator('.verdict', { hasText: w.starts }).waitFor()
  await page.getByRole('button', { name: w.submit, exact: true }).click()
  await page.getByRole('heading', { name, exact: true }).waitFor()
  await page.locator('.tag.state-succeeded').first().waitFor()
  const said = await agent.cliAs(token, 'job', 'logs', name)
  assert.match(said, /hello from the form with \[masked: wandb\]/)
  assert.deepEqual(complaints, [])
  await context.close()
}

// uploads brings a folder with the job in one go: it is sent while the rest is filled,
// and what its own rules leave out stays behind.
async function uploads(browser, agent, token, lang, inspect) {
  const w = words[lang]
  const { context, page } = await signedIn(browser, agent, token, lang, '/jobs/new')
  const folder = join(agent.place, 'code-' + lang)
  mkdirSync(join(folder, '__pycache__'), { recursive: true })
  for (const [name, text] of [['hello.sh', '#!/bin/sh\necho code of ' + lang + '; ls -a'], ['.gitignore', '*.pt\n'], ['old.pt', 'weights'], ['__pycache__/x.pyc', 'x']]) writeFileSync(join(folder, name), text)
  const name = 'uploaded-' + lang
  await page.locator('.verdict', { hasText: w.starts }).waitFor()
  await put(page, page.locator('.filling').getByLabel(w.name, { exact: true }).first(), name, `job "${name}"`)
  const command = page.getByLabel(w.command, { exact: true }).first()
  await command.fill('./hello.sh')
  await command.blur()
  await page.locator('input[webkitdirectory]').setInputFiles(folder)
  await says(page, 'workdir = "sha256:')
  await page.locator('.drop-here details > summary').click()
  await page.locator('.drop-here .plain-list').getByText('old.pt').waitFor()
  await page.locator('.verdict', { hasText: w.starts }).waitFor()
  await inspect(page, `create-code-${lang}`, true)
  await page.getByRole('button', { name: w.submit, exact: true }).click()
  await page.getByRole('heading', { name, exact: true }).waitFor()
  await page.locator('.tag.state-succeeded').first().waitFor()
  const said = await agent.cliAs(token, 'job', 'logs', name)
  assert.match(said, new RegExp('code of ' + lang))
  assert.doesNotMatch(said, /old\.pt|pycache/)

  const shot = async (page, called) => {
    for (const width of [390, 1440]) {
      await page.setViewportSize({ width, height: 900 })
      await page.waitForTimeout(200)
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth > innerWidth), false, `${called} is no wider than ${width} pixels`)
      await inspect(page, `${called}-${width}`, true)
    }
  }

  // A template takes the place of the file, and gives it back.
  await visit(page, agent.address + '/jobs/new')
  await page.getByLabel(w.begin, { exact: true }).selectOption({ label: 'PyTorch DDP' })
  await says(page, 'distributed "pytorch" {}')
  await page.getByRole('button', { name: w.back }).click()
  await says(page, 'job "digits"')

  // The file is saved as a template, another page begins with it, and it is removed.
  await page.getByRole('button', { name: w.save, exact: true }).click()
  const dialog = page.getByRole('dialog')
  const field = (label) => dialog.getByLabel(label, { exact: true })
  await field(w.name).fill('No Name')
  assert.ok(await dialog.getByRole('button', { name: w.keep, exact: true }).isDisabled(), 'a name that is none is not saved')
  await field(w.name).fill('ours-' + lang)
  await field(w.about).fill('one node, our image')
  if (lang === 'zh') await field(w.mine).check()
  await shot(page, `create-template-save-${lang}`)
  await dialog.getByRole('button', { name: w.keep, exact: true }).click()
  await dialog.waitFor({ state: 'detached' })
  const second = lang === 'zh' ? `ours-zh${w.only}` : 'ours-en (of wang)'
  await page.getByLabel(w.begin, { exact: true }).selectOption({ label: w.one })
  await says(page, 'job "train"')
  await page.getByLabel(w.begin, { exact: true }).selectOption({ label: second })
  await says(page, 'job "digits"')
  assert.match(await agent.cliAs(token, 'template', 'list'), new RegExp(`ours-${lang} .*one node, our image`))
  await page.getByRole('button', { name: w.saved, exact: true }).click()
  await dialog.getByText('one node, our image').waitFor()
  await shot(page, `create-templates-${lang}`)
  await dialog.getByRole('button', { name: w.remove, exact: true }).click()
  await dialog.getByRole('button', { name: w.drop, exact: true }).click()
  await dialog.getByText(w.empty).waitFor()
  assert.doesNotMatch(await agent.cliAs(token, 'template', 'list'), /ours-/)
  await context.close()
}

// create starts an agent with cards and a storage, and makes jobs with the form.
export async function create(browser, binary, inspect) {
  const agent = await startAgent(binary, cards)
  try {
    const token = await agent.secret('user', 'wang')
    const value = join(agent.place, 'wandb')
    writeFileSync(value, 's3cret')
    await agent.cliAs(token, 'secret', 'set', '-file', value, 'wandb')
    for (const lang of ['en', 'zh']) {
      await fills(browser, agent, token, lang, inspect)
      await uploads(browser, agent, token, lang, inspect)
    }
  } finally {
    await agent.stop()
  }
}
