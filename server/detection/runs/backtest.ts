// What a detector would have done over a past range. Its runs are replayed on its own schedule. Each run uses
// the production code on its own window, without anything later, and its findings are reconciled with those
// of the runs before, as in the store but in memory. So a preview gives exactly what the detector would have
// recorded; a test compares the two.
//
// A preview has limits: the steps of the range, the groups, the points in the response, and its duration. A
// warning names each limit that cut something off.

import { setImmediate as yieldToOthers } from 'node:timers/promises'
import type {
  DetectorPreview,
  PreviewAnomaly,
  PreviewPoint,
  previewWarnings,
} from '../../../contract/detection-preview.ts'
import { formatInstant, type Ns, nsPerMinute, nsPerMs } from '../../../contract/instant.ts'
import { AppError, InvalidInput, problem } from '../../core/app-error.ts'
import { type Clock, instantText } from '../../core/clock.ts'
import { replaySeries, type SeriesReplay } from '../../series/series-replay.ts'
import type { Signal } from '../../telemetry/schema/tables.ts'
import type { TenantReader } from '../../telemetry/tenant-reader.ts'
import type { Finding } from '../anomalies/findings.ts'
import { type RecordedAnomaly, type RunWindow, reconcile } from '../anomalies/reconcile.ts'
import type { RunSummary } from '../anomalies/run-summary.ts'
import { type DetectorDefinition, methodChoiceOf, type StoredDetector } from '../detectors/detector.ts'
import type { MethodChoice } from '../methods/catalogue.ts'
import { at, bucketStartNs } from '../scoring/series.ts'
import { evaluateRun, type JudgedSeries, requestOf } from './evaluate-run.ts'
import { type Evaluate, evaluateHere } from './evaluation-pool.ts'
import { ingestLagMs, nextRunMs, planRun, type RunPlan } from './run-plan.ts'

interface BacktestRange {
  readonly startNs: Ns
  readonly endNs: Ns
}

/**
 * Buckets of the range and the window before it: three weeks of minutes. More would be too
 * much work for one request.
 */
const stepsMax = 30_000
/**
 * Points of all series in the response together: about six megabytes of JSON. The busiest
 * series are included first.
 */
const pointsMax = 50_000
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
  { clock, evaluate = evaluateHere }: { readonly clock: Clock; readonly evaluate?: Evaluate },
): Promise<DetectorPreview> {
  const choice = methodChoiceOf(definition)
  if (choice === null) throw new Error('The params of a validated definition are refused by its method.')
  const startedMs = clock.nowMs()
  const runsAtMs = scheduleOf(definition, range, startedMs)
  const first = planRun(definition, runsAtMs[0] ?? startedMs)
  const last = planRun(definition, runsAtMs.at(-1) ?? startedMs)
  refuseTooLong(range, first, last)
  const hidings = reader.gate.hidings(reader.place.tenantId)
  const detector = neverRunDetector(definition, reader.place.tenantId, Number(range.startNs / nsPerMs))
  const request = { ...requestOf({ detector, plan: first }), endNs: last.endNs }
  const replay = await replaySeries(reader, request, readLimits)
  const replayed = new ReplayedRuns({ range, replay, reader, choice, detector, evaluate })
  for (const ranAtMs of runsAtMs) {
    if (clock.nowMs() - startedMs > longestMs) break
    await replayed.run(ranAtMs)
    await yieldToOthers()
  }
  if (reader.gate.hidings(reader.place.tenantId) !== hidings) {
    throw new AppError('erasing', {
      retryAfterSeconds: 1,
      sentence: 'Telemetry that the preview read has just been erased. Send the request again.',
    })
  }
  return replayed.preview(runsAtMs.length, clock.nowMs() - startedMs)
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
  const first = Number((range.startNs + nsPerMs - 1n) / nsPerMs)
  const lastMs = Math.min(nowMs, Number(range.endNs / nsPerMs) + ingestLagMs + everyMs)
  for (
    let ms = first;
    ms <= lastMs && runs.length < stepsMax;
    ms = nextRunMs(definition.schedule_minutes, ms)
  ) {
    if (planRun(definition, ms).endNs <= range.endNs) runs.push(ms)
  }
  return runs
}

