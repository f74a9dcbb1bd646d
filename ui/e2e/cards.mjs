// The cards of a cluster of any size, on the page and on the wall screen: what the
// server tells is made here, because no machine has a thousand cards; for page.mjs.
import assert from 'node:assert/strict'
import { signedIn } from './views.mjs'

const words = {
  en: { truth: /^\d+ of 1000 cards in use, \d+ are free, \d+ are held without use$/, gang: 'The largest gang that the free cards allow: 6 nodes, each with 8 of H800.', faults: 'Cards at fault: 2, the first of them gpu-003, card 5.', away: 'One node is away: gpu-007.', fault: 'fault or away', card: 'Card 0', clear: 'Return without a test', time: /Time:/, foreseen: 'As the forecast sees it at', old: 'no server has answered', free: 'free', inHours: 'in 4 hours' },
  zh: { truth: /^1000 张卡在用 \d+ 张，空闲 \d+ 张，占而未用 \d+ 张$/, gang: '现在最大可启动：6 机，每节点 8 张 H800。', faults: '故障卡 2 张（gpu-003 的 5 号卡等）。', away: '失联节点 1 个（gpu-007）。', fault: '故障或失联', card: '0 号卡', clear: '不检测直接恢复', time: /时间/, foreseen: '的情况', old: '无应答', free: '空闲', inHours: '4 小时后' },
}
const hex = (n) => n.toString(16).padStart(32, '0')
const model = (i) => (i % 3 ? 'H800' : 'A800')
const sick = (i, d) => (i === 3 && d === 5) || (i === 40 && d === 0)
const usedOf = (i) => (i % 18 === 17 ? 0 : i % 5 ? 8 : 3)
// fleet is a cluster of so many nodes of so many cards, always the same.
const fleet = (nodes, cards) => Array.from({ length: nodes }, (_, i) => ({
  id: hex(9e6 + i), name: `gpu-${String(i).padStart(3, '0')}`, addr: '10.0.0.1', pool: i % 2 ? 'train' : 'shared', topology: [`rack-${i % 6}`], version: 'test', capacity: { cpu: 128, memory: 2 ** 40 }, status: i === 7 ? 'lost' : 'ready', eligibility: i === 9 ? 'draining' : 'eligible', registered_at: '2026-11-20T08:00:00Z',
  devices: Array.from({ length: cards }, (_, d) => ({ id: `${i}-${d}`, index: d, kind: 'nvidia/gpu', model: model(i), memory: 80 * 2 ** 30, healthy: !sick(i, d), numa_node: d >> 2 })),
  used: { cpu: 64, memory: 2 ** 39, allocs: 1, ...(i === 21 && { claim: 'promised' }), devices: Object.fromEntries(Array.from({ length: Math.min(cards, i === 21 ? 0 : usedOf(i)) }, (_, d) => [`${i}-${d}`, 'alloc' + (i >> 1)])) },
}))
const owner = (i) => ({ job_id: hex(7e6 + (i >> 1)), job: `train-${i >> 1}`, alloc_id: 'a', attempt: 1, rank: i % 2, project: i % 4 < 2 ? 'vision' : 'speech', user: i % 3 ? 'ann' : 'li' })
const gauges = (i, d) => ({ utilization_ratio: i % 11 === 1 ? 0 : 0.35 + ((i * 7 + d * 3) % 13) / 20, temperature_celsius: 50 + ((i + d) % 20), memory_used_bytes: 60 * 2 ** 30 })
const measured = (nodes) => nodes.map((node, i) => ({ id: node.id, name: node.name, cpu: 128, measured: true, devices: node.devices.map((d, at) => ({ ...d, used: !!node.used.devices[d.id], gauges: gauges(i, at), ...(node.used.devices[d.id] && { owner: owner(i) }), ...(!d.healthy && { health: { id: 'device.nvidia_xid', params: { xid: '94', code: '94' } }, attrs: { fault: 'quarantine' } }) })) }))
const timeline = (nodes) => {
  const now = Date.now()
  const hour = (n) => new Date(now + n * 3600e3).toISOString()
  return { from: hour(0), to: hour(12), rows: nodes.map((node, i) => ({ node_id: node.id, node: node.name, pool: node.pool, bars: [
    { kind: 'running', job_id: owner(i).job_id, job_name: owner(i).job, project: 'vision', subjob: 0, from: hour(-2), to: hour(1 + (i % 7)), p50: null, p90: null, devices: 8 },
    { kind: 'forecast', job_id: hex(8e6), job_name: 'next', project: 'vision', subjob: 0, from: hour(i % 7 < 2 ? 3 : 11), to: hour(12), p50: null, p90: null, devices: 4 },
  ] })) }
}

