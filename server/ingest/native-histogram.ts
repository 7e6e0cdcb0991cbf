// Prometheus' native histograms as OpenTelemetry has them. Bucket i of a schema n reaches up to 2^(i·2^-n) in
// Prometheus and begins there in OpenTelemetry, so indexes move by one; sparse spans become dense lists, whose length
// is bounded before anything is filled in. Counts stay exact: what can't be an integer is refused, not rounded.

import type { Buckets, MetricPoint } from './metric-rows.ts'
import { type Fault, fault, maxListLength } from './record-fault.ts'
import type { HistogramSide, NativeHistogram } from './remote-write-wire.ts'
import { floatCell } from './row-collector.ts'

/** Buckets by bounds of their own, as converted classic histograms have them. */
export const customSchema = -53

/** The exponential schemas that are defined. */
const [schemaMin, schemaMax] = [-4, 8]

const maxUint64 = 2n ** 64n - 1n

/** Indexes beyond this are far outside what a double can be in, and would not fit the column. */
const indexMax = 1 << 20

class Unfit extends Error {
  readonly fault: Fault

  constructor(found: Fault) {
    super('a native histogram can not be stored')
    this.fault = found
  }
}

/** Fills the point and answers null, or answers why the histogram can't be stored. */
export function fillHistogram(point: MetricPoint, found: NativeHistogram): Fault | null {
  try {
    if (found.isGauge) throw new Unfit(fault.gaugeHistogram)
    point.count = countText(found.count)
    point.sum = found.sum
    if (found.schema === customSchema) fillCustom(point, found)
    else if (found.schema >= schemaMin && found.schema <= schemaMax) fillExponential(point, found)
    else throw new Unfit(fault.unknownSchema)
    return null
  } catch (error) {
    if (error instanceof Unfit) return error.fault
    throw error
  }
}

function fillExponential(point: MetricPoint, found: NativeHistogram): void {
  point.scale = found.schema
  point.zeroCount = countText(found.zeroCount)
  point.positive = toBuckets(found.positive)
  point.negative = toBuckets(found.negative)
}

function toBuckets(side: HistogramSide): Buckets {
  const [first] = side.spans
  if (first === undefined) return { offset: 0, counts: [] }
  if (Math.abs(first.offset) > indexMax) throw new Unfit(fault.spanMismatch)
  return { offset: first.offset - 1, counts: spread(side, first.offset) }
}

function fillCustom(point: MetricPoint, { customBounds, positive }: NativeHistogram): void {
  if (customBounds.length >= maxListLength) throw new Unfit(fault.listTooLong)
  const counts = spread(positive, 0)
  if (counts.length > customBounds.length + 1) throw new Unfit(fault.spanMismatch)
  while (counts.length < customBounds.length + 1) counts.push('0')
  point.explicitBounds = customBounds.map(floatCell)
  point.bucketCounts = counts
}

/** Counts from index `from` on, with zeros where no span is. */
function spread({ spans, deltas, counts }: HistogramSide, from: number): string[] {
  const found = counts.length > 0 ? counts.map(countText) : cumulate(deltas)
  if (spans.reduce((sum, { length }) => sum + length, 0) !== found.length) throw new Unfit(fault.spanMismatch)
  const dense: string[] = []
  let taken = 0
  for (const [i, { offset, length }] of spans.entries()) {
    const gap = i === 0 ? offset - from : offset
    if (gap < 0) throw new Unfit(fault.spanMismatch)
    if (dense.length + gap + length > maxListLength) throw new Unfit(fault.listTooLong)
    for (let zero = 0; zero < gap; zero++) dense.push('0')
    dense.push(...found.slice(taken, taken + length))
    taken += length
  }
  return dense
}

function cumulate(deltas: readonly bigint[]): string[] {
  let count = 0n
  return deltas.map((delta) => {
    count += delta
    return countText(count)
  })
}

function countText(count: bigint | number): string {
  if (typeof count === 'number') {
    if (!Number.isSafeInteger(count)) throw new Unfit(fault.fractionalCounts)
    return countText(BigInt(count))
  }
  if (count < 0n || count > maxUint64) throw new Unfit(fault.spanMismatch)
  return String(count)
}
