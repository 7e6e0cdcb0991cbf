// VUS-PR (Paparrizos et al. 2022, as TSB-AD uses it): the area under precision and recall of a score, without
// a threshold, averaged over buffers around each labelled range in which a detection counts in part. Written
// from the definition: labels ramp down with the square root of the distance over half a buffer on either
// side; recall is weighted with the share of ranges found at all. Point-adjusted F1 is left out on purpose,
// because random scores win it.

const largestBuffer = 100
const bufferStep = 10

type Ranges = readonly (readonly [number, number])[]

/** Between 0 and 1; NaN without a labelled range. `ranges` are inclusive and in order. */
export function vusPr(scores: Float64Array, ranges: Ranges): number {
  if (ranges.length === 0) return Number.NaN
  const order = Uint32Array.from(scores.keys()).sort((a, b) => (scores[b] ?? 0) - (scores[a] ?? 0) || a - b)
  let sum = 0
  let buffers = 0
  for (let buffer = 0; buffer <= largestBuffer; buffer += bufferStep) {
    sum += averagePrecision(scores, order, ranges, buffer)
    buffers++
  }
  return sum / buffers
}

function averagePrecision(scores: Float64Array, order: Uint32Array, ranges: Ranges, buffer: number): number {
  const labels = softLabels(scores.length, ranges, buffer)
  const isOriginal = softLabels(scores.length, ranges, 0)
  const rangeOf = numberRanges(labels)
  const rangeCount = 1 + rangeOf.reduce((most, each) => Math.max(most, each), -1)
  const original = isOriginal.reduce((sum, each) => sum + each, 0)
  const found = new Set<number>()
  let hits = 0
  let rampHits = 0
  let recall = 0
  let area = 0
  for (let k = 0; k < order.length; k++) {
    const i = order[k] ?? 0
    const label = labels[i] ?? 0
    hits += label
    if (isOriginal[i] === 0) rampHits += label
    const range = rangeOf[i] ?? -1
    if (range >= 0) found.add(range)
    const next = order[k + 1]
    if (next !== undefined && scores[next] === scores[i]) continue
    const positives = (original + original + rampHits) / 2
    const reached = Math.min(1, hits / positives) * (found.size / rangeCount)
    area += Math.max(0, reached - recall) * (hits / (k + 1))
    recall = Math.max(recall, reached)
  }
  return area
}

function softLabels(length: number, ranges: Ranges, buffer: number): Float64Array {
  const labels = new Float64Array(length)
  const half = buffer >> 1
  for (const [from, to] of ranges) {
    for (let i = Math.max(0, from - half); i <= Math.min(length - 1, to + half); i++) {
      const outside = Math.max(0, from - i, i - to)
      labels[i] = Math.min(1, (labels[i] ?? 0) + (outside === 0 ? 1 : Math.sqrt(1 - outside / buffer)))
    }
  }
  return labels
}

/** The ordinal of the labelled stretch at each index, -1 outside: buffered ranges that touch are one. */
function numberRanges(labels: Float64Array): Int32Array {
  let ordinal = -1
  return Int32Array.from(labels, (label, i) => {
    if (label === 0) return -1
    if (i === 0 || labels[i - 1] === 0) ordinal++
    return ordinal
  })
}
