// What a detector would have done over a past range. Its runs are replayed on its own schedule. Each run uses
// the production code, without anything later (replayed-runs.ts). So a preview gives exactly what the
// detector would have recorded; a test compares the two.
//
// A preview has limits: the steps of the range, the groups, the points in the response, and its duration. A
// warning names each limit that cut something off.

import { setImmediate as yieldToOthers } from 'node:timers/promises'
import type {
  DetectorPreview,
  PreviewAnomaly,
  PreviewPoint,
  previewWarnings,
} from '../../../contract/detection/preview.ts'
import { formatInstant, type Ns, nsPerMinute, nsPerMs } from '../../../contract/values/instant.ts'
import { InvalidInput, problem } from '../../core/app-error.ts'
import { type Clock, instantText } from '../../core/clock.ts'
import { replaySeries, type SeriesReplay } from '../../series/series-replay.ts'
import type { Signal } from '../../telemetry/schema/tables.ts'
import type { TenantReader } from '../../telemetry/tenant-reader.ts'
import { reportedMax } from '../alarms/newest-episodes.ts'
import { groupBytesMax } from '../anomalies/findings.ts'
import type { RunSummary } from '../anomalies/run-summary.ts'
import type { DetectorDefinition } from '../detectors/detector.ts'
import { at, bucketStartNs } from '../scoring/series.ts'
import type { JudgedGroup } from './course-in-progress.ts'
import type { SeriesSource } from './course-run.ts'
import { groupsMax } from './detector-course.ts'
import { requestOf, unknownFor } from './evaluate-run.ts'
import { type Evaluations, EvaluationsHere } from './evaluation-pool.ts'
import { type ReplayedAnomaly, ReplayedRuns } from './replayed-runs.ts'
import { ingestLagMs, narrowestStep, nextRunMs, planRun } from './run-plan.ts'

interface BacktestOptions {
  readonly clock: Clock
  /** In this thread where absent. */
  readonly evaluations?: Evaluations
}

/** A preview without deploys, which runs do not use either. */
export interface BacktestResult extends Omit<DetectorPreview, 'anomalies' | 'deploys'> {
  readonly anomalies: readonly Omit<PreviewAnomaly, 'deploy'>[]
}

interface BacktestRange {
  readonly startNs: Ns
  readonly endNs: Ns
}

/** Buckets of the range: a month of minutes. More would be too much work for one request. */
const stepsMax = 45_000
/**
 * Points of all series in the response together: about six megabytes of JSON. The busiest
 * series are included first.
 */
const pointsMax = 50_000
/** Anomalies in the response: as many as are kept of a detector. There may be tens of thousands. */
const anomaliesMax = reportedMax
/** The longest duration, because a person waits for the response. */
const longestMs = 20_000
const readLimits = { maxSeconds: 10, maxMemoryBytes: 1024 * 1024 * 1024 }
const minutesPerWeek = 7 * 24 * 60

type Warning = DetectorPreview['warnings'][number]

/**
 * Replays the runs of a detector over a range. Throws InvalidInput for a range that is empty, in the
 * future or too long for the detector's buckets, and `erasing` where telemetry that the preview may have
 * used was hidden while it ran.
 */
export async function backtest(
  reader: TenantReader,
  definition: DetectorDefinition,
  range: BacktestRange,
  { clock, evaluations = new EvaluationsHere() }: BacktestOptions,
): Promise<BacktestResult> {
  const startedMs = clock.nowMs()
  const runsAtMs = scheduleOf(definition, range, startedMs)
  refuseTooLong(range, definition)
  const past = new PastSeries(reader, definition, range)
  const preview = new Preview(range, definition, past, { evaluations, reader })
  const replay = async () => {
    try {
      for (const ranAtMs of runsAtMs) {
        if (clock.nowMs() - startedMs > longestMs) break
        await preview.run(ranAtMs)
        await yieldToOthers()
      }
    } finally {
      preview.end()
    }
    return preview.answer(runsAtMs.length, clock.nowMs() - startedMs)
  }
  return reader.together(replay, 0)
}

