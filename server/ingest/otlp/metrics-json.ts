// OTLP metrics in JSON. One switch reads the data points of all five kinds, because no two kinds use one name
// for different things. The type of a field of another kind is checked, and the field has no effect.

import type { ListCell } from '../rows/cells.ts'
import type { ExponentialBuckets, MetricDataKind, MetricRows } from '../rows/metric-rows.ts'
import { Uint64 } from '../rows/uint64.ts'
import { type EnumNames, field, type JsonObject, type JsonReader } from './json-reader.ts'

const temporalities: EnumNames = new Map([
  ['AGGREGATION_TEMPORALITY_UNSPECIFIED', 0],
  ['AGGREGATION_TEMPORALITY_DELTA', 1],
  ['AGGREGATION_TEMPORALITY_CUMULATIVE', 2],
])

const kindByName: ReadonlyMap<string, MetricDataKind> = new Map([
  ['gauge', 'gauge'],
  ['sum', 'sum'],
  ['histogram', 'histogram'],
  ['exponentialHistogram', 'exponentialHistogram'],
  ['exponential_histogram', 'exponentialHistogram'],
  ['summary', 'summary'],
])

/** Reads `Metric` messages and adds their points. */
export class MetricJson {
  readonly reader: JsonReader
  readonly #out: MetricRows
  readonly #number = new Uint64()

  constructor(reader: JsonReader, out: MetricRows) {
    this.reader = reader
    this.#out = out
  }

  readRecord(record: unknown): void {
    const { reader } = this
    const { metric, rows } = this.#out
    const object = reader.object(record, '')
    const kind = kindOf(object)
    const data = kind === null ? null : reader.object(dataOf(object, kind), kind)
    metric.clear()
    reader.text(object.name ?? '', 'name', metric.name)
    reader.text(object.description ?? '', 'description', metric.description)
    reader.text(object.unit ?? '', 'unit', metric.unit)
    if (data !== null && kind !== null) this.#readCommon(data, kind)
    this.#out.finishMetric()
    if (data === null || kind === null) return
    rows.location.kind = kind
    this.#readPoints(data, kind)
    rows.location.kind = ''
  }

