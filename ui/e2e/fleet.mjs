// Starts a real server to which simulated nodes of eight cards have registered;
// jobs hold half of the cards. It is made by the measuring program of
// scripts/bench, so Go is needed.
import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..')

export async function startFleet(binary, nodes) {
  const place = mkdtempSync(join(tmpdir(), 'nomadlike-fleet-'))
  const program = join(place, 'bench')
  const built = spawnSync('go', ['build', '-o', program, './scripts/bench'], { cwd: root, encoding: 'utf8' })
  if (built.status !== 0) throw new Error('the measuring program was not built:\n' + (built.error ?? built.stderr))
  const bench = spawn(program, ['-binary', resolve(binary), '-serve', String(nodes)], { stdio: ['pipe', 'pipe', 'pipe'] })
  const gone = new Promise((done) => bench.on('exit', done))
  let log = ''
  bench.stderr.on('data', (text) => (log += text))
  const fleet = await new Promise((done, fail) => {
    let out = ''
    bench.stdout.on('data', (text) => {
      out += text
      if (out.includes('\n')) done(JSON.parse(out.split('\n')[0]))
    })
    bench.on('exit', () => fail(new Error('the fleet did not start:\n' + log)))
  })
  return {
    ...fleet,
    stop: async () => {
      bench.stdin.end()
      await gone
      rmSync(place, { recursive: true, force: true })
    },
  }
}
