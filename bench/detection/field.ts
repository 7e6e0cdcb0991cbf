// What the default method finds in labelled series of real operations, and how much of what it tells is
// right. Series are judged as a whole (one pass over the file, in its own step, each bucket knowing only what
// came before it), which is what `lethe detect --csv` does. Groups that no choice was made on are reported
// apart.
//
//   npm run bench -- detection/field [--method auto] [--budget 1] [--only aiops|microsoft] [--series a,b]
//     [--every n] [--report FILE]
//
// LETHE_FIELD_DIR names the folder of the data. --series keeps the series whose name contains one of these
// texts; --every keeps each n-th series. --report writes a page that shows each series with what was found,
// missed and false.

import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { type MethodKey, methodParams } from '../../contract/detection-methods.ts'
import { seriesChart } from '../../server/cli/series-chart.ts'
import type { MethodChoice } from '../../server/detection/methods/catalogue.ts'
import { evaluateSeries } from '../../server/detection/runs/evaluate.ts'
import { buildSeries } from '../../server/detection/scoring/series.ts'
import { type Row, report, reportAbsent, say } from '../report.ts'
import { rounded } from '../samples.ts'
import {
  type Alarm,
  addJudgements,
  type FieldSeries,
  fieldFolder,
  hasField,
  type Judgement,
  judgeAlarms,
  readField,
} from './field-series.ts'
import { ReportPage } from './report-page.ts'

const { values: options } = parseArgs({
  options: {
    method: { type: 'string', default: 'auto' },
    budget: { type: 'string', default: '1' },
    only: { type: 'string' },
    series: { type: 'string' },
    every: { type: 'string', default: '1' },
    report: { type: 'string' },
  },
})
const folder = fieldFolder()
if (!hasField(folder)) {
  reportAbsent(
    'Labelled series of the field',
    `they are not at ${folder}; name their folder in LETHE_FIELD_DIR`,
  )
  process.exit(0)
}

/** Nothing was tuned on these: each second KPI, and four of Microsoft's nine services. */
const heldOutGroups = new Set([
  '1c6d7a26',
  '431a8542',
  '57051487',
  '7103fa0f',
  'a07ac296',
  'ba5f3328',
  'e0747cad',
  'application-crash-rate-2',
  'data-ingress-rate',
  'mongodb-application-rps',
  'service-unavailable',
])

const wanted = options.series?.split(',')
const all = readField(folder)
  .filter(({ set }) => options.only === undefined || set.toLowerCase() === options.only)
  .filter(({ name }) => wanted?.some((text) => name.includes(text)) ?? true)
  .filter((_, i) => i % Number(options.every) === 0)

function choiceOf(): MethodChoice {
  const key = options.method as MethodKey
  const params = methodParams[key].parse({ alarm_budget_per_week: Number(options.budget) })
  // The schema of this very key made the parameters, which the type of a lookup by key can't express.
  return { method_key: key, params } as MethodChoice
}

function judge(field: FieldSeries, choice: MethodChoice) {
  const stepNs = BigInt(field.stepMinutes) * 60_000_000_000n
  const [first, last] = [field.points[0]?.timeNs ?? 0n, field.points.at(-1)?.timeNs ?? 0n]
  const startNs = (first / stepNs) * stepNs
  const length = Number((last - startNs) / stepNs) + 1
  const series = buildSeries({ startNs, stepMinutes: field.stepMinutes, length }, field.points)
  const msOf = (bucket: number) => Number(startNs / 1_000_000n) + bucket * field.stepMinutes * 60_000
  const { episodes, scores } = evaluateSeries(series, choice)
  const alarms: Alarm[] = episodes.map(({ lastIndex, startIndex }) => ({
    startMs: msOf(startIndex),
    endMs: msOf(lastIndex + 1),
  }))
  return { alarms, scores, series }
}

const share = (part: number, of: number) => (of === 0 ? null : rounded(part / of))

function figuresOf(judged: Judgement): Row {
  return {
    events: judged.events,
    recall: share(judged.eventsFound, judged.events),
    'recall of stretches': share(judged.stretchesFound, judged.stretches),
    alarms: judged.alarms,
    precision: share(judged.right, judged.alarms),
    'false a week': rounded((judged.alarms - judged.right) / judged.weeks),
  }
}

const choice = choiceOf()
const page = new ReportPage(
  `The field: ${options.method} at a budget of ${options.budget} a week`,
  'Each series with its band or, where the method has none, its score. Green: events that were found and alarms about them. Orange: events that were missed. Red: false alarms. What lies on grey is there to learn from and does not count.',
)
const judgements = all.map((field) => {
  const startUs = process.cpuUsage().user
  const { alarms, scores, series } = judge(field, choice)
  const judged = judgeAlarms(field, alarms)
  const cpuSeconds = rounded((process.cpuUsage().user - startUs) / 1e6, 1)
  report('The field, each series', {
    set: field.set,
    group: field.group,
    series: field.name,
    'step min': field.stepMinutes,
    ...figuresOf(judged),
    'CPU seconds': cpuSeconds,
  })
  if (options.report !== undefined) {
    const { events, judgedFromMs, name, set } = field
    const title = `${set} ${name}${heldOutGroups.has(field.group) ? ' (held out)' : ''}`
    const chart = seriesChart({ title, series, scores, anomalies: alarms, events, judgedFromMs })
    page.addSeries(chart, figuresOf(judged))
  }
  return { ...field, judged }
})
const sums: Row[] = []
for (const set of ['AIOps', 'Microsoft'] as const) {
  const own = judgements.filter((one) => one.set === set)
  const parts = {
    all: own,
    'tuned on': own.filter(({ group }) => !heldOutGroups.has(group)),
    'held out': own.filter(({ group }) => heldOutGroups.has(group)),
    'held out and minutes': own.filter(
      ({ group, stepMinutes }) => heldOutGroups.has(group) && stepMinutes === 1,
    ),
  }
  for (const [part, some] of Object.entries(parts)) {
    if (some.length === 0) continue
    const sum = addJudgements(some.map(({ judged }) => judged))
    sums.push({ set, part, series: some.length, ...figuresOf(sum) })
  }
}
report('The field', ...sums)
if (options.report !== undefined) {
  writeFileSync(options.report, page.html(new Map([['The field', sums]])))
  say(`${options.report} shows each series`)
}
