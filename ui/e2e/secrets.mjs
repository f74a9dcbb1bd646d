// Secrets, limits and sharing: a member makes a secret, a job uses it, and the page says so
// before it is replaced or deleted; an administrator bounds what jobs may ask for, which
// the member sees before submitting, and switches sharing off, told first what closes; who
// may do none of it is not offered it; for page.mjs.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startAgent, visit } from './agent.mjs'
import { shots, signedIn } from './views.mjs'

const words = {
  en: { create: 'New secret', name: 'Name', value: 'Value', replace: 'Replace', replaceOf: 'Replace wandb', del: 'Delete', deleteOf: 'Delete wandb', set: (version) => `wandb is set, version ${version}.`, breaks: '1 job uses it and cannot start any more:', keys: 'Keys of secrets', rotate: 'Rotate', rotated: /values? (was|were) sealed anew/, none: 'Operators and viewers see no secrets, not even their names.', cluster: 'Change those of the cluster', limit: 'Time limit', nodes: 'Nodes', save: 'Save', most: 'The most that jobs may ask for', off: 'Switch sharing off: Cluster', on: 'Switch sharing on: Cluster', offDo: 'Switch sharing off', onDo: 'Switch sharing on', closes: /jobs? closes? to others/, whose: 'Administrators of the cluster set them.', span: '2 d', is: /switched off/ },
  zh: { create: '新建密钥', name: '名称', value: '值', replace: '更换', replaceOf: '更换 wandb', del: '删除', deleteOf: '删除 wandb', set: (version) => `wandb 已设置，版本 ${version}。`, breaks: '有 1 个任务使用它，删除后将无法启动：', keys: '密钥的钥匙', rotate: '轮换', rotated: /重新加密了 \d+ 个密钥/, none: '运维和查看者看不到密钥，连名称也看不到。', cluster: '修改集群的上限', limit: '使用时长', nodes: '节点数', save: '保存', most: '任务最多可申请', off: '关闭共享：集群', on: '开启共享：集群', offDo: '关闭共享', onDo: '开启共享', closes: /个任务将不再对同项目的其他人开放/, whose: '由集群管理员设置。', span: '2 天', is: /已关闭/ },
}

const canary = 'canary-3f9c-value'
const file = `job "tracked" {
  time_limit = "1h"
  resources {
    cpu    = 0.05
    memory = "32MiB"
  }
  task {
    driver  = "exec"
    command = "sleep 600"
    env     = { WANDB_API_KEY = secret("wandb") }
  }
}
`

// keeps makes a secret, has a job use it, replaces it and deletes it; no page holds its value.
async function keeps(browser, agent, token, lang, path, inspect) {
  const w = words[lang]
  const { context, page } = await signedIn(browser, agent, token, lang, '/secrets')
  const dialog = page.getByRole('dialog')
  await shots(page, `secrets-${lang}-empty`, inspect)
  await page.getByRole('button', { name: w.create }).click()
  await dialog.getByLabel(w.name, { exact: true }).fill('wandb')
  await dialog.getByLabel(w.value, { exact: true }).fill(canary + '\n')
  await shots(page, `secrets-${lang}-create`, inspect)
  await dialog.getByRole('button', { name: w.create }).click()
  await page.getByText(w.set(1)).waitFor()
  await agent.cliAs(token, 'job', 'run', '-detach', path)
  await visit(page, agent.address + '/secrets')
  await page.locator('main td').getByRole('link', { name: 'tracked' }).waitFor()
  assert.ok(!(await page.content()).includes(canary), 'no page holds a value')
  await shots(page, `secrets-${lang}-list`, inspect)
  await page.getByRole('button', { name: w.replaceOf }).click()
  await dialog.getByRole('link', { name: 'tracked' }).waitFor() // whom it reaches
  await dialog.getByLabel(w.value, { exact: true }).fill('second-' + canary)
  await dialog.getByRole('button', { name: w.replace, exact: true }).click()
  await page.getByText(w.set(2)).waitFor()
  await page.getByRole('button', { name: w.deleteOf }).click()
  await dialog.getByText(w.breaks).waitFor()
  await shots(page, `secrets-${lang}-delete`, inspect)
  const kept = await page.evaluate(() => JSON.stringify({ ...localStorage, ...sessionStorage }))
  assert.ok(!(await page.content()).includes(canary) && !kept.includes(canary), 'a value is not kept')
  await dialog.getByRole('button', { name: w.del, exact: true }).click()
  await page.getByRole('button', { name: w.deleteOf }).waitFor({ state: 'detached' })
  assert.ok(!(await agent.cliAs(token, 'secret', 'list', '-json')).includes('wandb'))
  await context.close()
}

