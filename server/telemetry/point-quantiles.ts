// Quantiles of what was observed per step, from the points of histograms. Buckets are kept by their upper edge, so
// that different bounds and scales add up; see `distribution` of the statements, which this follows to the edge.

import type { Buckets, PointSeries } from './metric-points.ts'
import { type Axis, isCounted, isInside, type Steps, startsAnew, stepAt } from './point-chain.ts'

/** Observations between an edge and the one below, by edge. The lowest has none and says where the lowest begins. */
type Edges = Map<number, number>

export function distribution(
  axis: Axis,
  series: readonly PointSeries[],
  quantile: number,
  into: Steps,
): void {
  const found = new Map<number, Edges>()
  for (const { isDelta, points } of series) {
    points.forEach((point, i) => {
      const isAdded = isCounted(axis, isDelta, point, points[i - 1])
      const next = isDelta ? undefined : points[i + 1]
      const isTaken = next !== undefined && isInside(axis, next.t) && !startsAnew(next, point)
      const [step, nextStep] = [stepAt(axis, point.t), next === undefined ? -1 : stepAt(axis, next.t)]
      // What the next point takes away again in the same step is left out, and so are its edges.
      if (isAdded && isTaken && step === nextStep) return
      if (isAdded) addBuckets(edgesAt(found, step), point.buckets, 1)
      if (isTaken) addBuckets(edgesAt(found, nextStep), point.buckets, -1)
    })
  }
  for (const [step, edges] of found) {
    const sorted = [...edges].sort(([a], [b]) => a - b)
    const amount = sorted.reduce((sum, [, count]) => sum + count, 0)
    if (amount <= 0) continue
    into.amounts[step] = amount
    into.readings[step] = interpolated(sorted, amount * quantile)
  }
}

function edgesAt(found: Map<number, Edges>, step: number): Edges {
  const known = found.get(step)
  if (known !== undefined) return known
  const edges: Edges = new Map()
  found.set(step, edges)
  return edges
}

function addBuckets(edges: Edges, buckets: Buckets | undefined, sign: 1 | -1): void {
  const put = (edge: number, count: number) => edges.set(edge, (edges.get(edge) ?? 0) + sign * count)
  if (buckets === undefined) return
  if ('scale' in buckets) {
    const { scale, positive, negative, positiveOffset, negativeOffset } = buckets
    const edgeAt = (index: number) => 2 ** (index * 2 ** -scale)
    for (let i = 0; negative.length > 0 && i <= negative.length; i++)
      put(-edgeAt(negativeOffset + i), negative[i] ?? 0)
    put(0, buckets.zeros)
    for (let i = 0; positive.length > 0 && i <= positive.length; i++)
      put(edgeAt(positiveOffset + i), i === 0 ? 0 : (positive[i - 1] ?? 0))
    return
  }
  const { counts, bounds } = buckets
  if (counts.length === 0) return
  put(Math.min(0, bounds[0] ?? 0), 0)
  for (let i = 0; i <= bounds.length; i++) put(bounds[i] ?? Number.POSITIVE_INFINITY, counts[i] ?? 0)
}

/** Evenly within its bucket, as Prometheus does; the bucket that is open above answers with its lower edge. */
function interpolated(edges: readonly (readonly [edge: number, count: number])[], rank: number): number {
  let [below, lower] = [0, Number.NaN]
  for (const [i, [edge, count]] of edges.entries()) {
    if (count > 0 && below + count >= rank) {
      if (i === 0) return edge
      return Number.isFinite(edge) ? lower + ((edge - lower) * (rank - below)) / count : lower
    }
    below += count
    lower = edge
  }
  return Number.NaN
}