  #readCommon(data: JsonObject, kind: MetricDataKind): void {
    if (kind === 'gauge' || kind === 'summary') return
    const { metric } = this.#out
    const temporality = field(data, 'aggregationTemporality', 'aggregation_temporality') ?? 0
    metric.temporality = this.reader.enumeration(temporality, `${kind}.aggregationTemporality`, temporalities)
    if (kind !== 'sum') return
    metric.isMonotonic = this.reader.boolean(
      field(data, 'isMonotonic', 'is_monotonic') ?? false,
      'sum.isMonotonic',
    )
  }

  #readPoints(data: JsonObject, kind: MetricDataKind): void {
    const { location } = this.#out.rows
    location.point = -1
    for (const item of this.reader.list(field(data, 'dataPoints', 'data_points'), 'dataPoints')) {
      location.point++
      this.#out.point.clear(kind)
      this.#readPoint(this.reader.object(item, ''))
      this.#out.addPoint(kind)
    }
    location.point = -1
  }

  #readPoint(item: JsonObject): void {
    for (const name in item) {
      const value = item[name]
      if (value !== null) this.#readPointField(name, value)
    }
  }

  #readPointField(name: string, value: unknown): void {
    const { reader } = this
    const { point } = this.#out
    switch (name) {
      case 'attributes':
        reader.attributes(value, name, point.attributes)
        break
      case 'startTimeUnixNano':
      case 'start_time_unix_nano':
        reader.uint64(value, name, point.startTime)
        break
      case 'timeUnixNano':
      case 'time_unix_nano':
        reader.uint64(value, name, point.time)
        break
      case 'flags':
        point.flags = reader.uint32(value, name)
        break
      case 'exemplars':
        for (const exemplar of reader.list(value, name)) this.#readExemplar(reader.object(exemplar, name))
        break
      case 'asDouble':
      case 'as_double':
        point.value = reader.double(value, name)
        point.hasValue = true
        break
      case 'asInt':
      case 'as_int':
        point.value = Number(reader.int64Text(value, name, false))
        point.hasValue = true
        break
      default:
        this.#readDistributionField(name, value)
    }
  }

  #readDistributionField(name: string, value: unknown): void {
    const { reader } = this
    const { point } = this.#out
    switch (name) {
      case 'count':
        reader.uint64(value, name, point.count)
        break
      case 'sum':
        point.sum = reader.double(value, name)
        break
      case 'min':
        point.min = reader.double(value, name)
        break
      case 'max':
        point.max = reader.double(value, name)
        break
      case 'bucketCounts':
      case 'bucket_counts':
        this.#readCounts(value, name, point.bucketCounts)
        break
      case 'explicitBounds':
      case 'explicit_bounds':
        point.explicitBounds.clear()
        for (const bound of reader.list(value, name))
          point.explicitBounds.addFloat64(reader.double(bound, name))
        break
      case 'scale':
        point.scale = reader.int32(value, name)
        break
      case 'zeroCount':
      case 'zero_count':
        reader.uint64(value, name, point.zeroCount)
        break
      case 'positive':
        this.#readBuckets(reader.object(value, name), name, point.positive)
        break
      case 'negative':
        this.#readBuckets(reader.object(value, name), name, point.negative)
        break
      case 'quantileValues':
      case 'quantile_values':
        this.#readQuantiles(reader.list(value, name), name)
        break
    }
  }

  #readCounts(value: unknown, name: string, into: ListCell): void {
    into.clear()
    for (const count of this.reader.list(value, name)) {
      this.reader.uint64(count, name, this.#number)
      into.addUint64(this.#number)
    }
  }

  #readBuckets(side: JsonObject, name: string, into: ExponentialBuckets): void {
    into.offset = this.reader.int32(side.offset ?? 0, `${name}.offset`)
    this.#readCounts(field(side, 'bucketCounts', 'bucket_counts'), `${name}.bucketCounts`, into.counts)
  }

  #readQuantiles(list: readonly unknown[], name: string): void {
    const { quantiles, quantileValues } = this.#out.point
    quantiles.clear()
    quantileValues.clear()
    for (const item of list) {
      const pair = this.reader.object(item, name)
      quantiles.addFloat64(this.reader.double(pair.quantile ?? 0, `${name}.quantile`))
      quantileValues.addFloat64(this.reader.double(pair.value ?? 0, `${name}.value`))
    }
  }

  #readExemplar(item: JsonObject): void {
    const { reader } = this
    const { exemplar } = this.#out
    exemplar.clear()
    for (const name in item) {
      const value = item[name]
      if (value === null) continue
      switch (name) {
        case 'timeUnixNano':
        case 'time_unix_nano':
          reader.uint64(value, `exemplars.${name}`, exemplar.time)
          break
        case 'asDouble':
        case 'as_double':
          exemplar.value = reader.double(value, `exemplars.${name}`)
          break
        case 'asInt':
        case 'as_int':
          exemplar.value = Number(reader.int64Text(value, `exemplars.${name}`, false))
          break
        case 'spanId':
        case 'span_id':
          reader.id(value, `exemplars.${name}`, 8, exemplar.spanId)
          break
        case 'traceId':
        case 'trace_id':
          reader.id(value, `exemplars.${name}`, 16, exemplar.traceId)
          break
        case 'filteredAttributes':
        case 'filtered_attributes':
          reader.attributes(value, `exemplars.${name}`, exemplar.attributes)
          break
      }
    }
    this.#out.addExemplar()
  }
}

/** Returns the kind of a metric's data; of several members the last one counts. */
function kindOf(metric: JsonObject): MetricDataKind | null {
  let kind: MetricDataKind | null = null
  for (const name in metric) {
    if (metric[name] !== null) kind = kindByName.get(name) ?? kind
  }
  return kind
}

function dataOf(metric: JsonObject, kind: MetricDataKind): unknown {
  return kind === 'exponentialHistogram' ? field(metric, kind, 'exponential_histogram') : metric[kind]
}
