// Named data: a member finds it, walks through a version, looks at a text, a table and a
// picture, takes a file and a directory home, marks, describes, tags; a running job keeps
// it; what changes elsewhere is seen at once; for page.mjs.
import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { deflateSync } from 'node:zlib'
import { startAgent, visit } from './agent.mjs'
import { shots, signedIn } from './views.mjs'

const words = {
  en: { data: 'Data', truth: (n) => `${n} names in project default.`, favourites: 'Favourites', project: 'Project', mark: (n) => `Mark ${n} as a favourite`, models: /^Models/, search: 'Search data', files: 'Files', versions: /^Versions/, use: /^Use/, download: 'Download', zip: 'Download as zip', edit: 'Edit', description: 'Description', labels: /^Labels, one/, save: 'Save', tag: (n) => `Tag version ${n}`, set: 'Set the tag', tagName: 'Tag', remove: 'Remove', removeVersion: (n) => `Remove version ${n}`, inUse: /1 job that has not ended uses it/, gone: /This cannot be undone/, rows: /first 20 rows/, svg: /onload/, find: 'Find a name', palette: 'Find', uses: '1 job that has not ended uses it.', binary: /no preview/, back: 'All data' },
  zh: { data: '数据', truth: (n) => `项目 default 有 ${n} 个名称。`, favourites: '收藏', project: '项目', mark: (n) => `收藏 ${n}`, models: /^模型/, search: '搜索数据', files: '文件', versions: /^版本/, use: /^使用情况/, download: '下载', zip: '下载为 zip', edit: '编辑', description: '说明', labels: /^标记，每行/, save: '保存', tag: (n) => `为版本 ${n} 设置标签`, set: '设置标签', tagName: '标签', remove: '删除', removeVersion: (n) => `删除版本 ${n}`, inUse: /有 1 个未结束的任务在使用/, gone: /此操作无法撤销/, rows: /前 20 行/, svg: /onload/, find: '查找名称', palette: '查找', uses: '有 1 个未结束的任务在使用。', binary: /没有预览/, back: '全部数据' },
}

const crcs = Array.from({ length: 256 }, (_, n) => { for (let k = 0; k < 8; k++) n = n & 1 ? 0xedb88320 ^ (n >>> 1) : n >>> 1; return n >>> 0 })
const crc = (bytes) => (bytes.reduce((sum, byte) => crcs[(sum ^ byte) & 255] ^ (sum >>> 8), 0xffffffff) ^ 0xffffffff) >>> 0
const chunk = (kind, body) => {
  const head = Buffer.from(kind)
  const out = Buffer.alloc(12 + body.length)
  out.writeUInt32BE(body.length, 0)
  head.copy(out, 4)
  body.copy(out, 8)
  out.writeUInt32BE(crc(out.subarray(4, 8 + body.length)), 8 + body.length)
  return out
}
// picture is a PNG of stripes.
function picture(width, height) {
  const rows = Buffer.alloc(height * (1 + 3 * width))
  for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) rows.set([x % 256, y % 256, (x >> 4) % 2 ? 200 : 60], y * (1 + 3 * width) + 1 + 3 * x)
  const head = Buffer.alloc(13)
  head.writeUInt32BE(width, 0)
  head.writeUInt32BE(height, 4)
  head.set([8, 2], 8)
  return Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), chunk('IHDR', head), chunk('IDAT', deflateSync(rows)), chunk('IEND', Buffer.alloc(0))])
}

const job = `job "reader" {
  resources {
    cpu    = 0.05
    memory = "32MiB"
  }
  task {
    driver  = "exec"
    command = "sleep 600"
  }
  dataset "cifar10" {}
}
`
const entries = 30_000 // names; there may be 100,000

// folder makes a directory with files of every kind.
function folder(place) {
  const at = join(place, 'cifar10')
  mkdirSync(join(at, 'train', 'cats'), { recursive: true })
  mkdirSync(join(at, 'empty'))
  writeFileSync(join(at, 'readme.txt'), 'Sixty thousand pictures.\n')
  writeFileSync(join(at, 'labels.csv'), 'file,label,score\n' + Array.from({ length: 500 }, (_, i) => `${i}.png,${i % 2 ? 'cat' : '狗'},0.${i}\n`).join(''))
  writeFileSync(join(at, 'train', 'cats', '1.png'), picture(320, 200))
  writeFileSync(join(at, 'evil.svg'), '<svg xmlns="http://www.w3.org/2000/svg" onload="globalThis.hacked = 1"><script>globalThis.hacked = 1</script></svg>')
  writeFileSync(join(at, 'evil.html'), '<img src=x onerror="globalThis.hacked = 1">')
  writeFileSync(join(at, 'weights.bin'), Buffer.from(Array.from({ length: 4096 }, (_, i) => i % 256)))
  writeFileSync(join(at, '名字 & <b>.txt'), '内容\n')
  return at
}

