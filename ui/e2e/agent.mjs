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
export async function startAgent(binary, config = '') {
  const program = resolve(binary)
  const place = mkdtempSync(join(tmpdir(), 'nomadlike-page-'))
  const env = { ...process.env, NOMADLIKE_CONFIG_DIR: join(place, 'config'), LANG: 'en_US.UTF-8' }
  const [port, gossip] = [await freePort(), await freePort()]
  const address = `https://127.0.0.1:${port}`
  writeFileSync(join(place, 'agent.hcl'), config)
  const agent = spawn(program, ['agent', '-dev', '-config', join(place, 'agent.hcl'), '-port', String(port), '-gossip-port', String(gossip), '-data-dir', join(place, 'data')], { env, stdio: ['ignore', 'pipe', 'pipe'] })
  let log = ''
  agent.stdout.on('data', (text) => (log += text))
  agent.stderr.on('data', (text) => (log += text))
  const gone = new Promise((done) => agent.on('exit', done))
  const cli = async (...args) => (await run(program, args, { env, maxBuffer: 16 << 20 })).stdout
  const begin = Date.now()
  while (!log.includes(address)) {
    if (Date.now() - begin > startMax || agent.exitCode !== null) throw new Error('the agent did not start:\n' + log)
    await new Promise((done) => setTimeout(done, 50))
  }
  const secret = async (role, user) => {
    const out = await cli('token', 'create', '-role', role, '-user', user, ...(role === 'user' || role === 'viewer' ? ['-project', 'default'] : []))
    const found = /nl_(?:management|user)_[a-z2-7]+/.exec(out)
    if (!found) throw new Error('no token in: ' + out)
    return found[0]
  }
  return {
    address,
    cli,
    secret,
    place,
    log: () => log,
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
