// Computes a reading for each step from the points of a metric: pure arithmetic, with the same results as the
// statements of `metric-series.ts`, which explain the rules. A property test compares the two.

import type { Aggregation } from '../../contract/telemetry/queries.ts'
import { isOfParts, type PartGain, settle } from './classic-histogram.ts'
import { type MetricKind, quantileOf } from './metric-kind.ts'
import type { Point, PointSeries } from './metric-points.ts'
import { type Axis, isCounted, isInside, reach, type Steps, startsAnew, stepAt } from './point-chain.ts'
import { distribution, type MergeRoom, mergesMax } from './point-quantiles.ts'
import {
  countedNs,
  lateAfter,
  type PackedGroup,
  passedNs,
  type SeriesFrame,
  unknownStart,
} from './series-statement.ts'

/** The most series times steps that are computed here; more would block other work. */
const cellsMax = 2_000_000

/** Returns the groups of a series, the busiest first; null where it is too much to compute here. */
export function groupsOfPoints(
  frame: SeriesFrame,
  series: readonly PointSeries[],
  what: { readonly kind: MetricKind; readonly aggregation: Aggregation },
): PackedGroup[] | null {
  const axis = axisOf(frame)
  if (series.length * axis.steps > cellsMax) return null
  const room = { left: mergesMax }
  const groups: PackedGroup[] = []
  for (const [grp, own] of Map.groupBy(series, ({ group }) => group)) {
    const steps = readGroup(axis, own, what, room)
    if (steps === null) return null
    groups.push(pack(grp, steps))
  }
  if (frame.groupBy === undefined) return [groups[0] ?? pack('', empty(axis))]
  const found = groups.filter(({ steps }) => steps.length > 0)
  const busiest = found.toSorted((a, b) => volumeOf(b) - volumeOf(a) || byBytes(a.grp, b.grp))
  return busiest.slice(0, frame.maxGroups).map((group) => ({ ...group, groups: found.length }))
}

function axisOf(frame: SeriesFrame): Axis {
  const { startNs, endNs, stepSeconds } = frame
  const [stepNs, lengthNs] = [stepSeconds * 1e9, Number(endNs - startNs)]
  return {
    stepNs,
    lengthNs,
    fromNs: Number(countedNs(frame).from),
    toNs: Number(countedNs(frame).to),
    passedNs: Number(passedNs(frame)),
    unknownStart: Number(unknownStart(frame)),
    steps: lengthNs / stepNs,
  }
}

/** Returns null where there was no room for the edges of its distributions. */
function readGroup(
  axis: Axis,
  series: readonly PointSeries[],
  { kind, aggregation }: { readonly kind: MetricKind; readonly aggregation: Aggregation },
  room: MergeRoom,
): Steps | null {
  const steps = empty(axis)
  const quantile = quantileOf(aggregation)
  const isDistribution = kind !== 'gauge' && kind !== 'sum' && kind !== 'classic_histogram'
  if (kind === 'classic_histogram' && isOfParts(aggregation)) family(axis, series, aggregation, steps)
  else if (quantile !== undefined)
    return distribution(axis, series, quantile, { into: steps, room }) ? steps : null
  else if (aggregation === 'rate') flow(axis, series, steps, { isRate: true, of: ownValue })
  else if (aggregation === 'increase' || aggregation === 'count')
    flow(axis, series, steps, { isRate: false, of: ownValue })
  else if (aggregation === 'sum')
    flow(axis, series, steps, { isRate: false, of: isDistribution ? ownTotal : ownValue })
  else if (isDistribution) mean(axis, series, steps)
  else level(axis, series, steps)
  return steps
}

const ownValue = ({ value }: Point): number => value
const ownTotal = ({ total }: Point): number => total

function empty({ steps }: Axis): Steps {
  return { readings: new Float64Array(steps), amounts: new Float64Array(steps), isCounting: false }
}

/** The increase, in total or per second; see `flow` of the statements. */
function flow(
  axis: Axis,
  series: readonly PointSeries[],
  into: Steps,
  { isRate, of }: { readonly isRate: boolean; readonly of: (point: Point) => number },
): void {
  const { fromNs, passedNs, stepNs, toNs } = axis
  for (const { isDelta, points } of series) {
    if (isDelta) into.isCounting ||= points.some(({ t }) => isInside(axis, t))
    points.forEach((point, i) => {
      const span = isDelta ? deltaSpan(axis, point, of) : spanOf(axis, points, i, of)
      if (span === null) return
      const { from, to, gain, lengthNs } = span
      const lastStep = stepAt(axis, isDelta ? to : to - 1)
      for (let step = stepAt(axis, from); step <= lastStep; step++) {
        const [start, end] = [step * stepNs, (step + 1) * stepNs]
        const seconds = (Math.min(to, end) - Math.max(from, start)) / 1e9
        const gained = isDelta ? gain : (gain * seconds) / (lengthNs / 1e9)
        const counted = Math.min(end, isDelta ? toNs : passedNs) - Math.max(start, fromNs)
        // A delta may cover a longer time than the remaining part of a cut step; it is not a spike there.
        const over = isDelta ? Math.min(stepNs, Math.max(counted, lengthNs)) : counted
        into.readings[step] = (into.readings[step] ?? 0) + gained / (isRate ? over / 1e9 : 1)
        into.amounts[step] = (into.amounts[step] ?? 0) + 1
      }
    })
  }
}

