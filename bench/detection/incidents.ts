// Measures methods on generated telemetry (lifelike.ts, or varied.ts), by the runs of the service at their
// true schedule: recall, precision, and false alarms a series and week at given budgets; and recall by kind
// of incident. An alarm matches an incident if it opens during the incident or within the hour after it. In
// the eight hours after that, while the method's own past recovers, it counts as neither right nor wrong.
//
//   npm run bench -- detection/incidents [methods by comma, auto] [budgets per week by comma, 1,7] [seeds, 3]
//     [--only lifelike|varied] [--from seed, 1] [--whole] [--report FILE]
//
// Recall is printed for all incidents, and for those that a person sees (visible.ts). --whole judges each
// series in one pass, which is quicker and nearly the same. --report writes a page with each series of the
// first seed at the first budget.

import { parseArgs } from 'node:util'
import type { MethodKey } from '../../contract/detection/methods.ts'
import { evaluateSeries } from '../../server/detection/runs/evaluate.ts'
import { report } from '../report.ts'
import { rounded } from '../samples.ts'
import { choiceOf, judgedChart, seriesOf } from './judging.ts'
import type { LabelledIncident, LabelledSeries } from './labelled-series.ts'
import { lifelikeSeries } from './lifelike.ts'
import { ReportPage } from './report-page.ts'
import { servedOpenings, startNs } from './served-openings.ts'
import { variedSeries } from './varied.ts'

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
  const choice = choiceOf(key, { alarm_budget_per_week: budget })
  const byKind = new Map<string, { planted: number; found: number; visible: number; seen: number }>()
  let right = 0
  let wrong = 0
  for (const labelled of corpus) {
    const all = options.whole
      ? evaluateSeries(seriesOf(labelled.values, labelled.stepMinutes, startNs), choice).episodes.map(
          ({ openedIndex }) => openedIndex,
        )
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

for (const [made, make] of Object.entries(corpora)) {
  if (options.only !== undefined && options.only !== made) continue
  const corpus = make(seeds)
  for (const key of methods) {
    for (const budget of budgets) {
      const { byKind, found } = await measure(corpus, key, budget)
      report(`Planted incidents, ${made} series`, found)
      report(`Recall by kind of incident, ${made} series`, byKind)
    }
  }
}

if (options.report !== undefined) drawAll(options.report)

function drawAll(path: string): void {
  const [method = 'auto', budget = 1] = [methods[0], budgets[0]]
  const page = new ReportPage(`Planted incidents: ${method} at a budget of ${budget} a week`)
  for (const [made, make] of Object.entries(corpora)) {
    if (options.only !== undefined && options.only !== made) continue
    for (const { incidents, judgedFrom, name, stepMinutes, values } of make(seeds.slice(0, 1))) {
      const series = seriesOf(values, stepMinutes, startNs)
      const evaluation = evaluateSeries(series, choiceOf(method, { alarm_budget_per_week: budget }))
      const labels = incidents.map(({ from, to }) => [from, to] as const)
      const labelled = { labels, judgedFrom, tolerance: 60 / stepMinutes }
      const kinds = incidents.map(({ kind }) => kind).join(', ')
      page.addSeries(judgedChart(`${made}: ${name}`, series, evaluation, labelled), { incidents: kinds })
    }
  }
  page.write(path)
}
