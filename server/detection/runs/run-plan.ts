// The time that a run reads, and when the next run is due. Both depend only on the definition and the clock,
// so a repeated run has the same window, and the next run covers a missed one.
//
//        lookback (learnt from)          window (judged)          may be incomplete
//   |--------------------------------|---------------------------|~~~~~~~~~~~~~~~~ now
//   startNs                     windowStartNs                  endNs
//
// Width of a bucket: the narrowest of 1, 5, 15 and 60 minutes that divides the window into at most 2,160
// buckets (a week of five minutes is 2,016, ninety days of hours are 2,160). A detector that runs more rarely
// than that gets wider buckets, up to its schedule, as long as the window keeps 288: finer buckets than runs
// help nobody, and with fewer than 288 a baseline has too little data.
//
// All buckets start at multiples of their width since 1970. The newest bucket is judged only some time after
// its end, because telemetry arrives in batches and an incomplete bucket looks like a dip.

import { type Ns, nsPerMinute, nsPerMs } from '../../../contract/instant.ts'
import type { DetectorDefinition } from '../detectors/detector.ts'

const stepsMinutes = [1, 5, 15, 60] as const
const windowBucketsMax = 2160
const windowBucketsWanted = 288

/** Enough for three days of minutes. With more, the run of a short window would read mostly history. */
const lookbackBucketsMax = 4320

/**
 * How long after its end a bucket may still receive telemetry: batching in SDKs (up to 10 s),
 * in a Collector, and here.
 */
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
  const wider = fits.filter((step) => step <= scheduleMinutes && windowMinutes / step >= windowBucketsWanted)
  return Math.max(narrowest, ...wider)
}

/** The first multiple of the schedule after now, plus the time until its last bucket is complete. */
export function nextRunMs(scheduleMinutes: number, nowMs: number): number {
  const everyMs = scheduleMinutes * 60_000
  return (Math.floor((nowMs - ingestLagMs) / everyMs) + 1) * everyMs + ingestLagMs
}

/**
 * Buckets before the window that the first judged bucket is learnt from. Methods that
 * learn nothing need none.
 */
function lookbackBuckets(params: Timing['params']): number {
  const needed = [params.warmup_points, params.window_points].filter((need) => typeof need === 'number')
  return Math.min(lookbackBucketsMax, Math.max(0, ...needed))
}

function atLeastZero(ns: Ns): Ns {
  return ns > 0n ? ns : 0n
}