async function member(browser, agent, token, lang, inspect) {
  const w = words[lang]
  await agent.cliAs(token, 'data', 'mark', '-off', 'cifar10')
  const { context, page } = await signedIn(browser, agent, token, lang, '/data')
  await page.getByText(w.truth(3)).waitFor()
  await page.getByRole('link', { name: 'cifar10', exact: true }).waitFor()
  await shots(page, `data-${lang}`, inspect)
  // Kinds, marks and words.
  await page.getByRole('button', { name: w.models }).click()
  await page.waitForFunction(() => document.querySelectorAll('.rows .grid-row').length === 1)
  await page.getByRole('button', { name: w.models }).click()
  await page.getByRole('button', { name: w.mark('cifar10') }).click()
  await page.getByRole('button', { name: w.mark('cifar10'), pressed: true }).waitFor()
  await page.locator('.segments').getByRole('button', { name: w.favourites, exact: true }).click()
  await page.waitForFunction(() => document.querySelectorAll('.rows .grid-row').length === 1)
  await page.locator('.segments').getByRole('button', { name: w.project, exact: true }).click()
  await page.keyboard.press('/')
  await page.keyboard.type('team=vision')
  await page.waitForFunction(() => document.querySelectorAll('.rows .grid-row').length === 1)
  await page.getByLabel(w.search).fill('')
  // Keys go to a row and open it.
  await page.locator('h1').click()
  await page.keyboard.press('j')
  await page.locator('.grid-row.here').waitFor()
  await page.keyboard.press('o')
  await page.getByRole('tab', { name: w.files }).waitFor()

  await visit(page, agent.address + '/data/default/dataset/cifar10')
  await page.getByRole('link', { name: 'readme.txt' }).waitFor()
  await page.getByText(w.uses).waitFor()
  await shots(page, `data-${lang}-files`, inspect)
  await page.getByRole('link', { name: 'readme.txt' }).click()
  await page.getByText('Sixty thousand pictures.').waitFor()
  const [text] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name: w.download, exact: true }).click()])
  assert.equal(readFileSync(await text.path(), 'utf8'), 'Sixty thousand pictures.\n')
  await page.goBack()
  await page.getByRole('link', { name: 'labels.csv' }).click()
  await page.getByText(w.rows).waitFor()
  await shots(page, `data-${lang}-table`, inspect)
  await page.goBack()
  await page.getByRole('link', { name: 'train/' }).click()
  await page.getByRole('link', { name: 'cats/' }).click()
  await page.getByRole('link', { name: '1.png' }).click()
  await page.waitForFunction(() => document.querySelector('.picture img')?.naturalWidth === 320)
  await shots(page, `data-${lang}-picture`, inspect)
  // What could run here is text.
  for (const name of ['evil.svg', 'evil.html']) {
    await visit(page, agent.address + '/data/default/dataset/cifar10?path=' + name)
    await page.locator('.preview pre', { hasText: name.endsWith('svg') ? w.svg : 'onerror' }).waitFor()
  }
  assert.equal(await page.evaluate(() => globalThis.hacked), undefined, 'nothing of a file runs')
  await visit(page, agent.address + '/data/default/dataset/cifar10')
  await page.getByRole('link', { name: '名字 & <b>.txt' }).click()
  await page.getByText('内容').waitFor()
  await page.goBack()
  await page.getByRole('link', { name: 'weights.bin' }).click()
  await page.getByText(w.binary).waitFor()
  await page.goBack()
  const [packed] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name: w.zip }).click()])
  assert.equal(readFileSync(await packed.path()).subarray(0, 2).toString(), 'PK')

  // What the object says of itself, and its tags.
  const dialog = page.getByRole('dialog')
  await page.getByRole('button', { name: w.edit, exact: true }).click()
  await dialog.getByLabel(w.description).fill('pictures ' + lang)
  await dialog.getByLabel(w.labels).fill('team=vision\nlang=' + lang)
  await dialog.locator('.cli', { hasText: `-description 'pictures ${lang}'` }).waitFor()
  await shots(page, `data-${lang}-edit`, inspect)
  await dialog.getByRole('button', { name: w.save }).click()
  await page.locator('.said', { hasText: 'pictures ' + lang }).waitFor()
  await page.getByRole('tab', { name: w.versions }).click()
  await page.getByRole('button', { name: w.tag(2) }).click()
  await dialog.getByLabel(w.tagName, { exact: true }).fill('best-' + lang)
  await dialog.locator('.cli', { hasText: `nomadlike data tag cifar10@2 best-${lang}` }).waitFor()
  await dialog.getByRole('button', { name: w.set }).click()
  await page.locator('td .tag', { hasText: 'best-' + lang }).waitFor()
  await shots(page, `data-${lang}-versions`, inspect)

  // A job that has not ended keeps its version, and is named.
  await page.getByRole('button', { name: w.removeVersion(2) }).click()
  await dialog.getByText(w.inUse).waitFor()
  await dialog.getByRole('link', { name: 'reader' }).waitFor()
  assert.ok(await dialog.getByRole('button', { name: w.remove, exact: true }).isDisabled())
  await shots(page, `data-${lang}-in-use`, inspect)
  await page.keyboard.press('Escape')
  await page.getByRole('tab', { name: w.use }).click()
  await page.getByRole('link', { name: 'reader' }).waitFor()
  await shots(page, `data-${lang}-use`, inspect)

  // What is brought elsewhere is seen without a click, and what is removed.
  await visit(page, agent.address + '/data')
  await page.getByText(w.truth(3)).waitFor()
  await agent.cliAs(token, 'data', 'push', join(agent.place, 'cifar10', 'train'), 'late-' + lang)
  await page.getByRole('link', { name: 'late-' + lang, exact: true }).waitFor()
  await page.getByRole('link', { name: 'late-' + lang, exact: true }).click()
  await page.getByRole('button', { name: w.remove, exact: true }).click()
  await dialog.getByText(w.gone).waitFor()
  await dialog.getByRole('button', { name: w.remove, exact: true }).click()
  await page.getByText(w.truth(3)).waitFor()

  // Ctrl-K finds it.
  await page.keyboard.press('Control+k')
  await dialog.getByRole('combobox').fill('cifar')
  await page.getByRole('option', { name: /cifar10/ }).first().click()
  await page.getByRole('heading', { name: /cifar10/ }).waitFor()
  await context.close()
}

