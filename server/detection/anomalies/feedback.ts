// What people said of past anomalies, as the run takes it: how much wider the edge of alarm of a series is on each
// side. There is no stored model; it is derived anew at each run from the verdicts on record, so an anomaly that is
// erased takes its effect along, and one verdict undoes another.
//
// - "not an anomaly" of a peak at score s moves the edge on that side beyond the peak: by a tenth more than s times,
//   because a peak that is a hair larger is still the same thing. At most `widestFactor` times, so that no slip of a
//   finger blinds a detector to a catastrophe.
// - "real" keeps the edge inside the peak it names.
// - The later verdict wins. Scores are taken in units of the edge without feedback, so verdicts do not pile up.
//
// Edges that somebody set are not moved, nor is there an edge to silence. A series that has stood still has an edge
// without width: many times nothing is nothing, so there too nothing is moved, and whoever said it reads what would help.

import type { Verdict } from '../../../contract/detection-feedback.ts'
import type { Ns } from '../../../contract/instant.ts'
import { highestScore } from '../methods/method.ts'
import type { MuteRule } from './mute.ts'

export const widestFactor = 10
const margin = 1.1

/** A verdict with what it was about. */
export interface GivenVerdict {
  readonly groupKey: string
  readonly verdict: Verdict
  readonly givenAtMs: number
  readonly value: number | null
  /** Null where nothing was learnt, or what was learnt is erased. */
  readonly expected: number | null
  readonly score: number
  /** How many times wider than its own the edge was that the score is measured by. */
  readonly edgeFactor: number
  /** What the score was computed from. */
  readonly read: readonly { readonly startNs: Ns; readonly endNs: Ns }[]
}

type Effective = Pick<GivenVerdict, 'value' | 'expected' | 'score' | 'edgeFactor'>

export interface Widening {
  /** 1 or more; the distance of the upper edge from the expected value is multiplied by it. */
  readonly above: number
  readonly below: number
  /** What the factors were computed from: an erasure of it reaches the bands that were drawn with them. */
  readonly learntFrom: readonly { readonly startNs: Ns; readonly endNs: Ns }[]
}

/** What a run goes by beside the definition. */
export interface Tuning {
  /** By `groupKey`. */
  readonly widenings: ReadonlyMap<string, Widening>
  readonly mutes: readonly MuteRule[]
}

export function isSameTuning(one: Tuning, other: Tuning): boolean {
  return textOf(one) === textOf(other)
}

function textOf({ mutes, widenings }: Tuning): string {
  if (mutes.length === 0 && widenings.size === 0) return ''
  return JSON.stringify([mutes, [...widenings]], (_, value) =>
    typeof value === 'bigint' ? value.toString() : value,
  )
}

export const noWidening: Widening = { above: 1, below: 1, learntFrom: [] }

/** By `groupKey`; series without effective feedback are absent. */
export function wideningsOf(verdicts: readonly GivenVerdict[]): Map<string, Widening> {
  const widenings = new Map<string, Widening>()
  for (const given of verdicts.toSorted((a, b) => a.givenAtMs - b.givenAtMs)) {
    const side = sideOf(given)
    if (side === null) continue
    const before = widenings.get(given.groupKey) ?? noWidening
    const size = given.score * given.edgeFactor
    const factor =
      given.verdict === 'real'
        ? Math.min(before[side], Math.max(1, size / margin))
        : Math.max(before[side], Math.min(widestFactor, size * margin))
    const learntFrom = [...before.learntFrom, ...given.read]
    widenings.set(given.groupKey, { ...before, [side]: factor, learntFrom })
  }
  for (const [key, { above, below }] of widenings) if (above === 1 && below === 1) widenings.delete(key)
  return widenings
}

/** Null where there is no edge that feedback could move. */
function sideOf(given: Effective): 'above' | 'below' | null {
  const { expected, score, value } = given
  if (expected === null || value === null || score <= 0 || hasNoWidth(given)) return null
  return value > expected ? 'above' : 'below'
}

function hasNoWidth({ edgeFactor, score }: Effective): boolean {
  return score * edgeFactor >= highestScore
}

/** What a verdict changes, for the person who gave it. */
export function effectOf(given: Effective & Pick<GivenVerdict, 'verdict'>): string {
  const side = sideOf(given)
  if (given.value === null) return 'Silence has no edge to move; mute the series where it is expected.'
  if (given.expected !== null && hasNoWidth(given)) {
    const enough = Number((Math.abs(given.value - given.expected) * margin).toPrecision(2))
    return `Nothing is moved: the series stood still, so its edge had no width to make larger, and the same alarms again. A min_abs_dev of ${enough} in the detector's params would keep it quiet.`
  }
  if (side === null)
    return 'Nothing is moved: its edge was set by a person, or what it was learnt from is erased.'
  if (given.verdict === 'real') return 'The edge of this series stays inside what was seen here.'
  const size = given.score * given.edgeFactor
  if (size * margin <= widestFactor) {
    return `The edge ${side} is ${factorText(size * margin)} its own distance for this series; the same size does not alarm again.`
  }
  return `The edge ${side} is ${factorText(widestFactor)} its own distance for this series, the most that feedback can do; this size, ${factorText(size)}, alarms again.`
}

export function factorText(factor: number): string {
  return `${factor >= 100 ? factor.toExponential(0).replace('e+', 'e') : Number(factor.toPrecision(2))} times`
}
