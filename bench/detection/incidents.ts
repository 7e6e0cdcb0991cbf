// What methods find in lifelike telemetry (lifelike.ts), through the code that production runs: the share of planted incidents
// that open an alarm, how many of the alarms are about one, and the alarms a series and week that are not, at stated budgets;
// recall by kind of incident; and VUS-PR, which asks for no threshold at all. An alarm is about an incident if it opens
// while that lasts or within the hour; in the eight hours after that, while the method's own past recovers, neither right nor
// wrong. Prints two tables and one JSON object.
//
//   node bench/detection/incidents.ts [methods by comma, auto] [budgets per week by comma, 1,7] [seeds, 3]

import { execFileSync } from 'node:child_process'
import { cpus } from 'node:os'
import { type MethodKey, methodParams } from '../../contract/detection-methods.ts'
import { evaluateSeries } from '../../server/detection/evaluate.ts'
import { type MethodChoice, scoreSeries } from '../../server/detection/methods/catalogue.ts'
import type { Series } from '../../server/detection/series.ts'
import { type LifelikeSeries, lifelikeSeries, perDay, stepMinutes } from './lifelike.ts'
import { vusPr } from './vus.ts'

const perHour = 60 / stepMinutes
const perWeek = 7 * perDay
/** Judged from here on; what comes before is there to learn from. */
const judgedFrom = perWeek

const methods = (process.argv[2] ?? 'auto').split(',') as MethodKey[]
const budgets = (process.argv[3] ?? '1,7').split(',').map(Number)
const seeds = Array.from({ length: Number(process.argv[4] ?? 3) }, (_, i) => i + 1)
const corpus = lifelikeSeries(seeds)
const seriesWeeks = corpus.reduce((sum, { values }) => sum + (values.length - judgedFrom) / perWeek, 0)

function seriesOf({ values }: LifelikeSeries): Series {
  return { startNs: 0n, stepMinutes, values, unknown: new Uint8Array(values.length), volumes: null }
}

function choiceOf(key: MethodKey, budget: number): MethodChoice {
  // The schema of this very key made the parameters, which the type of a lookup by key can't express.
  return {
    method_key: key,
    params: methodParams[key].parse({ alarm_budget_per_week: budget }),
  } as MethodChoice
}

/** Right, wrong, or of the aftermath of an incident. */
function weigh(lifelike: LifelikeSeries, opened: readonly number[]) {
  const found = new Set(
    lifelike.incidents.filter(({ from, to }) => opened.some((at) => at >= from && at < to + perHour)),
  )
  const isNear = (at: number, hours: number) =>
    lifelike.incidents.some(({ from, to }) => at >= from && at < to + hours * perHour)
  const right = opened.filter((at) => isNear(at, 1)).length
  const wrong = opened.filter((at) => !isNear(at, 9)).length
  return { found, right, wrong }
}

const round = (value: number, digits = 2) => Number(value.toFixed(digits))

function measure(key: MethodKey, budget: number) {
  const choice = choiceOf(key, budget)
  const byKind = new Map<string, { planted: number; found: number }>()
  let right = 0
  let wrong = 0
  for (const lifelike of corpus) {
    const { incidents } = evaluateSeries(seriesOf(lifelike), choice)
    const opened = incidents.map(({ openedIndex }) => openedIndex).filter((at) => at >= judgedFrom)
    const weighed = weigh(lifelike, opened)
    right += weighed.right
    wrong += weighed.wrong
    for (const incident of lifelike.incidents) {
      const sum = byKind.get(incident.kind) ?? { planted: 0, found: 0 }
      sum.planted++
      if (weighed.found.has(incident)) sum.found++
      byKind.set(incident.kind, sum)
    }
  }
  const sums = [...byKind.values()]
  const planted = sums.reduce((sum, each) => sum + each.planted, 0)
  return {
    method: key,
    budget,
    planted,
    recall: round(sums.reduce((sum, each) => sum + each.found, 0) / planted),
    precision: round(right / Math.max(1, right + wrong)),
    false_per_week: round(wrong / seriesWeeks),
    recall_by_kind: Object.fromEntries(
      [...byKind].map(([kind, { found, planted: of }]) => [kind, round(found / of)]),
    ),
  }
}

function meanVus(key: MethodKey): number {
  const choice = choiceOf(key, 1)
  const each = corpus.map((lifelike) => {
    const { score } = scoreSeries(choice.method_key, seriesOf(lifelike), choice.params)
    const judged = score.slice(judgedFrom).map((value) => value || 0)
    return vusPr(
      judged,
      lifelike.incidents.map(({ from, to }) => [from - judgedFrom, to - 1 - judgedFrom]),
    )
  })
  return round(each.reduce((sum, value) => sum + value, 0) / each.length, 3)
}

const results = methods.flatMap((key) => budgets.map((budget) => measure(key, budget)))
const ranking = methods.map((key) => ({ method: key, vus_pr: meanVus(key) }))
console.table(results.map(({ recall_by_kind: _, ...line }) => line))
console.table(results.map(({ budget, method, recall_by_kind }) => ({ method, budget, ...recall_by_kind })))
console.table(ranking)
const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim()
const machine = { node: process.version, cpu: cpus()[0]?.model ?? 'unknown', cores: cpus().length }
console.log(JSON.stringify({ bench: 'detection/incidents', commit, machine, seeds, results, ranking }))
