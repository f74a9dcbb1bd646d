// What others may try with the page of somebody who is signed in: attacks 18
// and 20 of the security design. The others of a browser are tried elsewhere:
// 17 by the day of page.mjs, 19, 21 and 22 by the tests of the agent's door.
import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { request } from 'node:https'
import { join } from 'node:path'
import { visit } from './agent.mjs'

const evil = "<svg xmlns='http://www.w3.org/2000/svg'><script>top.pwned = 1; fetch('/pwned'); document.title = 'pwned'</script></svg>"
const files = ['evil.html', 'evil.svg', 'evil.js', 'stdout.0']

// attacks signs in as somebody with a running job that means him harm.
export async function attacks(browser, agent, token, patience) {
  const path = join(agent.place, 'evil.hcl')
  writeFileSync(path, `job "evil" {
  resources {
    cpu    = 0.01
    memory = "32MiB"
  }
  task {
    driver  = "exec"
    command = "bash -c 'sleep 600'"
  }
}
`)
  await agent.cli('job', 'run', '-detach', path)
  const context = await browser.newContext({ ignoreHTTPSErrors: true, locale: 'en-US' })
  const page = await context.newPage()
  page.setDefaultTimeout(patience)
  const alarms = []
  context.on('request', (one) => /pwned/.test(one.url()) && alarms.push(one.url()))
  page.on('dialog', (dialog) => { alarms.push(dialog.message()); void dialog.dismiss() })
  await visit(page, agent.address + '/jobs/evil')
  await page.getByLabel('Token', { exact: true }).fill(token)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.locator('.tag.state-running').first().waitFor()
  const alloc = await page.evaluate(async () => (await (await fetch('/v1/jobs/evil/allocations')).json()).allocations[0].id)

  await uploaded(page, agent, alloc)
  await foreignSockets(context, page, agent, alloc)
  assert.deepEqual(alarms, [], 'what a task wrote was run')
  assert.equal(await page.evaluate(() => globalThis.pwned), undefined)
  await agent.cli('job', 'stop', 'evil')
  await context.close()
}

// uploaded opens files that a task wrote, as pages, as parts of a page and as
// scripts: they are saved and never shown.
async function uploaded(page, agent, alloc) {
  const logs = join(agent.place, 'data', 'client', 'records', alloc, 'logs')
  mkdirSync(logs, { recursive: true })
  for (const name of files) writeFileSync(join(logs, name), evil)
  const plain = await page.context().newPage() // of our own site, without our program: that loads itself anew when a script fails
  await visit(plain, agent.address + '/v1/openapi.json')
  for (const name of files) {
    const url = `${agent.address}/v1/jobs/evil/files/content?path=logs/${name}`
    const answer = await page.evaluate(async (url) => { const a = await fetch(url); return { status: a.status, headers: Object.fromEntries(a.headers), text: await a.text() } }, url)
    assert.deepEqual([answer.status, answer.text], [200, evil], name)
    assert.equal(answer.headers['content-type'], 'application/octet-stream')
    assert.match(answer.headers['content-disposition'], /^attachment/)
    assert.equal(answer.headers['x-content-type-options'], 'nosniff')
    assert.match(answer.headers['content-security-policy'], /^sandbox;/)
    assert.equal(answer.headers['x-frame-options'], 'DENY')
    const fresh = await page.context().newPage()
    const [download] = await Promise.all([fresh.waitForEvent('download'), fresh.goto(url).catch(() => {})]) // there is no page to go to
    assert.equal(readFileSync(await download.path(), 'utf8'), evil)
    assert.equal(fresh.url(), 'about:blank', name + ' is not shown as a page')
    await fresh.close()
    const used = await plain.evaluate(async (url) => {
      const tried = (element, attribute) => new Promise((done) => {
        element.onload = () => done('loaded')
        element.onerror = () => done('refused')
        element[attribute] = url
        document.body.append(element)
      })
      const out = [await tried(document.createElement('script'), 'src'), await tried(new Image(), 'src')]
      return out
    }, url)
    assert.deepEqual(used, ['refused', 'refused'], name + ' as a script and as a picture')
  }
  assert.equal(await plain.evaluate(() => globalThis.pwned), undefined)
  await plain.close()
}

// foreignSockets asks for a terminal from the page of another site, and as a
// program that has the cookie but says not, or wrongly, where it comes from.
async function foreignSockets(context, page, agent, alloc) {
  const path = `/v1/allocations/${alloc}/exec`
  const socket = agent.address.replace('https', 'wss') + path
  const opened = (page) => page.evaluate((url) => new Promise((done) => {
    const ws = new WebSocket(url)
    ws.onopen = () => { ws.close(); done('open') }
    ws.onerror = () => done('refused')
  }), socket)
  assert.equal(await opened(page), 'open', 'our own page has a terminal')
  const other = createServer((_, answer) => answer.writeHead(200, { 'Content-Type': 'text/html' }).end('<title>other</title>'))
  await new Promise((done) => other.listen(0, '127.0.0.1', done))
  const foreign = await context.newPage() // of the same person, with the same cookies
  await visit(foreign, `http://127.0.0.1:${other.address().port}/`)
  assert.equal(await opened(foreign), 'refused', 'the page of another site has none')
  await foreign.close()
  await new Promise((done) => other.close(done))

  const cookie = (await context.cookies(agent.address)).map((one) => `${one.name}=${one.value}`).join('; ')
  const upgrade = (headers) => new Promise((done, fail) => {
    const asked = request(agent.address + path, { rejectUnauthorized: false, headers: { Connection: 'Upgrade', Upgrade: 'websocket', 'Sec-WebSocket-Version': '13', 'Sec-WebSocket-Key': Buffer.alloc(16, 1).toString('base64'), Cookie: cookie, ...headers } })
    asked.on('upgrade', (answer, socket) => { socket.destroy(); done(answer.statusCode) })
    asked.on('response', (answer) => { answer.resume(); done(answer.statusCode) })
    asked.on('error', fail)
    asked.end()
  })
  assert.equal(await upgrade({ Origin: agent.address }), 101)
  for (const headers of [{}, { Origin: 'null' }, { Origin: 'https://evil.example.com' }, { Origin: agent.address.replace('https', 'http') }, { Origin: agent.address + '.evil.example.com' }, { Origin: 'https://127.0.0.1:1' }]) {
    assert.equal(await upgrade(headers), 403, 'from ' + JSON.stringify(headers))
  }
}
