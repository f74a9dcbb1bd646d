// Starts the real agent in development mode, with a place of its own.
import { execFile, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)
const startMax = 60_000

function freePort() {
  return new Promise((done, fail) => {
    const server = createServer()
    server.on('error', fail)
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address()
      server.close(() => done(port))
    })
  })
}

// startAgent starts an agent, with more in its configuration where config says so.
// A lasting one is a server and a client of a cluster that outlives it: what it
// knew before it was killed it knows again.
export async function startAgent(binary, config = '', lasting = false) {
  const program = resolve(binary)
  const place = mkdtempSync(join(tmpdir(), 'nomadlike-page-'))
  const [port, gossip] = [await freePort(), await freePort()]
  const address = `https://127.0.0.1:${port}`
  const data = join(place, 'data')
  const env = { ...process.env, NOMADLIKE_CONFIG_DIR: join(place, 'config'), LANG: 'en_US.UTF-8', ...(lasting ? { NOMADLIKE_ADDR: address, NOMADLIKE_CACERT: join(data, 'identity/ca.pem') } : {}) }
  const kind = lasting ? ['-server', '-client', '-bind', '127.0.0.1'] : ['-dev']
  writeFileSync(join(place, 'agent.hcl'), config)
  let log = ''
  let agent, gone
  const launch = async () => {
    agent = spawn(program, ['agent', ...kind, '-config', join(place, 'agent.hcl'), '-port', String(port), '-gossip-port', String(gossip), '-data-dir', data], { env, stdio: ['ignore', 'pipe', 'pipe'] })
    let said = ''
    const hear = (text) => { log += text; said += text }
    agent.stdout.on('data', hear)
    agent.stderr.on('data', hear)
    gone = new Promise((done) => agent.on('exit', done))
    const begin = Date.now()
    while (!said.includes(address)) {
      if (Date.now() - begin > startMax || agent.exitCode !== null) throw new Error('the agent did not start:\n' + log)
      await new Promise((done) => setTimeout(done, 50))
    }
  }
  const cliAs = async (token, ...args) => (await run(program, args, { env: token ? { ...env, NOMADLIKE_TOKEN: token } : env, maxBuffer: 16 << 20 })).stdout
  const cli = (...args) => cliAs('', ...args)
  await launch()
  if (lasting) await cli('token', 'bootstrap', '-setup-file', join(data, 'setup-secret'))
  const secret = async (role, user) => {
    const out = await cli('token', 'create', '-role', role, '-user', user, ...(role === 'user' || role === 'viewer' ? ['-project', 'default'] : []))
    const found = /nl_(?:management|user)_[a-z2-7]+/.exec(out)
    if (!found) throw new Error('no token in: ' + out)
    return found[0]
  }
  return {
    address,
    cli,
    cliAs, // with a token of somebody's
    secret,
    place,
    log: () => log,
    // signal reaches the agent as it is; a killed one is started again by launch.
    signal: async (name) => {
      agent.kill(name)
      if (name === 'SIGKILL') await gone
    },
    launch,
    read: (name) => readFileSync(join(place, name), 'utf8'),
    stop: async () => {
      agent.kill('SIGTERM')
      const slow = setTimeout(() => agent.kill('SIGKILL'), 15_000)
      await gone
      clearTimeout(slow)
      rmSync(place, { recursive: true, force: true })
    },
  }
}

// visit opens an address, again when something else on this machine changed its
// network meanwhile.
export async function visit(page, url, how) {
  for (let tries = 1; ; tries++) {
    try {
      return await page.goto(url, how)
    } catch (error) {
      if (tries === 5 || !String(error).includes('ERR_NETWORK_CHANGED')) throw error
    }
  }
}
