// What methods tell of a change to or from summer time: six weeks of telemetry that follows the clock of
// Berlin, as an office or as a wave, at noon neither more nor less than the day before; alarms of the three
// days after a change, beside those of the three days before it, at the default parameters, with the time
// zone where a method takes one and without.
//
//   node bench/detection/clock-change.ts [only these methods, by comma] [seeds, 4]
//
// Prints a table and one JSON object.

import { execFileSync } from 'node:child_process'
import { comparesPeers, type MethodKey, methodKeys, methodParams } from '../../contract/detection-methods.ts'
import type { MethodChoice } from '../../server/detection/methods/catalogue.ts'
import { evaluateSeries } from '../../server/detection/runs/evaluate.ts'
import { localClock } from '../../server/detection/scoring/local-clock.ts'
import { seededNormal } from '../../server/detection/scoring/seeded-noise.ts'
import type { Series } from '../../server/detection/scoring/series.ts'

const timezone = 'Europe/Berlin'
const [daysBefore, daysAfter, daysCounted] = [28, 14, 3]
const changesMs = [Date.UTC(2026, 2, 29), Date.UTC(2026, 9, 25)]
const wanted = process.argv[2] ? process.argv[2].split(',') : undefined
const seeds = Array.from({ length: Number(process.argv[3] ?? 4) }, (_, i) => i + 1)

const rhythms: Readonly<Record<string, (hour: number) => number>> = {
  office: (hour) => 1000 + (hour >= 8 && hour < 18 ? 500 : 0),
  wave: (hour) => 1000 + 250 * Math.sin((2 * Math.PI * (hour - 9)) / 24),
}

function seriesAround(changeMs: number, stepMinutes: number, rhythm: (hour: number) => number, seed: number) {
  const perDay = 1440 / stepMinutes
  const values = new Float64Array((daysBefore + daysAfter) * perDay)
  const startNs = BigInt(changeMs - daysBefore * 86_400_000) * 1_000_000n
  const series: Series = {
    startNs,
    stepMinutes,
    values,
    unknown: new Uint8Array(values.length),
    volumes: null,
  }
  const clock = localClock(series, timezone)
  const normal = seededNormal(seed)
  return { ...series, values: values.map((_, i) => rhythm(clock(i).minuteOfDay / 60) + 40 * normal()) }
}

function choiceOf(key: MethodKey, isZoned: boolean): MethodChoice {
  // The schema of this very key made the parameters, which the type of a lookup by key can't express.
  return { method_key: key, params: methodParams[key].parse(isZoned ? { timezone } : {}) } as MethodChoice
}

function measure(key: MethodKey, isZoned: boolean) {
  const choice = choiceOf(key, isZoned)
  const counts = { after: 0, before: 0 }
  let changes = 0
  for (const rhythm of Object.values(rhythms)) {
    for (const stepMinutes of [15, 60]) {
      for (const seed of seeds) {
        for (const changeMs of changesMs) {
          const { incidents } = evaluateSeries(seriesAround(changeMs, stepMinutes, rhythm, seed), choice)
          const days = incidents.map(({ openedIndex }) => (openedIndex * stepMinutes) / 1440 - daysBefore)
          counts.after += days.filter((day) => day >= 0 && day < daysCounted).length
          counts.before += days.filter((day) => day < 0 && day >= -daysCounted).length
          changes++
        }
      }
    }
  }
  return { method: key, timezone: isZoned ? timezone : '', changes, ...counts }
}

/** Limits and silence are exact, and a series alone has no peers. */
const keys = methodKeys.filter(
  (key) =>
    'alarm_budget_per_week' in methodParams[key].shape &&
    !comparesPeers(key) &&
    (wanted?.includes(key) ?? true),
)
const results = keys.flatMap((key) =>
  ('timezone' in methodParams[key].shape ? [false, true] : [false]).map((isZoned) => measure(key, isZoned)),
)
console.table(results)
const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim()
console.log(JSON.stringify({ bench: 'detection/clock-change', commit, seeds: seeds.length, results }))
