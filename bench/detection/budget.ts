// Does a method keep to its alarm budget, and what does it still see? Label-free, seeded series, where every alarm is
// a false one: measured alarms per week over the budget. 1 is the promise, below is quieter, the bar is 1.5. Three ways
// of running: one long evaluation after a first week to learn from; production's, a sliding window, in which only
// incidents opened in the newest buckets count (`evaluate.ts` says why); and the first four days of a series, with
// nothing to learn from before them. Beside it recall: the share of planted incidents that open an alarm at the same
// budget, in series otherwise alike. Where the data of NAB is present, its series without a labelled anomaly are one
// more family, evaluated whole. A method that compares peers judges one of eight series of the same family, each with
// noise of its own. Prints a table, a summary by method and one JSON object.
//
//   [LETHE_NAB_DIR=...] node bench/detection/budget.ts [only these methods, by comma, or ""] [budget per week, 7] [seeds, 3]

import { execFileSync } from 'node:child_process'
import { cpus } from 'node:os'
import { join } from 'node:path'
import { comparesPeers, type MethodKey, methodKeys, methodParams } from '../../contract/detection-methods.ts'
import { evaluateSeries, peersOf } from '../../server/detection/evaluate.ts'
import type { MethodChoice } from '../../server/detection/methods/catalogue.ts'
import type { Series } from '../../server/detection/series.ts'
import { type Family, families, type Planted, plantedIn } from './label-free.ts'
import { hasNab, readCorpus } from './nab-corpus.ts'

const stepMinutes = 5
const perDay = 288
const perWeek = 2016
const weeks = 4
const shortDays = 4
const shortSeries = 4
const warmup = 64
const groupSize = 8

/** An empty list is all of them. */
const wanted = process.argv[2] ? process.argv[2].split(',') : undefined
const budgetPerWeek = Number(process.argv[3] ?? 7)
const seeds = Array.from({ length: Number(process.argv[4] ?? 3) }, (_, i) => i + 1)

/** Limits and silence are exact: they have no budget. */
const keys = methodKeys.filter(
  (key) => 'alarm_budget_per_week' in methodParams[key].shape && (wanted?.includes(key) ?? true),
)

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

/** Buckets at which an alarm opens in the first series of a group; most methods look at no other. */
function openings(group: readonly Series[], choice: MethodChoice): number[] {
  const [series] = group
  if (series === undefined) return []
  const { incidents } = evaluateSeries(series, choice, undefined, peersOf(group, choice)[0])
  return incidents.map((each) => each.openedIndex)
}

/** A series of the family, and its peers where the method compares them. */
function groupOf(key: MethodKey, family: Family, buckets: number, seed: number): Float64Array[] {
  const size = comparesPeers(key) ? groupSize : 1
  return Array.from({ length: size }, (_, member) => family.make(buckets, seed + 100_000 * member))
}

/** A change of level is no false alarm on the day it happens. */
function isCalm(family: Family, bucket: number): boolean {
  return !family.shiftsAt.some((shift) => bucket >= shift && bucket < shift + perDay)
}

/** A fortnight's window, moved on by two days. */
function slidingAlarms(family: Family, group: readonly Float64Array[], choice: MethodChoice): number {
  const hop = 2 * perDay
  let alarms = 0
  for (let end = perWeek + hop; end <= (weeks + 1) * perWeek; end += hop) {
    const start = Math.max(0, end - 2 * perWeek)
    const startNs = BigInt(start * stepMinutes) * 60_000_000_000n
    const window = group.map((values) => ({ ...seriesOf(values.subarray(start, end)), startNs }))
    const fresh = openings(window, choice).filter((opened) => opened >= end - start - hop)
    alarms += fresh.filter((opened) => isCalm(family, start + opened)).length
  }
  return alarms
}

function hits(planted: readonly Planted[], opened: readonly number[]): number {
  return planted.filter(({ from, to }) => opened.some((bucket) => bucket >= from && bucket < to + 6)).length
}

const round = (value: number) => Number(value.toFixed(2))

function measure(key: MethodKey, family: Family) {
  const choice = choiceOf(key)
  const sums = { whole: 0, sliding: 0, short: 0, planted: 0, hit: 0 }
  for (const seed of seeds) {
    const group = groupOf(key, family, (weeks + 1) * perWeek, seed)
    const [values = new Float64Array(), ...others] = group
    const opened = openings(group.map(seriesOf), choice)
    sums.whole += opened.filter((bucket) => bucket >= perWeek && isCalm(family, bucket)).length
    sums.sliding += slidingAlarms(family, group, choice)
    for (let i = 0; i < shortSeries; i++) {
      sums.short += openings(
        groupOf(key, family, shortDays * perDay, 1000 * seed + i).map(seriesOf),
        choice,
      ).length
    }
    const planted = plantedIn(values, family, { from: perWeek, every: 1.5 * perDay, lasting: [6, 36] })
    sums.planted += planted.incidents.length
    sums.hit += hits(planted.incidents, openings([planted.values, ...others].map(seriesOf), choice))
  }
  const expected = seeds.length * budgetPerWeek * weeks
  const expectedShort = (seeds.length * shortSeries * budgetPerWeek * (shortDays * perDay - warmup)) / perWeek
  return {
    method: key,
    series: family.name,
    whole: round(sums.whole / expected),
    sliding: round(sums.sliding / expected),
    short: round(sums.short / expectedShort),
    recall: round(sums.hit / sums.planted),
  }
}

const nabFolder = process.env.LETHE_NAB_DIR ?? join(import.meta.dirname, '../../../shared/data/nab')
const unlabelled = hasNab(nabFolder)
  ? readCorpus(nabFolder).filter(({ windows }) => windows.length === 0)
  : []

/** Real series end when they end, and nobody knows their incidents: only the rate over the whole can be told. */
function measureUnlabelled(key: MethodKey) {
  const choice = choiceOf(key)
  let alarms = 0
  let expected = 0
  for (const { probation, series } of unlabelled) {
    alarms += openings([series], choice).filter((bucket) => bucket >= probation).length
    expected += ((series.values.length - probation) * series.stepMinutes * budgetPerWeek) / 10_080
  }
  return { method: key, series: `${unlabelled.length} unlabelled of NAB`, whole: round(alarms / expected) }
}

const simulated = keys.flatMap((key) => families.map((family) => measure(key, family)))
/** Nothing there has peers. */
const real = unlabelled.length === 0 ? [] : keys.filter((key) => !comparesPeers(key)).map(measureUnlabelled)
const results = [...simulated, ...real]
const ways = ['whole', 'sliding', 'short'] as const
const summary = keys.map((method) => {
  const own = simulated.filter((each) => each.method === method)
  const all = own.flatMap((each) => ways.map((way) => each[way]))
  const mean = (values: readonly number[]) => round(values.reduce((sum, x) => sum + x, 0) / values.length)
  return {
    method,
    'mean ratio': mean(all),
    'worst ratio': Math.max(...all),
    'above 1.5': `${all.filter((ratio) => ratio > 1.5).length} of ${all.length}`,
    recall: mean(own.map(({ recall }) => recall)),
  }
})

console.table(results)
console.table(summary)
const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim()
const machine = { node: process.version, cpu: cpus()[0]?.model ?? 'unknown', cores: cpus().length }
console.log(
  JSON.stringify({
    bench: 'detection/budget',
    commit,
    machine,
    budgetPerWeek,
    weeks,
    seeds,
    results,
    summary,
  }),
)
