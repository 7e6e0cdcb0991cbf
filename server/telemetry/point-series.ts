// From the points of a metric to a reading per step: pure arithmetic, and the same as the statements of
// `metric-series.ts`, which say why it is as it is. A property test holds the two against each other.

import type { Aggregation } from '../../contract/telemetry.ts'
import { type MetricKind, quantileOf } from './metric-kind.ts'
import type { Point, PointSeries } from './metric-points.ts'
import { type Axis, isCounted, reach, type Steps, startsAnew, stepAt } from './point-chain.ts'
import { distribution } from './point-quantiles.ts'
import type { PackedGroup, SeriesFrame } from './series-statement.ts'

/** Series times steps up to which they are computed here; more would hold up everybody else. */
const cellsMax = 2_000_000

/** The groups of a series, the busiest first; null where it is too much to compute here. */
export function groupsOfPoints(
  frame: SeriesFrame,
  series: readonly PointSeries[],
  what: { readonly kind: MetricKind; readonly aggregation: Aggregation },
): PackedGroup[] | null {
  const axis = axisOf(frame)
  if (series.length * axis.steps > cellsMax) return null
  const groups = [...Map.groupBy(series, ({ group }) => group)].map(([grp, own]) => {
    return pack(grp, readGroup(axis, own, what))
  })
  if (frame.groupBy === undefined) return [groups[0] ?? pack('', empty(axis))]
  const found = groups.filter(({ steps }) => steps.length > 0)
  const busiest = found.toSorted((a, b) => volumeOf(b) - volumeOf(a) || byBytes(a.grp, b.grp))
  return busiest.slice(0, frame.maxGroups).map((group) => ({ ...group, groups: found.length }))
}

function axisOf({ startNs, endNs, stepSeconds }: SeriesFrame): Axis {
  const [stepNs, lengthNs] = [stepSeconds * 1e9, Number(endNs - startNs)]
  return { stepNs, lengthNs, steps: lengthNs / stepNs }
}

function readGroup(
  axis: Axis,
  series: readonly PointSeries[],
  { kind, aggregation }: { readonly kind: MetricKind; readonly aggregation: Aggregation },
): Steps {
  const steps = empty(axis)
  const quantile = quantileOf(aggregation)
  const isDistribution = kind !== 'gauge' && kind !== 'sum'
  if (quantile !== undefined) distribution(axis, series, quantile, steps)
  else if (aggregation === 'rate') flow(axis, series, steps, { isRate: true, of: ownValue })
  else if (aggregation === 'count') flow(axis, series, steps, { isRate: false, of: ownValue })
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

/** What was added, in all or per second; see `flow` of the statements. */
function flow(
  axis: Axis,
  series: readonly PointSeries[],
  into: Steps,
  { isRate, of }: { readonly isRate: boolean; readonly of: (point: Point) => number },
): void {
  const [gained, covered, spans] = [
    new Float64Array(axis.steps),
    new Float64Array(axis.steps),
    new Uint32Array(axis.steps),
  ]
  for (const { isDelta, points } of series) {
    let [low, high] = [axis.steps, -1]
    points.forEach((point, i) => {
      const span = isDelta ? deltaSpan(axis, point, of) : spanOf(axis, point, points[i - 1], of)
      if (span === null) return
      const { from, to, gain } = span
      const lastStep = stepAt(axis, isDelta ? to : Math.min(to, axis.lengthNs) - 1)
      for (let step = stepAt(axis, Math.max(from, 0)); step <= lastStep; step++) {
        const seconds = (Math.min(to, (step + 1) * axis.stepNs) - Math.max(from, step * axis.stepNs)) / 1e9
        covered[step] = (covered[step] ?? 0) + seconds
        gained[step] = (gained[step] ?? 0) + (isDelta ? gain : (gain * seconds) / ((to - from) / 1e9))
        spans[step] = (spans[step] ?? 0) + 1
        if (step < low) low = step
        if (step > high) high = step
      }
    })
    for (let step = low; step <= high; step++) {
      const count = spans[step] ?? 0
      if (count === 0) continue
      const seconds = isDelta ? axis.stepNs / 1e9 : (covered[step] ?? 0)
      into.readings[step] = (into.readings[step] ?? 0) + (gained[step] ?? 0) / (isRate ? seconds : 1)
      into.amounts[step] = (into.amounts[step] ?? 0) + count
      if (isDelta) into.isCounting = true
      gained[step] = covered[step] = spans[step] = 0
    }
  }
}

interface Span {
  readonly from: number
  readonly to: number
  readonly gain: number
}

function deltaSpan({ lengthNs }: Axis, point: Point, of: (point: Point) => number): Span | null {
  const { t } = point
  return t >= 0 && t < lengthNs ? { from: t, to: t, gain: of(point) } : null
}

/** What a cumulative point adds to the one before it, and over which time; null where that is unknown or outside. */
function spanOf(
  { lengthNs }: Axis,
  point: Point,
  before: Point | undefined,
  of: (point: Point) => number,
): Span | null {
  const { t, s } = point
  const value = of(point)
  let span: Span
  if (before === undefined) span = { from: s, to: t, gain: value }
  else if ((point.onlyGrows && value < of(before)) || s >= before.t)
    span = { from: s < t ? Math.max(before.t, s) : before.t, to: t, gain: value }
  else span = { from: before.t, to: t, gain: value - of(before) }
  return t > 0 && span.from < Math.min(t, lengthNs) && span.from >= -reach ? span : null
}

/** Mean of what was observed between a point and the one before it. */
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

/** Mean of the points as they stand. */
function level(axis: Axis, series: readonly PointSeries[], into: Steps): void {
  for (const { points } of series) {
    for (const { t, value } of points) {
      if (t < 0 || t >= axis.lengthNs) continue
      const step = stepAt(axis, t)
      into.amounts[step] = (into.amounts[step] ?? 0) + 1
      into.readings[step] = (into.readings[step] ?? 0) + value
    }
  }
  into.amounts.forEach((amount, step) => {
    into.readings[step] = (into.readings[step] ?? 0) / amount
  })
}

/** As a statement answers it: steps without a reading are absent, and what is no number is null. */
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

/** As the engine orders texts. */
function byBytes(a: PackedGroup['grp'], b: PackedGroup['grp']): number {
  return Buffer.compare(Buffer.from(String(a)), Buffer.from(String(b)))
}
