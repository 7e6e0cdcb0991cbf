// Measures the system detectors. First that of request rates, run by run over a sliding window as the service
// runs it, on requests without incidents and with planted ones: eight kinds of traffic, six weeks each from
// the first day of an organisation. Its reports of the first two weeks are counted separately, because no
// week is known yet. Then all of them, with the demo's own detectors, at their first run over the demo's
// shop. With `--field`, that of request rates also on labelled series of real operations (AIOps Challenge
// 2018), in buckets of its schedule and in a unit of their own.
//
//   npm run bench -- detection/system-detectors [seeds, 2] [--shop-seeds 6] [--field FOLDER]
//     [--report FILE]
//
// --report writes a page with the first seed: each kind of traffic with its drops, and the series of the shop
// with an anomaly. Incidents of the shop that a series does not show are drawn as missed.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { gunzipSync } from 'node:zlib'
import { DrawnBuckets } from '../../server/cli/charts/drawn-buckets.ts'
import { seriesChart } from '../../server/cli/charts/series-chart.ts'
import { demoDetectors } from '../../server/demo/detectors.ts'
import { definitionOf } from '../../server/detection/detection-fixture.ts'
import { type DetectorDefinition, methodChoiceOf } from '../../server/detection/detectors/detector.ts'
import { systemDetectors } from '../../server/detection/detectors/system-detectors.ts'
import { evaluateSeries } from '../../server/detection/runs/evaluate.ts'
import { FilePoints, replayPoints } from '../../server/detection/runs/file-replay.ts'
import { narrowestStep, planRun } from '../../server/detection/runs/run-plan.ts'
import { seededNormal } from '../../server/detection/scoring/seeded-noise.ts'
import { seededUniform } from '../../server/detection/scoring/seeded-random.ts'
import { report } from '../report.ts'
import { rounded } from '../samples.ts'
import { colourText, ReportPage } from './report-page.ts'
import { shopSeries } from './shop-series.ts'

const { positionals, values: options } = parseArgs({
  allowPositionals: true,
  options: {
    'shop-seeds': { type: 'string', default: '6' },
    field: { type: 'string' },
    report: { type: 'string' },
  },
})
const firstSeeds = (count: number) => Array.from({ length: count }, (_, i) => i + 1)
const seeds = firstSeeds(Number(positionals[0] ?? 2))
const page = new ReportPage('The system detectors, and those of the demo', colourText)

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

/** Counted events per bucket; NaN is no data. `stepMs` divides the width of every detector's buckets. */
interface Counted {
  readonly startMs: number
  readonly stepMs: number
  readonly counts: Float64Array
}

interface Told {
  readonly fromMs: number
  readonly untilMs: number
}

/** Every anomaly that the detector would have recorded, had it been created at the first row. */
async function served(
  { counts, startMs, stepMs }: Counted,
  definition: DetectorDefinition,
  drawn?: DrawnBuckets,
): Promise<Told[]> {
  const points = Array.from(counts, (count, i) => ({
    timeNs: BigInt(startMs + i * stepMs) * 1_000_000n,
    value: (count * 1000) / stepMs,
  }))
  const series = new FilePoints(points)
  const { anomalies } = await replayPoints(series, definition, {
    createdAtNs: series.startNs ?? 0n,
    endNs: series.lastNs ?? 0n,
    ...(drawn !== undefined && { onJudged: (judged) => drawn.add(judged) }),
  })
  return anomalies.map(({ seenUntilNs, startedNs }) => ({
    fromMs: Number(startedNs / 1_000_000n),
    untilMs: Number(seenUntilNs / 1_000_000n),
  }))
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
function trafficOf(
  kind: string,
  seed: number,
  hasDrops: boolean,
): Counted & { readonly drops: readonly number[] } {
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
  return { startMs: firstMs, stepMs: bucketMs, counts, drops }
}

function poisson(mean: number, uniform: () => number): number {
  const edge = Math.exp(-mean)
  let count = -1
  for (let product = 1; product > edge; product *= uniform()) count++
  return count
}

async function foundInTraffic(kind: string, definition: DetectorDefinition) {
  let [young, grown, found, planted] = [0, 0, 0, 0]
  for (const seed of seeds) {
    const calm = await served(trafficOf(kind, seed, false), definition)
    young += calm.filter(({ fromMs }) => fromMs < firstMs + 2 * weekMinutes * minuteMs).length
    grown += calm.filter(({ fromMs }) => fromMs >= firstMs + 2 * weekMinutes * minuteMs).length
    const harmed = trafficOf(kind, seed, true)
    const spans = harmed.drops.map(
      (i) => [firstMs + i * bucketMs, firstMs + (i + dropMinutes / 5) * bucketMs] as const,
    )
    const isOf =
      ([from, to]: readonly [number, number]) =>
      (one: Told) =>
        one.fromMs < to && one.untilMs > from
    planted += spans.length
    const drawn = options.report !== undefined && seed === seeds[0] ? new DrawnBuckets() : undefined
    const told = await served(harmed, definition, drawn)
    if (drawn !== undefined) {
      const [anomalies, events] = [told, spans.map(([fromMs, untilMs]) => ({ fromMs, untilMs }))]
      draw({ title: kind, ...drawn.whole(), anomalies, events })
    }
    found += spans.filter((span) => told.some(isOf(span))).length
  }
  return {
    requests: kind,
    'false in the first two weeks': young,
    'false a series and week, then': rounded(grown / seeds.length / (weeks - 2), 3),
    'drops found': rounded(found / planted),
  }
}

interface Drawn extends Pick<Parameters<typeof seriesChart>[0], 'title' | 'series' | 'scores'> {
  readonly anomalies: readonly Told[]
  readonly events: readonly Told[]
}

function draw({ anomalies, events, ...rest }: Drawn): void {
  const spanOf = ({ fromMs, untilMs }: Told) => ({ startMs: fromMs, endMs: untilMs })
  const spans = { anomalies: anomalies.map(spanOf), events: events.map(spanOf) }
  page.addSeries(seriesChart({ ...rest, ...spans }), { alarms: anomalies.length, events: events.length })
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
      const told: Told[] = []
      for (const episode of episodes) {
        const [fromMs, untilMs] = [at(episode.startIndex), at(episode.lastIndex + 1)]
        if (at(episode.openedIndex + 1) <= Number(plan.windowStartNs / 1_000_000n)) continue
        told.push({ fromMs, untilMs })
        const about = shop.incidents.find((one) => fromMs < one.endMs && untilMs > one.startMs)
        const words = `${definition.metric_key} ${service} ${new Date(fromMs).toISOString().slice(0, 16)}`
        if (about === undefined) {
          wrong.push(words)
          continue
        }
        found.get(about.key)?.push(`${definition.metric_key} ${service}`)
        const minutes = (at(episode.openedIndex + 1) - about.startMs) / minuteMs
        foundMinutes.set(about.key, Math.min(minutes, foundMinutes.get(about.key) ?? minutes))
      }
      if (options.report === undefined || seed !== 1 || told.length === 0) continue
      const events = shop.incidents.map(({ endMs, startMs }) => ({ fromMs: startMs, untilMs: endMs }))
      draw({ title: `shop, ${definition.metric_key} ${service}`, series, scores, anomalies: told, events })
    }
  }
  const counts = Object.fromEntries(
    [...found].flatMap(([key, all]) => [
      [key, all.length],
      [`${key}, found after min`, foundMinutes.get(key) ?? null],
    ]),
  )
  return { seed, ...counts, false: wrong.length, 'what was false': wrong.join('; ') }
}

