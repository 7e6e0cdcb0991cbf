// Quantiles of the observations in each step, from the points of histograms. Buckets are identified by their
// upper edge, so that different bounds and scales add up. The computation is exactly that of `distribution`
// in the statements. Each point may have bounds of its own, and then the edges of all points are merged, on
// the event loop: what is merged is limited, and above the limit nothing is computed here.

import type { Buckets, PointSeries } from './metric-points.ts'
import { type Axis, isCounted, isInside, type Steps, startsAnew, stepAt } from './point-chain.ts'

/** What the points of one step add and subtract. */
interface StepBuckets {
  readonly edges: Edges
  /**
   * The same for histograms, by their list of bounds, which many points share; in the order of {@link
   * edgesFor}.
   */
  readonly counted: Map<ArrayLike<number>, Float64Array>
}

/**
 * Observations between an edge and the next lower one, by edge. The lowest edge has none; it is where the
 * lowest bucket begins.
 */
type Edges = Map<number, number>

/** What may still be merged for one read; below zero it was too much. */
export interface MergeRoom {
  left: number
}

/**
 * How much is merged for one read: adding to an edge costs 1, an edge that a step does not have yet costs
 * {@link newEdgeCost}. Twenty thousand points of the same hundred buckets fit, and a hundred thousand
 * different edges; either takes up to a quarter of a second. Without a limit, points with three hundred
 * bounds of their own took twenty seconds.
 */
export const mergesMax = 2_100_000
const newEdgeCost = 20

/** Returns whether there was room to merge everything; otherwise the result is not complete. */
export function distribution(
  axis: Axis,
  series: readonly PointSeries[],
  quantile: number,
  { into, room }: { readonly into: Steps; readonly room: MergeRoom },
): boolean {
  const found = new Map<number, StepBuckets>()
  for (const { isDelta, points } of series) {
    points.forEach((point, i) => {
      const isAdded = isCounted(axis, isDelta, point, points[i - 1])
      const next = isDelta ? undefined : points[i + 1]
      const isTaken = next !== undefined && isInside(axis, next.t) && !startsAnew(next, point)
      const [step, nextStep] = [stepAt(axis, point.t), next === undefined ? -1 : stepAt(axis, next.t)]
      // Buckets that the next point subtracts in the same step are left out, and so are their edges.
      if (isAdded && isTaken && step === nextStep) return
      if (isAdded) addBuckets(bucketsAt(found, step), point.buckets, 1, room)
      if (isTaken) addBuckets(bucketsAt(found, nextStep), point.buckets, -1, room)
    })
  }
  const edgeLists = new Map<ArrayLike<number>, Float64Array | null>()
  for (const [step, own] of found) {
    const merged = rising(own, edgeLists, room)
    if (merged === null) return false
    const { counts, edges } = merged
    let amount = 0
    for (let i = 0; i < counts.length; i++) amount += counts[i] ?? 0
    if (amount <= 0) continue
    into.amounts[step] = amount
    into.readings[step] = interpolated(edges, counts, amount * quantile)
  }
  return room.left >= 0
}

function bucketsAt(found: Map<number, StepBuckets>, step: number): StepBuckets {
  const known = found.get(step)
  if (known !== undefined) return known
  const own: StepBuckets = { edges: new Map(), counted: new Map() }
  found.set(step, own)
  return own
}

function addBuckets(
  { edges, counted }: StepBuckets,
  buckets: Buckets | undefined,
  sign: 1 | -1,
  room: MergeRoom,
): void {
  if (buckets === undefined) return
  if ('scale' in buckets) {
    const { scale, positive, negative, positiveOffset, negativeOffset } = buckets
    const edgeAt = (index: number) => 2 ** (index * 2 ** -scale)
    for (let i = 0; negative.length > 0 && i <= negative.length; i++)
      put(edges, -edgeAt(negativeOffset + i), sign * (negative[i] ?? 0), room)
    put(edges, 0, sign * buckets.zeros, room)
    for (let i = 0; positive.length > 0 && i <= positive.length; i++)
      put(edges, edgeAt(positiveOffset + i), i === 0 ? 0 : sign * (positive[i - 1] ?? 0), room)
    return
  }
  const { counts, bounds, start, end } = buckets
  if (start === end) return
  const sums = counted.get(bounds) ?? new Float64Array(bounds.length + 2)
  counted.set(bounds, sums)
  const own = Math.min(bounds.length + 1, end - start)
  for (let i = 0; i < own; i++) sums[i + 1] = (sums[i + 1] ?? 0) + sign * (counts[start + i] ?? 0)
}

/** Edges, and for each the observations between it and the next lower one. */
interface Rising {
  readonly edges: Float64Array
  readonly counts: Float64Array
}

/**
 * Returns null where there was no room to merge everything.
 *
 * @param edgeLists the lists that were computed, by bounds; null where bounds are not ascending
 */
function rising(
  own: StepBuckets,
  edgeLists: Map<ArrayLike<number>, Float64Array | null>,
  room: MergeRoom,
): Rising | null {
  const [only] = own.counted
  if (only !== undefined && own.counted.size === 1 && own.edges.size === 0) {
    const [bounds, counts] = only
    const known = edgeLists.get(bounds)
    const edges = known === undefined ? edgesFor(bounds) : known
    edgeLists.set(bounds, edges)
    // Nearly all steps have one list of bounds, and need no sorting.
    if (edges !== null) return { edges, counts }
  }
  const merged = edgesOf(own, room)
  if (room.left < 0) return null
  const sorted = [...merged].sort(([a], [b]) => a - b)
  return {
    edges: Float64Array.from(sorted, ([edge]) => edge),
    counts: Float64Array.from(sorted, ([, count]) => count),
  }
}

/**
 * Returns the start of the lowest bucket, the bounds, and the end of the last bucket; null where bounds are
 * not ascending.
 */
function edgesFor(bounds: ArrayLike<number>): Float64Array | null {
  for (let i = 0; i < bounds.length; i++)
    if (!((bounds[i] ?? 0) < (bounds[i + 1] ?? Number.POSITIVE_INFINITY))) return null
  return Float64Array.of(lowestOf(bounds), ...Array.from(bounds), Number.POSITIVE_INFINITY)
}

const lowestOf = (bounds: ArrayLike<number>): number => Math.min(0, bounds[0] ?? 0)

function edgesOf({ edges, counted }: StepBuckets, room: MergeRoom): Edges {
  for (const [bounds, sums] of counted) {
    put(edges, lowestOf(bounds), 0, room)
    for (let i = 0; i <= bounds.length; i++)
      put(edges, bounds[i] ?? Number.POSITIVE_INFINITY, sums[i + 1] ?? 0, room)
  }
  return edges
}

/** Does nothing where there is no room. */
function put(edges: Edges, edge: number, count: number, room: MergeRoom): void {
  if (room.left < 0) return
  const before = edges.get(edge)
  room.left -= before === undefined ? newEdgeCost : 1
  edges.set(edge, (before ?? 0) + count)
}

/**
 * Interpolates evenly within the bucket, as Prometheus does; in the bucket that is open above it is the lower
 * edge.
 */
function interpolated(edges: Float64Array, counts: Float64Array, rank: number): number {
  let [below, lower] = [0, Number.NaN]
  for (let i = 0; i < edges.length; i++) {
    const [edge, count] = [edges[i] ?? 0, counts[i] ?? 0]
    if (count > 0 && below + count >= rank) {
      if (i === 0) return edge
      return Number.isFinite(edge) ? lower + ((edge - lower) * (rank - below)) / count : lower
    }
    below += count
    lower = edge
  }
  return Number.NaN
}
