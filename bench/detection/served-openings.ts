// The anomalies that a detector of the service would have recorded, run by run on its schedule.

import { type Ns, nsPerMinute, nsPerMs } from '../../contract/values/instant.ts'
import type { DrawnBuckets } from '../../server/cli/charts/drawn-buckets.ts'
import { type DetectorDefinition, readDraft } from '../../server/detection/detectors/detector.ts'
import { FilePoints, replayPoints } from '../../server/detection/runs/file-replay.ts'

/** Monday 2026-08-31: the start of generated series. */
export const startNs: Ns = BigInt(Date.UTC(2026, 7, 31)) * 1_000_000n

/** Half-open, in milliseconds since 1970. */
export interface Span {
  readonly startMs: number
  readonly endMs: number
}

/** The anomalies of a detector that was created at `createdAtNs`; its buckets are added to `drawn`. */
export async function servedSpans(
  points: FilePoints,
  definition: DetectorDefinition,
  createdAtNs: Ns,
  drawn: DrawnBuckets | undefined,
): Promise<Span[]> {
  const { anomalies } = await replayPoints(points, definition, {
    createdAtNs,
    endNs: points.lastNs ?? createdAtNs,
    ...(drawn !== undefined && { onJudged: (judged) => drawn.add(judged) }),
  })
  return anomalies.map(({ seenUntilNs, startedNs }) => ({
    startMs: Number(startedNs / nsPerMs),
    endMs: Number(seenUntilNs / nsPerMs),
  }))
}

interface ServedSeries {
  /** One per step; NaN is missing. */
  readonly values: Float64Array
  readonly stepMinutes: number
}

/**
 * The steps at which alarms were raised, in order, by a detector with the defaults of its creation and these
 * params, created at the first value.
 */
export async function servedOpenings(
  { stepMinutes, values }: ServedSeries,
  method_key: string,
  params: object,
): Promise<number[]> {
  const read = readDraft({ name: 'bench', metric_key: 'value', method_key, params })
  if ('problems' in read) throw new Error(JSON.stringify(read.problems))
  const stepNs = BigInt(stepMinutes) * nsPerMinute
  const points = new FilePoints(
    Array.from(values, (value, i) => ({ timeNs: startNs + BigInt(i) * stepNs, value })),
  )
  const { lastNs, startNs: firstNs } = points
  if (firstNs === null || lastNs === null) return []
  const { anomalies } = await replayPoints(points, read.value, { createdAtNs: firstNs, endNs: lastNs })
  return anomalies
    .map(({ finding }) => Number((finding.raisedNs - startNs) / stepNs) - 1)
    .sort((a, b) => a - b)
}
