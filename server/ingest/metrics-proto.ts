// OTLP metrics in protobuf. A metric's data is a oneof: of several kinds the last one counts. Its message is
// walked twice, because the temporality that belongs into each row usually stands behind the points on the
// wire.

import type { Cell } from '../telemetry/rows.ts'
import type { Buckets, MetricKind, MetricRows } from './metric-rows.ts'
import { type ProtoReader, readAttribute } from './otlp-proto.ts'
import { floatCell } from './row-collector.ts'
import { Uint64 } from './uint64.ts'

/** Kind by field number of `Metric.data`. */
const kindByField: ReadonlyMap<number, MetricKind> = new Map([
  [5, 'gauge'],
  [7, 'sum'],
  [9, 'histogram'],
  [10, 'exponentialHistogram'],
  [11, 'summary'],
])

/** Reads `Metric` messages and adds their points. */
export class MetricProto {
  readonly reader: ProtoReader
  readonly #out: MetricRows
  readonly #number = new Uint64()
  /** Where the messages of the metric's data start and stop, alternating: one pair unless a client split the message. */
  readonly #data: number[] = []
  #kind: MetricKind | null = null

  constructor(reader: ProtoReader, out: MetricRows) {
    this.reader = reader
    this.#out = out
  }

  readRecord(end: number): void {
    this.#readOwnFields(end)
    if (this.#kind === null) return
    const { place } = this.#out.rows
    place.kind = this.#kind
    place.point = -1
    this.#readData(this.#kind)
    place.kind = ''
    place.point = -1
    this.reader.wire.pos = end
  }

  #readOwnFields(end: number): void {
    const { reader } = this
    const { metric } = this.#out
    this.#out.startMetric()
    this.#data.length = 0
    this.#kind = null
    for (let tag = reader.next(end); tag !== 0; tag = reader.next(end)) {
      switch (tag) {
        case (1 << 3) | 2: // name
          metric.name = reader.text(end)
          break
        case (2 << 3) | 2: // description
          metric.description = reader.text(end)
          break
        case (3 << 3) | 2: // unit
          metric.unit = reader.text(end)
          break
        case (5 << 3) | 2:
        case (7 << 3) | 2:
        case (9 << 3) | 2:
        case (10 << 3) | 2:
        case (11 << 3) | 2:
          this.#keepData(tag >>> 3, reader.enter(end))
          break
        default:
          reader.skip(tag, end, 0b1110_1010_1110)
      }
    }
    this.#out.finishMetric()
  }

  #keepData(field: number, stop: number): void {
    const kind = kindByField.get(field) ?? null
    if (kind !== this.#kind) this.#data.length = 0
    this.#kind = kind
    this.#data.push(this.reader.wire.pos, stop)
    this.reader.wire.pos = stop
  }

