// Measures whether a method keeps to its alarm budget, and how many incidents it finds at that budget. The
// series are seeded and have no incidents, so every alarm is false. The result is alarms per week over the
// budget: 1 is the budget, less is quieter, and the bar is 1.5. Three ways of running: one long evaluation
// after a first week to learn from; *served*, a detector of the service with the defaults of its creation,
// run after run at its true schedule; and the first four days of a series, with nothing to learn from before
// them. Where few alarms are expected the ratio is inexact, so its lower limit at 95 % is printed beside it
// (least-rate.ts).
//
// It also measures recall: the share of planted incidents that open an alarm at the same budget, in otherwise
// equal series. Five incidents a week ("often") are more than a small budget allows; one a week ("rare") is a
// budget of 1. "blind" is the share of the rare ones that are missed only because the method has learnt from
// earlier ones: they are found where each is planted alone.
//
// Where the data of NAB is present, its series without a labelled anomaly are one more family, evaluated
// whole. A method that compares peers judges one of eight series of the same family, each with noise of its
// own. Reported are each family and a summary by method.
//
//   [LETHE_NAB_DIR=...] npm run bench -- detection/budget [only these methods, by comma, or ""] [budget per
//     week, 7] [seeds, 3]
//     [--families "low counts,skewed"] [--ways whole,served,short,often,rare] [--report FILE]
//
// --report writes a page with the first seed of each family, judged in one pass: without incidents, where
// each alarm is false, and with one a week.

import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { comparesPeers, type MethodKey, methodKeys, methodParams } from '../../contract/detection/methods.ts'
import type { Evaluation } from '../../server/detection/alarms/alarm.ts'
import type { MethodChoice } from '../../server/detection/methods/catalogue.ts'
import { evaluateSeries, peersOf } from '../../server/detection/runs/evaluate.ts'
import type { Series } from '../../server/detection/scoring/series.ts'
import { type Row, report } from '../report.ts'
import { rounded } from '../samples.ts'
import { families as allFamilies, type Family, namedFamilies, type Planted, plantedIn } from './label-free.ts'
import { leastMean } from './least-rate.ts'
import { hasNab, readCorpus } from './nab-corpus.ts'
import { colourText, ReportPage } from './report-page.ts'
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
const isWanted = (way: Way | 'often' | 'rare') => options.ways?.split(',').includes(way) ?? true

const ways = ['whole', 'served', 'short'] as const
type Way = (typeof ways)[number]

/** Limits and absence are exact: they have no budget. */
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
  return evaluateFirst(group, choice)?.episodes.map((each) => each.openedIndex) ?? []
}