/** An event of the field is found by an alarm from its start to seven minutes after its end. */
async function foundInField(folder: string, definition: DetectorDefinition) {
  let [found, events, right, wrong, seriesWeeks] = [0, 0, 0, 0, 0]
  for (const name of readdirSync(folder).filter((each) => each.endsWith('.csv.gz'))) {
    const { counted, labelled } = readField(join(folder, name))
    const halfMs = counted.startMs + (counted.counts.length / 2) * counted.stepMs
    const told = (await served(counted, definition)).filter(({ fromMs }) => fromMs >= halfMs)
    const spans = labelled.filter(([from]) => from >= halfMs)
    const isOf =
      ([from, to]: readonly [number, number]) =>
      (one: Told) =>
        one.fromMs < to + 7 * minuteMs && one.untilMs > from
    events += spans.length
    found += spans.filter((span) => told.some(isOf(span))).length
    const good = told.filter((one) => spans.some((span) => isOf(span)(one))).length
    right += good
    wrong += told.length - good
    seriesWeeks += (counted.counts.length * counted.stepMs) / 2 / (weekMinutes * minuteMs)
  }
  return {
    events,
    recall: rounded(found / events),
    precision: rounded(right / Math.max(1, right + wrong)),
    'false a week': rounded(wrong / seriesWeeks),
  }
}

function readField(path: string) {
  const lines = gunzipSync(readFileSync(path)).toString().trim().split('\n').slice(1)
  const rows = lines.map((line) => line.split(',').map(Number) as [number, number, number])
  const [first] = rows
  if (first === undefined) throw new Error(`${path} is empty`)
  const stepMs = ((rows[1]?.[0] ?? 0) - first[0]) * 1000
  const values = rows.map(([, value]) => value).sort((a, b) => a - b)
  // Their unit is unknown: a hundred requests a second in the middle, so that the least
  // deviation never decides.
  const scale = (100 * stepMs) / 1000 / Math.abs(values[values.length >> 1] || 1)
  const dayMs = 1440 * minuteMs
  const startMs = Math.floor((first[0] * 1000) / dayMs) * dayMs
  const at = ([seconds]: readonly number[]) => Math.round(((seconds ?? 0) * 1000 - startMs) / stepMs)
  const last = rows.at(-1) ?? first
  const counts = new Float64Array(at(last) + 1).fill(Number.NaN)
  const labelled: [number, number][] = []
  for (const row of rows) {
    counts[at(row)] = row[1] * scale
    if (row[2] !== 1) continue
    const fromMs = row[0] * 1000
    const open = labelled.at(-1)
    if (open !== undefined && fromMs - open[1] < 60 * minuteMs) open[1] = fromMs + stepMs
    else labelled.push([fromMs, fromMs + stepMs])
  }
  return { counted: { startMs, stepMs, counts }, labelled }
}

for (const kind of Object.keys(kinds))
  report('The system detector of request rates', await foundInTraffic(kind, ofRates))
for (const seed of firstSeeds(Number(options['shop-seeds'])))
  report('Anomalies of the demo by incident', foundInShop(seed))
if (options.field !== undefined)
  report('Request rates of the field', await foundInField(options.field, ofRates))
if (options.report !== undefined) page.write(options.report, new Map())
