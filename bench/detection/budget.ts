// Measures whether a method keeps to its alarm budget, and how many incidents it finds at that budget. The
// series are seeded and have no incidents, so every alarm is false. The result is alarms per week over the
// budget: 1 is the budget, less is quieter, and the bar is 1.5. Three ways of running: one long evaluation
// after a first week to learn from; *served*, a detector of the service with the defaults of its creation,
// run after run at its true schedule; and the first four days of a series, with nothing to learn from before
// them. Where few alarms are expected the ratio is inexact, so its lower limit at 95 % is printed beside it
// (least-rate.ts).
//
// It also measures recall: the share of planted incidents, one a week, that open an alarm at the same budget
// in otherwise equal series. A method that compares peers judges one of eight series of the same family, each
// with noise of its own. Reported are each family and a summary by method.
//
//   npm run bench -- detection/budget [only these methods, by comma, or ""] [budget per week, 7] [seeds, 3]
//     [--families "low counts,skewed"] [--ways whole,served,short,rare] [--report FILE]
//
// --report writes a page with the first seed of each family, judged in one pass: without incidents, where
// each alarm is false, and with one a week.

import { parseArgs } from 'node:util'
import { comparesPeers, type MethodKey, methodKeys, methodParams } from '../../contract/detection/methods.ts'
import type { Evaluation } from '../../server/detection/alarms/alarm.ts'
import type { MethodChoice } from '../../server/detection/methods/catalogue.ts'
import { evaluateSeries, peersOf } from '../../server/detection/runs/evaluate.ts'
import { type Row, report } from '../report.ts'
import { rounded } from '../samples.ts'
import { choiceOf, judgedChart, seriesOf } from './judging.ts'
import { families as allFamilies, type Family, namedFamilies, type Planted, plantedIn } from './label-free.ts'
import { leastMean } from './least-rate.ts'
import { ReportPage } from './report-page.ts'
import { servedOpenings } from './served-openings.ts'

const stepMinutes = 5
const perDay = 288
const perWeek = 2016
const weeks = 4
const shortDays = 4
const shortSeries = 4
const warmup = 64
const groupSize = 8

/** Few incidents each, so there are enough series for every size, side and length. */
const rareSeries = 3

const { positionals, values: options } = parseArgs({
  allowPositionals: true,
  options: { families: { type: 'string' }, report: { type: 'string' }, ways: { type: 'string' } },
})
/** An empty list is all of them. */
const wanted = positionals[0] ? positionals[0].split(',') : undefined
const budgetPerWeek = Number(positionals[1] ?? 7)
const seeds = Array.from({ length: Number(positionals[2] ?? 3) }, (_, i) => i + 1)
const families =
  options.families === undefined
    ? allFamilies
    : [...allFamilies, ...namedFamilies].filter(({ name }) =>
        options.families?.split(/,(?! )/).includes(name),
      )
const isWanted = (way: Way | 'rare') => options.ways?.split(',').includes(way) ?? true

const ways = ['whole', 'served', 'short'] as const
type Way = (typeof ways)[number]

/** Limits and absence are exact: they have no budget. */
const keys = methodKeys.filter(
  (key) => 'alarm_budget_per_week' in methodParams[key].shape && (wanted?.includes(key) ?? true),
)

function budgeted(key: MethodKey): MethodChoice {
  const isBand = 'min_rel_dev' in methodParams[key].shape
  return choiceOf(key, { alarm_budget_per_week: budgetPerWeek, ...(isBand && { min_rel_dev: 0 }) })
}

/** Judges the first series of a group; most methods look at no other. */
function evaluateFirst(values: readonly Float64Array[], key: MethodKey): Evaluation {
  const [first = seriesOf(new Float64Array(), stepMinutes), ...others] = values.map((own) =>
    seriesOf(own, stepMinutes),
  )
  const choice = budgeted(key)
  return evaluateSeries(first, choice, undefined, peersOf([first, ...others], choice)[0])
}

/** Buckets at which an alarm opens. */
function openings(group: readonly Float64Array[], key: MethodKey): number[] {
  return evaluateFirst(group, key).episodes.map((each) => each.openedIndex)
}

/** A series of the family, and its peers where the method compares them. */
function groupOf(key: MethodKey, family: Family, buckets: number, seed: number): Float64Array[] {
  const size = comparesPeers(key) ? groupSize : 1
  return Array.from({ length: size }, (_, member) => family.make(buckets, seed + 100_000 * member))
}

const longGroup = (key: MethodKey, family: Family, seed: number) =>
  groupOf(key, family, (weeks + 1) * perWeek, seed)

/** A change of level is no false alarm on the day it happens. */
function isCalm(family: Family, bucket: number): boolean {
  return !family.shiftsAt.some((shift) => bucket >= shift && bucket < shift + perDay)
}

/**
 * Steps at which an alarm opens in a detector of the service, run after run; of a method that compares series
 * in one pass over the group.
 */
async function openingsServed(group: readonly Float64Array[], key: MethodKey): Promise<number[]> {
  const [values = new Float64Array()] = group
  if (comparesPeers(key)) return openings(group, key)
  return servedOpenings({ values, stepMinutes }, key, budgeted(key).params)
}

function hits(planted: readonly Planted[], opened: readonly number[]): number {
  return planted.filter(({ from, to }) => opened.some((bucket) => bucket >= from && bucket < to + 6)).length
}