// rings is what administrators see of the keys, and operators, who see no secrets.
async function rings(browser, agent, admin, operator, lang, inspect) {
  const w = words[lang]
  {
    const { context, page } = await signedIn(browser, agent, admin, lang, '/secrets')
    const ring = page.getByRole('region', { name: w.keys })
    await ring.getByRole('button', { name: w.rotate, exact: true }).click()
    await shots(page, `secrets-${lang}-rotate`, inspect)
    await page.getByRole('dialog').getByRole('button', { name: w.rotate, exact: true }).click()
    await ring.getByText(w.rotated).waitFor()
    await context.close()
  }
  const { context, page } = await signedIn(browser, agent, operator, lang, '/secrets')
  await page.getByText(w.none).waitFor()
  await page.getByRole('region', { name: w.keys }).waitFor()
  assert.equal(await page.getByRole('button', { name: w.rotate, exact: true }).count(), 0, 'operators rotate nothing')
  await shots(page, `secrets-${lang}-operator`, inspect)
  await context.close()
}

// limits bounds jobs and switches sharing off; the member sees the one before submitting
// and is not offered the other.
async function limits(browser, agent, admin, member, lang, inspect) {
  const w = words[lang]
  const { context, page } = await signedIn(browser, agent, admin, lang, '/limits')
  const dialog = page.getByRole('dialog')
  await page.getByRole('button', { name: w.cluster }).click()
  await dialog.getByLabel(w.limit, { exact: true }).fill('2d')
  await dialog.getByLabel(w.nodes, { exact: true }).fill('4')
  await dialog.locator('.cli', { hasText: 'nomadlike operator ceilings -time-limit 48h -nodes 4' }).waitFor()
  await shots(page, `limits-${lang}-change`, inspect)
  await dialog.getByRole('button', { name: w.save }).click()
  const table = page.getByRole('region', { name: w.most })
  await table.locator('td b', { hasText: w.span }).first().waitFor()
  const { settings } = JSON.parse(await agent.cli('operator', 'ceilings', '-json'))
  assert.deepEqual([settings.ceilings.time_limit, settings.ceilings.nodes, settings.ceilings_by], ['48h0m0s', 4, 'ada'])
  await shots(page, `limits-${lang}`, inspect)
  await page.getByRole('button', { name: w.off }).click()
  await dialog.getByText(w.closes).waitFor()
  await dialog.locator('.cli', { hasText: 'nomadlike operator sharing off' }).waitFor()
  await shots(page, `limits-${lang}-sharing`, inspect)
  await dialog.getByRole('button', { name: w.offDo, exact: true }).click()
  await page.getByRole('button', { name: w.on }).waitFor()
  await page.locator('.tag', { hasText: w.is }).waitFor()
  assert.ok(JSON.parse(await agent.cli('operator', 'sharing', '-json')).settings.no_sharing)

  const theirs = await signedIn(browser, agent, member, lang, '/jobs/new')
  const most = theirs.page.getByRole('region', { name: w.most })
  await most.getByText(w.span).waitFor()
  await shots(theirs.page, `limits-${lang}-create`, inspect)
  await visit(theirs.page, agent.address + '/limits')
  await theirs.page.getByText(w.whose).waitFor()
  assert.equal(await theirs.page.locator('main').getByRole('button', { name: w.cluster }).count() + await theirs.page.getByRole('button', { name: w.on }).count(), 0, 'what one may not do is not offered')
  await shots(theirs.page, `limits-${lang}-member`, inspect)
  for (const [place, there] of [['use', 1], ['project', 1], ['secrets', 1], ['limits', 1], ['people', 0], ['audit', 0], ['projects', 0]]) {
    assert.equal(await theirs.page.locator(`nav.rail a[href="/${place}"]`).count(), there, `${place} in the rail of a member`)
  }
  await theirs.context.close()

  await page.getByRole('button', { name: w.on }).click()
  await dialog.getByRole('button', { name: w.onDo, exact: true }).click()
  await page.getByRole('button', { name: w.off }).waitFor()
  for (const place of ['use', 'project', 'secrets', 'limits', 'projects', 'people', 'audit']) {
    await page.locator(`nav.rail a[href="/${place}"]`).click()
    await page.locator('main h1').waitFor()
    await page.waitForFunction((at) => document.querySelector('nav.rail a[aria-current]')?.getAttribute('href') === '/' + at, place)
  }
  await agent.cli('operator', 'ceilings', '-time-limit', 'none', '-nodes', '0')
  await context.close()
}

export async function secrets(browser, binary, inspect) {
  const agent = await startAgent(binary)
  try {
    const [admin, operator] = [await agent.secret('admin', 'ada'), await agent.secret('operator', 'olga')]
    const path = join(agent.place, 'tracked.hcl')
    writeFileSync(path, file)
    for (const lang of ['zh', 'en']) {
      const [user, project] = ['sue-' + lang, 'vault-' + lang]
      const shape = join(agent.place, project + '.hcl')
      writeFileSync(shape, `project "${project}" {\n  description = "secrets"\n}\n`)
      await agent.cli('project', 'apply', shape)
      await agent.cli('user', 'create', '-member', project, user)
      const token = /nl_user_[a-z2-7]+/.exec(await agent.cli('token', 'create', '-role', 'account', '-user', user))[0]
      await keeps(browser, agent, token, lang, path, inspect)
      await rings(browser, agent, admin, operator, lang, inspect)
      await limits(browser, agent, admin, token, lang, inspect)
    }
    assert.ok(!agent.log().includes(canary), 'no value in the log')
  } finally {
    await agent.stop()
  }
}