// bring uploads a folder from the browser: 200 small files and a large one, cut off by a
// reload in the middle. What comes of it is what a push of the folder gives.
async function bring(browser, agent, token, inspect) {
  const from = join(agent.place, 'brought')
  mkdirSync(join(from, 'small'), { recursive: true }) // a browser names no empty directory of a folder that is picked
  for (let i = 0; i < 200; i++) writeFileSync(join(from, 'small', `${i} 文件.txt`), `file ${i}\n`.repeat(i))
  const large = Buffer.alloc(48 << 20)
  for (let at = 0, x = 1; at < large.length; at += 4) large.writeUInt32LE((x = Math.imul(x, 1664525) + 1013904223 >>> 0), at)
  writeFileSync(join(from, 'weights.bin'), large)
  const { context, page } = await signedIn(browser, agent, token, 'en', '/data')
  page.on('dialog', (dialog) => void dialog.accept())
  const dialog = page.getByRole('dialog')
  const choose = async () => {
    await page.getByRole('button', { name: 'Add data' }).first().click()
    await dialog.getByLabel('Name', { exact: true }).fill('brought')
    await dialog.getByRole('button', { name: 'Upload from this computer' }).click()
    await dialog.locator('input[data-pick=folder]').setInputFiles(from)
    await dialog.getByText(/^201 files, 48/).waitFor()
  }
  // The first pieces pass, then nothing does: the line is cut.
  let passed = 0
  const bytes = (/** @type {import('playwright').Route} */ route) => (route.request().method() === 'PATCH' && ++passed > 3 ? undefined : route.continue())
  await page.route(/\/tus/, bytes)
  await choose()
  await shots(page, 'data-bring', inspect)
  await dialog.getByRole('button', { name: /^Upload 48/ }).click()
  await dialog.getByRole('progressbar').waitFor()
  await page.waitForRequest((request) => request.method() === 'PATCH' && passed >= 3)
  await shots(page, 'data-bring-going', inspect)
  await page.unroute(/\/tus/)
  await visit(page, agent.address + '/data')
  assert.ok(!(await agent.cliAs(token, 'data', 'ls')).includes('brought@'), 'half an upload is nobody\'s dataset')
  await choose()
  await dialog.getByRole('button', { name: /^Upload 48/ }).click()
  await dialog.getByText(/^brought@1 is there: 201 files/).waitFor()
  await shots(page, 'data-bring-done', inspect)
  await page.keyboard.press('Escape')
  await page.getByRole('link', { name: 'brought', exact: true }).waitFor()
  await agent.cliAs(token, 'data', 'push', from, 'pushed')
  const digest = async (name) => JSON.parse(await agent.cliAs(token, 'data', 'show', '-json', name)).object.versions[0].digest
  assert.equal(await digest('brought'), await digest('pushed'))
  for (const name of ['brought', 'pushed']) await agent.cliAs(token, 'data', 'rm', '-yes', name)
  await context.close()
}