/**
 * The times at which a detector that was created at the start of the range runs, up to the
 * run that judges its end.
 */
function scheduleOf(definition: DetectorDefinition, range: BacktestRange, nowMs: number): number[] {
  if (range.endNs > BigInt(nowMs) * nsPerMs) {
    throw refused(
      'range_end',
      'less_than_equal',
      'A preview covers past time: range_end must not be later than now',
      { le: instantText(nowMs) },
    )
  }
  if (range.startNs >= range.endNs) {
    throw refused('range_end', 'greater_than', 'range_end must be later than range_start', {})
  }
  const runs: number[] = []
  const everyMs = definition.schedule_minutes * 60_000
  const narrowest = narrowestStep(definition.window_minutes)
  const first = Number((range.startNs + nsPerMs - 1n) / nsPerMs)
  const lastMs = Math.min(nowMs, Number(range.endNs / nsPerMs) + ingestLagMs + everyMs)
  for (
    let ms = first;
    ms <= lastMs && runs.length < stepsMax;
    ms = nextRunMs(definition.schedule_minutes, ms)
  ) {
    if (planRun(definition, narrowest, ms).endNs <= range.endNs) runs.push(ms)
  }
  return runs
}

function refuseTooLong({ endNs, startNs }: BacktestRange, definition: DetectorDefinition): void {
  const stepMinutes = narrowestStep(definition.window_minutes)
  if (endNs - startNs <= BigInt(stepsMax * stepMinutes) * nsPerMinute) return
  const days = (stepsMax * stepMinutes) / 1440
  throw refused(
    'range_start',
    'value_error',
    `With buckets of ${stepMinutes} minutes a preview covers ${days.toFixed(1)} days at most; begin later, or make the window longer`,
    { range_end: formatInstant(endNs) },
  )
}

function refused(field: string, type: string, message: string, ctx: Record<string, unknown>): InvalidInput {
  return new InvalidInput([problem(['body', field], type, message, null, ctx)])
}

/** The past of a detector's series, read once for each width of buckets. */
class PastSeries {
  readonly #reader: TenantReader
  readonly #definition: DetectorDefinition
  readonly #range: BacktestRange
  readonly #replays = new Map<number, SeriesReplay>()

  constructor(reader: TenantReader, definition: DetectorDefinition, range: BacktestRange) {
    this.#reader = reader
    this.#definition = definition
    this.#range = range
  }

