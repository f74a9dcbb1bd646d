// The page of a job in each state, against a real agent with eight cards: one that
// runs after a fault, with curves and checkpoints, one that failed where another had
// succeeded, and one that waits for what others hold; in both languages, both themes
// and three widths; the moment that all charts and logs share, and a link to a rank;
// for page.mjs.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startAgent } from './agent.mjs'
import { cards, signedIn } from './views.mjs'

const words = {
  en: { trials: 'Trials', keys: 'Key figures', faults: 'Faults', noticed: 'Noticed', step: 'First step', cause: 'Why it failed', differs: 'What differs from', forecast: 'Forecast', held: 'Held by', again: 'Submit again', apply: 'Apply', dialog: /Submit again|Priority/, cancel: 'Cancel', curves: 'Curves', logs: 'Logs', time: /^Time/, lines: 'Lines at that time', rank: 'Rank 0', timeline: 'Timeline', waits: /Queued for/ },
  zh: { trials: '各次试验', keys: '关键指标', faults: '故障经过', noticed: '发现', step: '第一步', cause: '失败原因', differs: '与成功的任务相比有何不同', forecast: '排队预测', held: '占用者', again: '重新提交', apply: '采用', dialog: /重新提交|优先级/, cancel: '取消', curves: '曲线', logs: '日志', time: /^时间/, lines: '该时刻的日志', rank: 'rank 0', timeline: '时间线', waits: /已排队/ },
}

const file = (name, { count = 1, command, more = '', task = '' }) => `job "${name}" {
  time_limit       = "4h"
  expected_runtime = "2h"
  ${more}
  resources {
    cpu    = 0.05
    memory = "48MiB"
    device "test/card" {
      count = ${count}
    }
  }
  task {
    command = "${command}"
    ${task}
  }
}
`
// It writes its loss with every step, makes a checkpoint known every tenth, and its
// first attempt is killed in the midst of it.
const trains = `bash -c 'loss=300; for i in $(seq 1 100000); do loss=$((loss * 97 / 100 + 3)); echo step $i loss $((loss / 100)).$((loss % 100 + 100)); if [ $((i % 10)) = 0 ]; then nomadlike checkpoint -step $i /ckpt/$i; fi; if [ $NOMADLIKE_ATTEMPT = 1 ] && [ $i = 25 ]; then kill -9 $$; fi; sleep 0.3; done'`

