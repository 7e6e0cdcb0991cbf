// `lethe detect --csv FILE`: finds anomalies in the series of a file, with the code of the service and
// without a service. The whole file is judged as one window, where each bucket is judged by the buckets
// before it only, or run by run as the service does (detect-served.ts).

import { readFileSync, writeFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { formatInstant, nsPerMinute } from '../../contract/values/instant.ts'
import { InvalidInput } from '../core/app-error.ts'
import { isRecord } from '../core/input/is-record.ts'
import type { Evaluation } from '../detection/alarms/alarm.ts'
import { type Finding, findingsOf } from '../detection/anomalies/findings.ts'
import { summariseRun } from '../detection/anomalies/run-summary.ts'
import { methodChoiceOf, readDraft } from '../detection/detectors/detector.ts'
import type { MethodChoice } from '../detection/methods/catalogue.ts'
import { evaluateSeries, peersOf } from '../detection/runs/evaluate.ts'
import {
  parseGroupedPoints,
  parseLabels,
  parseMarkers,
  parsePoints,
  stepOfPoints,
} from '../detection/scoring/points-file.ts'
import {
  at,
  bucketStartNs,
  buildSeries,
  type SeriesPoint,
  type SeriesSpan,
} from '../detection/scoring/series.ts'
import { chartsOf, drawSome, type Judged, labelResultsText } from './charts/detect-charts.ts'
import { drawSvg } from './charts/svg-chart.ts'
import { printIncidents, printReplay, replayAsServed } from './detect-served.ts'
import { type JsonOption, print, printJson } from './print.ts'

interface DetectOptions extends JsonOption {
  /** A path; `-` is standard input. */
  readonly csv: string
  /** Lines have the name of a group between timestamp and value. */
  readonly grouped?: boolean
  /** `auto` as served, else `robust_band`, where absent. */
  readonly method?: string
  /** JSON. */
  readonly params: string
  /** Minutes. */
  readonly step?: string
  readonly scores?: boolean
  /** Whether to draw in lines of text; as the terminal is where absent. */
  readonly chart?: boolean
  /** A file to write a picture to. */
  readonly svg?: string
  /** A file with lines of a time and what was deployed, which are drawn. */
  readonly deploys?: string
  /** Run after run, as the service does. */
  readonly asServed?: boolean
  /** False alarms a week. */
  readonly budget?: string
  /** With what is proposed from the first part of the file. */
  readonly suggest?: boolean
}

const defaultMethod = 'robust_band'
/** Buckets; a year of minutes. */
const bucketsMax = 600_000
/** As many as a detector of the service judges. */
const groupsMax = 50

/**
 * Prints what was found. Throws an Error with a sentence for a person where the file or
 * an option can't be read.
 */
export async function detect(options: DetectOptions): Promise<void> {
  return options.asServed ? detectServed(options) : detectAtOnce(options)
}

/** Run after run, as a detector of the service. */
async function detectServed(options: DetectOptions): Promise<void> {
  const params = jsonOf(options.params)
  if (!isRecord(params)) throw new Error(`--params is no JSON object: ${options.params}`)
  const lines = await readText(options)
  const replay = await replayAsServed(parsePoints(lines), {
    ...options,
    method: options.method ?? 'auto',
    params,
  })
  const labelResults = draw([replay.judged], lines, options, `${replay.method} as served`)
  if (options.json) return printIncidents(replay)
  printReplay(replay)
  if (labelResults !== null) print(labelResults)
}

/** The whole file as one window. */
async function detectAtOnce(options: DetectOptions): Promise<void> {
  const choice = choiceOf(options)
  const lines = await readText(options)
  const judged = judge(readGroups(lines, options), choice, options)
  const labelResults = draw(judged, lines, options, options.method ?? defaultMethod)
  const findings = judged.flatMap((one) => one.findings.map((finding) => ({ finding, group: one.group })))
  const span = judged[0]?.series
  const stepMinutes = span?.stepMinutes ?? 1
  const states = judged.map(({ state }) => state)
  const { note, status } = summariseRun(states, 0, stepMinutes)
  if (options.json) {
    printJson({ status, note, anomalies: findings.map(rowOf) })
  } else {
    for (const { finding } of findings) {
      print(`${formatInstant(finding.startedNs)}  score ${finding.score.toPrecision(3)}  ${finding.reason}`)
    }
    const buckets = `${span?.values.length ?? 0} buckets of ${stepMinutes} min`
    const series = options.grouped ? ` in ${judged.length} series` : ''
    print(`${buckets}${series}: ${findings.length} anomalies; at the end: ${status}`)
    if (labelResults !== null) print(labelResults)
    if (note !== null) print(note)
  }
  if (options.scores) printScores(judged)
}

/** Draws where it is asked for. Returns the text of {@link labelResultsText}. */
function draw(
  judged: readonly Judged[],
  lines: string,
  options: DetectOptions,
  method: string,
): string | null {
  const charts = chartsOf(judged, {
    labels: parseLabels(lines, options.grouped === true),
    deploys: options.deploys === undefined ? [] : parseMarkers(readFileSync(options.deploys, 'utf8')),
  })
  if (options.svg !== undefined) writeFileSync(options.svg, drawSvg(charts, `${method} over ${options.csv}`))
  if (isDrawn(options)) drawSome(charts)
  return labelResultsText(charts)
}

function readText({ csv }: DetectOptions): Promise<string> | string {
  return csv === '-' ? text(process.stdin) : readFileSync(csv, 'utf8')
}

function readGroups(lines: string, { grouped }: DetectOptions): Map<string | null, SeriesPoint[]> {
  if (grouped !== true) return new Map([[null, parsePoints(lines)]])
  const groups = parseGroupedPoints(lines)
  if (groups.size > groupsMax) throw new Error(`That is ${groups.size} groups; ${groupsMax} at most.`)
  return new Map(groups)
}

/** A series of the file as one window. */
interface JudgedAtOnce extends Judged {
  readonly state: Evaluation['state']
  readonly findings: readonly Finding[]
}

function judge(
  groups: ReadonlyMap<string | null, SeriesPoint[]>,
  choice: MethodChoice,
  options: DetectOptions,
): JudgedAtOnce[] {
  const points = [...groups.values()].flat()
  const span = spanOf(points, stepMinutesOf(options, points))
  const all = [...groups.values()].map((own) => buildSeries(span, own))
  const peers = peersOf(all, choice)
  return [...groups.keys()].map((group, i) => {
    const series = all[i] ?? buildSeries(span, [])
    const evaluation = evaluateSeries(series, choice, undefined, peers[i])
    const { scores, state } = evaluation
    const subject = { metricName: 'value', unit: '', scope: group ?? '', peers: peers[i] ?? [] }
    const groupKey = JSON.stringify(group === null ? {} : { group })
    const findings = findingsOf({ series, evaluation, params: choice.params, groupKey, subject })
    return { group, series, scores, state, findings }
  })
}

function choiceOf({ grouped, method = defaultMethod, params }: DetectOptions): MethodChoice {
  const scope = grouped === true ? { group_by: 'group' } : {}
  const draft = { name: 'file', metric_key: 'value', method_key: method, params: jsonOf(params), scope }
  const read = readDraft(draft)
  if (!('problems' in read)) {
    const choice = methodChoiceOf(read.value)
    if (choice === null) throw new Error('The method refuses these params.')
    return choice
  }
  if (read.problems.every(({ loc }) => loc.includes('group_by'))) {
    throw new Error(
      `${method} compares series with each other: give lines of timestamp,group,value and --grouped.`,
    )
  }
  throw new Error(new InvalidInput(read.problems).message)
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

function spanOf(points: readonly SeriesPoint[], stepMinutes: number): SeriesSpan {
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
  return { startNs, stepMinutes, length }
}

function isDrawn({ chart, json, scores }: DetectOptions): boolean {
  return !json && (chart ?? (process.stdout.isTTY === true && scores !== true))
}

function rowOf({ finding, group }: { finding: Finding; group: string | null }) {
  const { expected, isOpen, lower, peakNs, reason, score, seenUntilNs, startedNs, upper, value } = finding
  return {
    ...(group === null ? {} : { group }),
    started_at: formatInstant(startedNs),
    ended_at: isOpen ? null : formatInstant(seenUntilNs),
    peak_at: formatInstant(peakNs),
    ...{ value, expected, lower, upper, score, reason },
  }
}

function printScores(judged: readonly Judged[]): void {
  const cell = (column: Float64Array, i: number) => (Number.isNaN(at(column, i)) ? '' : String(at(column, i)))
  const isGrouped = judged.some(({ group }) => group !== null)
  print(`timestamp,${isGrouped ? 'group,' : ''}value,score,lower,upper`)
  for (const { group, scores, series } of judged) {
    const { lower, score, upper } = scores
    for (let i = 0; i < series.values.length; i++) {
      const columns = [series.values, score, lower, upper].map((column) => cell(column, i))
      const labels = group === null ? [] : [group]
      print([formatInstant(bucketStartNs(series, i)), ...labels, ...columns].join(','))
    }
  }
}
