// Signing in at a provider of OpenID Connect, on the pages and back: a real provider, which
// `go run` starts, and a real agent that relies on it; for page.mjs.
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { startAgent, visit } from './agent.mjs'
import { shots } from './views.mjs'

const patience = 60_000
const words = {
  en: { through: 'Sign in with Company account', queue: 'Queue', out: 'Sign out', password: 'Password', nobody: 'eve belongs to no group at platform' },
  zh: { through: '用 公司账号 登录', queue: '队列', out: '退出登录', password: '密码', nobody: 'eve 在 platform 中不属于任何有权限的组' },
}
const password = 'a long password' // of everybody at the provider

// startProvider runs the provider of the tests of Go.
async function startProvider() {
  const place = mkdtempSync(join(tmpdir(), 'nomadlike-provider-'))
  const program = join(place, 'provider')
  execFileSync('go', ['build', '-o', program, './internal/openid/cmd/provider'], { cwd: '..', stdio: 'inherit' })
  const certificate = join(place, 'provider.pem')
  const secret = join(place, 'secret')
  writeFileSync(secret, 'the-client-secret', { mode: 0o600 })
  const provider = spawn(program, [certificate], { stdio: ['pipe', 'pipe', 'inherit'] })
  const gone = new Promise((done) => provider.on('exit', done))
  const lines = createInterface({ input: provider.stdout })[Symbol.asyncIterator]()
  const said = async () => {
    const { value, done } = await lines.next()
    if (done) throw new Error('the provider has ended')
    return value
  }
  return {
    address: await said(),
    certificate,
    secret,
    sendsTo: async (address) => {
      provider.stdin.write(address + '\n')
      assert.equal(await said(), 'sends to ' + address)
    },
    stop: async () => {
      provider.stdin.end()
      await gone
      rmSync(place, { recursive: true, force: true })
    },
  }
}

const config = (provider, caption) => `server {
  sign_in {
    oidc "platform" {
      caption            = "${caption}"
      issuer             = "${provider.address}"
      client_id          = "cluster"
      client_secret_file = "${provider.secret}"
      ca_file            = "${provider.certificate}"
      end_session        = true
      grant "vision" {
        project = "default"
        role    = "user"
      }
    }
  }
}
`

// goes clicks the provider's button, and types at its form.
async function goes(page, provider, w, name, word) {
  await page.getByRole('button', { name: w.through }).click()
  await page.waitForURL((url) => url.href.startsWith(provider.address + '/login/'))
  await page.locator('#username').fill(name)
  await page.locator('#password').fill(word)
  await page.locator('button[type=submit]').click()
}

async function round(browser, agent, provider, lang, inspect) {
  const w = words[lang]
  const context = await browser.newContext({ ignoreHTTPSErrors: true, locale: lang === 'zh' ? 'zh-CN' : 'en-US', viewport: { width: 1440, height: 900 }, reducedMotion: 'reduce' })
  const page = await context.newPage()
  page.setDefaultTimeout(patience)
  const asked = []
  page.on('request', (request) => asked.push(request.url()))
  await visit(page, agent.address + '/queue')
  await page.getByRole('button', { name: w.through }).waitFor()
  await shots(page, `through-${lang}-signin`, inspect)

  // A wrong password is the provider's business; with the right one the page that was
  // asked for is shown, and nothing of the sign-in stands in its address.
  await goes(page, provider, w, 'grace', 'a guess')
  await page.locator('p', { hasText: 'wrong' }).waitFor()
  await page.locator('#username').fill('grace')
  await page.locator('#password').fill(password)
  await page.locator('button[type=submit]').click()
  await page.waitForURL(agent.address + '/queue')
  await page.waitForFunction((title) => document.title.startsWith(title), w.queue)
  await page.locator('summary', { hasText: 'grace' }).waitFor()
  assert.ok(!page.url().includes('code'), page.url())
  const kept = await page.evaluate(() => JSON.stringify({ ...localStorage, ...sessionStorage }) + document.cookie + history.length)
  assert.ok(!/code=|state=|nl_user_/.test(kept), kept)
  const { user } = JSON.parse(await agent.cli('user', 'status', '-json', 'grace'))
  assert.deepEqual([user.display_name, user.identities.map(({ provider, subject }) => provider + ' ' + subject)], ['Grace Hopper', ['platform grace']])
  await shots(page, `through-${lang}-in`, inspect)

  // Signing out goes on at the provider, which sends the browser home.
  await page.locator('summary', { hasText: 'grace' }).click()
  assert.equal(await page.getByRole('button', { name: w.password, exact: true }).count(), 0, 'a password to change is at the provider')
  asked.length = 0
  await page.getByRole('button', { name: w.out }).click()
  await page.waitForURL(agent.address + '/')
  await page.getByRole('button', { name: w.through }).waitFor()
  const end = asked.map((one) => new URL(one)).filter(({ origin }) => origin === provider.address)
  assert.deepEqual(end.map(({ pathname, searchParams }) => [pathname, searchParams.get('client_id'), searchParams.get('post_logout_redirect_uri')]), [['/end_session', 'cluster', agent.address + '/']])
  assert.equal(await page.evaluate(async () => (await fetch('/v1/jobs')).status), 401, 'signed out here')

  // Whoever no group gives anything is told so, and is nobody here.
  await goes(page, provider, w, 'eve', password)
  await page.getByRole('alert').filter({ hasText: w.nobody }).waitFor()
  assert.equal(page.url(), agent.address + '/sign-in/platform')
  await shots(page, `through-${lang}-refused`, inspect)
  const accounts = JSON.parse(await agent.cli('user', 'list', '-json'))
  assert.ok(!JSON.stringify(accounts).includes('eve'), 'no account was made')

  // A link with an answer that nobody here has asked for signs nobody in.
  await visit(page, agent.address + '/sign-in/platform?code=stolen&state=guessed')
  await page.getByRole('alert').waitFor()
  assert.equal(page.url(), agent.address + '/sign-in/platform')
  await context.close()
}

export async function through(browser, binary, inspect) {
  const provider = await startProvider()
  try {
    for (const [lang, caption] of [['en', 'Company account'], ['zh', '公司账号']]) {
      const agent = await startAgent(binary, config(provider, caption))
      try {
        await provider.sendsTo(agent.address + '/sign-in/platform')
        await round(browser, agent, provider, lang, inspect)
        assert.ok(!agent.log().includes('the-client-secret'), 'the log holds no secret')
      } finally {
        await agent.stop()
      }
    }
  } finally {
    await provider.stop()
  }
}
