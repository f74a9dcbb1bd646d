// Projects, one's own use and the audit record: an administrator makes a project and
// bounds it, somebody in it sees that and their own use, and cannot change it; the project
// is archived and brought back; the record of all of it is filtered and saved; for page.mjs.
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startAgent } from './agent.mjs'
import { shots, signedIn } from './views.mjs'

const words = {
  en: { create: 'New project', name: 'Project', add: 'Add a quota', guaranteed: 'Guaranteed', most: 'At most', limit: 'Time limit', change: 'Change limits', save: 'Save', whose: /Administrators of the cluster change/, truth: /^1 running, 0 waiting/, use: /^1 running, 0 waiting; card hours of the last 7 d: 0/, archive: 'Archive', archiveOf: (project) => 'Archive ' + project, back: 'Bring back', stop: 'Stop them', archived: /Archived by/, showArchived: 'Show archived ones too', user: 'User', refused: 'Only what was refused', whole: 'chain whole', export: 'Export as JSON lines', saved: /records saved/, notYours: /Operators and administrators of the cluster read/ },
  zh: { create: '新建项目', name: '项目', add: '添加配额', guaranteed: '保障', most: '上限', limit: '使用时长', change: '修改限制', save: '保存', whose: /由集群管理员修改/, truth: /^1 个运行中，0 个排队中/, use: /^1 个运行中，0 个排队中；7 天用了 0 卡时/, archive: '归档', archiveOf: (project) => '归档 ' + project, back: '恢复', stop: '停止它们', archived: /归档，/, showArchived: '显示已归档的项目', user: '用户', refused: '只看被拒绝的', whole: '链完整', export: '导出为 JSON 行', saved: /已保存 \d+ 条/, notYours: /审计记录由集群运维和管理员查看/ },
}

