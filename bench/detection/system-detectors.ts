// Measures the system detectors. First that of request rates, run by run over a sliding window as the service
// runs it, on requests without incidents and with planted ones: eight kinds of traffic, six weeks each from
// the first day of an organisation. Its reports of the first two weeks are counted separately, because no
// week is known yet. Then all of them, with the demo's own detectors, at their first run over the demo's
// shop.
//
//   npm run bench -- detection/system-detectors [seeds, 2] [--shop-seeds 6] [--report FILE]
//
// --report writes a page with the first seed: each kind of traffic with its drops, and the series of the shop
// with an anomaly. Incidents of the shop that a series does not show are drawn as missed.

import { parseArgs } from 'node:util'
import { DrawnBuckets } from '../../server/cli/charts/drawn-buckets.ts'
import { seriesChart } from '../../server/cli/charts/series-chart.ts'
import { demoDetectors } from '../../server/demo/detectors.ts'
import { definitionOf } from '../../server/detection/detection-fixture.ts'
import { type DetectorDefinition, methodChoiceOf } from '../../server/detection/detectors/detector.ts'
import { systemDetectors } from '../../server/detection/detectors/system-detectors.ts'
import { evaluateSeries } from '../../server/detection/runs/evaluate.ts'
import { FilePoints } from '../../server/detection/runs/file-replay.ts'
import { narrowestStep, planRun } from '../../server/detection/runs/run-plan.ts'
import { seededNormal } from '../../server/detection/scoring/seeded-noise.ts'
import { seededUniform } from '../../server/detection/scoring/seeded-random.ts'
import { report } from '../report.ts'
import { rounded } from '../samples.ts'
import { poisson } from './judging.ts'
import { ReportPage } from './report-page.ts'
import { type Span, servedSpans } from './served-openings.ts'
import { shopSeries } from './shop-series.ts'

const { positionals, values: options } = parseArgs({
  allowPositionals: true,
  options: {
    'shop-seeds': { type: 'string', default: '6' },
    report: { type: 'string' },
  },
})
const firstSeeds = (count: number) => Array.from({ length: count }, (_, i) => i + 1)
const seeds = firstSeeds(Number(positionals[0] ?? 2))
const page = new ReportPage('The system detectors, and those of the demo')

const minuteMs = 60_000
const weekMinutes = 10_080
const bucketMs = 5 * minuteMs
/** Monday 2026-08-31. */
const firstMs = Date.UTC(2026, 7, 31)
const weeks = 6
const dropMinutes = 90
/** Rare, so that no detector has learnt from the one before. */
const dropDays = [24, 38]

const ofRates = findDetectorOfRates()

function findDetectorOfRates(): DetectorDefinition {
  const found = systemDetectors.find(({ metric_key }) => metric_key === 'spans.rate')
  if (found === undefined) throw new Error('There is no system detector of request rates')
  return found
}

const meet = (a: Span, b: Span) => a.startMs < b.endMs && a.endMs > b.startMs

/** Every anomaly that the detector would have recorded, had it been created at the first row. */
function served(counts: Float64Array, drawn?: DrawnBuckets): Promise<Span[]> {
  const points = new FilePoints(
    Array.from(counts, (count, i) => ({
      timeNs: BigInt(firstMs + i * bucketMs) * 1_000_000n,
      value: (count * 1000) / bucketMs,
    })),
  )
  return servedSpans(points, ofRates, points.startNs ?? 0n, drawn)
}

const isWeekend = (day: number) => day % 7 >= 5
const daily = (share: number, depth: number) => 1 + depth * Math.sin(2 * Math.PI * (share - 0.3))
const office = (day: number, share: number) =>
  (share > 0.3 && share < 0.75 ? 1.8 : 0.2) * (isWeekend(day) ? 0.15 : 1)

/** Mean requests in five minutes of a day and a share of it. */
const kinds: Record<string, (day: number, share: number) => number> = {
  'shop, 25 in five minutes': (day, share) => 25 * daily(share, 0.7) * (isWeekend(day) ? 1.15 : 1),
  'shop, 4 in five minutes': (_, share) => 4 * daily(share, 0.7),
  'shop, 2,000 in five minutes': (day, share) => 2000 * daily(share, 0.7) * (isWeekend(day) ? 1.15 : 1),
  'office, 30 in five minutes': (day, share) => 30 * office(day, share),
  'office, 1,000 in five minutes': (day, share) => 1000 * office(day, share),
  'no rhythm, 2 in five minutes': () => 2,
  'no rhythm, 300 in five minutes': () => 300,
  'nightly job': (_, share) => (share > 0.1 && share < 0.14 ? 400 : 20),
}

