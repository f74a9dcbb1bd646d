// Takes a picture of every page of demonstration clusters whose clock stands still, in
// both languages, both themes and three widths, for the program scripts/pictures, which
// says on the standard input where the clusters are and reads from the standard output
// what was wrong besides: axe, pages that move while they load, pages that are too wide.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { chromium } from 'playwright-core'
import { visit } from './agent.mjs'

const { values: options } = parseArgs({ options: { chromium: { type: 'string', default: '/usr/bin/chromium' } } })
const tour = JSON.parse(readFileSync(0, 'utf8'))
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

const widths = [1440, 1024, 390]
const heights = { 1440: 900, 1024: 768, 390: 844 }
const tallest = 2400 // pixels of a picture; what is below is not taken
const patience = 60_000
const quiet = 250 // milliseconds without a request, then a page is there
const shiftMax = 0.02 // of a page; one that was late, on a machine that does much else, is loaded once more
const whole = '* { content-visibility: visible !important }' // what is off the screen is drawn as well; the pages' own policy would keep it out

// What is taken: where, what has to be there, and what is done first; of those with
// screen only what is on the screen, because something lies over it.
const pages = [
  { name: 'signin', path: '/', shown: '.signin', guest: true },
  { name: 'home', path: '/', shown: '.load svg' },
  { name: 'jobs', path: '/jobs', shown: '.rows .grid-row' },
  { name: 'running', path: '/jobs/llama-7b-sft', shown: '.runkeys' },
  { name: 'fault', path: '/jobs/llama-7b-sft/attempts', shown: '.history, table' },
  { name: 'curves', path: '/jobs/llama-7b-sft/curves', shown: '.uplot' },
  { name: 'figures', path: '/jobs/llama-7b-sft/figures', shown: '.heat i' },
  { name: 'logs', path: '/jobs/llama-7b-sft/logs', shown: '.logs div' },
  { name: 'files', path: '/jobs/llama-7b-sft/files?path=outputs', shown: 'table' },
  { name: 'command', path: '/jobs/llama-7b-sft/command', shown: 'pre' },
  { name: 'waiting', path: '/jobs/vit-l-pretrain', shown: '.truth' },
  { name: 'never', path: '/jobs/moe-16e', shown: '.truth' },
  { name: 'starting', path: '/jobs/sdxl-lora', shown: '.truth' },
  { name: 'paused', path: '/jobs/wav2vec-base', shown: '.truth' },
  { name: 'failed', path: '/jobs/resnet-ab-3', shown: '.cause' },
  { name: 'held', path: '/jobs/nccl-check', shown: '.cause' },
  { name: 'succeeded', path: '/jobs/resnet-ab-2', shown: '.truth' },
  { name: 'batch', path: '/jobs/ocr-sweep', shown: '.truth' },
  { name: 'create', path: '/jobs/new', shown: '.verdict' },
  { name: 'clone', path: '/jobs/new?clone=vit-l-pretrain', shown: '.verdict' },
  { name: 'vip', path: '/vip', shown: 'main table, main .card' },
  { name: 'compare', path: '/compare?job=resnet-ab-1,resnet-ab-2,resnet-ab-3', shown: 'table' },
  { name: 'queue', path: '/queue', shown: 'main table' },
  { name: 'cards', path: '/cluster', shown: '.wall canvas' },
  { name: 'cards-list', path: '/cluster?view=list', shown: '.grid-row' },
  { name: 'cards-four', path: '/cluster', shown: '.wall canvas', place: 'four' },
  { name: 'cards-thousand', path: '/cluster', shown: '.wall canvas', place: 'thousand' },
  { name: 'wall', path: '/cluster?board', shown: '.wall canvas' },
  { name: 'wall-thousand', path: '/cluster?board', shown: '.wall canvas', place: 'thousand' },
  { name: 'node', path: '/nodes/gpu-03', shown: '.facts' },
  { name: 'pools', path: '/pools', shown: 'main tbody tr' },
  { name: 'servers', path: '/servers', shown: 'main tbody tr' },
  { name: 'palette', path: '/queue', shown: 'main table', screen: true, act: (page) => page.keyboard.press('Control+k').then(() => page.getByRole('dialog').waitFor()) },
  { name: 'docs', path: '/docs/{lang}/day/', shown: 'main h1', guest: true },
  { name: 'nothing', path: '/no/such/page', shown: 'main' },
]

const faults = []
const watchShifts = () => {
  new PerformanceObserver((list) => { for (const one of list.getEntries()) if (!one.hadRecentInput) globalThis.shifted = (globalThis.shifted ?? 0) + one.value }).observe({ type: 'layout-shift', buffered: true })
}
// Streams go on for ever; everything else is waited for.
const endless = (url) => /\/v1\/events|follow=true/.test(url)

// settle waits until a page asks for nothing more and has drawn what came.
async function settle(page, asking) {
  for (let since = Date.now(), begin = since; Date.now() - since < quiet;) {
    if (asking.size) since = Date.now()
    if (Date.now() - begin > patience) throw new Error(`${page.url()} asks for ever: ${[...asking].map((request) => request.url()).join(' ')}`)
    await new Promise((done) => setTimeout(done, 25))
  }
  await page.waitForFunction(() => !document.querySelector('main[aria-busy]')) // it is not shown yet
  await page.evaluate(async () => {
    await document.fonts.ready
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))
  })
  await page.waitForFunction(() => document.getAnimations().every((one) => !(one instanceof CSSTransition) || one.playState !== 'running'))
}