function refuseTooLong({ endNs }: BacktestRange, first: RunPlan, last: RunPlan): void {
  const stepNs = BigInt(first.stepMinutes) * nsPerMinute
  const steps = Number((last.endNs - first.startNs) / stepNs)
  if (steps <= stepsMax && last.endNs > first.startNs) return
  const before = Number((first.endNs - first.startNs) / stepNs)
  const days = ((stepsMax - before) * first.stepMinutes) / 1440
  throw refused(
    'range_start',
    'value_error',
    `With buckets of ${first.stepMinutes} minutes a preview covers ${days.toFixed(1)} days at most; begin later, or make window and schedule longer`,
    { range_end: formatInstant(endNs) },
  )
}

function refused(field: string, type: string, message: string, ctx: Record<string, unknown>): InvalidInput {
  return new InvalidInput([problem(['body', field], type, message, null, ctx)])
}

/** A detector that was just created. */
function neverRunDetector(
  definition: DetectorDefinition,
  tenantId: string,
  createdAtMs: number,
): StoredDetector {
  const never = { lastRunAtMs: null, lastStatus: null, lastNote: null, tuningRevision: 0 }
  return { id: 'preview', tenantId, definition, isSystem: false, revision: 1, ...never, createdAtMs }
}

interface ReplayOptions {
  readonly range: BacktestRange
  readonly replay: SeriesReplay
  readonly reader: TenantReader
  readonly choice: MethodChoice
  readonly detector: StoredDetector
  readonly evaluate: Evaluate
}

/** An anomaly as the store would record it. */
interface ReplayedAnomaly extends RecordedAnomaly {
  readonly finding: Finding
  readonly ranAtMs: number
}

/** The anomalies and points of the replayed runs. */
class ReplayedRuns {
  readonly #options: ReplayOptions
  readonly #anomalies = new Map<string, ReplayedAnomaly>()
  readonly #points = new Map<string, PreviewPoint[]>()
  #detector: StoredDetector
  #signals: readonly Signal[] = []
  #judgedUntilNs: Ns
  #stepMinutes = 1
  #summary: RunSummary | null = null
  #runs = 0
  #pointsJudged = 0
  #groupsCut = 0
  #hasErased = false

  constructor(options: ReplayOptions) {
    this.#options = options
    this.#detector = options.detector
    this.#judgedUntilNs = options.range.startNs
  }

