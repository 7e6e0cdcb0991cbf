// `lethe detect --csv FILE --as-served`: what a detector of the service would have recorded on the series of
// a file, run after run on its schedule, with the defaults of creating a detector. The incidents are printed
// with the time at which they would have been reported.

import { formatInstant, nsPerMs } from '../../contract/values/instant.ts'
import { InvalidInput } from '../core/app-error.ts'
import { instantText } from '../core/clock.ts'
import { type DetectorDefinition, readDraft } from '../detection/detectors/detector.ts'
import { FilePoints, type FileReplay, replayPoints } from '../detection/runs/file-replay.ts'
import type { ReplayedAnomaly } from '../detection/runs/replayed-runs.ts'
import type { SeriesPoint } from '../detection/scoring/series.ts'
import { suggestForPoints } from '../detection/suggest-file.ts'
import type { Judged } from './charts/detect-charts.ts'
import { DrawnBuckets } from './charts/drawn-buckets.ts'
import { print, printJson } from './print.ts'

interface ServedOptions {
  readonly method: string
  /** Merged with the budget; null where they are not given. */
  readonly params: Readonly<Record<string, unknown>>
  /** False alarms a week. */
  readonly budget?: string
  /** Whether the definition is proposed from the first part of the file; else `method` with `params`. */
  readonly suggest?: boolean
}

interface ServedReplay {
  readonly method: string
  /** Why this method, where it was proposed. */
  readonly reasons: readonly string[]
  readonly replayed: FileReplay
  /** For a chart. Each bucket is as the first run that judged it saw it. */
  readonly judged: Judged
}

/** Replays the runs over one series. Throws an Error for a person where an option is refused. */
export async function replayAsServed(
  points: readonly SeriesPoint[],
  options: ServedOptions,
): Promise<ServedReplay> {
  const series = new FilePoints(points)
  const { lastNs, startNs } = series
  if (startNs === null || lastNs === null) throw new Error('The file has no values.')
  const { createdAtNs, definition, reasons } = options.suggest
    ? await suggestForPoints(series, budgeted(options))
    : { createdAtNs: startNs, definition: definitionOf(options), reasons: [] }
  const drawn = new DrawnBuckets()
  const replayed = await replayPoints(series, definition, {
    createdAtNs,
    endNs: lastNs,
    onJudged: (judged) => drawn.add(judged),
  })
  const judged = { group: null, findings: replayed.anomalies, ...drawn.whole() }
  return { method: definition.method_key, reasons, replayed, judged }
}

export function printIncidents({ replayed }: ServedReplay): void {
  printJson({ incidents: replayed.anomalies.map(incidentOf) })
}

export function printReplay({ reasons, replayed }: ServedReplay): void {
  const { anomalies, runs, stepMinutes, summary } = replayed
  for (const reason of reasons) print(reason)
  for (const anomaly of anomalies) {
    const told = instantText(anomaly.ranAtMs)
    print(
      `${formatInstant(anomaly.startedNs)}  told ${told}  score ${anomaly.finding.score.toPrecision(3)}  ${anomaly.finding.reason}`,
    )
  }
  print(
    `${runs} runs over buckets of ${stepMinutes} min: ${anomalies.length} incidents; at the end: ${summary?.status}`,
  )
  if (summary?.note) print(summary.note)
}

function budgeted({ budget, params }: ServedOptions): Readonly<Record<string, unknown>> {
  return budget === undefined ? params : { ...params, alarm_budget_per_week: Number(budget) }
}

function definitionOf(options: ServedOptions): DetectorDefinition {
  const { method } = options
  const params = budgeted(options)
  const read = readDraft({ name: 'file', metric_key: 'value', method_key: method, params })
  if ('problems' in read) throw new Error(new InvalidInput(read.problems).message)
  return read.value
}

function incidentOf({ finding, isOpen, ranAtMs, seenUntilNs, startedNs }: ReplayedAnomaly) {
  return {
    opened_at: formatInstant(startedNs),
    closed_at: isOpen ? null : formatInstant(seenUntilNs),
    told_at: formatInstant(BigInt(ranAtMs) * nsPerMs),
    peak_at: formatInstant(finding.peakNs),
    score: finding.score,
  }
}