// many walks through a version of as many names as there may be.
async function many(browser, agent, token, inspect) {
  const { context, page } = await signedIn(browser, agent, token, 'en', '/data/default/dataset/many?path=flat')
  const begin = Date.now()
  await page.locator('.rows .grid-row').first().waitFor()
  await page.getByText(new RegExp(`^${entries - 1} names`)).waitFor()
  await page.waitForFunction(() => !/loaded so far/.test(document.querySelector('main').textContent))
  assert.ok(await page.locator('.rows .grid-row').count() < 200, 'only what is seen is drawn')
  const frames = await page.evaluate(async () => {
    const list = document.querySelector('.grid')
    const times = []
    let last = performance.now()
    for (let i = 0; i < 60; i++) {
      list.scrollTop += 40_000
      await new Promise(requestAnimationFrame)
      times.push(performance.now() - last)
      last = performance.now()
    }
    return times.sort((a, b) => a - b)
  })
  await page.getByLabel(words.en.find).fill('f-029998')
  await page.getByRole('link', { name: 'f-029998' }).waitFor()
  await shots(page, 'data-many', inspect)
  console.log(`${entries} names: all there after ${Date.now() - begin} ms; a frame of scrolling takes ${Math.round(frames[30])} ms at the median, ${Math.round(frames.at(-1))} ms at most`)
  await context.close()
}

export async function data(browser, binary, inspect) {
  const nas = `client {\n  storage "nas" {\n    path   = "NAS/{kind}/{project}"\n    serves = ["dataset", "model", "algorithm"]\n  }\n}\n`
  const { mkdtempSync, rmSync } = await import('node:fs')
  const { tmpdir } = await import('node:os')
  const disk = mkdtempSync(join(tmpdir(), 'nomadlike-nas-'))
  const agent = await startAgent(binary, nas.replace('NAS', disk))
  try {
    const token = await agent.secret('user', 'mei')
    const from = folder(agent.place)
    await agent.cliAs(token, 'data', 'push', from, 'cifar10@first')
    writeFileSync(join(from, 'more.txt'), 'more\n')
    await agent.cliAs(token, 'data', 'push', from, 'cifar10')
    await agent.cliAs(token, 'data', 'update', '-label', 'team=vision', '-description', 'pictures of ten kinds', 'cifar10')
    await agent.cliAs(token, 'data', 'push', '-kind', 'model', join(from, 'train'), 'resnet')
    await agent.cliAs(token, 'data', 'register', '-storage', 'nas', '-source', 'shared/imagenet', 'imagenet')
    writeFileSync(join(agent.place, 'reader.hcl'), job)
    await agent.cliAs(token, 'job', 'run', '-detach', join(agent.place, 'reader.hcl'))
    for (const lang of ['en', 'zh']) await member(browser, agent, token, lang, inspect)
    await bring(browser, agent, token, inspect)
    const flat = join(agent.place, 'many', 'flat')
    mkdirSync(flat, { recursive: true })
    for (let i = 0; i < entries - 1; i++) writeFileSync(join(flat, 'f-' + String(i).padStart(6, '0')), '')
    await agent.cliAs(token, 'data', 'push', join(agent.place, 'many'), 'many')
    await many(browser, agent, token, inspect)
  } finally {
    await agent.stop()
    rmSync(disk, { recursive: true, force: true })
  }
}
