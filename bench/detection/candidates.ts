// Members that `auto` does not have, for nab.ts --ablate to ask what they would be worth: each gives one
// surprise per dense value, from that value and those before it, as members do. They live here and not in the
// product because, as docs/decisions/0008 shows, none has earned its place so far.

import { methodParams } from '../../contract/detection-methods.ts'
import type { MemberName } from '../../server/detection/methods/auto.ts'
import { forestSurprises } from '../../server/detection/methods/rcf.ts'
import type { DenseValues } from '../../server/detection/scoring/dense-values.ts'
import { leftProfile } from '../../server/detection/scoring/left-profile.ts'
import { rollingMeans } from '../../server/detection/scoring/rolling.ts'
import { surprisesOf, twoSidedSurprisesOf } from '../../server/detection/scoring/surprise.ts'

const historyPoints = 4096
const candidateNames = ['shape_36', 'coarse_shape', 'level', 'resonance', 'rcf'] as const
type CandidateName = (typeof candidateNames)[number]

export function candidateSurprises(dense: DenseValues): Record<CandidateName, Float64Array> {
  const { values } = dense
  return {
    shape_36: surprisesOf(
      leftProfile(dense, [36], historyPoints).distances[0] ?? new Float64Array(values.length),
    ),
    coarse_shape: surprisesOf(coarseDistances(values, 6, 12)),
    level: twoSidedSurprisesOf(rollingMeans(values, 24)),
    resonance: surprisesOf(resonanceGaps([1, 2, 4, 8, 16, 32].map((points) => rollingMeans(values, points)))),
    rcf: forestSurprises(dense, methodParams.rcf.parse({})),
  }
}

/**
 * Every choice of members that is asked about: as shipped, less one, with a candidate,
 * with it in the place of one.
 */
export function variantsOf(
  shipped: readonly MemberName[],
): Map<string, readonly (MemberName | CandidateName)[]> {
  const without = (name: MemberName) => shipped.filter((each) => each !== name)
  const variants = new Map<string, readonly (MemberName | CandidateName)[]>([
    ['auto as it is', shipped],
    ...shipped.map((name) => [`auto without ${name}`, without(name)] as const),
  ])
  for (const candidate of candidateNames) {
    variants.set(`auto with ${candidate}`, [...shipped, candidate])
    for (const name of shipped)
      variants.set(`auto with ${candidate} for ${name}`, [...without(name), candidate])
  }
  return variants
}

/**
 * Distance of the last `length` means of `points` values each to the most like earlier ones,
 * where such a block ends.
 */
function coarseDistances(values: Float64Array, points: number, length: number): Float64Array {
  const means = rollingMeans(values, points)
  const blocks = Float64Array.from({ length: Math.floor(values.length / points) }, (_, block) => {
    return means[(block + 1) * points - 1] ?? Number.NaN
  })
  const ordinals = Int32Array.from(blocks.keys(), (block) => block + 1)
  const [distances] = leftProfile(
    { values: blocks, buckets: ordinals, runs: ordinals },
    [length],
    historyPoints,
  ).distances
  return values.map((_, i) =>
    (i + 1) % points === 0 ? (distances?.[(i + 1) / points - 1] ?? Number.NaN) : Number.NaN,
  )
}

/**
 * Boxes may span this share of what the features span, on average: one less the vigilance of the literature.
 */
const widestBox = 0.1
const mostBoxes = 512

interface Box {
  readonly low: Float64Array
  readonly high: Float64Array
  lastUsed: number
}

/**
 * Fuzzy adaptive resonance (Carpenter, Grossberg and Rosen 1991) read as geometry: categories are boxes
 * in the space of the features, a point joins the nearest box that stays small enough with it, or
 * begins one. What is returned is how far the point lies outside of the nearest box, per feature and in
 * units of the range so far.
 */
function resonanceGaps(features: readonly Float64Array[]): Float64Array {
  const count = features.length
  const boxes: Box[] = []
  const lowest = new Float64Array(count).fill(Number.POSITIVE_INFINITY)
  const highest = new Float64Array(count).fill(Number.NEGATIVE_INFINITY)
  const [first = new Float64Array()] = features
  return first.map((_, i) => {
    const point = Float64Array.from(features, (feature) => feature[i] ?? Number.NaN)
    if (point.some(Number.isNaN)) return Number.NaN
    const scales = point.map((__, k) => {
      const range = (highest[k] ?? 0) - (lowest[k] ?? 0)
      return range > 0 ? 1 / range / count : 0
    })
    let nearest = Number.POSITIVE_INFINITY
    let best: { box: Box; gap: number; size: number } | null = null
    for (const box of boxes) {
      const { gap, size } = measure(box, point, scales)
      nearest = Math.min(nearest, gap)
      if (gap + size > widestBox) continue
      if (best === null || gap < best.gap || (gap === best.gap && size < best.size)) best = { box, gap, size }
    }
    if (best) grow(best.box, point, i)
    else begin(boxes, { low: point.slice(), high: point.slice(), lastUsed: i })
    for (const [k, value] of point.entries()) {
      lowest[k] = Math.min(lowest[k] ?? value, value)
      highest[k] = Math.max(highest[k] ?? value, value)
    }
    return boxes.length === 1 && nearest === Number.POSITIVE_INFINITY ? Number.NaN : nearest
  })
}

function measure({ high, low }: Box, point: Float64Array, scales: Float64Array) {
  let gap = 0
  let size = 0
  for (let k = 0; k < point.length; k++) {
    const scale = scales[k] ?? 0
    const value = point[k] ?? 0
    gap += Math.max(0, (low[k] ?? 0) - value, value - (high[k] ?? 0)) * scale
    size += ((high[k] ?? 0) - (low[k] ?? 0)) * scale
  }
  return { gap, size }
}

function grow(box: Box, point: Float64Array, now: number): void {
  for (const [k, value] of point.entries()) {
    box.low[k] = Math.min(box.low[k] ?? value, value)
    box.high[k] = Math.max(box.high[k] ?? value, value)
  }
  box.lastUsed = now
}

/** When there are too many, the one that was not needed for longest makes room. */
function begin(boxes: Box[], box: Box): void {
  if (boxes.length < mostBoxes) {
    boxes.push(box)
    return
  }
  const stalest = boxes.reduce((a, b) => (b.lastUsed < a.lastUsed ? b : a))
  boxes[boxes.indexOf(stalest)] = box
}
