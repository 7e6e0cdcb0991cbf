// Measures methods on generated telemetry (lifelike.ts, or varied.ts), by the runs of the service at their
// true schedule. At given budgets: recall, precision, and false alarms a series and week; recall by kind of
// incident. Without a budget: recall at one threshold for all series with a given rate of false alarms, and
// VUS-PR. An alarm matches an incident if it opens during the incident or within the hour after it. In the
// eight hours after that, while the method's own past recovers, it counts as neither right nor wrong.
//
//   npm run bench -- detection/incidents [methods by comma, auto] [budgets per week by comma, 1,7] [seeds, 3]
//     [--only lifelike|varied] [--from seed, 1] [--whole] [--report FILE]
//
// Recall is printed for all incidents, and for those that a person sees (visible.ts). --whole judges each
// series in one pass, which is quicker and nearly the same. --report writes a page with each series of the
// first seed at the first budget.

import { parseArgs } from 'node:util'
import { type MethodKey, methodParams } from '../../contract/detection/methods.ts'
import { type MethodChoice, scoreSeries } from '../../server/detection/methods/catalogue.ts'
import { evaluateSeries } from '../../server/detection/runs/evaluate.ts'
import { unreportedScores } from '../../server/detection/scoring/alert-once.ts'
import type { Series } from '../../server/detection/scoring/series.ts'
import { report } from '../report.ts'
import { rounded } from '../samples.ts'
import type { LabelledIncident, LabelledSeries } from './labelled-series.ts'
import { lifelikeSeries } from './lifelike.ts'
import { colourText, ReportPage } from './report-page.ts'
import { servedOpenings, startNs } from './served-openings.ts'
import { variedSeries } from './varied.ts'
import { vusPr } from './vus.ts'

const { positionals, values: options } = parseArgs({
  allowPositionals: true,
  options: {
    only: { type: 'string' },
    from: { type: 'string', default: '1' },
    whole: { type: 'boolean', default: false },
    report: { type: 'string' },
  },
})
const methods = (positionals[0] ?? 'auto').split(',') as MethodKey[]
const budgets = (positionals[1] ?? '1,7').split(',').map(Number)
const seeds = Array.from({ length: Number(positionals[2] ?? 3) }, (_, i) => i + Number(options.from))
type Corpus = readonly LabelledSeries[]
const corpora: Readonly<Record<string, (seeds: readonly number[]) => Corpus>> = {
  lifelike: lifelikeSeries,
  varied: variedSeries,
}
const halfLifePoints = methodParams.auto.parse({}).memory_points
/** False alarms a series and week at which recall without a budget is measured. */
const falseRates = [0.25, 0.5, 1, 2]

function seriesOf({ stepMinutes, values }: LabelledSeries): Series {
  return { startNs, stepMinutes, values, unknown: new Uint8Array(values.length), volumes: null }
}

function choiceOf(key: MethodKey, budget: number): MethodChoice {
  // The schema of this very key made the parameters, which the type of a lookup by key can't express.
  return {
    method_key: key,
    params: methodParams[key].parse({ alarm_budget_per_week: budget }),
  } as MethodChoice
}

/** The incident that contains a bucket, or that ended at most this many hours before it. */
function incidentAt(labelled: LabelledSeries, at: number, hours: number) {
  return labelled.incidents.find((incident) => isWithin(labelled, incident, at, hours))
}

function isWithin(
  { stepMinutes }: LabelledSeries,
  { from, to }: LabelledIncident,
  at: number,
  hours: number,
): boolean {
  return at >= from && at < to + (hours * 60) / stepMinutes
}

/** Right, wrong, or in the hours after an incident. */
function weigh(labelled: LabelledSeries, opened: readonly number[]) {
  const right = opened.filter((at) => incidentAt(labelled, at, 1) !== undefined).length
  const wrong = opened.filter((at) => incidentAt(labelled, at, 9) === undefined).length
  // Incidents may overlap: an alarm finds all in which it opens.
  const found = new Set(
    labelled.incidents.filter((incident) => opened.some((at) => isWithin(labelled, incident, at, 1))),
  )
  return { found, right, wrong }
}