/** The increase of the parts of a classic histogram in each step, combined. */
function family(axis: Axis, series: readonly PointSeries[], aggregation: Aggregation, into: Steps): void {
  const found = new Map<number, PartGain[]>()
  for (const [part, own] of Map.groupBy(series, (one) => one.part)) {
    const gained = empty(axis)
    flow(axis, own, gained, { isRate: false, of: ownValue })
    gained.amounts.forEach((amount, step) => {
      if (amount === 0) return
      const gains = found.get(step) ?? []
      gains.push([part, gained.readings[step] ?? 0])
      found.set(step, gains)
    })
  }
  const bounds = new Map<string, number>()
  for (const [step, gains] of found) {
    const settled = settle(aggregation, gains, bounds)
    if (settled === null) continue
    into.readings[step] = settled.reading
    into.amounts[step] = settled.amount
  }
}

/** An increase and its time, inside the series. */
interface Span {
  readonly from: number
  readonly to: number
  readonly gain: number
  /**
   * The time over which the whole increase is distributed; the time between `from` and `to` may be more or
   * less.
   */
  readonly lengthNs: number
}

type Of = (point: Point) => number

function deltaSpan(axis: Axis, point: Point, of: Of): Span | null {
  const { s, t } = point
  const lengthNs = s <= axis.unknownStart ? 0 : t - s
  return isInside(axis, t) ? { from: t, to: t, gain: of(point), lengthNs } : null
}

/**
 * Returns the increase of a cumulative point since the one before it, and its time; null where that is
 * unknown or outside.
 */
function spanOf(axis: Axis, points: readonly Point[], i: number, of: Of): Span | null {
  const [point, before] = [points[i], points[i - 1]]
  if (point === undefined) return null
  const { t, s } = point
  const value = of(point)
  const start = before === undefined ? s : before.t
  const lengthNs = t - start
  if (!(lengthNs > 0) || start < -reach) return null
  const isWhole = before === undefined || (point.onlyGrows && value < of(before))
  const gain = isWhole ? value : value - of(before)
  const isStartUnknown = s <= axis.unknownStart
  const back =
    isStartUnknown && i === 1 && before !== undefined ? extensionBefore(point, of(before), gain, lengthNs) : 0
  const on =
    before !== undefined && i === points.length - 1 ? extensionAfter(axis, t, lengthNs, isStartUnknown) : 0
  const [from, to] = [Math.max(start - back, axis.fromNs), Math.min(t + on, axis.passedNs)]
  return from < to ? { from, to, gain, lengthNs } : null
}

/**
 * Returns how long a series without a known start existed before its first point, nanoseconds: half an
 * interval, or the time since it was zero where that is shorter.
 */
function extensionBefore({ onlyGrows }: Point, first: number, gain: number, lengthNs: number): number {
  const half = lengthNs / 2
  const sinceZero = onlyGrows && gain > 0 ? (Math.max(first, 0) * lengthNs) / gain : half
  return Math.floor(Math.min(half, sinceZero))
}

/**
 * Returns how long a series continued after its last point, nanoseconds: to the end where the next one is not
 * yet late.
 */
function extensionAfter({ passedNs }: Axis, t: number, lengthNs: number, isStartUnknown: boolean): number {
  if (t >= passedNs) return 0
  if (passedNs - t < lateAfter * lengthNs) return passedNs - t
  return isStartUnknown ? Math.floor(lengthNs / 2) : 0
}

/** Mean of the observations between a point and the one before it. */
function mean(axis: Axis, series: readonly PointSeries[], into: Steps): void {
  for (const { isDelta, points } of series) {
    points.forEach((point, i) => {
      const before = points[i - 1]
      if (!isCounted(axis, isDelta, point, before)) return
      const base = isDelta || before === undefined || startsAnew(point, before) ? undefined : before
      const step = stepAt(axis, point.t)
      into.amounts[step] = (into.amounts[step] ?? 0) + point.value - (base?.value ?? 0)
      into.readings[step] = (into.readings[step] ?? 0) + point.total - (base?.total ?? 0)
    })
  }
  into.amounts.forEach((amount, step) => {
    into.readings[step] = (into.readings[step] ?? 0) / amount
  })
}

/** Mean of the points as they are stored. */
function level(axis: Axis, series: readonly PointSeries[], into: Steps): void {
  for (const { points } of series) {
    for (const { t, value } of points) {
      if (!isInside(axis, t)) continue
      const step = stepAt(axis, t)
      into.amounts[step] = (into.amounts[step] ?? 0) + 1
      into.readings[step] = (into.readings[step] ?? 0) + value
    }
  }
  into.amounts.forEach((amount, step) => {
    into.readings[step] = (into.readings[step] ?? 0) / amount
  })
}

/**
 * In the form of a statement's result: steps without a reading are absent, and what is not a number is null.
 */
function pack(grp: string, { readings, amounts, isCounting }: Steps): PackedGroup {
  const steps: number[] = []
  amounts.forEach((amount, step) => {
    if (amount !== 0) steps.push(step)
  })
  return {
    grp,
    steps,
    readings: steps.map((step) => finite(readings[step])),
    amounts: steps.map((step) => finite(amounts[step])),
    groups: 1,
    counting: isCounting ? 1 : 0,
  }
}

function finite(value: number | undefined): number | null {
  return value !== undefined && Number.isFinite(value) ? value : null
}

function volumeOf({ amounts }: PackedGroup): number {
  return amounts.reduce<number>((sum, amount) => sum + (amount ?? 0), 0)
}

/** Compares texts as the engine orders them. */
function byBytes(a: PackedGroup['grp'], b: PackedGroup['grp']): number {
  return Buffer.compare(Buffer.from(String(a)), Buffer.from(String(b)))
}
