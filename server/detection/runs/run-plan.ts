// The time that a run looks at, and when the next run is due. Both depend only on the definition, the width
// of a bucket and the clock, so a repeated run has the same window, and the next run covers a missed one.
//
//        past (learnt from)              window (judged)                     may be incomplete
//   |--------------------------------|-----------------------+ settled +-----|~~~~~~~~~~~~~~~~ now
//   startNs                     windowStartNs           settledNs          endNs
//
// The past belongs to the method and the budget: long enough to see how often a score occurs that a budget of
// an alarm a week allows. Its start moves only once in some weeks. In between a run continues where the run
// before it ended (detector-course.ts), and a run that starts from the beginning, after a restart for
// example, has the same result. Starts are spread over the weeks by the definition, so that not all detectors
// start from the beginning in the same hour.
//
// Width of a bucket: the narrowest of 1, 5, 15 and 60 minutes that divides the window into at most 2,160
// buckets (a week of five minutes is 2,016, ninety days of hours are 2,160) and in which data is dense
// (bucket-width.ts). Minutes stay minutes: a wider bucket hides short incidents and delays the alarm.
//
// All buckets start at multiples of their width since 1970. The newest bucket is judged only some time after
// its end, because telemetry arrives in batches and an incomplete bucket looks like a dip. Telemetry may be
// late by an hour and still count: what is not older than that is judged again by the next run.

import { type Ns, nsPerMinute, nsPerMs } from '../../../contract/values/instant.ts'
import { latenessMinutes } from '../anomalies/reconcile.ts'
import type { DetectorDefinition } from '../detectors/detector.ts'

export const stepsMinutes = [1, 5, 15, 60] as const
export type StepMinutes = (typeof stepsMinutes)[number]
const windowBucketsMax = 2160

const minutesPerWeek = 10_080
/** With four weeks and a budget of one alarm a week, there are four alarms of the past to learn from. */
const alarmsOfPast = 4
/** A week or two show the rhythm of the week; more than this would cost more than it shows. */
const pastWeeks = { least: 1, most: 4 } as const
/** Fewer buckets show too little of a tail, whatever their width. */
const pastBucketsMin = 2016
/** After this many weeks the start of the past moves. */
const pastMovesWeeks = 4

/**
 * How long after its end a bucket may still receive telemetry: batching in SDKs (up to 10 s),
 * in a Collector, and here.
 */
export const ingestLagMs = 30_000

export interface RunPlan {
  readonly stepMinutes: number
  readonly startNs: Ns
  readonly windowStartNs: Ns
  /** Earlier telemetry is not read again. No earlier than `startNs`. */
  readonly settledNs: Ns
  /** Exclusive. */
  readonly endNs: Ns
}

type Timing = Pick<DetectorDefinition, 'window_minutes' | 'schedule_minutes' | 'params'>
type Planned = Timing & Pick<DetectorDefinition, 'metric_key' | 'scope'>

export function planRun(definition: Planned, stepMinutes: number, nowMs: number): RunPlan {
  const stepNs = BigInt(stepMinutes) * nsPerMinute
  const endNs = (((BigInt(nowMs) - BigInt(ingestLagMs)) * nsPerMs) / stepNs) * stepNs
  const windowBuckets = BigInt(Math.ceil(definition.window_minutes / stepMinutes))
  const windowStartNs = atLeastZero(endNs - windowBuckets * stepNs)
  const startNs = atLeastZero(pastStart(definition, stepMinutes, windowStartNs))
  const lateBuckets = BigInt(Math.ceil(latenessMinutes / stepMinutes))
  const settledNs = endNs - lateBuckets * stepNs
  return { stepMinutes, startNs, windowStartNs, endNs, settledNs: settledNs > startNs ? settledNs : startNs }
}

/** The narrowest buckets of which a window has at most 2,160. */
export function narrowestStep(windowMinutes: number): StepMinutes {
  return stepsMinutes.find((step) => windowMinutes / step <= windowBucketsMax) ?? 60
}

/** The first multiple of the schedule after now, plus the time until its last bucket is complete. */
export function nextRunMs(scheduleMinutes: number, nowMs: number): number {
  const everyMs = scheduleMinutes * 60_000
  return (Math.floor((nowMs - ingestLagMs) / everyMs) + 1) * everyMs + ingestLagMs
}

/** The last start on the grid of this definition that leaves the whole past before the window. */
function pastStart(definition: Planned, stepMinutes: number, windowStartNs: Ns): Ns {
  const pastMinutes = pastMinutesOf(definition.params, stepMinutes)
  const latest = windowStartNs - BigInt(Math.ceil(pastMinutes / stepMinutes) * stepMinutes) * nsPerMinute
  const everyNs = BigInt(pastMovesWeeks * minutesPerWeek) * nsPerMinute
  const offsetNs = BigInt(60 * spreadOf(definition, pastMovesWeeks * 168)) * nsPerMinute
  if (latest < offsetNs) return 0n
  return pastMinutes === 0 ? latest : ((latest - offsetNs) / everyNs) * everyNs + offsetNs
}

/** How much a method learns from before the window. Methods without a budget are exact and learn nothing. */
function pastMinutesOf(params: Timing['params'], stepMinutes: number): number {
  const budget = params.alarm_budget_per_week
  if (typeof budget !== 'number') return 0
  const own = [params.warmup_points, params.window_points].filter((need) => typeof need === 'number')
  const ownMinutes = Math.max(0, ...own) * stepMinutes
  const weeks = Math.max(pastWeeks.least, Math.min(pastWeeks.most, Math.ceil(alarmsOfPast / budget)))
  return Math.max(ownMinutes, weeks * minutesPerWeek, pastBucketsMin * stepMinutes)
}

/** A number below `among` that depends on the definition only. */
export function spreadOf({ metric_key, params, scope }: Planned, among: number): number {
  let hash = 2_166_136_261
  for (const each of JSON.stringify([metric_key, scope, params])) {
    hash = Math.imul(hash ^ (each.codePointAt(0) ?? 0), 16_777_619) >>> 0
  }
  return hash % among
}

function atLeastZero(ns: Ns): Ns {
  return ns > 0n ? ns : 0n
}
