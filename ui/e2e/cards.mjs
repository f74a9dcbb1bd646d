// The cards of a cluster of any size, on the page and on the wall screen: what the
// server tells is made here, because no machine has a thousand cards; for page.mjs.
import assert from 'node:assert/strict'
import { signedIn } from './views.mjs'

const words = {
  en: { truth: /^\d+ of 1000 cards in use, \d+ are free, \d+ are held without use$/, gang: 'The largest gang that the free cards allow: 6 nodes, each with 8 of H800.', faults: 'Cards at fault: 2, the first of them gpu-003, card 5.', away: 'One node is away: gpu-007.', fault: 'fault or away', card: 'Card 0', clear: 'Return without a test', time: /Time:/, foreseen: 'As the forecast sees it at', old: 'no server has answered', free: 'free', inHours: 'in 4 hours', ago: '3.5 hours ago', young: /^1 node had not joined: /, was: /^At .*, \d+ of 992 cards were in use, \d+ were free, of \d+ nobody knows$/, missing: ['1 node had not joined: gpu-002.', 'Jobs that are kept no longer held 6 cards', 'There was too much to tell of 1 node, gpu-004'], held: 'From', day: 'The last 24 hours', toNow: 'Back to now', list: 'List', holders: 'Who held which cards' },
  zh: { truth: /^1000 张卡在用 \d+ 张，空闲 \d+ 张，占而未用 \d+ 张$/, gang: '现在最大可启动：6 机，每节点 8 张 H800。', faults: '故障卡 2 张（gpu-003 的 5 号卡等）。', away: '失联节点 1 个（gpu-007）。', fault: '故障或失联', card: '0 号卡', clear: '不检测直接恢复', time: /时间/, foreseen: '的情况', old: '无应答', free: '空闲', inHours: '4 小时后', ago: '3.5 小时前', young: /^1 个节点当时尚未加入/, was: /992 张卡在用 \d+ 张，空闲 \d+ 张，\d+ 张已无记录$/, missing: ['1 个节点当时尚未加入（gpu-002）', '另有 6 张卡由已不再保留的任务占用', '1 个节点的记录过多，较早的未列出（gpu-004）'], held: '开始', day: '过去 24 小时', toNow: '回到现在', list: '列表', holders: '各卡由谁占用' },
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
// past is the last day of a cluster: every node changes its job four hours ago, one
// had not joined then, of one the oldest is left out, and some jobs are forgotten.
const past = (nodes) => {
  const now = Date.now()
  const hour = (n) => new Date(now + n * 3600e3).toISOString()
  const job = (i, name, from, to, ...cards) => ({ job_id: hex(6e6 + i), job: name + '-' + i, project: i % 2 ? 'vision' : 'speech', user: i % 3 ? 'ann' : 'li', attempt: 1, cards, cpu: 8, from, to })
  return { from: hour(-24), to: hour(0), nodes: nodes.map((node, i) => ({
    node_id: node.id, node: node.name, pool: node.pool, cards: node.devices.map((d) => ({ id: d.id, index: d.index })),
    ...(i === 2 && { joined_at: hour(-2) }), ...(i === 4 && { complete_since: hour(-1) }),
    spans: i === 2 || i === 4 ? [] : [job(i >> 1, 'early', hour(-20), hour(-4), ...node.devices.map((_, d) => d)), job(i >> 2, 'late', hour(-4), i % 2 ? null : hour(-3), ...[0, 1, 2].filter((d) => d < node.devices.length))],
    ...(i === 6 && { outages: [{ from: hour(-5), to: hour(-3) }] }),
  })), forgotten: [{ pool: 'shared', cards: 6, nodes: 1, from: hour(-4), to: hour(-3) }] }
}

// serve answers for a cluster in place of the servers, until away is set.
async function serve(page, nodes) {
  const state = { away: false }
  const answer = (json) => (route) => (state.away ? route.abort('connectionrefused') : route.fulfill({ json: json(route) }))
  await page.route(/\/v1\/nodes\?/, answer(() => ({ nodes })))
  await page.route(/\/v1\/nodes\/available/, answer(() => ({ nodes: [], specs: [], models: [] })))
  await page.route(/\/v1\/devices\?/, answer(() => ({ nodes: measured(nodes) })))
  await page.route(/\/v1\/queue\/timeline/, answer(() => timeline(nodes)))
  await page.route(/\/v1\/outlook\/past/, answer(() => past(nodes)))
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
    await page.goto(agent.address + '/cluster?hours=-23') // as the agent itself tells it: it began just now
    await page.locator('.truth', { hasText: w.young }).waitFor()
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

    // The other half of the slider: who held the cards, from when to when, and what
    // nobody knows any more.
    await page.goto(agent.address + '/cluster')
    await page.getByRole('slider', { name: w.time }).fill('-3.5')
    await page.getByRole('heading', { name: w.was }).waitFor()
    await page.getByText(w.ago).waitFor()
    for (const text of w.missing) await page.locator('.truth', { hasText: text }).waitFor()
    const wall = page.locator('.wall canvas')
    await wall.hover({ position: { x: 10, y: 36 } })
    await page.locator('.tip', { hasText: /late-0 \(li\) · .*\d\d:\d\d – .*\d\d:\d\d/ }).waitFor()
    await inspect(page, `${lang}-cards-past-tip`)
    await wall.click({ position: { x: 10, y: 36 } })
    await closer.getByText(w.day).waitFor()
    assert.equal(await closer.locator('tr[aria-current]').count(), 1, 'the job of the moment is marked')
    assert.equal(await closer.getByRole('link', { name: /early-/ }).count(), 1, 'and the one before it stands there, too')
    for (const dark of [false, true]) {
      await page.emulateMedia({ colorScheme: dark ? 'dark' : 'light' })
      for (const width of [1440, 390]) {
        await page.setViewportSize({ width, height: 900 })
        await page.waitForTimeout(200)
        assert.equal(await wide(page), false, `the past is no wider than ${width} pixels`)
        await inspect(page, `${lang}-${dark ? 'dark' : 'light'}-cards-past-${width}`)
      }
    }
    await page.setViewportSize({ width: 1440, height: 900 })
    await page.getByText(w.list, { exact: true }).click()
    await page.getByRole('table', { name: w.holders }).getByText(/late-/).first().waitFor()
    await inspect(page, `${lang}-cards-past-list`)
    await page.getByRole('slider', { name: w.time }).press('End')
    await page.locator('.truth', { hasText: w.foreseen }).waitFor()
    await page.getByRole('button', { name: w.toNow }).click()
    await page.getByRole('heading', { name: w.truth }).waitFor()

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