function evaluateFirst(group: readonly Series[], choice: MethodChoice): Evaluation | null {
  const [series] = group
  return series === undefined ? null : evaluateSeries(series, choice, undefined, peersOf(group, choice)[0])
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

/**
 * Steps at which an alarm opens in a detector of the service, run after run; of a method that compares series
 * in one pass over the group.
 */
async function openingsServed(group: readonly Float64Array[], key: MethodKey): Promise<number[]> {
  const choice = choiceOf(key)
  const [values = new Float64Array()] = group
  if (comparesPeers(key)) return openings(group.map(seriesOf), choice)
  return servedOpenings({ values, stepMinutes }, key, choice.params)
}

function hits(planted: readonly Planted[], opened: readonly number[]): number {
  return planted.filter(({ from, to }) => opened.some((bucket) => bucket >= from && bucket < to + 6)).length
}

async function countFalse(way: Way, key: MethodKey, family: Family, seed: number): Promise<number> {
  const choice = choiceOf(key)
  if (way === 'short') {
    const firsts = Array.from({ length: shortSeries }, (_, i) => 1000 * seed + i)
    const opened = firsts.map((each) =>
      openings(groupOf(key, family, shortDays * perDay, each).map(seriesOf), choice),
    )
    return opened.flat().length
  }
  const group = groupOf(key, family, (weeks + 1) * perWeek, seed)
  const opened = way === 'served' ? await openingsServed(group, key) : openings(group.map(seriesOf), choice)
  return opened.filter((bucket) => bucket >= perWeek && isCalm(family, bucket)).length
}

/** How many alarms the budget allows in all series of a way. */
const allowed = {
  whole: seeds.length * budgetPerWeek * weeks,
  served: seeds.length * budgetPerWeek * weeks,
  short: (seeds.length * shortSeries * budgetPerWeek * (shortDays * perDay - warmup)) / perWeek,
} as const satisfies Record<Way, number>

/** Alarms over the number that the budget allows, and the lower limit of that ratio. */
function rateOf(alarms: number, expected: number) {
  return { alarms, ratio: rounded(alarms / expected), least: rounded(leastMean(alarms) / expected) }
}

interface Recall {
  planted: number
  found: number
  /** How many of the missed ones are found where no other incident is planted. */
  blind: number
}

/** One incident a week; further series have other sizes, sides and lengths. */
const rarely = (series: number) => ({ every: perWeek, lasting: [6, 36], firstTurn: weeks * series }) as const

async function recallOf(key: MethodKey, family: Family, form: 'often' | 'rare'): Promise<Recall> {
  const recall = { planted: 0, found: 0, blind: 0 }
  for (const seed of seeds) {
    for (let series = 0; series < (form === 'rare' ? rareSeries : 1); series++) {
      const [values = new Float64Array(), ...others] = groupOf(
        key,
        family,
        (weeks + 1) * perWeek,
        seed + 50_000 * series,
      )
      const openingsIn = (planted: Float64Array) => openingsServed([planted, ...others], key)
      const planting = form === 'rare' ? rarely(series) : { every: 1.5 * perDay, lasting: [6, 36] }
      const { incidents, values: planted } = plantedIn(values, family, { from: perWeek, ...planting })
      const opened = await openingsIn(planted)
      const missed = incidents.filter((incident) => hits([incident], opened) === 0)
      recall.planted += incidents.length
      recall.found += incidents.length - missed.length
      if (form === 'often') continue
      for (const incident of missed) {
        const alone = values.map((value, i) => (i < incident.from ? value : (planted[i] ?? value)))
        recall.blind += hits([incident], await openingsIn(alone))
      }
    }
  }
  return recall
}

async function measure(key: MethodKey, family: Family) {
  const rate = async (way: Way) => {
    if (!isWanted(way)) return null
    let alarms = 0
    for (const seed of seeds) alarms += await countFalse(way, key, family, seed)
    return rateOf(alarms, allowed[way])
  }
  return {
    method: key as string,
    series: family.name,
    whole: await rate('whole'),
    served: await rate('served'),
    short: await rate('short'),
    often: isWanted('often') ? await recallOf(key, family, 'often') : null,
    rare: isWanted('rare') ? await recallOf(key, family, 'rare') : null,
  }
}

const nabFolder = process.env.LETHE_NAB_DIR ?? join(import.meta.dirname, '../../../shared/data/nab')
const unlabelled = hasNab(nabFolder)
  ? readCorpus(nabFolder).filter(({ windows }) => windows.length === 0)
  : []

/** Real series have fixed lengths and unknown incidents, so only the rate over the whole is known. */
function measureUnlabelled(key: MethodKey) {
  const choice = choiceOf(key)
  let alarms = 0
  let expected = 0
  for (const { probation, series } of unlabelled) {
    alarms += openings([series], choice).filter((bucket) => bucket >= probation).length
    expected += ((series.values.length - probation) * series.stepMinutes * budgetPerWeek) / 10_080
  }
  const none = { served: null, short: null, often: null, rare: null }
  return {
    method: key as string,
    series: `${unlabelled.length} unlabelled of NAB`,
    whole: rateOf(alarms, expected),
    ...none,
  }
}

type Measured = Awaited<ReturnType<typeof measure>> | ReturnType<typeof measureUnlabelled>

const tableOf = (what: string) => `${what}, ${budgetPerWeek} a week`

/** Printed as soon as it is measured, because the whole bench takes hours. */
function tell(measured: Measured): void {
  const { method, often, rare, series, short, served, whole } = measured
  report(tableOf('Alarms over the budget and recall'), {
    method,
    series,
    whole: inWords(whole),
    served: inWords(served),
    'first four days': inWords(short),
    'recall of five a week': shareOf([often], 'found'),
    'recall of one a week': shareOf([rare], 'found'),
    'missed for earlier ones': shareOf([rare], 'blind'),
  })
}

const inWords = (rate: ReturnType<typeof rateOf> | null) =>
  rate === null ? null : `${rate.ratio.toFixed(2)} (at least ${rate.least.toFixed(2)})`

function shareOf(recalls: readonly (Recall | null)[], what: 'found' | 'blind'): number | null {
  const known = recalls.filter((each) => each !== null)
  const planted = known.reduce((sum, each) => sum + each.planted, 0)
  return planted === 0 ? null : rounded(known.reduce((sum, each) => sum + each[what], 0) / planted)
}

function summaryOf(method: MethodKey, own: readonly Measured[]): Row {
  const all = own.flatMap((each) => ways.flatMap((way) => each[way] ?? []))
  const above = (bar: number, figure: 'ratio' | 'least') => all.filter((each) => each[figure] > bar).length
  const rare = own.map((each) => each.rare)
  return {
    method,
    'mean ratio': rounded(all.reduce((sum, { ratio }) => sum + ratio, 0) / all.length),
    'worst ratio': Math.max(...all.map(({ ratio }) => ratio)),
    'above 1.5': `${above(1.5, 'ratio')} of ${all.length}`,
    'surely above 1': above(1, 'least'),
    'surely above 1.5': above(1.5, 'least'),
    'recall of five a week': shareOf(
      own.map((each) => each.often),
      'found',
    ),
    'recall of one a week': shareOf(rare, 'found'),
    'missed for earlier ones': shareOf(rare, 'blind'),
  }
}

/** Nothing there has peers. */
const hasReal = unlabelled.length > 0 && isWanted('whole') && options.families === undefined
const summaries: Row[] = []
for (const key of keys) {
  const simulated: Measured[] = []
  for (const family of families) {
    const measured = await measure(key, family)
    tell(measured)
    simulated.push(measured)
  }
  if (hasReal && !comparesPeers(key)) tell(measureUnlabelled(key))
  summaries.push(summaryOf(key, simulated))
}
report(tableOf('Alarm budgets by method'), ...summaries)

if (options.report !== undefined) drawAll(options.report)

function drawAll(path: string): void {
  const page = new ReportPage(`Alarm budgets: ${budgetPerWeek} a week`, colourText)
  for (const key of keys) {
    for (const family of families) {
      const [calm = new Float64Array(), ...others] = groupOf(
        key,
        family,
        (weeks + 1) * perWeek,
        seeds[0] ?? 1,
      )
      const planting = { from: perWeek, ...rarely(0) }
      const { incidents, values } = plantedIn(calm, family, planting)
      const shifts = family.shiftsAt.map((from) => ({ from, to: from + perDay }))
      for (const [what, drawn, events] of [
        ['calm', calm, shifts],
        ['one a week', values, [...incidents, ...shifts]],
      ] as const) {
        const evaluation = evaluateFirst([drawn, ...others].map(seriesOf), choiceOf(key))
        if (evaluation === null) continue
        const { episodes, scores } = evaluation
        const { lower, score, upper } = scores
        const chart = {
          ...{ title: `${key}, ${family.name}: ${what}`, startMs: 0, stepMs: stepMinutes * 60_000 },
          ...{ values: drawn, lower, score, upper, judgedFrom: perWeek, tolerance: 6 },
          anomalies: episodes.map(({ lastIndex, openedIndex }) => [openedIndex, lastIndex + 1] as const),
          labels: events.map(({ from, to }) => [from, to] as const),
        }
        page.addSeries(chart, { alarms: episodes.filter((each) => each.openedIndex >= perWeek).length })
      }
    }
  }
  page.write(path, new Map([[tableOf('Alarm budgets by method'), summaries]]))
}
