// The relation of a cumulative point to the one before it in the same life of an underlying series, and its
// position on the time axis. Means and quantiles of distributions use the same rules. Pure.

import type { Point } from './metric-points.ts'
import { reachNs } from './point-conditions.ts'

/** The time axis as numbers; nanoseconds. */
export interface Axis {
  readonly stepNs: number
  readonly lengthNs: number
  /** Time before `fromNs`, and at or after `toNs`, does not count. */
  readonly fromNs: number
  readonly toNs: number
  /** The part of the counted time that has passed. */
  readonly passedNs: number
  /** A start at or before this one counts as unknown. */
  readonly unknownStart: number
  readonly steps: number
}

/** Readings of one group by step; `amounts` is zero in a step without one. */
export interface Steps {
  readonly readings: Float64Array
  readonly amounts: Float64Array
  isCounting: boolean
}

export const reach = Number(reachNs)

export function stepAt({ stepNs }: Axis, t: number): number {
  return Math.floor(t / stepNs)
}

/** Whether a cumulative point counts from zero, by its number of observations. */
export function startsAnew(point: Point, before: Point): boolean {
  return point.value < before.value
}

/** Whether the increase of a point belongs to the series. */
export function isCounted(axis: Axis, isDelta: boolean, point: Point, before: Point | undefined): boolean {
  const { s, t } = point
  return isInside(axis, t) && (isDelta || before !== undefined || (s >= -reach && s < t))
}

export function isInside({ fromNs, toNs }: Axis, t: number): boolean {
  return t >= fromNs && t < toNs
}
