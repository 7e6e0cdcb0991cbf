// Every method on the Numenta Anomaly Benchmark, through the code that production runs: `scoreSeries` for
// ranking and `evaluateSeries` for alarms, beside the published leaders and a trivial control.
//
//   npm run bench -- detection/nab [folder of the data, else LETHE_NAB_DIR] [--methods a,b] [--report FILE]
//
// --methods measures only these. A method that compares peers has none here and is left out. --report writes
// a page with each series and the alarms of the first of them.
//
// Four figures, because one alone does not show the others:
//   oracle     NAB as it is usually published: one threshold, chosen with the labels.
//   held out   each group at the threshold that is best on the other groups.
//   shipped    no threshold: the alarms of the default parameters, one false alarm per series and
//     week.
//   VUS-PR     no threshold, ranking only. On NAB's windows: not comparable with TSB-AD's own labels.
// A method without unreported scores of its own gets the shared alert-once rule for NAB (a monotone change of
// its score).

import { parseArgs } from 'node:util'
import { comparesPeers, type MethodKey, methodKeys, methodParams } from '../../contract/detection/methods.ts'
import { type MethodChoice, scoreSeries } from '../../server/detection/methods/catalogue.ts'
import type { Scores } from '../../server/detection/methods/method.ts'
import { evaluateSeries } from '../../server/detection/runs/evaluate.ts'
import { unreportedScores } from '../../server/detection/scoring/alert-once.ts'
import { type Row, report, reportAbsent } from '../report.ts'
import { rounded } from '../samples.ts'
import {
  hasNab,
  type NabFile,
  type NabProfile,
  nabFolder,
  readCorpus,
  readProfiles,
  readPublishedFinals,
  readPublishedScores,
  scoresOfRows,
} from './nab-corpus.ts'
import { fixedScore, heldOutScore, oracleScore, type RowScores, rateRows } from './nab-score.ts'
import { colourText, ReportPage } from './report-page.ts'
import { vusPr } from './vus.ts'

const { positionals, values: options } = parseArgs({
  allowPositionals: true,
  options: { methods: { type: 'string' }, report: { type: 'string' } },
})
if (positionals.length > 1) throw new Error('Name methods with --methods')
const folder = nabFolder(positionals[0])
if (!hasNab(folder)) {
  reportAbsent('NAB', `its data is not at ${folder}; give its folder as argument or as LETHE_NAB_DIR`)
  process.exit(0)
}

const files = readCorpus(folder)
const profiles = readProfiles(folder)
const wanted = options.methods?.split(',')
const halfLifePoints = methodParams.auto.parse({}).memory_points

/** A threshold has no default, and `rate_test` needs a volume, which NAB does not have. */
const measured = methodKeys.filter(
  (key) => key !== 'threshold' && !comparesPeers(key) && (wanted?.includes(key) ?? true),
)

function choiceOf(key: MethodKey): MethodChoice {
  // The schema of this very key made the parameters, which the type of a lookup by key can't express.
  return { method_key: key, params: methodParams[key].parse({}) } as MethodChoice
}

/** Standard, low FP, low FN: the three profiles of NAB. */
const threeProfiles = (final: (profile: NabProfile) => number): string =>
  profiles.map((profile) => final(profile).toFixed(1)).join(' ')

function nabFigures(rows: RowScores) {
  const rated = rateRows(files, rows)
  return {
    oracle: threeProfiles((profile) => oracleScore(rated, profile).final),
    'held out': threeProfiles((profile) => heldOutScore(rated, profile).final),
  }
}

function newsIn(scores: Scores): Float64Array {
  return scores.unreported ?? unreportedScores(scores.score.map(Math.log1p), halfLifePoints)
}

function meanVus(scoresOf: ReadonlyMap<string, Float64Array>): number {
  const each = files
    .map((file) =>
      vusPr(
        (scoresOf.get(file.path) ?? new Float64Array()).slice(file.probation),
        windowsAfterProbation(file),
      ),
    )
    .filter((value) => !Number.isNaN(value))
  return each.reduce((sum, value) => sum + value, 0) / each.length
}

function windowsAfterProbation(file: NabFile): [number, number][] {
  return file.windows
    .filter(([, to]) => to >= file.probation)
    .map(([from, to]) => [Math.max(0, from - file.probation), to - file.probation])
}

