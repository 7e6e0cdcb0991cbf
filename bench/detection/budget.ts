// Does a method keep to its alarm budget? Label-free, seeded series, where every alarm is a false one: measured alarms
// per week over the budget, after a first week to learn from. 1 is the promise, below is quieter, the bar is 1.5.
// Two ways of running: one long evaluation, and production's: a sliding window, in which only incidents opened in the
// newest buckets count (`evaluate.ts` says why). A method that compares peers judges one of eight series of the same shape,
// each with noise of its own. Prints a table and one JSON object.
//
//   node bench/detection/budget.ts [only these methods, by comma]

import { execFileSync } from 'node:child_process'
import { cpus } from 'node:os'
import { comparesPeers, type MethodKey, methodKeys, methodParams } from '../../contract/detection-methods.ts'
import { evaluateSeries, peersOf } from '../../server/detection/evaluate.ts'
import type { MethodChoice } from '../../server/detection/methods/catalogue.ts'
import { noises } from '../../server/detection/seeded-noise.ts'
import type { Series } from '../../server/detection/series.ts'

const stepMinutes = 5
const perDay = 288
const perWeek = 2016
const weeks = 4
const budgetPerWeek = 7
const seeds = [1, 2, 3]
const groupSize = 8

const wanted = process.argv[2]?.split(',')
/** Limits and silence are exact: they have no budget. */
const keys = methodKeys.filter(
  (key) => key !== 'threshold' && key !== 'absence' && (wanted?.includes(key) ?? true),
)

const shapes = {
  flat: () => 1000,
  daily: (i: number) => 1000 + 20 * Math.sin((2 * Math.PI * i) / perDay),
}

function seriesOf(values: Float64Array): Series {
  return { startNs: 0n, stepMinutes, values, unknown: new Uint8Array(values.length), volumes: null }
}

function choiceOf(key: MethodKey): MethodChoice {
  const shared = { alarm_budget_per_week: budgetPerWeek }
  const isBand = 'min_rel_dev' in methodParams[key].shape
  const params = methodParams[key].parse(isBand ? { ...shared, min_rel_dev: 0 } : shared)
  // The schema of this very key made the parameters, which the type of a lookup by key can't express.
  return { method_key: key, params } as MethodChoice
}

/** Of the first series of a group. */
function alarmsAfter(group: readonly Series[], choice: MethodChoice, from: number): number {
  const [series] = group
  if (series === undefined) return 0
  const { incidents } = evaluateSeries(series, choice, undefined, peersOf(group, choice)[0])
  return incidents.filter((each) => each.openedIndex >= from).length
}

/** A fortnight's window, moved on by two days. */
function slidingAlarms(group: readonly Float64Array[], choice: MethodChoice): number {
  const hop = 2 * perDay
  let alarms = 0
  for (let end = perWeek + hop; end <= (weeks + 1) * perWeek; end += hop) {
    const start = Math.max(0, end - 2 * perWeek)
    const startNs = BigInt(start * stepMinutes) * 60_000_000_000n
    const window = group.map((values) => ({ ...seriesOf(values.subarray(start, end)), startNs }))
    alarms += alarmsAfter(window, choice, end - start - hop)
  }
  return alarms
}

const ratio = (alarms: number) => Number((alarms / (seeds.length * weeks * budgetPerWeek)).toFixed(2))

const results = keys.flatMap((key) => {
  const choice = choiceOf(key)
  return Object.entries(shapes).flatMap(([shape, valueAt]) =>
    Object.entries(noises).map(([noise, make]) => {
      let whole = 0
      let sliding = 0
      for (const seed of seeds) {
        const group = Array.from({ length: comparesPeers(key) ? groupSize : 1 }, (_, member) => {
          const next = make(seed + 1000 * member)
          return Float64Array.from({ length: (weeks + 1) * perWeek }, (_, i) => valueAt(i) + next())
        })
        whole += alarmsAfter(group.map(seriesOf), choice, perWeek)
        sliding += slidingAlarms(group, choice)
      }
      return { method: key, series: `${shape}, ${noise}`, whole: ratio(whole), sliding: ratio(sliding) }
    }),
  )
})

console.table(results)
const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim()
const machine = { node: process.version, cpu: cpus()[0]?.model ?? 'unknown', cores: cpus().length }
console.log(
  JSON.stringify(
    { bench: 'detection/budget', commit, machine, budgetPerWeek, weeks, seeds, results },
    null,
    2,
  ),
)