// alike reports whether two pictures are the same but for shades: Chromium smooths the
// round corners of one page by one of 255 now so and now so, for ever.
const shade = 8 // of 255
function alike(page, one, other) {
  return page.evaluate(async ({ pictures, shade }) => {
    const [a, b] = await Promise.all(pictures.map(async (text) => {
      const drawn = await createImageBitmap(new Blob([Uint8Array.from(atob(text), (c) => c.charCodeAt(0))]))
      const canvas = new OffscreenCanvas(drawn.width, drawn.height).getContext('2d')
      canvas.drawImage(drawn, 0, 0)
      return canvas.getImageData(0, 0, drawn.width, drawn.height).data
    }))
    return a.length === b.length && a.every((value, i) => Math.abs(value - b[i]) < shade)
  }, { pictures: [one, other].map((picture) => picture.toString('base64')), shade })
}

// shoot takes a picture when two in a row are the same.
async function shoot(page, width, screen) {
  const height = screen ? heights[width] : Math.min(tallest, await page.evaluate(() => document.documentElement.scrollHeight))
  let before
  for (let tries = 0; tries < 20; tries++) {
    const taken = await page.screenshot({ animations: 'disabled', caret: 'hide', style: whole, fullPage: true, clip: { x: 0, y: 0, width, height } })
    if (before && (taken.equals(before) || await alike(page, taken, before))) return taken
    before = taken
    await new Promise((done) => setTimeout(done, 60))
  }
  throw new Error(`${page.url()} never stands still`)
}

const moved = {} // the most that each page moves

async function check(page, name) {
  await page.evaluate(axe)
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'], preload: false }))
  for (const one of violations) faults.push(`${name}: axe ${one.id}: ${one.help}: ${one.nodes.slice(0, 3).map((node) => node.target.join(' ')).join('; ')}`)
}

async function take(browser, lang, chosen) {
  const contexts = {}
  const enter = async (place, guest) => {
    const key = place + guest
    if (contexts[key]) return contexts[key]
    const context = await browser.newContext({ ignoreHTTPSErrors: true, bypassCSP: true, locale: lang === 'zh' ? 'zh-CN' : 'en-US', timezoneId: tour.zone, reducedMotion: 'reduce', viewport: { width: 1440, height: 900 } })
    await context.addInitScript(watchShifts)
    await context.clock.setFixedTime(new Date(tour.now))
    if (!guest) {
      const answer = await context.request.post(tour.places[place].address + '/v1/session', { data: { token: tour.places[place].token }, headers: { 'X-Nomadlike-Request': 'ui' } })
      if (!answer.ok()) throw new Error(`signing in: ${answer.status()} ${await answer.text()}`)
    }
    return (contexts[key] = context)
  }
  for (const one of chosen) {
    const place = one.place ?? 'demo'
    const context = await enter(place, !!one.guest)
    for (const width of widths.filter((one) => !tour.width || one === tour.width)) {
      const name = `${one.name}-${lang}-${width}`
      const page = await context.newPage()
      try {
        page.setDefaultTimeout(patience)
        const asking = new Set()
        page.on('request', (request) => endless(request.url()) || asking.add(request))
        page.on('response', (response) => response.ok() || asking.delete(response.request())) // a refusal that nobody reads has no end
        for (const end of ['requestfinished', 'requestfailed']) page.on(end, (request) => asking.delete(request))
        page.on('pageerror', (error) => faults.push(`${name}: ${error}`))
        await page.setViewportSize({ width, height: heights[width] })
        await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'reduce' })
        let shifted = Infinity
        for (let tries = 0; tries < 2 && shifted > shiftMax; tries++) {
          await visit(page, tour.places[place].address + one.path.replace('{lang}', lang))
          await page.locator(one.shown).first().waitFor({ state: 'attached' })
          await settle(page, asking)
          shifted = Math.min(shifted, await page.evaluate(() => globalThis.shifted ?? 0))
        }
        moved[one.name] = Math.max(moved[one.name] ?? 0, shifted)
        if (shifted > shiftMax) faults.push(`${name}: moves by ${shifted.toFixed(3)} while it loads, twice, more than ${shiftMax}`)
        if (await page.evaluate(() => document.documentElement.scrollWidth > innerWidth)) faults.push(`${name}: is wider than ${width} pixels`)
        await one.act?.(page)
        for (const theme of ['light', 'dark']) {
          await page.emulateMedia({ colorScheme: theme, reducedMotion: 'reduce' })
          await settle(page, asking)
          writeFileSync(join(tour.out, 'taken', `${name}-${theme}.png`), await shoot(page, width, one.screen))
          if (theme === 'light' || width === widths[0]) await check(page, `${name}-${theme}`) // colours do not depend on the width
        }
      } catch (error) {
        faults.push(`${name}: ${String(error).split('\n')[0]}`)
        await page.screenshot({ path: join(tour.out, `${name}-failed.png`) }).catch(() => {})
      } finally {
        await page.close()
      }
    }
    process.stderr.write(`${lang} ${one.name}\n`)
  }
  for (const context of Object.values(contexts)) await context.close()
}

mkdirSync(join(tour.out, 'taken'), { recursive: true })
const browser = await chromium.launch({ executablePath: options.chromium, args: ['--no-sandbox', '--font-render-hinting=full', '--disable-lcd-text', '--force-color-profile=srgb'] })
try {
  const chosen = pages.filter((page) => tour.only.split(',').some((text) => page.name.includes(text)))
  if (!chosen.length) throw new Error(`no page's name has ${tour.only} in it`)
  await Promise.all(['en', 'zh'].map((lang) => take(browser, lang, chosen)))
} finally {
  await browser.close()
}
process.stderr.write('moved while it loaded: ' + Object.entries(moved).filter(([, most]) => most > 0).map(([name, most]) => `${name} ${most.toFixed(3)}`).join(', ') + '\n')
process.stdout.write(JSON.stringify({ faults: faults.sort(), version: browser.version() }))