async function countFalse(way: Way, key: MethodKey, family: Family, seed: number): Promise<number> {
  if (way === 'short') {
    const firsts = Array.from({ length: shortSeries }, (_, i) => 1000 * seed + i)
    return firsts.flatMap((each) => openings(groupOf(key, family, shortDays * perDay, each), key)).length
  }
  const group = longGroup(key, family, seed)
  const opened = way === 'served' ? await openingsServed(group, key) : openings(group, key)
  return opened.filter((bucket) => bucket >= perWeek && isCalm(family, bucket)).length
}

/** How many alarms the budget allows in all series of a way. */
const allowed = {
  whole: seeds.length * budgetPerWeek * weeks,
  served: seeds.length * budgetPerWeek * weeks,
  short: (seeds.length * shortSeries * budgetPerWeek * (shortDays * perDay - warmup)) / perWeek,
} as const satisfies Record<Way, number>

/**
 * Alarms over the number that the budget allows, and the lower limit of that ratio; null where it is not
 * wanted.
 */
async function rateOf(way: Way, key: MethodKey, family: Family) {
  if (!isWanted(way)) return null
  let alarms = 0
  for (const seed of seeds) alarms += await countFalse(way, key, family, seed)
  return { ratio: rounded(alarms / allowed[way]), least: rounded(leastMean(alarms) / allowed[way]) }
}

interface Recall {
  readonly planted: number
  readonly found: number
}

/** One incident a week; further series have other sizes, sides and lengths. */
function plantedRarely(values: Float64Array, family: Family, series: number) {
  return plantedIn(values, family, { from: perWeek, every: perWeek, firstTurn: weeks * series })
}

async function recallOf(key: MethodKey, family: Family): Promise<Recall> {
  let [planted, found] = [0, 0]
  for (const seed of seeds) {
    for (let series = 0; series < rareSeries; series++) {
      const [values = new Float64Array(), ...others] = longGroup(key, family, seed + 50_000 * series)
      const { incidents, values: changed } = plantedRarely(values, family, series)
      planted += incidents.length
      found += hits(incidents, await openingsServed([changed, ...others], key))
    }
  }
  return { planted, found }
}

async function measure(key: MethodKey, family: Family) {
  return {
    series: family.name,
    whole: await rateOf('whole', key, family),
    served: await rateOf('served', key, family),
    short: await rateOf('short', key, family),
    rare: isWanted('rare') ? await recallOf(key, family) : null,
  }
}

type Measured = Awaited<ReturnType<typeof measure>>

const tableOf = (what: string) => `${what}, ${budgetPerWeek} a week`

/** Printed as soon as it is measured, because the whole bench takes hours. */
function printRow(method: MethodKey, { rare, series, short, served, whole }: Measured): void {
  report(tableOf('Alarms over the budget and recall'), {
    method,
    series,
    whole: inWords(whole),
    served: inWords(served),
    'first four days': inWords(short),
    'recall of one a week': recallIn([rare]),
  })
}

const inWords = (rate: Measured[Way]) =>
  rate === null ? null : `${rate.ratio.toFixed(2)} (at least ${rate.least.toFixed(2)})`

function recallIn(recalls: readonly (Recall | null)[]): number | null {
  const sum = (of: keyof Recall) => recalls.reduce((total, each) => total + (each?.[of] ?? 0), 0)
  return sum('planted') === 0 ? null : rounded(sum('found') / sum('planted'))
}

function summaryOf(method: MethodKey, own: readonly Measured[]): Row {
  const all = own.flatMap((each) => ways.flatMap((way) => each[way] ?? []))
  const above = (bar: number, figure: 'ratio' | 'least') => all.filter((each) => each[figure] > bar).length
  return {
    method,
    'mean ratio': rounded(all.reduce((sum, { ratio }) => sum + ratio, 0) / all.length),
    'worst ratio': Math.max(...all.map(({ ratio }) => ratio)),
    'above 1.5': `${above(1.5, 'ratio')} of ${all.length}`,
    'surely above 1.5': above(1.5, 'least'),
    'recall of one a week': recallIn(own.map(({ rare }) => rare)),
  }
}

const summaries: Row[] = []
for (const key of keys) {
  const all: Measured[] = []
  for (const family of families) {
    const measured = await measure(key, family)
    printRow(key, measured)
    all.push(measured)
  }
  summaries.push(summaryOf(key, all))
}
report(tableOf('Alarm budgets by method'), ...summaries)

if (options.report !== undefined) drawAll(options.report)

function drawAll(path: string): void {
  const page = new ReportPage(`Alarm budgets: ${budgetPerWeek} a week`)
  for (const key of keys) {
    for (const family of families) {
      const [calm = new Float64Array(), ...others] = longGroup(key, family, seeds[0] ?? 1)
      const { incidents, values } = plantedRarely(calm, family, 0)
      const shifts = family.shiftsAt.map((from) => ({ from, to: from + perDay }))
      for (const [what, drawn, events] of [
        ['calm', calm, shifts],
        ['one a week', values, [...incidents, ...shifts]],
      ] as const) {
        const evaluation = evaluateFirst([drawn, ...others], key)
        const labels = events.map(({ from, to }) => [from, to] as const)
        const title = `${key}, ${family.name}: ${what}`
        const labelled = { labels, judgedFrom: perWeek, tolerance: 6 }
        page.addSeries(judgedChart(title, seriesOf(drawn, stepMinutes), evaluation, labelled), {
          alarms: evaluation.episodes.filter((each) => each.openedIndex >= perWeek).length,
        })
      }
    }
  }
  page.write(path, new Map([[tableOf('Alarm budgets by method'), summaries]]))
}
