// What a detector of the service would have recorded on one series of points, had it been created at a time
// and run on its schedule. The runs are those of the service (replayed-runs.ts); only the points come from
// memory. A bucket has the mean of its points and is missing without any, as a gauge of the service.

import { setImmediate as yieldToOthers } from 'node:timers/promises'
import { type Ns, nsPerMinute, nsPerMs } from '../../../contract/values/instant.ts'
import type { SeriesSet } from '../../series/series.ts'
import type { RunSummary } from '../anomalies/run-summary.ts'
import type { DetectorDefinition } from '../detectors/detector.ts'
import { largestValue, type SeriesPoint } from '../scoring/series.ts'
import type { JudgedGroup } from './course-in-progress.ts'
import type { SeriesRead, SeriesSource } from './course-run.ts'
import { EvaluationsHere } from './evaluation-pool.ts'
import { type ReplayedAnomaly, ReplayedRuns } from './replayed-runs.ts'
import { ingestLagMs, nextRunMs } from './run-plan.ts'

/** Runs between two turns of the event loop. */
const runsAtOnce = 200

interface ReplayTime {
  readonly createdAtNs: Ns
  /** The last run is the first after this time. */
  readonly endNs: Ns
  readonly onJudged?: (judged: JudgedGroup) => void
}

export interface FileReplay {
  /** In the order in which they were first recorded. */
  readonly anomalies: readonly ReplayedAnomaly[]
  /** After the last run; null without any. */
  readonly summary: RunSummary | null
  /** Width of the buckets of the last run. */
  readonly stepMinutes: number
  readonly runs: number
}

/** Points in any order. The detector runs from `createdAtNs` until its last run has seen all points. */
export async function replayPoints(
  points: FilePoints,
  definition: DetectorDefinition,
  { createdAtNs, endNs, onJudged }: ReplayTime,
): Promise<FileReplay> {
  const createdAtMs = Number(createdAtNs / nsPerMs)
  const source = points.source()
  const runs = new ReplayedRuns({
    definition,
    createdAtMs,
    sourceAt: () => source,
    evaluations: new EvaluationsHere(),
    share: { tenantId: 'file', kind: 'asked' },
    isUnknown: () => false,
    ...(onJudged && { onJudged }),
  })
  const everyMs = definition.schedule_minutes * 60_000
  const lastMs = Number(endNs / nsPerMs) + ingestLagMs + everyMs
  let [count, stepMinutes] = [0, 1]
  let summary: RunSummary | null = null
  for (let ms = nextRunMs(definition.schedule_minutes, createdAtMs); ms <= lastMs; ) {
    const run = await runs.run(ms)
    summary = run.summary
    stepMinutes = run.judged.plan.stepMinutes
    if (++count % runsAtOnce === 0) await yieldToOthers()
    ms = nextRunMs(definition.schedule_minutes, ms)
  }
  return { anomalies: runs.anomalies, summary, stepMinutes, runs: count }
}

/** The points of one series, ready to be read in buckets of any width. */
export class FilePoints {
  /** In order of time. */
  readonly #points: readonly SeriesPoint[]
  readonly #buckets = new Map<number, { means: Float64Array; counts: Float64Array; startNs: Ns }>()

  constructor(points: readonly SeriesPoint[]) {
    this.#points = points
      .filter(({ value }) => !Number.isNaN(value))
      .toSorted((a, b) => (a.timeNs < b.timeNs ? -1 : a.timeNs > b.timeNs ? 1 : 0))
  }

  /** Time of the first point; null without points. */
  get startNs(): Ns | null {
    return this.#points[0]?.timeNs ?? null
  }

  /** Time of the last point; null without points. */
  get lastNs(): Ns | null {
    return this.#points.at(-1)?.timeNs ?? null
  }

  /** The points before a time. */
  until(endNs: Ns): FilePoints {
    return new FilePoints(this.#points.filter(({ timeNs }) => timeNs < endNs))
  }

  source(): SeriesSource {
    return {
      read: async (read) => this.read(read),
      earliestNs: async () => this.startNs,
      hidings: () => 0,
      unknownTime: () => [],
    }
  }

  read({ endNs, startNs, stepMinutes }: SeriesRead): SeriesSet {
    const stepNs = BigInt(stepMinutes) * nsPerMinute
    const steps = Number((endNs - startNs) / stepNs)
    const values = new Float64Array(steps).fill(Number.NaN)
    const volume = new Float64Array(steps)
    const all = this.#inBuckets(stepMinutes)
    const offset = Number((startNs - all.startNs) / stepNs)
    const from = Math.max(0, -offset)
    const to = Math.min(steps, all.means.length - offset)
    if (from < to) {
      values.set(all.means.subarray(from + offset, to + offset), from)
      volume.set(all.counts.subarray(from + offset, to + offset), from)
    }
    return {
      metricKey: 'value',
      unit: '',
      signals: ['metrics'],
      aggregation: 'avg',
      stepSeconds: stepMinutes * 60,
      startNs,
      counted: { startNs, endNs },
      steps,
      truncatedGroups: 0,
      longGroups: 0,
      counting: false,
      unknown: new Uint8Array(steps),
      groups: [{ group: null, values, volume }],
    }
  }

  #inBuckets(stepMinutes: number) {
    const known = this.#buckets.get(stepMinutes)
    if (known !== undefined) return known
    const stepNs = BigInt(stepMinutes) * nsPerMinute
    const startNs = ((this.startNs ?? 0n) / stepNs) * stepNs
    const length = Number(((this.lastNs ?? 0n) - startNs) / stepNs) + 1
    const means = new Float64Array(length)
    const counts = new Float64Array(length)
    const startMs = Number(startNs / nsPerMs)
    for (const { timeNs, value } of this.#points) {
      const bucket = Math.floor((Number(timeNs / nsPerMs) - startMs) / (stepMinutes * 60_000))
      const count = (counts[bucket] ?? 0) + 1
      counts[bucket] = count
      const bounded = Math.max(-largestValue, Math.min(largestValue, value))
      means[bucket] = (means[bucket] ?? 0) + (bounded - (means[bucket] ?? 0)) / count
    }
    for (let i = 0; i < length; i++) if (counts[i] === 0) means[i] = Number.NaN
    const buckets = { means, counts, startNs }
    this.#buckets.set(stepMinutes, buckets)
    return buckets
  }
}