// serve answers for a cluster in place of the servers, until away is set.
async function serve(page, nodes) {
  const state = { away: false }
  const answer = (json) => (route) => (state.away ? route.abort('connectionrefused') : route.fulfill({ json: json(route) }))
  await page.route(/\/v1\/nodes\?/, answer(() => ({ nodes })))
  await page.route(/\/v1\/nodes\/available/, answer(() => ({ nodes: [], specs: [], models: [] })))
  await page.route(/\/v1\/devices\?/, answer(() => ({ nodes: measured(nodes) })))
  await page.route(/\/v1\/queue\/timeline/, answer(() => timeline(nodes)))
  await page.route(/\/v1\/nodes\/[0-9a-f]{32}$/, answer((route) => ({ ...nodes.find((node) => route.request().url().endsWith(node.id)), allocations: [], may: ['drain'] })))
  await page.route(/\/v1\/nodes\/[0-9a-f]{32}\/devices$/, answer((route) => measured(nodes).find((node) => route.request().url().includes(node.id))))
  return state
}

const sum = (page) => page.evaluate(() => globalThis.shifted ?? 0)
const watchShifts = () => new PerformanceObserver((list) => { for (const one of list.getEntries()) if (!one.hadRecentInput) globalThis.shifted = (globalThis.shifted ?? 0) + one.value }).observe({ type: 'layout-shift', buffered: true })
const wide = (page) => page.evaluate(() => document.documentElement.scrollWidth > innerWidth)
const tall = (page) => page.evaluate(() => document.documentElement.scrollHeight > innerHeight)

export async function cardsOfAnySize(browser, agent, token, inspect) {
  for (const lang of ['en', 'zh']) {
    const w = words[lang]
    const { context, page } = await signedIn(browser, agent, token, lang, '/queue')
    await page.addInitScript(watchShifts)
    const large = fleet(125, 8)
    const state = await serve(page, large)
    await page.goto(agent.address + '/cluster')
    await page.getByRole('heading', { name: w.truth }).waitFor()
    for (const text of [w.gang, w.faults, w.away]) await page.locator('.truth', { hasText: text }).waitFor()
    assert.ok((await sum(page)) <= 0.02, `the wall moves by ${await sum(page)} while it loads`)
    const box = await page.locator('.wall canvas').boundingBox()
    assert.ok(box.y + box.height <= 900, 'a thousand cards are on one screen')

    // Faults are one click away, and what an operator can do about them another.
    await page.locator('.chip', { hasText: w.fault }).click()
    await page.locator('.wall canvas').click({ position: { x: 20, y: 60 } })
    const closer = page.locator('.closer')
    await closer.getByText(w.card).waitFor()
    await closer.getByRole('button', { name: w.clear, exact: true }).waitFor()
    for (const dark of [false, true]) {
      await page.emulateMedia({ colorScheme: dark ? 'dark' : 'light' })
      for (const width of [1440, 1024, 390]) {
        await page.setViewportSize({ width, height: 900 })
        await page.waitForTimeout(200)
        assert.equal(await wide(page), false, `the cards are no wider than ${width} pixels`)
        await inspect(page, `${lang}-${dark ? 'dark' : 'light'}-cards-${width}`)
      }
    }
    await page.setViewportSize({ width: 1440, height: 900 })
    await page.goto(agent.address + '/cluster?group=rack&colour=project')
    await page.locator('.wall-group', { hasText: 'rack-5' }).waitFor()
    await page.getByRole('slider', { name: w.time }).fill('4')
    await page.locator('.truth', { hasText: w.foreseen }).waitFor()
    await page.getByText(w.inHours).waitFor()
    await inspect(page, `${lang}-cards-later`)

    // The wall screen: one screen, without anything around it, for any size; and it
    // goes on when the servers do not.
    for (const [nodes, cards] of [[1, 4], [125, 8], [1250, 8]]) {
      await page.unrouteAll({ behavior: 'ignoreErrors' })
      const some = await serve(page, fleet(nodes, cards))
      await page.goto(agent.address + '/cluster?board')
      await page.locator('.screen-figures').getByText(w.free, { exact: true }).waitFor()
      await page.locator('.wall canvas').waitFor()
      await page.waitForTimeout(300)
      assert.equal(await tall(page), false, `${nodes * cards} cards are on one screen`)
      const size = await page.locator('.screen-figures dd').first().evaluate((one) => parseFloat(getComputedStyle(one).fontSize))
      assert.ok(size >= 100, `a figure of ${size} pixels is read from five metres`)
      await inspect(page, `${lang}-board-${nodes * cards}`)
      some.away = true
    }
    assert.equal(state.away, false)
    await page.clock.install()
    await page.clock.fastForward('01:00:00')
    await page.locator('.screen-foot .bad', { hasText: w.old }).waitFor()
    await page.locator('.wall canvas').waitFor()
    await inspect(page, `${lang}-board-old`)
    await context.close()
  }
}