  /** Rows of telemetry of the range, each counted once. */
  get rows(): number {
    return Math.max(0, ...[...this.#replays.values()].map(({ rows }) => rows))
  }

  /** Whether some groups were left out altogether. */
  get isCut(): boolean {
    return [...this.#replays.values()].some(({ isCut }) => isCut)
  }

  /** The telemetry that was known at a time. */
  at(knownUntilNs: Ns): SeriesSource {
    const { gate, place } = this.#reader
    return {
      read: async ({ endNs, maxGroups, startNs, stepMinutes }) => {
        const replay = await this.#replayOf(stepMinutes, startNs)
        return replay.window({ startNs, endNs, knownUntilNs, maxGroups })
      },
      // The whole past is read in one go, so no part of it costs a read of its own.
      earliestNs: async () => 0n,
      hidings: () => gate.hidings(place.tenantId),
      unknownTime: (signal, range) => gate.unknownTime(place.tenantId, signal, range),
    }
  }

  async #replayOf(stepMinutes: number, startNs: Ns): Promise<SeriesReplay> {
    const known = this.#replays.get(stepMinutes)
    if (known !== undefined) return known
    const plan = planRun(this.#definition, stepMinutes, Number(this.#range.startNs / nsPerMs))
    const range = {
      startNs: startNs < plan.startNs ? startNs : plan.startNs,
      endNs: this.#range.endNs,
      stepMinutes,
      maxGroups: groupsMax,
      isBorn: false,
    }
    const replay = await replaySeries(this.#reader, requestOf(this.#definition, range), readLimits)
    this.#replays.set(stepMinutes, replay)
    return replay
  }
}

/** What a preview shows of the runs that it replays. */
class Preview {
  readonly #range: BacktestRange
  readonly #past: PastSeries
  readonly #runs: ReplayedRuns
  readonly #points = new Map<string, PreviewPoint[]>()
  #signals: readonly Signal[] = []
  #judgedUntilNs: Ns
  #stepMinutes: number
  #summary: RunSummary | null = null
  #runCount = 0
  #pointsJudged = 0
  #groupsCut = 0
  #hasErased = false

  constructor(
    range: BacktestRange,
    definition: DetectorDefinition,
    past: PastSeries,
    { evaluations, reader }: { readonly evaluations: Evaluations; readonly reader: TenantReader },
  ) {
    this.#range = range
    this.#past = past
    this.#judgedUntilNs = range.startNs
    this.#stepMinutes = narrowestStep(definition.window_minutes)
    this.#runs = new ReplayedRuns({
      definition,
      createdAtMs: Number(range.startNs / nsPerMs),
      sourceAt: (knownUntilNs) => past.at(knownUntilNs),
      evaluations,
      share: reader.share,
      isUnknown: unknownFor(reader),
      onJudged: (judged) => this.#draw(judged),
    })
  }

  async run(ranAtMs: number): Promise<void> {
    const { isErased, judged, summary } = await this.#runs.run(ranAtMs)
    const { endNs, stepMinutes } = judged.plan
    this.#stepMinutes = stepMinutes
    this.#signals = judged.set.signals
    this.#summary = summary
    this.#runCount++
    const { longGroups, truncatedGroups } = judged.set
    this.#groupsCut = Math.max(this.#groupsCut, truncatedGroups + longGroups)
    this.#hasErased ||= isErased
    if (endNs > this.#judgedUntilNs) this.#judgedUntilNs = endNs
  }

  end(): void {
    this.#runs.end()
  }

  /** Adds the buckets that this run judged first. */
  #draw({ groupKey, series, evaluation }: JudgedGroup): void {
    this.#pointsJudged += series.values.length
    const points = this.#points.get(groupKey) ?? []
    this.#points.set(groupKey, points)
    const finite = (column: Float64Array, i: number) =>
      Number.isFinite(at(column, i)) ? at(column, i) : null
    const firstNew = Number(
      (this.#judgedUntilNs - series.startNs) / (bucketStartNs(series, 1) - series.startNs),
    )
    for (let i = Math.max(0, firstNew); i < series.values.length; i++) {
      points.push({
        time: formatInstant(bucketStartNs(series, i)),
        value: finite(series.values, i),
        expected: finite(evaluation.scores.expected, i),
        lower: finite(evaluation.scores.lower, i),
        upper: finite(evaluation.scores.upper, i),
        score: finite(evaluation.scores.score, i),
        ...(series.unknown[i] === 1 ? { erased: true } : {}),
      })
    }
  }

  answer(runsDue: number, durationMs: number): BacktestResult {
    const range = this.#range
    const anomalies = this.#runs.anomalies.filter(({ seenUntilNs }) => seenUntilNs > range.startNs)
    const weeks = Number(this.#judgedUntilNs - range.startNs) / (minutesPerWeek * Number(nsPerMinute))
    const perWeek = weeks > 0 ? anomalies.length / weeks : 0
    const all = [...this.#points].filter(([, points]) => points.length > 0)
    const shown: [string, PreviewPoint[]][] = []
    let room = pointsMax
    for (const [key, points] of all) {
      if (points.length > room) break
      room -= points.length
      shown.push([key, points])
    }
    const start = formatInstant(range.startNs)
    const end = formatInstant(this.#judgedUntilNs)
    return {
      range_start: start,
      range_end: end,
      step_minutes: this.#stepMinutes,
      runs: this.#runCount,
      last_status: this.#summary?.status ?? null,
      last_note: this.#summary?.note ?? null,
      alarms: anomalies.length,
      alarms_per_week: rounded(perWeek),
      alarms_per_series_and_week: rounded(perWeek / Math.max(1, all.length)),
      series: shown.map(([key, points]) => ({ group: JSON.parse(key), points })),
      anomalies: newestOf(anomalies).map((anomaly) => this.#onWire(anomaly)),
      cost: { duration_ms: durationMs, rows_read: this.#past.rows, points_judged: this.#pointsJudged },
      warnings: this.#warnings(runsDue, { shown: shown.length, all: all.length }, anomalies.length),
      start,
      end,
    }
  }

  #onWire({
    finding,
    isOpen,
    ranAtMs,
    seenUntilNs,
    startedNs,
  }: ReplayedAnomaly): BacktestResult['anomalies'][number] {
    return {
      group: JSON.parse(finding.groupKey),
      signals: [...this.#signals],
      started_at: formatInstant(startedNs),
      ended_at: isOpen ? null : formatInstant(seenUntilNs),
      seen_until: formatInstant(seenUntilNs),
      peak_at: formatInstant(finding.peakNs),
      value: finding.value,
      expected: finding.expected,
      lower: finding.lower,
      upper: finding.upper,
      score: finding.score,
      reason: finding.reason,
      raised_at: instantText(ranAtMs),
    }
  }

  #warnings(runsDue: number, series: { shown: number; all: number }, alarms: number): Warning[] {
    const status = this.#summary?.status
    const until = formatInstant(this.#judgedUntilNs)
    const warnings: [boolean, (typeof previewWarnings)[number], string][] = [
      [runsDue === 0, 'no_runs', 'The range is too short to judge a single bucket; make it longer.'],
      [status === 'no_data', 'no_data', 'At the end of the range there was no data to judge.'],
      [
        status === 'insufficient_data',
        'insufficient_data',
        'Data is too sparse for these buckets; make the window or the schedule longer.',
      ],
      [
        status === 'learning',
        'learning',
        'At the end of the range the detector was still learning; begin earlier, or lower warmup_points.',
      ],
      [
        this.#groupsCut > 0 || this.#past.isCut,
        'groups_cut',
        `Only the busiest series are judged, and none with labels of more than ${groupBytesMax} bytes. At least one run left out ${Math.max(1, this.#groupsCut)} or more, as scheduled runs do.`,
      ],
      [
        series.shown < series.all,
        'points_cut',
        `Points of ${series.shown} of ${series.all} series are included; all series were judged. Request a shorter range to see more.`,
      ],
      [
        alarms > anomaliesMax,
        'anomalies_cut',
        `The newest ${anomaliesMax} of ${alarms} anomalies are included; all are counted.`,
      ],
      [
        this.#runCount < runsDue,
        'time_cut',
        `The time limit was reached after ${this.#runCount} of ${runsDue} runs: the preview ends at ${until}.`,
      ],
      [
        this.#hasErased,
        'erased_time',
        'A part of the time was erased. It is unknown here, although the detector may have used it at that time.',
      ],
    ]
    return warnings.filter(([is]) => is).map(([, code, message]) => ({ code, message }))
  }
}

/** Those that began last, in the order of the list. */
function newestOf(all: readonly ReplayedAnomaly[]): readonly ReplayedAnomaly[] {
  if (all.length <= anomaliesMax) return all
  const begun = all.map((anomaly) => ({ anomaly, at: Number(anomaly.startedNs) }))
  begun.sort((a, b) => b.at - a.at)
  const newest = new Set(begun.slice(0, anomaliesMax).map(({ anomaly }) => anomaly))
  return all.filter((anomaly) => newest.has(anomaly))
}

function rounded(rate: number): number {
  return Math.round(rate * 1000) / 1000
}