async function measure(corpus: Corpus, key: MethodKey, budget: number) {
  const choice = choiceOf(key, budget)
  const byKind = new Map<string, { planted: number; found: number; visible: number; seen: number }>()
  let right = 0
  let wrong = 0
  for (const labelled of corpus) {
    const all = options.whole
      ? evaluateSeries(seriesOf(labelled), choice).episodes.map(({ openedIndex }) => openedIndex)
      : await servedOpenings(labelled, choice.method_key, choice.params)
    const opened = all.filter((at) => at >= labelled.judgedFrom)
    const weighed = weigh(labelled, opened)
    right += weighed.right
    wrong += weighed.wrong
    for (const incident of labelled.incidents) {
      const sum = byKind.get(incident.kind) ?? { planted: 0, found: 0, visible: 0, seen: 0 }
      const isFound = weighed.found.has(incident)
      sum.planted++
      if (isFound) sum.found++
      if (incident.isVisible) sum.visible++
      if (incident.isVisible && isFound) sum.seen++
      byKind.set(incident.kind, sum)
    }
  }
  const sums = [...byKind.values()]
  const sumOf = (name: 'found' | 'planted' | 'seen' | 'visible') =>
    sums.reduce((sum, each) => sum + each[name], 0)
  const found = {
    method: key,
    'budget a week': budget,
    planted: sumOf('planted'),
    recall: rounded(sumOf('found') / sumOf('planted')),
    visible: sumOf('visible'),
    'recall of the visible': rounded(sumOf('seen') / sumOf('visible')),
    precision: rounded(right / Math.max(1, right + wrong)),
    'false a series and week': rounded(wrong / weeksOf(corpus)),
  }
  const kinds = Object.fromEntries(
    [...byKind].map(([kind, { found, planted, seen, visible }]) => [
      kind,
      `${found} of ${planted}; visible ${seen} of ${visible}`,
    ]),
  )
  return { found, byKind: { method: key, 'budget a week': budget, ...kinds } }
}

function weeksOf(corpus: Corpus): number {
  return corpus.reduce(
    (sum, { judgedFrom, stepMinutes, values }) => sum + ((values.length - judgedFrom) * stepMinutes) / 10_080,
    0,
  )
}

/** Quality of the order of the scores alone; VUS-PR only of series with an incident. */
function rank(corpus: Corpus, key: MethodKey) {
  const choice = choiceOf(key, 1)
  const vus: number[] = []
  const best: number[] = []
  const wrong: number[] = []
  for (const labelled of corpus) {
    const { judgedFrom, incidents } = labelled
    const { score, unreported } = scoreSeries(choice.method_key, seriesOf(labelled), choice.params)
    const ranges = incidents.map(({ from, to }) => [from - judgedFrom, to - 1 - judgedFrom] as const)
    const judged = score.slice(judgedFrom).map((value) => value || 0)
    if (ranges.length > 0) vus.push(vusPr(judged, ranges))
    const tops = new Map(incidents.map((incident) => [incident, 0]))
    const told = unreported ?? unreportedScores(score.map(Math.log1p), halfLifePoints)
    for (let i = judgedFrom; i < told.length; i++) {
      const size = told[i] || 0
      const incident = incidentAt(labelled, i, 1)
      if (incident !== undefined) tops.set(incident, Math.max(size, tops.get(incident) ?? 0))
      else if (size > 0 && incidentAt(labelled, i, 9) === undefined) wrong.push(size)
    }
    best.push(...tops.values())
  }
  wrong.sort((a, b) => b - a)
  const recallAt = (rate: number) => {
    const edge = wrong[Math.floor(rate * weeksOf(corpus))] ?? 0
    return rounded(best.filter((size) => size > edge).length / best.length)
  }
  return {
    method: key,
    ...Object.fromEntries(falseRates.map((rate) => [`recall at ${rate} false a week`, recallAt(rate)])),
    'VUS-PR': rounded(vus.reduce((sum, value) => sum + value, 0) / vus.length, 3),
  }
}

for (const [made, make] of Object.entries(corpora)) {
  if (options.only !== undefined && options.only !== made) continue
  const corpus = make(seeds)
  for (const key of methods) {
    for (const budget of budgets) {
      const { byKind, found } = await measure(corpus, key, budget)
      report(`Planted incidents, ${made} series`, found)
      report(`Recall by kind of incident, ${made} series`, byKind)
    }
    report(`Ranking without a budget, ${made} series`, rank(corpus, key))
  }
}

if (options.report !== undefined) drawAll(options.report)

function drawAll(path: string): void {
  const [method = 'auto', budget = 1] = [methods[0], budgets[0]]
  const page = new ReportPage(`Planted incidents: ${method} at a budget of ${budget} a week`, colourText)
  const choice = choiceOf(method, budget)
  for (const [made, make] of Object.entries(corpora)) {
    if (options.only !== undefined && options.only !== made) continue
    for (const labelled of make(seeds.slice(0, 1))) {
      const { incidents, judgedFrom, stepMinutes, values } = labelled
      const { episodes, scores } = evaluateSeries(seriesOf(labelled), choice)
      const { lower, score, upper } = scores
      const chart = {
        ...{ title: `${made}: ${labelled.name}`, startMs: 0, stepMs: stepMinutes * 60_000, values },
        ...{ lower, score, upper, judgedFrom, tolerance: 60 / stepMinutes },
        anomalies: episodes.map(({ lastIndex, openedIndex }) => [openedIndex, lastIndex + 1] as const),
        labels: incidents.map(({ from, to }) => [from, to] as const),
      }
      page.addSeries(chart, { incidents: incidents.map(({ kind }) => kind).join(', ') })
    }
  }
  page.write(path, new Map())
}
