// Converts Prometheus' native histograms to OpenTelemetry's. Bucket i of a schema n ends at 2^(i·2^-n) in
// Prometheus and begins there in OpenTelemetry, so indexes differ by one. Sparse spans become dense lists,
// whose length is limited before anything is filled in. Counts stay exact: a count that is not an integer is
// refused, not rounded.

import type { ListCell } from '../rows/cells.ts'
import { type Fault, fault, maxListLength } from '../rows/faults.ts'
import type { ExponentialBuckets, MetricPoint } from '../rows/metric-rows.ts'
import { Uint64 } from '../rows/uint64.ts'
import type { HistogramSide, NativeHistogram } from './remote-write-wire.ts'

/** Buckets with explicit bounds, as in converted classic histograms. */
export const customSchema = -53

/** The defined exponential schemas. */
const [schemaMin, schemaMax] = [-4, 8]

const maxUint64 = 2n ** 64n - 1n

/** Indexes above this are far outside the range of a double, and would not fit the column. */
const indexMax = 1 << 20

class Unfit extends Error {
  readonly fault: Fault

  constructor(found: Fault) {
    super('a native histogram can not be stored')
    this.fault = found
  }
}

/** Fills the point and returns null, or returns why the histogram can't be stored. */
export function fillHistogram(point: MetricPoint, found: NativeHistogram): Fault | null {
  try {
    if (found.isGauge) throw new Unfit(fault.gaugeHistogram)
    point.count.setBigInt(wholeOf(found.count))
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
  point.zeroCount.setBigInt(wholeOf(found.zeroCount))
  fillBuckets(point.positive, found.positive)
  fillBuckets(point.negative, found.negative)
}

function fillBuckets(buckets: ExponentialBuckets, side: HistogramSide): void {
  const [first] = side.spans
  if (first === undefined) return
  if (Math.abs(first.offset) > indexMax) throw new Unfit(fault.spanMismatch)
  buckets.offset = first.offset - 1
  addCounts(buckets.counts, spread(side, first.offset))
}

function fillCustom(point: MetricPoint, { customBounds, positive }: NativeHistogram): void {
  if (customBounds.length >= maxListLength) throw new Unfit(fault.listTooLong)
  const counts = spread(positive, 0)
  if (counts.length > customBounds.length + 1) throw new Unfit(fault.spanMismatch)
  while (counts.length < customBounds.length + 1) counts.push(0n)
  for (const bound of customBounds) point.explicitBounds.addFloat64(bound)
  addCounts(point.bucketCounts, counts)
}

function addCounts(list: ListCell, counts: readonly bigint[]): void {
  const cell = new Uint64()
  for (const count of counts) {
    cell.setBigInt(count)
    list.addUint64(cell)
  }
}

/** Returns counts from index `from` on, with zeros where there is no span. */
function spread({ spans, deltas, counts }: HistogramSide, from: number): bigint[] {
  const found = counts.length > 0 ? counts.map(wholeOf) : cumulate(deltas)
  if (spans.reduce((sum, { length }) => sum + length, 0) !== found.length) throw new Unfit(fault.spanMismatch)
  const dense: bigint[] = []
  let taken = 0
  for (const [i, { offset, length }] of spans.entries()) {
    const gap = i === 0 ? offset - from : offset
    if (gap < 0) throw new Unfit(fault.spanMismatch)
    if (dense.length + gap + length > maxListLength) throw new Unfit(fault.listTooLong)
    for (let zero = 0; zero < gap; zero++) dense.push(0n)
    dense.push(...found.slice(taken, taken + length))
    taken += length
  }
  return dense
}

function cumulate(deltas: readonly bigint[]): bigint[] {
  let count = 0n
  return deltas.map((delta) => {
    count += delta
    return wholeOf(count)
  })
}

function wholeOf(count: bigint | number): bigint {
  if (typeof count === 'number') {
    if (!Number.isSafeInteger(count)) throw new Unfit(fault.fractionalCounts)
    return wholeOf(BigInt(count))
  }
  if (count < 0n || count > maxUint64) throw new Unfit(fault.spanMismatch)
  return count
}
