// What feedback changes for a series: how much wider the edge of alarm is on each side, and which anomalies
// do not count against the alarm budget. No model is stored: each run computes it from the stored verdicts.
// So an erased anomaly has no effect any more, and one verdict can undo another.
//
// - "not an anomaly" on a peak of score s moves the edge on that side to 1.1 times s, because a slightly
//   larger peak is still the same thing. The limit is `widestFactor`, so that a mistaken verdict cannot make
//   a detector ignore a disaster.
// - "real" keeps the edge inside the peak that it is about, and the anomaly does not spend the budget.
// - The later verdict wins. Scores are converted to units of the edge without feedback, so
//   verdicts do not add up.
//
// Configured edges do not move, and silence has no edge. A series that has stood still has an edge of width
// 0, and a multiple of 0 is 0, so nothing moves there either; the response to the feedback says what helps.

import type { Verdict } from '../../../contract/detection/feedback.ts'
import type { Ns } from '../../../contract/values/instant.ts'
import { type BoundedRange, union } from '../../core/time-range.ts'
import { highestScore } from '../methods/method.ts'
import type { MuteRule } from './mute.ts'

export const widestFactor = 10
const margin = 1.1

/** A verdict, and what it is about. */
export interface GivenVerdict {
  readonly groupKey: string
  readonly startedNs: Ns
  readonly verdict: Verdict
  readonly givenAtMs: number
  readonly value: number | null
  /** Null where nothing was learnt, or what was learnt is erased. */
  readonly expected: number | null
  readonly score: number
  /** The factor by which feedback had already widened the edge that the score is measured by. */
  readonly edgeFactor: number
  /** The time that the score was computed from. */
  readonly read: readonly BoundedRange[]
}

type Effective = Pick<GivenVerdict, 'value' | 'expected' | 'score' | 'edgeFactor'>

export interface Widening {
  /** 1 or more. The distance of the upper edge from the expected value is multiplied by it. */
  readonly above: number
  readonly below: number
  /**
   * The time that the factors were computed from, disjoint and in order. An erasure of it also concerns the
   * bands that used them.
   */
  readonly learntFrom: readonly BoundedRange[]
}

/** An anomaly that people called real. */
export interface ConfirmedAnomaly {
  readonly startedNs: Ns
  /** An erasure of this time also concerns what was judged because the anomaly was confirmed. */
  readonly read: GivenVerdict['read']
}

/** What a run uses in addition to the definition. */
export interface Tuning {
  /** By `groupKey`, as the next. */
  readonly widenings: ReadonlyMap<string, Widening>
  /** In order of time. */
  readonly confirmed: ReadonlyMap<string, readonly ConfirmedAnomaly[]>
  readonly mutes: readonly MuteRule[]
  /**
   * Whether a part of what the verdicts are derived from was hidden after they were read. What people change
   * is seen by `tuning_revision` of the detector.
   */
  readonly isOutdated: () => boolean
}

export const noWidening: Widening = { above: 1, below: 1, learntFrom: [] }

/** Widenings by `groupKey`. Series without effective feedback are absent. */
export function wideningsOf(verdicts: readonly GivenVerdict[]): Map<string, Widening> {
  const factors = new Map<string, Pick<Widening, 'above' | 'below'>>()
  const read = new Map<string, BoundedRange[]>()
  for (const given of verdicts.toSorted((a, b) => a.givenAtMs - b.givenAtMs)) {
    const side = sideOf(given)
    if (side === null) continue
    const { above, below } = factors.get(given.groupKey) ?? noWidening
    const before = { above, below }
    const size = given.score * given.edgeFactor
    const factor =
      given.verdict === 'real'
        ? Math.min(before[side], Math.max(1, size / margin))
        : Math.max(before[side], Math.min(widestFactor, size * margin))
    factors.set(given.groupKey, { ...before, [side]: factor })
    const learnt = read.get(given.groupKey)
    if (learnt === undefined) read.set(given.groupKey, [...given.read])
    else for (const range of given.read) learnt.push(range)
  }
  const widenings = new Map<string, Widening>()
  for (const [key, { above, below }] of factors) {
    if (above === 1 && below === 1) continue
    widenings.set(key, { above, below, learntFrom: mergedTime(read.get(key) ?? []) })
  }
  return widenings
}

/**
 * The union of ranges. The verdicts of a detector share most of what they read (verdicts.ts), so equal
 * objects are left out before the rest is sorted.
 */
export function mergedTime(ranges: readonly BoundedRange[]): readonly BoundedRange[] {
  return union([...new Set(ranges)])
}

/** What the verdicts confirm, by `groupKey`. */
export function confirmedOf(verdicts: readonly GivenVerdict[]): Map<string, ConfirmedAnomaly[]> {
  const real = verdicts
    .filter(({ verdict }) => verdict === 'real')
    .toSorted((a, b) => Number(a.startedNs - b.startedNs))
  return new Map(
    [...Map.groupBy(real, ({ groupKey }) => groupKey)].map(([key, all]) => [
      key,
      all.map(({ read, startedNs }) => ({ startedNs, read })),
    ]),
  )
}

/** The side whose edge the verdict moves; null where there is no edge to move. */
function sideOf(given: Effective): 'above' | 'below' | null {
  const { expected, score, value } = given
  if (expected === null || value === null || score <= 0 || hasNoWidth(given)) return null
  return value > expected ? 'above' : 'below'
}

function hasNoWidth({ edgeFactor, score }: Effective): boolean {
  return score * edgeFactor >= highestScore
}

/** A sentence about what a verdict changes, for the person who gave it. */
export function effectOf(given: Effective & Pick<GivenVerdict, 'verdict'>): string {
  const side = sideOf(given)
  if (given.value === null) return 'Silence has no edge to move; mute the series where silence is expected.'
  if (given.expected !== null && hasNoWidth(given)) {
    const enough = Number((Math.abs(given.value - given.expected) * margin).toPrecision(2))
    return `Nothing is moved: the series stood still, so its edge has no width to enlarge, and the same deviation alarms again. A min_abs_dev of ${enough} in the detector's params prevents that.`
  }
  if (side === null)
    return 'Nothing is moved: the edge is configured by a person, or what it was learnt from is erased or not recorded.'
  if (given.verdict === 'real') return 'The edge of this series stays within the size of this peak.'
  const size = given.score * given.edgeFactor
  if (size * margin <= widestFactor) {
    return `The edge ${side} is ${factorText(size * margin)} its usual distance for this series; the same size does not alarm again.`
  }
  return `The edge ${side} is ${factorText(widestFactor)} its usual distance for this series, the most that feedback allows; this size, ${factorText(size)}, alarms again.`
}

export function factorText(factor: number): string {
  return `${factor >= 100 ? factor.toExponential(0).replace('e+', 'e') : Number(factor.toPrecision(2))} times`
}
