// `lethe detect --csv FILE`: what a detector makes of a series in a file, by the code of the service and without one.
// The whole file is judged as one window, bucket by bucket, each knowing only what came before it.

import { readFileSync } from 'node:fs'
import { formatInstant, nsPerMinute } from '../../contract/instant.ts'
import { InvalidInput } from '../core/app-error.ts'
import { methodChoiceOf, readDraft } from '../detection/detector.ts'
import { evaluateSeries } from '../detection/evaluate.ts'
import { type Finding, findingsOf } from '../detection/findings.ts'
import type { MethodChoice } from '../detection/methods/catalogue.ts'
import { readPoints, stepOfPoints } from '../detection/points-file.ts'
import { at, bucketStartNs, buildSeries, type Series, type SeriesPoint } from '../detection/series.ts'
import { print } from './print.ts'

export interface DetectOptions {
  readonly csv: string
  readonly method: string
  /** JSON. */
  readonly params: string
  /** Minutes. */
  readonly step?: string
  readonly scores?: boolean
  readonly json?: boolean
}

/** Buckets; a year of minutes. */
const bucketsMax = 600_000

/** Prints what was found. Throws an Error with a sentence for a person where the file or an option can't be read. */
export function detect(options: DetectOptions): void {
  const points = readPoints(readFileSync(options.csv, 'utf8'))
  const choice = choiceOf(options)
  const series = seriesOf(points, stepMinutesOf(options, points))
  const verdict = evaluateSeries(series, choice)
  const subject = { metricName: 'value', unit: '', scope: '' }
  const findings = findingsOf({ series, verdict, params: choice.params, groupKey: '{}', subject })
  if (options.json) {
    print(JSON.stringify({ status: verdict.state.status, anomalies: findings.map(rowOf) }, null, 2))
  } else {
    for (const finding of findings) {
      print(`${formatInstant(finding.startedNs)}  score ${finding.score.toPrecision(3)}  ${finding.reason}`)
    }
    const buckets = `${series.values.length} buckets of ${series.stepMinutes} min`
    print(`${buckets}: ${findings.length} anomalies; at the end: ${verdict.state.status}`)
  }
  if (options.scores) printScores(series, verdict.scores)
}

function choiceOf({ method, params }: DetectOptions): MethodChoice {
  const draft = { name: 'file', metric_key: 'value', method_key: method, params: jsonOf(params) }
  const read = readDraft(draft)
  if ('problems' in read) throw new Error(new InvalidInput(read.problems).message)
  const choice = methodChoiceOf(read.definition)
  if (choice === null) throw new Error('The method refuses these params.')
  return choice
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new Error(`--params is no JSON: ${text}`)
  }
}

function stepMinutesOf({ step }: DetectOptions, points: readonly SeriesPoint[]): number {
  if (step === undefined) return stepOfPoints(points)
  const minutes = Number(step)
  if (Number.isInteger(minutes) && minutes >= 1) return minutes
  throw new Error('--step is a whole number of minutes, 1 or more.')
}

function seriesOf(points: readonly SeriesPoint[], stepMinutes: number): Series {
  const stepNs = BigInt(stepMinutes) * nsPerMinute
  const times = points.map(({ timeNs }) => timeNs)
  let [first, last] = [times[0] ?? 0n, times[0] ?? 0n]
  for (const time of times) {
    if (time < first) first = time
    if (time > last) last = time
  }
  const startNs = (first / stepNs) * stepNs
  const length = Number((last - startNs) / stepNs) + 1
  if (length > bucketsMax) {
    throw new Error(`That is ${length} buckets; ${bucketsMax} at most. Name a longer --step.`)
  }
  return buildSeries({ startNs, stepMinutes, length }, points)
}

function rowOf({
  startedNs,
  seenUntilNs,
  peakNs,
  isOpen,
  value,
  expected,
  lower,
  upper,
  score,
  reason,
}: Finding) {
  return {
    started_at: formatInstant(startedNs),
    ended_at: isOpen ? null : formatInstant(seenUntilNs),
    peak_at: formatInstant(peakNs),
    ...{ value, expected, lower, upper, score, reason },
  }
}

function printScores(
  series: Series,
  scores: { score: Float64Array; lower: Float64Array; upper: Float64Array },
): void {
  const text = (column: Float64Array, i: number) => (Number.isNaN(at(column, i)) ? '' : String(at(column, i)))
  print('timestamp,value,score,lower,upper')
  for (let i = 0; i < series.values.length; i++) {
    const columns = [series.values, scores.score, scores.lower, scores.upper]
    print([formatInstant(bucketStartNs(series, i)), ...columns.map((column) => text(column, i))].join(','))
  }
}