  #readData(kind: MetricKind): void {
    const data = this.#data
    for (let at = 0; at < data.length; at += 2) this.#readCommon(data[at] ?? 0, data[at + 1] ?? 0, kind)
    for (let at = 0; at < data.length; at += 2) this.#readPoints(data[at] ?? 0, data[at + 1] ?? 0, kind)
  }

  /** Reads what stands beside the points: `aggregation_temporality` and, in a sum, `is_monotonic`. */
  #readCommon(start: number, end: number, kind: MetricKind): void {
    const { reader } = this
    const { metric } = this.#out
    const hasTemporality = kind !== 'gauge' && kind !== 'summary'
    const known = kind === 'sum' ? 0b1110 : hasTemporality ? 0b110 : 0b10
    reader.wire.pos = start
    for (let tag = reader.next(end); tag !== 0; tag = reader.next(end)) {
      if (tag === ((1 << 3) | 2)) reader.wire.pos = reader.enter(end)
      else if (tag === ((2 << 3) | 0) && hasTemporality) metric.temporality = reader.wire.int32()
      else if (tag === ((3 << 3) | 0) && kind === 'sum') metric.isMonotonic = reader.wire.bool()
      else reader.skip(tag, end, known)
    }
  }

  #readPoints(start: number, end: number, kind: MetricKind): void {
    const { reader } = this
    reader.wire.pos = start
    for (let tag = reader.next(end); tag !== 0; tag = reader.next(end)) {
      if (tag !== ((1 << 3) | 2)) {
        reader.skip(tag, end, 0)
        continue
      }
      this.#out.rows.place.point++
      this.#out.point.clear(kind)
      this.#readPoint(reader.enter(end), kind)
      this.#out.addPoint(kind)
    }
  }

  #readPoint(end: number, kind: MetricKind): void {
    switch (kind) {
      case 'gauge':
      case 'sum':
        this.#readNumberPoint(end)
        break
      case 'histogram':
        this.#readHistogramPoint(end)
        break
      case 'exponentialHistogram':
        this.#readExponentialHistogramPoint(end)
        break
      case 'summary':
        this.#readSummaryPoint(end)
        break
    }
  }

  #readNumberPoint(end: number): void {
    const { reader } = this
    const { point, rows } = this.#out
    let attributeCount = 0
    for (let tag = reader.next(end); tag !== 0; tag = reader.next(end)) {
      switch (tag) {
        case (2 << 3) | 1: // start_time_unix_nano
          reader.fixed64(point.startTime)
          break
        case (3 << 3) | 1: // time_unix_nano
          reader.fixed64(point.time)
          break
        case (4 << 3) | 1: // as_double
          point.value = reader.wire.double()
          point.hasValue = true
          break
        case (5 << 3) | 2: // exemplars
          this.#readExemplar(reader.enter(end))
          break
        case (6 << 3) | 1: // as_int
          point.value = reader.sfixed64()
          point.hasValue = true
          break
        case (7 << 3) | 2: // attributes
          point.attributes = readAttribute(reader, end, point.attributes)
          attributeCount++
          break
        case (8 << 3) | 0: // flags
          point.flags = reader.wire.uint32()
          break
        default:
          reader.skip(tag, end, 0b1_1111_1100)
      }
    }
    rows.noteManyAttributes(attributeCount)
  }

  #readHistogramPoint(end: number): void {
    const { reader } = this
    const { point, rows } = this.#out
    const bucketCounts: string[] = []
    const explicitBounds: Cell[] = []
    let attributeCount = 0
    for (let tag = reader.next(end); tag !== 0; tag = reader.next(end)) {
      switch (tag) {
        case (2 << 3) | 1: // start_time_unix_nano
          reader.fixed64(point.startTime)
          break
        case (3 << 3) | 1: // time_unix_nano
          reader.fixed64(point.time)
          break
        case (4 << 3) | 1: // count
          point.count = this.#fixed64Text()
          break
        case (5 << 3) | 1: // sum
          point.sum = reader.wire.double()
          break
        case (6 << 3) | 2: // bucket_counts, packed
          for (const stop = reader.enter(end); reader.isInside(stop); ) bucketCounts.push(this.#fixed64Text())
          break
        case (6 << 3) | 1: // bucket_counts
          bucketCounts.push(this.#fixed64Text())
          break
        case (7 << 3) | 2: // explicit_bounds, packed
          for (const stop = reader.enter(end); reader.isInside(stop); )
            explicitBounds.push(this.#doubleCell())
          break
        case (7 << 3) | 1: // explicit_bounds
          explicitBounds.push(this.#doubleCell())
          break
        case (8 << 3) | 2: // exemplars
          this.#readExemplar(reader.enter(end))
          break
        case (9 << 3) | 2: // attributes
          point.attributes = readAttribute(reader, end, point.attributes)
          attributeCount++
          break
        case (10 << 3) | 0: // flags
          point.flags = reader.wire.uint32()
          break
        case (11 << 3) | 1: // min
          point.min = this.#doubleCell()
          break
        case (12 << 3) | 1: // max
          point.max = this.#doubleCell()
          break
        default:
          reader.skip(tag, end, 0b1_1111_1111_1100)
      }
    }
    point.bucketCounts = bucketCounts
    point.explicitBounds = explicitBounds
    rows.noteManyAttributes(attributeCount)
  }

  #readExponentialHistogramPoint(end: number): void {
    const { reader } = this
    const { point, rows } = this.#out
    let attributeCount = 0
    for (let tag = reader.next(end); tag !== 0; tag = reader.next(end)) {
      switch (tag) {
        case (1 << 3) | 2: // attributes
          point.attributes = readAttribute(reader, end, point.attributes)
          attributeCount++
          break
        case (2 << 3) | 1: // start_time_unix_nano
          reader.fixed64(point.startTime)
          break
        case (3 << 3) | 1: // time_unix_nano
          reader.fixed64(point.time)
          break
        case (4 << 3) | 1: // count
          point.count = this.#fixed64Text()
          break
        case (5 << 3) | 1: // sum
          point.sum = reader.wire.double()
          break
        case (6 << 3) | 0: // scale
          point.scale = reader.wire.sint32()
          break
        case (7 << 3) | 1: // zero_count
          point.zeroCount = this.#fixed64Text()
          break
        case (8 << 3) | 2: // positive
          point.positive = this.#readBuckets(reader.enter(end))
          break
        case (9 << 3) | 2: // negative
          point.negative = this.#readBuckets(reader.enter(end))
          break
        case (10 << 3) | 0: // flags
          point.flags = reader.wire.uint32()
          break
        case (11 << 3) | 2: // exemplars
          this.#readExemplar(reader.enter(end))
          break
        case (12 << 3) | 1: // min
          point.min = this.#doubleCell()
          break
        case (13 << 3) | 1: // max
          point.max = this.#doubleCell()
          break
        default:
          reader.skip(tag, end, 0b11_1111_1111_1110)
      }
    }
    rows.noteManyAttributes(attributeCount)
  }

  #readSummaryPoint(end: number): void {
    const { reader } = this
    const { point, rows } = this.#out
    const quantiles: Cell[] = []
    const quantileValues: Cell[] = []
    let attributeCount = 0
    for (let tag = reader.next(end); tag !== 0; tag = reader.next(end)) {
      switch (tag) {
        case (2 << 3) | 1: // start_time_unix_nano
          reader.fixed64(point.startTime)
          break
        case (3 << 3) | 1: // time_unix_nano
          reader.fixed64(point.time)
          break
        case (4 << 3) | 1: // count
          point.count = this.#fixed64Text()
          break
        case (5 << 3) | 1: // sum
          point.sum = reader.wire.double()
          break
        case (6 << 3) | 2: // quantile_values
          this.#readQuantile(reader.enter(end), quantiles, quantileValues)
          break
        case (7 << 3) | 2: // attributes
          point.attributes = readAttribute(reader, end, point.attributes)
          attributeCount++
          break
        case (8 << 3) | 0: // flags
          point.flags = reader.wire.uint32()
          break
        default:
          reader.skip(tag, end, 0b1_1111_1100)
      }
    }
    point.quantiles = quantiles
    point.quantileValues = quantileValues
    rows.noteManyAttributes(attributeCount)
  }

  #readQuantile(end: number, quantiles: Cell[], values: Cell[]): void {
    const { reader } = this
    let quantile = 0
    let value = 0
    for (let tag = reader.next(end); tag !== 0; tag = reader.next(end)) {
      if (tag === ((1 << 3) | 1)) quantile = reader.wire.double()
      else if (tag === ((2 << 3) | 1)) value = reader.wire.double()
      else reader.skip(tag, end, 0b110)
    }
    quantiles.push(floatCell(quantile))
    values.push(floatCell(value))
  }

  #readBuckets(end: number): Buckets {
    const { reader } = this
    const counts: string[] = []
    let offset = 0
    for (let tag = reader.next(end); tag !== 0; tag = reader.next(end)) {
      switch (tag) {
        case (1 << 3) | 0: // offset
          offset = reader.wire.sint32()
          break
        case (2 << 3) | 2: // bucket_counts, packed
          for (const stop = reader.enter(end); reader.isInside(stop); ) counts.push(reader.uint64Text())
          break
        case (2 << 3) | 0: // bucket_counts
          counts.push(reader.uint64Text())
          break
        default:
          reader.skip(tag, end, 0b110)
      }
    }
    return { offset, counts }
  }

  #readExemplar(end: number): void {
    const { reader } = this
    const { rows } = this.#out
    const exemplar = this.#out.startExemplar()
    let attributeCount = 0
    for (let tag = reader.next(end); tag !== 0; tag = reader.next(end)) {
      switch (tag) {
        case (2 << 3) | 1: // time_unix_nano
          reader.fixed64(exemplar.time)
          break
        case (3 << 3) | 1: // as_double
          exemplar.value = reader.wire.double()
          break
        case (4 << 3) | 2: // span_id
          exemplar.spanId = reader.id(end, 8) ?? ''
          break
        case (5 << 3) | 2: // trace_id
          exemplar.traceId = reader.id(end, 16) ?? ''
          break
        case (6 << 3) | 1: // as_int
          exemplar.value = reader.sfixed64()
          break
        case (7 << 3) | 2: // filtered_attributes
          exemplar.attributes = readAttribute(reader, end, exemplar.attributes)
          attributeCount++
          break
        default:
          reader.skip(tag, end, 0b1111_1100)
      }
    }
    rows.noteManyAttributes(attributeCount)
    this.#out.addExemplar()
  }

  #fixed64Text(): string {
    this.reader.fixed64(this.#number)
    return this.#number.toString()
  }

  #doubleCell(): Cell {
    return floatCell(this.reader.wire.double())
  }
}
