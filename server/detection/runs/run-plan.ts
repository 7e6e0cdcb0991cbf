// What time a run looks at, and when the next one is due: a function of the definition and the clock alone, so that
// a run repeated is the same run, and one that was missed is made up for by the next.
//
//        lookback (learnt from)          window (judged)            still filling
//   |--------------------------------|---------------------------|~~~~~~~~~~~~~~~~ now
//   startNs                     windowStartNs                  endNs
//
// Width of a bucket: the narrowest of 1, 5, 15 and 60 minutes that cuts the window into at most 2,160 (a week of
// five minutes is 2,016, ninety days of hours are 2,160). A detector that runs more seldom than that gets wider
// buckets, up to its schedule, as long as the window keeps 288 of them, because nobody waits for what is finer
// than the run; below that a baseline would starve.
//
// All buckets start at multiples of their width since 1970. The newest bucket is judged only when it ended some
// time ago, because telemetry arrives in batches: a bucket still filling looks like a dip.

import { type Ns, nsPerMinute, nsPerMs } from '../../../contract/instant.ts'
import type { DetectorDefinition } from '../detectors/detector.ts'

const stepsMinutes = [1, 5, 15, 60] as const
const windowBucketsMax = 2160
const windowBucketsWanted = 288

/** Enough for a day of minutes thrice; more would make the run of a short window mostly history. */
const lookbackBucketsMax = 4320

/** How long after its end a bucket may still fill: batching in SDKs (up to 10 s), a Collector's, and ours. */
export const ingestLagMs = 30_000

export interface RunPlan {
  readonly stepMinutes: number
  readonly startNs: Ns
  readonly windowStartNs: Ns
  /** Exclusive. */
  readonly endNs: Ns
}

type Timing = Pick<DetectorDefinition, 'window_minutes' | 'schedule_minutes' | 'params'>

export function planRun(timing: Timing, nowMs: number): RunPlan {
  const stepMinutes = stepMinutesFor(timing.window_minutes, timing.schedule_minutes)
  const stepNs = BigInt(stepMinutes) * nsPerMinute
  const endNs = (((BigInt(nowMs) - BigInt(ingestLagMs)) * nsPerMs) / stepNs) * stepNs
  const windowBuckets = BigInt(Math.ceil(timing.window_minutes / stepMinutes))
  const windowStartNs = atLeastZero(endNs - windowBuckets * stepNs)
  const startNs = atLeastZero(windowStartNs - BigInt(lookbackBuckets(timing.params)) * stepNs)
  return { stepMinutes, startNs, windowStartNs, endNs }
}

export function stepMinutesFor(windowMinutes: number, scheduleMinutes: number): number {
  const fits = stepsMinutes.filter((step) => windowMinutes / step <= windowBucketsMax)
  const narrowest = fits[0] ?? 60
  const seldom = fits.filter((step) => step <= scheduleMinutes && windowMinutes / step >= windowBucketsWanted)
  return Math.max(narrowest, ...seldom)
}

/** The first multiple of the schedule after now, plus the time its last bucket needs to fill. */
export function nextRunMs(scheduleMinutes: number, nowMs: number): number {
  const everyMs = scheduleMinutes * 60_000
  return (Math.floor((nowMs - ingestLagMs) / everyMs) + 1) * everyMs + ingestLagMs
}

/** Buckets before the window from which the first judged one is learnt. Methods that learn nothing need none. */
function lookbackBuckets(params: Timing['params']): number {
  const needs = [params.warmup_points, params.window_points].filter((need) => typeof need === 'number')
  return Math.min(lookbackBucketsMax, Math.max(0, ...needs))
}

function atLeastZero(ns: Ns): Ns {
  return ns > 0n ? ns : 0n
}
