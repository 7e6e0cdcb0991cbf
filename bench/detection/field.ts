// Measures recall and precision of detectors in labelled series of real operations, in three ways: *served*,
// as a detector of the service with the defaults of its creation, run after run on its schedule; *suggested*,
// the same with what is proposed from the first part of the series; *whole*, one pass over the file in its
// own step, which is what `lethe detect --csv` does. Groups that were not used for any choice are reported
// separately.
//
//   npm run bench -- detection/field [--ways served,suggested,whole] [--method auto] [--budget 1]
//     [--only aiops|microsoft] [--series a,b] [--report FILE]
//
// LETHE_FIELD_DIR names the folder of the data. --series keeps the series whose name contains one of these
// texts. --report writes a page for each way, of which the first has this name, that shows each series with
// what was found, missed and false. The method is that of *served* and *whole*.

import { parseArgs } from 'node:util'
import type { MethodKey } from '../../contract/detection/methods.ts'
import { type Ns, nsPerMinute, nsPerMs } from '../../contract/values/instant.ts'
import { DrawnBuckets } from '../../server/cli/charts/drawn-buckets.ts'
import { seriesChart } from '../../server/cli/charts/series-chart.ts'
import { type DetectorDefinition, readDraft } from '../../server/detection/detectors/detector.ts'
import type { Scores } from '../../server/detection/methods/method.ts'
import { evaluateSeries } from '../../server/detection/runs/evaluate.ts'
import { FilePoints } from '../../server/detection/runs/file-replay.ts'
import { buildSeries, type Series } from '../../server/detection/scoring/series.ts'
import { suggestForPoints } from '../../server/detection/suggest-file.ts'
import { type Row, report, reportAbsent, say } from '../report.ts'
import { rounded } from '../samples.ts'
import {
  addJudgements,
  type FieldSeries,
  fieldFolder,
  hasField,
  type Judgement,
  judgeAlarms,
  readField,
} from './field-series.ts'
import { choiceOf } from './judging.ts'
import { ReportPage } from './report-page.ts'
import { type Span, servedSpans } from './served-openings.ts'

const { values: options } = parseArgs({
  options: {
    ways: { type: 'string', default: 'served,suggested' },
    method: { type: 'string', default: 'auto' },
    budget: { type: 'string', default: '1' },
    only: { type: 'string' },
    series: { type: 'string' },
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

/** The source of the alarms of a series. */
interface Seen {
  readonly alarms: readonly Span[]
  readonly scores: Scores
  readonly series: Series
}

const params = { alarm_budget_per_week: Number(options.budget) }

/** One pass over the file, in its own step. */
async function wholePass(field: FieldSeries): Promise<Seen> {
  const choice = choiceOf(options.method as MethodKey, params)
  const stepNs = BigInt(field.stepMinutes) * nsPerMinute
  const [first, last] = [field.points[0]?.timeNs ?? 0n, field.points.at(-1)?.timeNs ?? 0n]
  const startNs = (first / stepNs) * stepNs
  const length = Number((last - startNs) / stepNs) + 1
  const series = buildSeries({ startNs, stepMinutes: field.stepMinutes, length }, field.points)
  const msOf = (bucket: number) => Number(startNs / nsPerMs) + bucket * field.stepMinutes * 60_000
  const { episodes, scores } = evaluateSeries(series, choice)
  const alarms = episodes.map(({ lastIndex, startIndex }) => ({
    startMs: msOf(startIndex),
    endMs: msOf(lastIndex + 1),
  }))
  return { alarms, scores, series }
}

/** What a detector records run by run, with the defaults of its creation. */
async function served(field: FieldSeries): Promise<Seen> {
  const points = new FilePoints(field.points)
  const read = readDraft({ name: 'field', metric_key: 'value', method_key: options.method, params })
  if ('problems' in read) throw new Error(JSON.stringify(read.problems))
  return replayed(points, read.value, points.startNs ?? 0n)
}

/** The same with what `suggest` proposes from the first part of the series. */
async function suggested(field: FieldSeries): Promise<Seen> {
  const points = new FilePoints(field.points)
  const { createdAtNs, definition, reasons } = await suggestForPoints(points, params)
  say(`${field.name}: ${definition.method_key}. ${reasons.join(' ')}`)
  return replayed(points, definition, createdAtNs)
}

async function replayed(points: FilePoints, definition: DetectorDefinition, createdAtNs: Ns): Promise<Seen> {
  const drawn = new DrawnBuckets()
  const shown = options.report === undefined ? undefined : drawn
  return { alarms: await servedSpans(points, definition, createdAtNs, shown), ...drawn.whole() }
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

const ways = { whole: wholePass, served, suggested }
type Way = keyof typeof ways
const isWay = (name: string): name is Way => name in ways
const chosenWays = options.ways.split(',').map((name) => {
  if (!isWay(name)) throw new Error(`--ways are ${Object.keys(ways).join(', ')}, not ${name}`)
  return name
})

for (const way of chosenWays) {
  const page = new ReportPage(`The field, ${way}: ${options.method} at ${options.budget} a week`)
  const judgements: (FieldSeries & { readonly judged: Judgement })[] = []
  for (const field of all) {
    const startUs = process.cpuUsage().user
    const { alarms, scores, series } = await ways[way](field)
    const judged = judgeAlarms(field, alarms)
    const { group, name, set, stepMinutes } = field
    report('The field, each series', {
      way,
      ...{ set, group, series: name },
      'step min': stepMinutes,
      ...figuresOf(judged),
      'CPU seconds': rounded((process.cpuUsage().user - startUs) / 1e6, 1),
    })
    judgements.push({ ...field, judged })
    if (options.report === undefined) continue
    const { events, judgedFromMs } = field
    const title = `${set} ${name}${heldOutGroups.has(group) ? ' (held out)' : ''}`
    const chart = seriesChart({ title, series, scores, anomalies: alarms, events, judgedFromMs })
    page.addSeries(chart, figuresOf(judged))
  }
  const sums = sumsOf(way, judgements)
  report('The field', ...sums)
  if (options.report !== undefined) {
    const isFirst = way === chosenWays[0]
    const path = isFirst ? options.report : options.report.replace(/(\.html)?$/, `-${way}.html`)
    page.write(path, new Map([['The field', sums]]))
  }
}

function sumsOf(way: Way, judgements: readonly (FieldSeries & { readonly judged: Judgement })[]): Row[] {
  return (['AIOps', 'Microsoft'] as const).flatMap((set) => {
    const own = judgements.filter((one) => one.set === set)
    const parts = {
      all: own,
      'held out': own.filter(({ group }) => heldOutGroups.has(group)),
    }
    return Object.entries(parts).flatMap(([part, some]) => {
      if (some.length === 0) return []
      const sum = addJudgements(some.map(({ judged }) => judged))
      return [{ way, set, part, series: some.length, ...figuresOf(sum) }]
    })
  })
}
