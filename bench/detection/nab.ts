// Every method on the Numenta Anomaly Benchmark, through the code that production runs: `scoreSeries` for
// ranking and `evaluateSeries` for alarms, beside the published leaders and a trivial control.
//
//   npm run bench -- detection/nab [folder of the data, else LETHE_NAB_DIR] [--methods a,b] [--report FILE]
//
// --methods measures only these. A method that compares peers has none here and is left out. --report writes
// a page with each series and the alarms of the first of them.
//
// Three figures, because one alone does not show the others:
//   oracle     NAB as it is usually published: one threshold, chosen with the labels.
//   held out   each group at the threshold that is best on the other groups.
//   shipped    no threshold: the alarms of the default parameters, one false alarm per series and
//     week.
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
import { choiceOf, judgedChart } from './judging.ts'
import {
  hasNab,
  type NabFile,
  type NabProfile,
  nabFolder,
  readCorpus,
  readProfiles,
  readPublishedScores,
  scoresOfRows,
} from './nab-corpus.ts'
import { fixedScore, heldOutScore, oracleScore, type RowScores, rateRows } from './nab-score.ts'
import { ReportPage } from './report-page.ts'

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

/** Standard, low FP, low FN: the three profiles of NAB. */
const threeProfiles = (final: (profile: NabProfile) => number): string =>
  profiles.map((profile) => final(profile).toFixed(1)).join(' ')

function nabFigures(rows: RowScores) {
  const rated = rateRows(files, rows)
  return {
    oracle: threeProfiles((profile) => oracleScore(rated, profile).final),
    'held out': threeProfiles((profile) => heldOutScore(rated, profile)),
  }
}

function newsIn(scores: Scores): Float64Array {
  return scores.unreported ?? unreportedScores(scores.score.map(Math.log1p), halfLifePoints)
}

/** Alarms as production raises them, against the labelled windows. */
function alarmFigures(choice: MethodChoice) {
  const fired = new Map<string, Float64Array>()
  const delays: number[] = []
  let [alarms, right, hit] = [0, 0, 0]
  for (const file of files) {
    const { episodes } = evaluateSeries(file.series, choice)
    const openings = new Float64Array(file.series.values.length)
    for (const episode of episodes) openings[episode.openedIndex] = 1
    const rows = scoresOfRows(file, openings)
    fired.set(file.path, rows)
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
    shipped: threeProfiles((profile) => fixedScore(rated, profile, 1)),
    precision: rounded(right / Math.max(1, alarms)),
    recall: rounded(hit / windows),
    'delay, share of the window': rounded(delays.sort((a, b) => a - b)[delays.length >> 1] ?? Number.NaN),
  }
}

function rankingFigures(choice: MethodChoice) {
  const scoresOf = (file: NabFile) => newsIn(scoreSeries(choice.method_key, file.series, choice.params))
  return nabFigures(new Map(files.map((file) => [file.path, scoresOfRows(file, scoresOf(file))])))
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

const line = (row: Row) => report('NAB: standard, low FP, low FN', row)

for (const name of ['ARTime', 'numenta', 'windowedGaussian'])
  line({ method: `${name}, its stored scores`, ...nabFigures(readPublishedScores(folder, name)) })
line({ method: 'control: new all-time high or low, tolerance 0.01', ...nabFigures(control(0.01)) })
for (const key of measured) {
  const choice = choiceOf(key)
  line({ method: key, ...rankingFigures(choice), ...alarmFigures(choice) })
}

if (options.report !== undefined)
  drawAll(options.report, wanted === undefined ? 'auto' : (measured[0] ?? 'auto'))

function drawAll(path: string, key: MethodKey): void {
  const page = new ReportPage(`NAB: ${key} with its default parameters`)
  for (const file of files) {
    const evaluation = evaluateSeries(file.series, choiceOf(key))
    const bucketOf = (row: number) => file.bucketOfRow.subarray(row).find((bucket) => bucket >= 0) ?? 0
    const labels = file.windows.map(([from, to]) => [bucketOf(from), bucketOf(to) + 1] as const)
    const labelled = { labels, judgedFrom: bucketOf(file.probation), tolerance: 0 }
    page.addSeries(judgedChart(file.path, file.series, evaluation, labelled), {
      windows: file.windows.length,
      alarms: evaluation.episodes.length,
    })
  }
  page.write(path)
}
