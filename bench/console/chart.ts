// How long the console's chart takes from its data to the screen: the built console in Debian's Chromium, on
// its page Storage, whose requests are answered here with as many points as are asked for. The time begins
// when the browser has parsed the last response that the chart needs. It ends when the first frame with the
// bars is on the screen, as the browser reports it (Element Timing). Its parts are the work until the bars
// are in the page, and the frame; the time to parse is beside them. The time until the third frame is
// reported too: it does not depend on the browser's report, and has two frames more. The page is opened for
// the first time, so its code is compiled within this time.
//
//   npm run bench -- console/chart [--points 1200,100000] [--repeat 5]

import { parseArgs } from 'node:util'
import type { Browser, Page } from 'playwright-core'
import { z } from 'zod'
import type { Me } from '../../contract/organisation/tenancy.ts'
import type { StorageUsage } from '../../contract/organisation/usage.ts'
import { systemClock } from '../../server/core/clock.ts'
import { seededUniform } from '../../server/detection/scoring/seeded-random.ts'
import { type BuiltFiles, buildConsole } from '../../server/http/console/console-build.ts'
import { hasChromium, openBrowser, usualBrowser } from '../../tests/console/browser.ts'
import { report, reportAbsent } from '../report.ts'
import { quantile, rounded } from '../samples.ts'

const { values: options } = parseArgs({
  options: {
    points: { type: 'string', default: '1200,10000,100000' },
    repeat: { type: 'string', default: '9' },
  },
})

const msPerDay = 86_400_000
const origin = 'http://console.test'
const signals = ['metrics', 'logs', 'traces'] as const
type Usage = z.output<typeof StorageUsage>

const me = {
  tenant_id: 'acme',
  organisation_name: 'acme',
  token_id: 'tok_1',
  requester: 'token:bench (tok_1)',
  role: 'owner',
} as unknown as Me

/** Usage with a point for each signal and day, the last day today. */
function usageOf(days: number): Usage {
  const random = seededUniform(1)
  const todayMs = systemClock.nowMs() - (systemClock.nowMs() % msPerDay)
  const at = (day: number) => new Date(todayMs - (days - 1 - day) * msPerDay).toISOString()
  const growth = { last_7_days: { rows: 0, bytes: 0 }, previous_7_days: { rows: 0, bytes: 0 } }
  const bounds = { rows: days, bytes: days, oldest: at(0), newest: at(days - 1), ...growth }
  const stored = signals.map((signal) => ({
    signal,
    ...bounds,
    retention: { days: null, erases_before: null, last_erasure: null },
    days: Array.from({ length: days }, (_, day) => {
      const rows = Math.round(1_000 + 9_000 * random())
      return { day: at(day).slice(0, 10), rows, bytes: rows * 40 }
    }),
  }))
  return { tenant_id: 'acme', ...bounds, signals: stored }
}

/** Answers every request of the page: files of the console, and what it reads. */
async function answerFor(page: Page, files: BuiltFiles, usage: Usage): Promise<void> {
  const list = { items: [], next_cursor: null }
  const bodies: Readonly<Record<string, unknown>> = {
    '/me': me,
    '/usage/storage': usage,
    '/usage/storage/services': {
      ...{ tenant_id: 'acme', range_start: usage.oldest, range_end: usage.newest },
      ...{ services: [], others: { services: 0, rows: 0, bytes: 0 } },
    },
    '/usage/ingest': { today: { rows_accepted: 0, requests_refused: 0 } },
    '/usage/storage/retention': {},
  }
  await page.route('**/*', (route) => {
    const { pathname } = new URL(route.request().url())
    if (!pathname.startsWith('/console')) return route.fulfill({ json: bodies[pathname] ?? list })
    const path = pathname.replace('/console/', '')
    const file = files.get(path)
    const type = path.endsWith('.css') ? 'text/css' : path.endsWith('.js') ? 'text/javascript' : 'text/html'
    return route.fulfill({ contentType: type, body: file ?? files.get('index.html') ?? '' })
  })
}

/**
 * Runs in the page: `drawnAfter(start)` resolves to the time since `start` when the first frame with what is
 * in the page is on the screen. It adds a text, which is painted in that frame, and whose time the browser
 * reports. Bars have no such report of their own. `thirdFrameAfter(start)` resolves when the third frame
 * begins; each changes a pixel, because one without a change is not drawn. `chartDrawn` has the times from
 * the data.
 */