  async run(ranAtMs: number): Promise<void> {
    const { choice, evaluate, reader, replay } = this.#options
    const plan = planRun(this.#detector.definition, ranAtMs)
    this.#stepMinutes = plan.stepMinutes
    const knownUntilNs = BigInt(ranAtMs) * nsPerMs
    const set = await replay.window({ startNs: plan.startNs, endNs: plan.endNs, knownUntilNs })
    const onJudged = (judged: JudgedSeries) => this.#draw(judged)
    const run = {
      detector: this.#detector,
      choice,
      evaluate,
      plan,
      reader: reader.until(knownUntilNs),
      tuning: null,
      onJudged,
    }
    const { found, summary } = await evaluateRun(run, set)
    this.#record(found.findings, found.window, ranAtMs)
    this.#signals = found.signals
    this.#summary = summary
    this.#runs++
    this.#groupsCut = Math.max(this.#groupsCut, set.truncatedGroups)
    this.#hasErased ||= set.unknown.includes(1)
    if (plan.endNs > this.#judgedUntilNs) this.#judgedUntilNs = plan.endNs
    this.#detector = { ...this.#detector, lastRunAtMs: ranAtMs, lastStatus: summary.status }
  }

  /** Changes the anomalies like `recordFindings` in the store. */
  #record(findings: readonly Finding[], window: RunWindow, ranAtMs: number): void {
    const recorded = [...this.#anomalies.values()]
      .filter(({ isOpen, seenUntilNs }) => isOpen || seenUntilNs > window.startNs)
      .sort((a, b) => (a.startedNs < b.startedNs ? -1 : 1))
    const changes = reconcile(recorded, findings, window)
    const keep = (anomaly: ReplayedAnomaly) => this.#anomalies.set(anomaly.id, anomaly)
    for (const finding of changes.create) {
      keep({ ...finding, id: String(this.#anomalies.size), finding, ranAtMs })
    }
    for (const { id, finding } of changes.update) {
      const anomaly = this.#anomalies.get(id)
      if (anomaly === undefined) continue
      keep({ ...anomaly, finding, seenUntilNs: finding.seenUntilNs, isOpen: finding.isOpen })
    }
    for (const id of changes.close) {
      const anomaly = this.#anomalies.get(id)
      if (anomaly !== undefined) keep({ ...anomaly, isOpen: false })
    }
  }

  /** Adds the buckets that this run judged first. */
  #draw({ groupKey, series, evaluation }: JudgedSeries): void {
    this.#pointsJudged += series.values.length
    const points = this.#points.get(groupKey) ?? []
    this.#points.set(groupKey, points)
    const finite = (column: Float64Array, i: number) =>
      Number.isFinite(at(column, i)) ? at(column, i) : null
    for (let i = 0; i < series.values.length; i++) {
      const timeNs = bucketStartNs(series, i)
      if (bucketStartNs(series, i + 1) <= this.#judgedUntilNs) continue
      points.push({
        time: formatInstant(timeNs),
        value: finite(series.values, i),
        expected: finite(evaluation.scores.expected, i),
        lower: finite(evaluation.scores.lower, i),
        upper: finite(evaluation.scores.upper, i),
        score: finite(evaluation.scores.score, i),
        ...(series.unknown[i] === 1 ? { erased: true } : {}),
      })
    }
  }

  preview(runsDue: number, durationMs: number): DetectorPreview {
    const { range, replay } = this.#options
    const anomalies = [...this.#anomalies.values()].filter(({ seenUntilNs }) => seenUntilNs > range.startNs)
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
      runs: this.#runs,
      last_status: this.#summary?.status ?? null,
      last_note: this.#summary?.note ?? null,
      alarms: anomalies.length,
      alarms_per_week: rounded(perWeek),
      alarms_per_series_and_week: rounded(perWeek / Math.max(1, all.length)),
      series: shown.map(([key, points]) => ({ group: JSON.parse(key), points })),
      anomalies: anomalies.map((anomaly) => this.#onWire(anomaly)),
      cost: { duration_ms: durationMs, rows_read: replay.rows, points_judged: this.#pointsJudged },
      warnings: this.#warnings(runsDue, { shown: shown.length, all: all.length }),
      start,
      end,
    }
  }

  #onWire({ finding, isOpen, ranAtMs, seenUntilNs, startedNs }: ReplayedAnomaly): PreviewAnomaly {
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

  #warnings(runsDue: number, series: { shown: number; all: number }): Warning[] {
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
        this.#groupsCut > 0 || this.#options.replay.isCut,
        'groups_cut',
        `Only the busiest series are judged. At least one run left out ${Math.max(1, this.#groupsCut)} or more, as scheduled runs do.`,
      ],
      [
        series.shown < series.all,
        'points_cut',
        `Points of ${series.shown} of ${series.all} series are included; all series were judged. Request a shorter range to see more.`,
      ],
      [
        this.#runs < runsDue,
        'time_cut',
        `The time limit was reached after ${this.#runs} of ${runsDue} runs: the preview ends at ${until}.`,
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

function rounded(rate: number): number {
  return Math.round(rate * 1000) / 1000
}
