// OTLP metrics in protobuf. A metric's data is a oneof: of several kinds the last one counts. Its message is
// read twice, because the temporality that each row needs usually follows the points on the wire.

import type { ListCell } from '../rows/cells.ts'
import type { ExponentialBuckets, MetricDataKind, MetricRows } from '../rows/metric-rows.ts'
import { Uint64 } from '../rows/uint64.ts'
import { readAttribute } from './proto-attributes.ts'
import type { ProtoReader } from './proto-reader.ts'

/** Kind by field number of `Metric.data`. */
const kindByField: ReadonlyMap<number, MetricDataKind> = new Map([
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
  /**
   * Start and stop of the messages of the metric's data, alternating: one pair unless a client split the
   * message.
   */
  readonly #data: number[] = []
  #kind: MetricDataKind | null = null

  constructor(reader: ProtoReader, out: MetricRows) {
    this.reader = reader
    this.#out = out
  }

  readRecord(end: number): void {
    this.#readOwnFields(end)
    if (this.#kind === null) return
    const { location } = this.#out.rows
    location.kind = this.#kind
    location.point = -1
    this.#readData(this.#kind)
    location.kind = ''
    location.point = -1
    this.reader.pos = end
  }

  #readOwnFields(end: number): void {
    const { reader } = this
    const { metric } = this.#out
    metric.clear()
    this.#data.length = 0
    this.#kind = null
    for (let tag = reader.next(end); tag !== 0; tag = reader.next(end)) {
      switch (tag) {
        case (1 << 3) | 2: // name
          reader.text(end, metric.name)
          break
        case (2 << 3) | 2: // description
          reader.text(end, metric.description)
          break
        case (3 << 3) | 2: // unit
          reader.text(end, metric.unit)
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
    this.#data.push(this.reader.pos, stop)
    this.reader.pos = stop
  }

  #readData(kind: MetricDataKind): void {
    const data = this.#data
    for (let at = 0; at < data.length; at += 2) this.#readCommon(data[at] ?? 0, data[at + 1] ?? 0, kind)
    for (let at = 0; at < data.length; at += 2) this.#readPoints(data[at] ?? 0, data[at + 1] ?? 0, kind)
  }

  /** Reads the fields beside the points: `aggregation_temporality` and, of a sum, `is_monotonic`. */
  #readCommon(start: number, end: number, kind: MetricDataKind): void {
    const { reader } = this
    const { metric } = this.#out
    const hasTemporality = kind !== 'gauge' && kind !== 'summary'
    const known = kind === 'sum' ? 0b1110 : hasTemporality ? 0b110 : 0b10
    reader.pos = start
    for (let tag = reader.next(end); tag !== 0; tag = reader.next(end)) {
      if (tag === ((1 << 3) | 2)) reader.pos = reader.enter(end)
      else if (tag === ((2 << 3) | 0) && hasTemporality) metric.temporality = reader.int32()
      else if (tag === ((3 << 3) | 0) && kind === 'sum') metric.isMonotonic = reader.bool()
      else reader.skip(tag, end, known)
    }
  }

  #readPoints(start: number, end: number, kind: MetricDataKind): void {
    const { reader } = this
    reader.pos = start
    for (let tag = reader.next(end); tag !== 0; tag = reader.next(end)) {
      if (tag !== ((1 << 3) | 2)) {
        reader.skip(tag, end, 0)
        continue
      }
      this.#out.rows.location.point++
      this.#out.point.clear(kind)
      this.#readPoint(reader.enter(end), kind)
      this.#out.addPoint(kind)
    }
  }

  #readPoint(end: number, kind: MetricDataKind): void {
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
          point.value = reader.double()
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
          readAttribute(reader, end, point.attributes)
          attributeCount++
          break
        case (8 << 3) | 0: // flags
          point.flags = reader.uint32()
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
          reader.fixed64(point.count)
          break
        case (5 << 3) | 1: // sum
          point.sum = reader.double()
          break
        case (6 << 3) | 2: // bucket_counts, packed
          reader.packedFixed64(end, point.bucketCounts)
          break
        case (6 << 3) | 1: // bucket_counts
          this.#addFixed64(point.bucketCounts)
          break
        case (7 << 3) | 2: // explicit_bounds, packed
          for (const stop = reader.enter(end); reader.isInside(stop); )
            point.explicitBounds.addFloat64(reader.double())
          break
        case (7 << 3) | 1: // explicit_bounds
          point.explicitBounds.addFloat64(reader.double())
          break
        case (8 << 3) | 2: // exemplars
          this.#readExemplar(reader.enter(end))
          break
        case (9 << 3) | 2: // attributes
          readAttribute(reader, end, point.attributes)
          attributeCount++
          break
        case (10 << 3) | 0: // flags
          point.flags = reader.uint32()
          break
        case (11 << 3) | 1: // min
          point.min = reader.double()
          break
        case (12 << 3) | 1: // max
          point.max = reader.double()
          break
        default:
          reader.skip(tag, end, 0b1_1111_1111_1100)
      }
    }
    rows.noteManyAttributes(attributeCount)
  }

  #readExponentialHistogramPoint(end: number): void {
    const { reader } = this
    const { point, rows } = this.#out
    let attributeCount = 0
    for (let tag = reader.next(end); tag !== 0; tag = reader.next(end)) {
      switch (tag) {
        case (1 << 3) | 2: // attributes
          readAttribute(reader, end, point.attributes)
          attributeCount++
          break
        case (2 << 3) | 1: // start_time_unix_nano
          reader.fixed64(point.startTime)
          break
        case (3 << 3) | 1: // time_unix_nano
          reader.fixed64(point.time)
          break
        case (4 << 3) | 1: // count
          reader.fixed64(point.count)
          break
        case (5 << 3) | 1: // sum
          point.sum = reader.double()
          break
        case (6 << 3) | 0: // scale
          point.scale = reader.sint32()
          break
        case (7 << 3) | 1: // zero_count
          reader.fixed64(point.zeroCount)
          break
        case (8 << 3) | 2: // positive
          this.#readBuckets(reader.enter(end), point.positive)
          break
        case (9 << 3) | 2: // negative
          this.#readBuckets(reader.enter(end), point.negative)
          break
        case (10 << 3) | 0: // flags
          point.flags = reader.uint32()
          break
        case (11 << 3) | 2: // exemplars
          this.#readExemplar(reader.enter(end))
          break
        case (12 << 3) | 1: // min
          point.min = reader.double()
          break
        case (13 << 3) | 1: // max
          point.max = reader.double()
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
          reader.fixed64(point.count)
          break
        case (5 << 3) | 1: // sum
          point.sum = reader.double()
          break
        case (6 << 3) | 2: // quantile_values
          this.#readQuantile(reader.enter(end))
          break
        case (7 << 3) | 2: // attributes
          readAttribute(reader, end, point.attributes)
          attributeCount++
          break
        case (8 << 3) | 0: // flags
          point.flags = reader.uint32()
          break
        default:
          reader.skip(tag, end, 0b1_1111_1100)
      }
    }
    rows.noteManyAttributes(attributeCount)
  }

  #readQuantile(end: number): void {
    const { reader } = this
    const { point } = this.#out
    let quantile = 0
    let value = 0
    for (let tag = reader.next(end); tag !== 0; tag = reader.next(end)) {
      if (tag === ((1 << 3) | 1)) quantile = reader.double()
      else if (tag === ((2 << 3) | 1)) value = reader.double()
      else reader.skip(tag, end, 0b110)
    }
    point.quantiles.addFloat64(quantile)
    point.quantileValues.addFloat64(value)
  }

  #readBuckets(end: number, into: ExponentialBuckets): void {
    const { reader } = this
    for (let tag = reader.next(end); tag !== 0; tag = reader.next(end)) {
      switch (tag) {
        case (1 << 3) | 0: // offset
          into.offset = reader.sint32()
          break
        case (2 << 3) | 2: // bucket_counts, packed
          for (const stop = reader.enter(end); reader.isInside(stop); ) this.#addVarint(into.counts)
          break
        case (2 << 3) | 0: // bucket_counts
          this.#addVarint(into.counts)
          break
        default:
          reader.skip(tag, end, 0b110)
      }
    }
  }

  #readExemplar(end: number): void {
    const { reader } = this
    const { exemplar, rows } = this.#out
    let attributeCount = 0
    exemplar.clear()
    for (let tag = reader.next(end); tag !== 0; tag = reader.next(end)) {
      switch (tag) {
        case (2 << 3) | 1: // time_unix_nano
          reader.fixed64(exemplar.time)
          break
        case (3 << 3) | 1: // as_double
          exemplar.value = reader.double()
          break
        case (4 << 3) | 2: // span_id
          reader.id(end, 8, exemplar.spanId)
          break
        case (5 << 3) | 2: // trace_id
          reader.id(end, 16, exemplar.traceId)
          break
        case (6 << 3) | 1: // as_int
          exemplar.value = reader.sfixed64()
          break
        case (7 << 3) | 2: // filtered_attributes
          readAttribute(reader, end, exemplar.attributes)
          attributeCount++
          break
        default:
          reader.skip(tag, end, 0b1111_1100)
      }
    }
    rows.noteManyAttributes(attributeCount)
    this.#out.addExemplar()
  }

  #addFixed64(list: ListCell): void {
    this.reader.fixed64(this.#number)
    list.addUint64(this.#number)
  }

  #addVarint(list: ListCell): void {
    this.reader.varint(this.#number)
    list.addUint64(this.#number)
  }
}
