// What a cumulative point is to the one before it in the same life of an underlying series, and where it
// falls on the time axis: the rules that means and quantiles of distributions share. Pure.

import type { Point } from './metric-points.ts'
import { reachNs } from './point-conditions.ts'

/** The time axis in numbers; nanoseconds. */
export interface Axis {
  readonly stepNs: number
  readonly lengthNs: number
  /** What lies before `fromNs`, or at or after `toNs`, is outside of what counts. */
  readonly fromNs: number
  readonly toNs: number
  /** How much of what counts has passed. */
  readonly passedNs: number
  /** A start at or before this one is none that was told. */
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

/** Whether a cumulative point counts from zero, by the number of its observations. */
export function startsAnew(point: Point, before: Point): boolean {
  return point.value < before.value
}

/** Whether what a point adds belongs to the series at all. */
export function isCounted(axis: Axis, isDelta: boolean, point: Point, before: Point | undefined): boolean {
  const { s, t } = point
  return isInside(axis, t) && (isDelta || before !== undefined || (s >= -reach && s < t))
}

export function isInside({ fromNs, toNs }: Axis, t: number): boolean {
  return t >= fromNs && t < toNs
}
