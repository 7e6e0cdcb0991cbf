// Quantiles of the observations in each step, from the points of histograms. Buckets are identified by their
// upper edge, so that different bounds and scales add up. The computation is exactly that of `distribution`
// in the statements.

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

export function distribution(
  axis: Axis,
  series: readonly PointSeries[],
  quantile: number,
  into: Steps,
): void {
  const found = new Map<number, StepBuckets>()
  for (const { isDelta, points } of series) {
    points.forEach((point, i) => {
      const isAdded = isCounted(axis, isDelta, point, points[i - 1])
      const next = isDelta ? undefined : points[i + 1]
      const isTaken = next !== undefined && isInside(axis, next.t) && !startsAnew(next, point)
      const [step, nextStep] = [stepAt(axis, point.t), next === undefined ? -1 : stepAt(axis, next.t)]
      // Buckets that the next point subtracts in the same step are left out, and so are their edges.
      if (isAdded && isTaken && step === nextStep) return
      if (isAdded) addBuckets(bucketsAt(found, step), point.buckets, 1)
      if (isTaken) addBuckets(bucketsAt(found, nextStep), point.buckets, -1)
    })
  }
  const edgeLists = new Map<ArrayLike<number>, Float64Array | null>()
  for (const [step, own] of found) {
    const { edges, counts } = rising(own, edgeLists)
    let amount = 0
    for (let i = 0; i < counts.length; i++) amount += counts[i] ?? 0
    if (amount <= 0) continue
    into.amounts[step] = amount
    into.readings[step] = interpolated(edges, counts, amount * quantile)
  }
}

function bucketsAt(found: Map<number, StepBuckets>, step: number): StepBuckets {
  const known = found.get(step)
  if (known !== undefined) return known
  const own: StepBuckets = { edges: new Map(), counted: new Map() }
  found.set(step, own)
  return own
}

function addBuckets({ edges, counted }: StepBuckets, buckets: Buckets | undefined, sign: 1 | -1): void {
  if (buckets === undefined) return
  if ('scale' in buckets) {
    const { scale, positive, negative, positiveOffset, negativeOffset } = buckets
    const edgeAt = (index: number) => 2 ** (index * 2 ** -scale)
    for (let i = 0; negative.length > 0 && i <= negative.length; i++)
      put(edges, -edgeAt(negativeOffset + i), sign * (negative[i] ?? 0))
    put(edges, 0, sign * buckets.zeros)
    for (let i = 0; positive.length > 0 && i <= positive.length; i++)
      put(edges, edgeAt(positiveOffset + i), i === 0 ? 0 : sign * (positive[i - 1] ?? 0))
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

/** @param edgeLists the lists that were computed, by bounds; null where bounds are not ascending */
function rising(own: StepBuckets, edgeLists: Map<ArrayLike<number>, Float64Array | null>): Rising {
  const [only] = own.counted
  if (only !== undefined && own.counted.size === 1 && own.edges.size === 0) {
    const [bounds, counts] = only
    const known = edgeLists.get(bounds)
    const edges = known === undefined ? edgesFor(bounds) : known
    edgeLists.set(bounds, edges)
    // Nearly all steps have one list of bounds, and need no sorting.
    if (edges !== null) return { edges, counts }
  }
  const sorted = [...edgesOf(own)].sort(([a], [b]) => a - b)
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

function edgesOf({ edges, counted }: StepBuckets): Edges {
  for (const [bounds, sums] of counted) {
    put(edges, lowestOf(bounds), 0)
    for (let i = 0; i <= bounds.length; i++)
      put(edges, bounds[i] ?? Number.POSITIVE_INFINITY, sums[i + 1] ?? 0)
  }
  return edges
}

function put(edges: Edges, edge: number, count: number): void {
  edges.set(edge, (edges.get(edge) ?? 0) + count)
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