const file = `job "doze" {
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

// bounds makes a project on the pages and gives it a quota and limits.
async function bounds(browser, agent, admin, lang, project, inspect) {
  const w = words[lang]
  const { context, page } = await signedIn(browser, agent, admin, lang, '/projects')
  const dialog = page.getByRole('dialog')
  await page.getByRole('button', { name: w.create }).click()
  await dialog.getByLabel(w.name, { exact: true }).fill(project)
  await dialog.getByRole('button', { name: w.add }).click()
  await dialog.getByLabel(w.guaranteed, { exact: true }).fill('8')
  await dialog.getByLabel(w.most, { exact: true }).fill('16')
  await dialog.getByLabel(w.limit, { exact: true }).first().fill('1h')
  await dialog.getByLabel(w.limit, { exact: true }).last().fill('2h')
  await shots(page, `projects-${lang}-create`, inspect)
  await dialog.getByRole('button', { name: w.create }).click()
  await page.waitForURL('**/projects/' + project)
  await page.getByRole('button', { name: w.change }).waitFor()
  const { project: made } = JSON.parse(await agent.cli('project', 'status', '-json', project))
  assert.deepEqual([made.quotas, made.job_defaults.time_limit, made.ceilings.time_limit, made.bounds_by], [[{ kind: 'nvidia/gpu', guaranteed: 8, maximum: 16 }], '1h0m0s', '2h0m0s', 'ada'])
  await context.close()
}

// belongs is what a member sees of it, and what not.
async function belongs(browser, agent, token, lang, project, inspect) {
  const w = words[lang]
  const { context, page } = await signedIn(browser, agent, token, lang, '/project')
  await page.getByText(w.truth).waitFor()
  await page.getByText(w.whose).waitFor()
  assert.equal(await page.getByRole('button', { name: w.change }).count(), 0, 'what one may not do is not offered')
  await shots(page, `projects-${lang}-one`, inspect)
  await page.locator('main a[href="/use"]').click()
  await page.getByText(w.use).waitFor()
  await shots(page, `projects-${lang}-use`, inspect)
  await page.goto(agent.address + '/audit')
  await page.getByText(w.notYours).waitFor()
  await context.close()
}

// archives closes the project while it has a job, finds it in the list, and reopens it.
async function archives(browser, agent, admin, lang, project, inspect) {
  const w = words[lang]
  const { context, page } = await signedIn(browser, agent, admin, lang, '/projects/' + project)
  const dialog = page.getByRole('dialog')
  await page.getByRole('button', { name: w.archive, exact: true }).click()
  const ok = dialog.getByRole('button', { name: w.archive, exact: true })
  assert.ok(await ok.isDisabled(), 'what becomes of its job is said first')
  await dialog.getByRole('checkbox', { name: w.stop }).check()
  await dialog.locator('.cli', { hasText: `nomadlike project archive -stop-jobs ${project}` }).waitFor()
  await shots(page, `projects-${lang}-archive`, inspect)
  await ok.click()
  await page.locator('.note', { hasText: w.archived }).waitFor()
  await page.locator('main a[href="/projects"]').click()
  const link = page.locator('main').getByRole('link', { name: project, exact: true })
  await page.getByRole('checkbox', { name: w.showArchived }).waitFor()
  await page.waitForFunction((name) => ![...document.querySelectorAll('main td a')].some((one) => one.textContent === name), project)
  await page.getByRole('checkbox', { name: w.showArchived }).check()
  await link.waitFor()
  await shots(page, `projects-${lang}-list`, inspect)
  await link.click()
  await page.getByRole('button', { name: w.back, exact: true }).click()
  await dialog.getByRole('button', { name: w.back, exact: true }).click()
  await dialog.waitFor({ state: 'hidden' }) // it may be seen for a moment beside the page that has changed already
  await page.getByRole('button', { name: w.archive, exact: true }).waitFor()
  await context.close()
}

// audits finds the member's refused attempt in the record and saves what is found.
async function audits(browser, agent, admin, lang, user, inspect) {
  const w = words[lang]
  const { context, page } = await signedIn(browser, agent, admin, lang, '/audit')
  await page.getByText(w.whole).waitFor()
  await page.getByLabel(w.user, { exact: true }).fill(user)
  await page.getByRole('checkbox', { name: w.refused }).check()
  const row = page.locator('main tbody tr', { hasText: 'projects.archive' })
  await page.waitForFunction((name) => { const rows = [...document.querySelectorAll('main tbody tr')].filter((one) => one.cells.length > 3); return rows.length > 0 && rows.every((one) => one.textContent.includes(name)) }, user) // the filter holds
  await row.first().waitFor()
  await row.first().getByRole('button').first().click()
  await page.locator('dl.facts', { hasText: '403' }).first().waitFor()
  await shots(page, `projects-${lang}-audit`, inspect)
  const saving = page.waitForEvent('download')
  await page.getByRole('button', { name: w.export }).click()
  const lines = readFileSync(await (await saving).path(), 'utf8').trim().split('\n').map((line) => JSON.parse(line))
  assert.ok(lines.length > 0 && lines.every((line) => line.actor.user === user && line.outcome === 'refused'), 'the file holds what the filter finds')
  await page.getByText(w.saved).waitFor()
  await context.close()
}

export async function projects(browser, binary, inspect) {
  const agent = await startAgent(binary)
  try {
    const admin = await agent.secret('admin', 'ada')
    const path = join(agent.place, 'doze.hcl')
    writeFileSync(path, file)
    for (const lang of ['zh', 'en']) {
      const [user, project] = ['mia-' + lang, 'lab-' + lang]
      await bounds(browser, agent, admin, lang, project, inspect)
      await agent.cli('user', 'create', '-member', project, user)
      const token = /nl_user_[a-z2-7]+/.exec(await agent.cli('token', 'create', '-role', 'account', '-user', user))[0]
      await agent.cliAs(token, 'job', 'run', path)
      await agent.cliAs(token, 'project', 'archive', project).then(() => assert.fail('a member archives'), () => {})
      await belongs(browser, agent, token, lang, project, inspect)
      await archives(browser, agent, admin, lang, project, inspect)
      await audits(browser, agent, admin, lang, user, inspect)
    }
  } finally {
    await agent.stop()
  }
}