export async function job(browser, binary, inspect) {
  const agent = await startAgent(binary, cards)
  const run = async (name, given, ...flags) => {
    const path = join(agent.place, name + '.hcl')
    writeFileSync(path, file(name, given))
    await agent.cli('job', 'run', ...flags, path).catch((failure) => { if (!flags.includes('-wait')) throw failure })
  }
  try {
    const token = await agent.secret('admin', 'ada')
    await run('trains', { count: 6, command: trains, more: 'preemptible = true\n  checkpoint {\n    max_resumes = 3\n  }' }, '-detach')
    await run('resnet-1', { command: 'echo well', task: 'env = { BATCH_SIZE = "256" }' }, '-wait')
    await run('resnet-2', { command: `bash -c 'for i in $(seq 1 20); do echo step $i >&2; done; echo \\"Traceback (most recent call last):\\" >&2; echo \\"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB.\\" >&2; exit 1'`, task: 'env = { BATCH_SIZE = "320" }' }, '-wait')
    const sweep = join(agent.place, 'tune.hcl')
    writeFileSync(sweep, file('tune', { command: "bash -c 'for i in 1 2; do echo step=$i loss=$NOMADLIKE_PARAM_LR; done'", more: 'sweep "grid" {\n    param "lr" {\n      values = [0.5, 0.25]\n    }\n    param "opt" {\n      values = ["adam", "sgd"]\n    }\n    parallel = 1\n    metric = "loss"\n  }' }))
    await agent.cli('job', 'run', '-wait', sweep)
    await run('waits', { count: 4, command: 'sleep 600' }, '-detach')
    for (const lang of ['en', 'zh']) {
      const { page, context } = await signedIn(browser, agent, token, lang, '/jobs/trains')
      const w = words[lang]
      const complaints = []
      page.on('pageerror', (error) => complaints.push(String(error)))
      const states = {
        running: async () => {
          await page.locator('.tag.state-running').first().waitFor().catch(async (failure) => {
            process.stderr.write(`trains does not run:\n${await agent.cli('job', 'status', 'trains')}\n${await agent.cli('job', 'history', 'trains')}\n`)
            throw failure
          })
          const keys = page.getByRole('region', { name: w.keys })
          await keys.locator('.spark').nth(1).waitFor()
          const story = page.getByRole('region', { name: w.faults })
          await story.getByRole('rowheader', { name: w.noticed }).waitFor()
          await story.getByRole('rowheader', { name: w.step }).waitFor()
          await page.locator('.uplot').waitFor()
        },
        failed: async () => {
          const cause = page.getByRole('region', { name: w.cause })
          await cause.locator('.err', { hasText: 'CUDA out of memory' }).waitFor()
          await cause.getByText(w.differs).waitFor()
          await cause.getByRole('row', { name: /BATCH_SIZE/ }).getByText('320').waitFor()
        },
        waiting: async () => {
          await page.locator('.truth', { hasText: w.waits }).waitFor()
          const forecast = page.getByRole('region', { name: w.forecast })
          await forecast.getByRole('table', { name: w.held }).getByRole('link', { name: 'trains' }).waitFor()
          await forecast.getByRole('button', { name: w.again }).or(forecast.getByRole('button', { name: w.apply })).or(forecast.locator('.deeds')).first().waitFor()
        },
      }
      for (const [state, name] of [['running', 'trains'], ['failed', 'resnet-2'], ['waiting', 'waits']]) {
        await page.goto(`${agent.address}/jobs/${name}`)
        await states[state]()
        for (const dark of [false, true]) {
          await page.emulateMedia({ colorScheme: dark ? 'dark' : 'light' })
          for (const width of [1440, 1024, 390]) {
            await page.setViewportSize({ width, height: 1000 })
            await page.waitForTimeout(250)
            assert.equal(await page.evaluate(() => document.documentElement.scrollWidth > innerWidth), false, `a ${state} job is no wider than ${width} pixels`)
            await inspect(page, `${lang}-${dark ? 'dark' : 'light'}-job-${state}-${width}`, true)
          }
        }
        await page.emulateMedia({ colorScheme: 'light' })
        await page.setViewportSize({ width: 1440, height: 1000 })
      }

      // A deed asks once, shows its command line, and does nothing before.
      const deed = page.getByRole('region', { name: w.forecast }).getByRole('button', { name: w.again }).or(page.getByRole('region', { name: w.forecast }).getByRole('button', { name: w.apply })).first()
      if (await deed.isVisible()) {
        await deed.click()
        await page.getByRole('dialog').locator('.cli', { hasText: 'nomadlike job' }).waitFor()
        await inspect(page, `${lang}-job-help`)
        await page.keyboard.press('Escape')
        await page.getByRole('dialog').waitFor({ state: 'detached' })
        await page.locator('.tag.state-queued').first().waitFor()
      }

      // The trials of a sweep, best first, and one of them.
      await page.goto(`${agent.address}/jobs/tune`)
      const trials = page.getByRole('region', { name: w.trials, exact: true })
      await trials.getByRole('row').nth(1).getByText('0.25').first().waitFor()
      assert.deepEqual(await trials.getByRole('row').evaluateAll((rows) => rows.slice(1).map((row) => row.cells[0].innerText)), ['2', '3', '0', '1'], 'the best trial is first')
      await trials.locator('svg').first().waitFor()
      await inspect(page, `${lang}-job-trials`, true)
      await trials.getByRole('link', { name: '3', exact: true }).click()
      await page.waitForURL(/subjob=3/)
      await page.setViewportSize({ width: 390, height: 1000 })
      await inspect(page, `${lang}-job-trials-390`, true)
      await page.setViewportSize({ width: 1440, height: 1000 })

      // One moment for curves, use and lines: by the pointer and by keys.
      await page.goto(`${agent.address}/jobs/trains/curves`)
      const loss = page.getByRole('region', { name: 'loss', exact: true })
      await loss.locator('.u-over').waitFor()
      await page.getByRole('region', { name: w.lines }).locator('div', { hasText: /^.*step \d+/ }).first().waitFor()
      const box = await loss.locator('.u-over').boundingBox()
      await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2)
      await page.mouse.move(box.x + box.width * 0.7, box.y + box.height / 2)
      await page.getByRole('region', { name: w.lines }).locator('.here').waitFor()
      const slider = page.getByRole('slider', { name: w.time }).first()
      const before = await slider.getAttribute('aria-valuetext')
      await slider.focus()
      for (let i = 0; i < 20; i++) await page.keyboard.press('ArrowLeft')
      assert.notEqual(await slider.getAttribute('aria-valuetext'), before, 'keys move the moment')
      await inspect(page, `${lang}-job-curves`, true)
      await page.setViewportSize({ width: 390, height: 1000 })
      await inspect(page, `${lang}-job-curves-390`, true)
      await page.setViewportSize({ width: 1440, height: 1000 })
      await page.getByRole('tab', { name: w.logs, exact: true }).click()
      await page.locator('.logs .here').waitFor()
      await inspect(page, `${lang}-job-logs-moment`)

      // A link to a rank.
      await page.goto(`${agent.address}/jobs/trains#rank=0`)
      const panel = page.getByRole('region', { name: w.rank, exact: true })
      await panel.getByText('NOMADLIKE_ATTEMPT=').first().waitFor({ state: 'attached' })
      await panel.locator('.logs div', { hasText: /step \d+/ }).first().waitFor()
      await inspect(page, `${lang}-job-rank`, true)
      assert.deepEqual(complaints, [], 'the browser complains')
      await context.close()
    }
    for (const name of ['trains', 'waits']) await agent.cli('job', 'stop', name)
  } finally {
    await agent.stop()
  }
}