/** Alarms as production raises them, against the labelled windows. */
function alarmFigures(choice: MethodChoice) {
  const fired = new Map<string, Float64Array>()
  const delays: number[] = []
  let alarms = 0
  let right = 0
  let hit = 0
  let weeks = 0
  for (const file of files) {
    const { episodes } = evaluateSeries(file.series, choice)
    const openings = new Float64Array(file.series.values.length)
    for (const episode of episodes) openings[episode.openedIndex] = 1
    const rows = scoresOfRows(file, openings)
    fired.set(file.path, rows)
    weeks += ((file.length - file.probation) * file.series.stepMinutes) / 10_080
    const isInside = (row: number) => file.windows.some(([from, to]) => row >= from && row <= to)
    for (let row = file.probation; row < file.length; row++) {
      if (rows[row] !== 1) continue
      alarms++
      if (isInside(row)) right++
    }
    for (const [from, to] of file.windows) {
      const first = rows.indexOf(1, Math.max(from, file.probation))
      if (first < 0 || first > to) continue
      hit++
      delays.push((first - from) / (to - from))
    }
  }
  const rated = rateRows(files, fired)
  const windows = files.reduce((sum, file) => sum + file.windows.length, 0)
  return {
    shipped: threeProfiles((profile) => fixedScore(rated, profile, 1).final),
    precision: rounded(right / Math.max(1, alarms)),
    recall: rounded(hit / windows),
    'alarms a series and week': rounded(alarms / weeks),
    'delay, share of the window': rounded(delays.sort((a, b) => a - b)[delays.length >> 1] ?? Number.NaN),
  }
}

function figuresOf(name: string, scoreOf: (file: NabFile) => Scores) {
  const news = new Map<string, Float64Array>()
  const plain = new Map<string, Float64Array>()
  const startUs = process.cpuUsage().user
  const scores = files.map((file) => [file, scoreOf(file)] as const)
  const cpuSeconds = (process.cpuUsage().user - startUs) / 1e6
  for (const [file, each] of scores) {
    news.set(file.path, scoresOfRows(file, newsIn(each)))
    plain.set(file.path, scoresOfRows(file, each.score))
  }
  const buckets = files.reduce((sum, file) => sum + file.series.values.length, 0)
  return {
    method: name,
    ...nabFigures(news),
    'VUS-PR': rounded(meanVus(plain), 3),
    'buckets a CPU second': Math.round(buckets / cpuSeconds),
  }
}

function control(tolerance: number): RowScores {
  return new Map(
    files.map((file) => {
      let lowest = Number.POSITIVE_INFINITY
      let highest = Number.NEGATIVE_INFINITY
      const records = file.series.values.map((value, i) => {
        if (Number.isNaN(value)) return 0
        const margin = tolerance * (highest - lowest) || 0
        const isExtreme = i > 0 && (value > highest + margin || value < lowest - margin)
        lowest = Math.min(lowest, value)
        highest = Math.max(highest, value)
        return isExtreme ? 1 : 0
      })
      return [file.path, scoresOfRows(file, records)]
    }),
  )
}

const published = readPublishedFinals(folder)
const line = (row: Row) => report('NAB: standard, low FP, low FN', row)

for (const name of ['ARTime', 'numenta', 'windowedGaussian']) {
  const rows = readPublishedScores(folder, name)
  line({
    method: `${name}, its stored scores`,
    published: threeProfiles((profile) => published[name]?.[profile.name] ?? Number.NaN),
    ...nabFigures(rows),
    'VUS-PR': rounded(meanVus(rows), 3),
  })
}
for (const tolerance of [0, 0.01])
  line({
    method: `control: new all-time high or low, tolerance ${tolerance}`,
    ...nabFigures(control(tolerance)),
  })
line({
  method: 'never fires',
  ...nabFigures(new Map(files.map((file) => [file.path, new Float64Array(file.length)]))),
})
for (const key of measured) {
  const choice = choiceOf(key)
  line({
    ...figuresOf(key, (file) => scoreSeries(choice.method_key, file.series, choice.params)),
    ...alarmFigures(choice),
  })
}

if (options.report !== undefined)
  drawAll(options.report, wanted === undefined ? 'auto' : (measured[0] ?? 'auto'))

function drawAll(path: string, key: MethodKey): void {
  const page = new ReportPage(`NAB: ${key} with its default parameters`, colourText)
  for (const file of files) {
    const { series } = file
    const { episodes, scores } = evaluateSeries(series, choiceOf(key))
    const { lower, score, upper } = scores
    const bucketOf = (row: number) => file.bucketOfRow.subarray(row).find((bucket) => bucket >= 0) ?? 0
    const chart = {
      ...{
        title: file.path,
        startMs: Number(series.startNs / 1_000_000n),
        stepMs: series.stepMinutes * 60_000,
      },
      ...{ values: series.values, lower, score, upper, judgedFrom: bucketOf(file.probation), tolerance: 0 },
      anomalies: episodes.map(({ lastIndex, openedIndex }) => [openedIndex, lastIndex + 1] as const),
      labels: file.windows.map(([from, to]) => [bucketOf(from), bucketOf(to) + 1] as const),
    }
    page.addSeries(chart, { windows: file.windows.length, alarms: episodes.length })
  }
  page.write(path, new Map())
}