/** Requests of six weeks, with a drop of three of four for ninety minutes each other day where wanted. */
function trafficOf(kind: string, seed: number, hasDrops: boolean) {
  const [uniform, normal] = [seededUniform(seed), seededNormal(seed + 1000)]
  const rate = kinds[kind] ?? (() => 0)
  const drops: number[] = []
  let mood = 0
  const counts = Float64Array.from({ length: (weeks * weekMinutes) / 5 }, (_, i) => {
    const day = Math.floor(i / 288)
    if (hasDrops && i % 288 === 0 && dropDays.includes(day)) {
      const busy = Array.from({ length: 270 }, (_, j) => j).filter(
        (j) => rate(day, j / 288) >= rate(day, 0.6) * 0.8,
      )
      drops.push(i + (busy[Math.floor(uniform() * busy.length)] ?? 0))
    }
    mood = 0.97 * mood + Math.sqrt(1 - 0.97 ** 2) * normal()
    const isDropped = drops.some((start) => i >= start && i < start + dropMinutes / 5)
    const mean = rate(day, (i % 288) / 288) * Math.exp(0.06 * mood) * (isDropped ? 0.25 : 1)
    return Math.max(0, Math.round(mean < 30 ? poisson(mean, uniform) : mean + Math.sqrt(mean) * normal()))
  })
  return { counts, drops }
}

async function foundInTraffic(kind: string) {
  const knownMs = firstMs + 2 * weekMinutes * minuteMs
  let [young, grown, found, planted] = [0, 0, 0, 0]
  for (const seed of seeds) {
    const calm = await served(trafficOf(kind, seed, false).counts)
    young += calm.filter(({ startMs }) => startMs < knownMs).length
    grown += calm.filter(({ startMs }) => startMs >= knownMs).length
    const { counts, drops } = trafficOf(kind, seed, true)
    const events = drops
      .map((i) => firstMs + i * bucketMs)
      .map((startMs) => ({ startMs, endMs: startMs + dropMinutes * minuteMs }))
    const drawn = options.report !== undefined && seed === seeds[0] ? new DrawnBuckets() : undefined
    const anomalies = await served(counts, drawn)
    if (drawn !== undefined) draw({ title: kind, ...drawn.whole(), anomalies, events })
    planted += events.length
    found += events.filter((event) => anomalies.some((one) => meet(event, one))).length
  }
  return {
    requests: kind,
    'false in the first two weeks': young,
    'false a series and week, then': rounded(grown / seeds.length / (weeks - 2), 3),
    'drops found': rounded(found / planted),
  }
}

interface Drawn extends Pick<Parameters<typeof seriesChart>[0], 'title' | 'series' | 'scores'> {
  readonly anomalies: readonly Span[]
  readonly events: readonly Span[]
}

function draw(drawn: Drawn): void {
  page.addSeries(seriesChart(drawn), { alarms: drawn.anomalies.length, events: drawn.events.length })
}

/**
 * Anomalies that all detectors of the demo find in its shop at their first run, by incident, and false ones.
 */
function foundInShop(seed: number) {
  const shop = shopSeries(seed)
  const found = new Map<string, string[]>(shop.incidents.map(({ key }) => [key, []]))
  const foundMinutes = new Map<string, number>()
  const wrong: string[] = []
  for (const definition of [
    ...systemDetectors,
    ...demoDetectors.map((draft) => definitionOf({ ...draft })),
  ]) {
    const choice = methodChoiceOf(definition)
    if (choice === null) throw new Error('invalid params')
    const plan = planRun(definition, narrowestStep(definition.window_minutes), shop.anchorMs + 30_000)
    for (const [service, series] of shop.read(definition.metric_key, plan)) {
      const at = (bucket: number) =>
        Number(series.startNs / 1_000_000n) + bucket * series.stepMinutes * minuteMs
      const { episodes, scores } = evaluateSeries(series, choice)
      const anomalies: Span[] = []
      for (const episode of episodes) {
        const raised = { startMs: at(episode.startIndex), endMs: at(episode.lastIndex + 1) }
        if (at(episode.openedIndex + 1) <= Number(plan.windowStartNs / 1_000_000n)) continue
        anomalies.push(raised)
        const about = shop.incidents.find((one) => meet(raised, one))
        if (about === undefined) {
          const time = new Date(raised.startMs).toISOString().slice(0, 16)
          wrong.push(`${definition.metric_key} ${service} ${time}`)
          continue
        }
        found.get(about.key)?.push(`${definition.metric_key} ${service}`)
        const minutes = (at(episode.openedIndex + 1) - about.startMs) / minuteMs
        foundMinutes.set(about.key, Math.min(minutes, foundMinutes.get(about.key) ?? minutes))
      }
      if (options.report === undefined || seed !== 1 || anomalies.length === 0) continue
      const title = `shop, ${definition.metric_key} ${service}`
      draw({ title, series, scores, anomalies, events: shop.incidents })
    }
  }
  const counts = Object.fromEntries(
    [...found].flatMap(([key, all]) => [
      [key, all.length],
      [`${key}, told after min`, foundMinutes.get(key) ?? null],
    ]),
  )
  return { seed, ...counts, false: wrong.length, 'what was false': wrong.join('; ') }
}

for (const kind of Object.keys(kinds))
  report('The system detector of request rates', await foundInTraffic(kind))
for (const seed of firstSeeds(Number(options['shop-seeds'])))
  report('Anomalies of the demo by incident', foundInShop(seed))
if (options.report !== undefined) page.write(options.report)