const watch = `(() => {
  const parse = Response.prototype.json
  let start = null
  let parseMs = 0
  Response.prototype.json = async function () {
    if (!/^\\/usage\\/storage(?:\\/erased)?$/.test(new URL(this.url).pathname)) return parse.call(this)
    const text = await this.text()
    const begin = performance.now()
    const value = JSON.parse(text)
    start = performance.now()
    parseMs += start - begin
    return value
  }
  window.drawnAfter = (begin) => new Promise((resolve) => {
    const text = document.createElement('span')
    text.setAttribute('elementtiming', 'drawn-' + begin)
    text.textContent = 'drawn'
    text.style.cssText = 'position: fixed; top: 0; left: 0; z-index: 1000'
    new PerformanceObserver((list, observer) => {
      const entry = list.getEntries().find(({ identifier }) => identifier === 'drawn-' + begin)
      if (entry === undefined) return
      observer.disconnect()
      text.remove()
      resolve(entry.renderTime - begin)
    }).observe({ type: 'element' })
    document.body.append(text)
  })
  window.thirdFrameAfter = (begin) => new Promise((resolve) => {
    const pixel = document.body.appendChild(document.createElement('div'))
    pixel.style.cssText = 'position: fixed; top: 0; left: 0; width: 1px; height: 1px'
    let frames = 0
    const next = () => {
      frames += 1
      pixel.style.background = frames % 2 === 0 ? 'black' : 'white'
      if (frames < 3) return requestAnimationFrame(next)
      pixel.remove()
      resolve(performance.now() - begin)
    }
    requestAnimationFrame(next)
  })
  window.chartDrawn = new Promise((resolve) => {
    const bars = new MutationObserver(() => {
      if (start === null || document.querySelector('svg.bars path') === null) return
      bars.disconnect()
      const inPageMs = performance.now() - start
      const ends = Promise.all([window.drawnAfter(start), window.thirdFrameAfter(start)])
      resolve(ends.then(([drawMs, thirdMs]) => ({ parseMs, inPageMs, drawMs, thirdMs })))
    })
    bars.observe(document, { subtree: true, childList: true })
  })
})()`

/** Presses the key on the chart, inside the page, and waits for the frame. */
const stepByKey = `(async () => {
  const chart = document.querySelector('.chart-plot')
  chart.focus()
  const start = performance.now()
  chart.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowLeft', bubbles: true }))
  return window.drawnAfter(start)
})()`

interface Drawn {
  /** Before the time from the data to the frame. */
  readonly parseMs: number
  /** From the data until the bars are in the page, which is a part of `drawMs`. */
  readonly inPageMs: number
  readonly drawMs: number
  readonly thirdMs: number
  readonly stepMs: number
}

const ms = z.number().nonnegative()
const ChartTimes = z.object({ parseMs: ms, inPageMs: ms, drawMs: ms, thirdMs: ms })

async function draw(browser: Browser, files: BuiltFiles, usage: Usage): Promise<Drawn> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } })
  const page = await context.newPage()
  await page.addInitScript(watch)
  await answerFor(page, files, usage)
  await page.goto(`${origin}/console/acme/storage?from=${usage.oldest}&to=now`)
  const drawn = ChartTimes.parse(await page.evaluate('window.chartDrawn'))
  const stepMs = Number(await page.evaluate(stepByKey))
  await context.close()
  return { ...drawn, stepMs }
}

async function measure(): Promise<void> {
  const files = await buildConsole()
  const browser = await openBrowser(usualBrowser)
  try {
    for (const points of options.points.split(',').map(Number)) {
      const usage = usageOf(Math.ceil(points / signals.length))
      const drawn: Drawn[] = []
      for (let i = 0; i < Number(options.repeat); i++) drawn.push(await draw(browser, files, usage))
      const of = (name: keyof Drawn, q: number) =>
        rounded(
          quantile(
            drawn.map((one) => one[name]),
            q,
          ),
          0,
        )
      report('chart', {
        points: points.toLocaleString('en'),
        'parsed before p50 ms': of('parseMs', 0.5),
        'bars in the page p50 ms': of('inPageMs', 0.5),
        'drawn p50 ms': of('drawMs', 0.5),
        'drawn worst ms': of('drawMs', 1),
        'third frame p50 ms': of('thirdMs', 0.5),
        'a step by a key p50 ms': of('stepMs', 0.5),
      })
    }
  } finally {
    await browser.close()
  }
}

if (hasChromium) await measure()
else reportAbsent('the chart', 'Chromium is not installed')
