// What a row of each metric table holds. A decoder fills one MetricPoint again and again, whatever the
// encoding, and hands it over; the cells below stand in the order of telemetry/schema/tables.ts. Integer
// points become Float64 as in the Collector's ClickHouse exporter: exact up to 2^53, the nearest double
// above. Histogram counts stay exact. A point flagged as "no recorded value" (a series that ended) is kept
// with its Flags and with NaN as Value or Sum: a reader skips it by `bitAnd(Flags, 1) = 0`, and one that
// forgets gets NaN and not a zero that was never measured. For the same reason a Sum the client left out is
// NaN (the exporter writes 0). An unknown id is '' and never a row of zeros.

import type { AttributeMap, Cell, Row } from '../telemetry/rows.ts'
import type { TableName } from '../telemetry/schema/tables.ts'
import { noAttributes } from './attributes.ts'
import { type Fault, fault, maxMetricNameLength, noFault } from './record-fault.ts'
import { floatCell, type RowCollector } from './row-collector.ts'
import { Uint64 } from './uint64.ts'

/** Data point flag: the point marks the end of a series and holds no value. */
export const noRecordedValue = 1

export type MetricKind = 'gauge' | 'sum' | 'histogram' | 'exponentialHistogram' | 'summary'

/** What the points of one metric have in common. */
export interface Metric {
  name: string
  description: string
  unit: string
  /** 0 unspecified, 1 delta, 2 cumulative. */
  temporality: number
  isMonotonic: boolean
  fault: Fault
}

export class Exemplar {
  attributes: AttributeMap = noAttributes
  readonly time = new Uint64()
  value = Number.NaN
  spanId = ''
  traceId = ''

  clear(): void {
    this.attributes = noAttributes
    this.time.clear()
    this.value = Number.NaN
    this.spanId = ''
    this.traceId = ''
  }
}

/** Exemplars of one point, a column each; all the same length. */
export interface Exemplars {
  readonly attributes: AttributeMap[]
  readonly times: string[]
  readonly values: Cell[]
  readonly spanIds: string[]
  readonly traceIds: string[]
}

/** One side of an exponential histogram: counts of consecutive buckets, the first with index `offset`. */
export interface Buckets {
  offset: number
  readonly counts: string[]
}

const noCells: readonly never[] = Object.freeze([])
const noBuckets: Buckets = Object.freeze({ offset: 0, counts: [] })

/** The fields of all five kinds of data point; each kind uses its own. */
export class MetricPoint {
  attributes: AttributeMap = noAttributes
  readonly startTime = new Uint64()
  readonly time = new Uint64()
  flags = 0
  exemplars: Exemplars | null = null
  /** Value of a gauge or sum; NaN with `hasValue` false when absent. */
  value = Number.NaN
  hasValue = false
  count = '0'
  /** NaN when absent. */
  sum = Number.NaN
  min: Cell = null
  max: Cell = null
  bucketCounts: readonly string[] = noCells
  explicitBounds: readonly Cell[] = noCells
  scale = 0
  zeroCount = '0'
  positive: Buckets = noBuckets
  negative: Buckets = noBuckets
  quantiles: readonly Cell[] = noCells
  quantileValues: readonly Cell[] = noCells

  /** @param kind a summary's sum is no optional field: absent means 0 there, and NaN in the histograms */
  clear(kind: MetricKind): void {
    this.attributes = noAttributes
    this.startTime.clear()
    this.time.clear()
    this.flags = 0
    this.exemplars = null
    this.value = Number.NaN
    this.hasValue = false
    this.count = '0'
    this.sum = kind === 'summary' ? 0 : Number.NaN
    this.min = null
    this.max = null
    this.bucketCounts = noCells
    this.explicitBounds = noCells
    this.scale = 0
    this.zeroCount = '0'
    this.positive = noBuckets
    this.negative = noBuckets
    this.quantiles = noCells
    this.quantileValues = noCells
  }
}

/** Turns points of the current metric into rows of the collector. */
export class MetricRows {
  readonly rows: RowCollector
  readonly point = new MetricPoint()
  readonly metric: Metric = {
    name: '',
    description: '',
    unit: '',
    temporality: 0,
    isMonotonic: false,
    fault: noFault,
  }

  readonly #exemplar = new Exemplar()

  constructor(rows: RowCollector) {
    this.rows = rows
  }

  startMetric(): void {
    this.metric.name = ''
    this.metric.description = ''
    this.metric.unit = ''
    this.metric.temporality = 0
    this.metric.isMonotonic = false
    this.metric.fault = noFault
  }

  /** Called when the metric's own fields are read and before its first point. */
  finishMetric(): void {
    const { rows, metric } = this
    if (metric.name === '') rows.note(fault.noName)
    if (metric.name.length > maxMetricNameLength) rows.note(fault.nameTooLong)
    rows.noteLongText(metric.description)
    rows.noteLongText(metric.unit)
    metric.fault = Math.min(rows.takeFault(), rows.scope.fault)
  }

  /** Adds {@link point} as a row of its kind's table, or counts it as rejected. */
  addPoint(kind: MetricKind): void {
    const { point, metric } = this
    this.rows.noteLongList(point.exemplars?.times.length ?? 0)
    const [table, row] = this.#row(kind)
    this.rows.add(table, row, point.time, metric.fault)
  }

  #row(kind: MetricKind): [TableName, Row] {
    switch (kind) {
      case 'gauge':
        return ['otel_metrics_gauge', this.#gaugeRow()]
      case 'sum':
        return ['otel_metrics_sum', this.#sumRow()]
      case 'histogram':
        return ['otel_metrics_histogram', this.#histogramRow()]
      case 'exponentialHistogram':
        return ['otel_metrics_exponential_histogram', this.#exponentialHistogramRow()]
      case 'summary':
        return ['otel_metrics_summary', this.#summaryRow()]
    }
  }

  #head(): Cell[] {
    const { point, metric } = this
    const { resource, scope } = this.rows
    const startTime = this.rows.instant(point.startTime, fault.startOutside)
    return [
      resource.attributes,
      resource.schemaUrl,
      scope.name,
      scope.version,
      scope.attributes,
      scope.droppedAttributesCount,
      scope.schemaUrl,
      resource.serviceName,
      metric.name,
      metric.description,
      metric.unit,
      point.attributes,
      startTime,
      this.rows.eventTime(point.time),
    ]
  }

  #numberCell(): Cell {
    if (this.#isWithoutValue()) return 'nan'
    if (!this.point.hasValue) this.rows.note(fault.noValue)
    return floatCell(this.point.value)
  }

  #sumCell(): Cell {
    return this.#isWithoutValue() ? 'nan' : floatCell(this.point.sum)
  }

  #isWithoutValue(): boolean {
    return (this.point.flags & noRecordedValue) !== 0
  }

  #pushExemplars(row: Cell[]): void {
    const found = this.point.exemplars
    if (found === null) row.push(noCells, noCells, noCells, noCells, noCells)
    else row.push(found.attributes, found.times, found.values, found.spanIds, found.traceIds)
  }

  #gaugeRow(): Row {
    const row = this.#head()
    row.push(this.#numberCell(), this.point.flags)
    this.#pushExemplars(row)
    return row
  }

  #sumRow(): Row {
    const row = this.#head()
    row.push(this.#numberCell(), this.point.flags)
    this.#pushExemplars(row)
    row.push(this.metric.temporality, this.metric.isMonotonic)
    return row
  }

  #histogramRow(): Row {
    const { point, metric } = this
    const buckets = point.bucketCounts.length
    const bounds = point.explicitBounds.length
    if (buckets !== bounds + 1 && buckets + bounds > 0) this.rows.note(fault.bucketMismatch)
    this.rows.noteLongList(buckets)
    const row = this.#head()
    row.push(point.count, this.#sumCell(), point.bucketCounts, point.explicitBounds)
    this.#pushExemplars(row)
    row.push(point.flags, point.min, point.max, metric.temporality)
    return row
  }

  #exponentialHistogramRow(): Row {
    const { point, metric } = this
    this.rows.noteLongList(point.positive.counts.length)
    this.rows.noteLongList(point.negative.counts.length)
    const row = this.#head()
    row.push(point.count, this.#sumCell(), point.scale, point.zeroCount)
    row.push(point.positive.offset, point.positive.counts, point.negative.offset, point.negative.counts)
    this.#pushExemplars(row)
    row.push(point.flags, point.min, point.max, metric.temporality)
    return row
  }

  #summaryRow(): Row {
    const { point } = this
    this.rows.noteLongList(point.quantiles.length)
    const row = this.#head()
    row.push(point.count, this.#sumCell(), point.quantiles, point.quantileValues, point.flags)
    return row
  }

  startExemplar(): Exemplar {
    this.#exemplar.clear()
    return this.#exemplar
  }

  /** Adds the exemplar of {@link startExemplar} to the point. One without a value is kept with NaN. */
  addExemplar(): void {
    const exemplar = this.#exemplar
    this.point.exemplars ??= { attributes: [], times: [], values: [], spanIds: [], traceIds: [] }
    const columns = this.point.exemplars
    columns.attributes.push(exemplar.attributes)
    columns.times.push(this.rows.instant(exemplar.time, fault.innerTimeOutside))
    columns.values.push(floatCell(exemplar.value))
    columns.spanIds.push(exemplar.spanId)
    columns.traceIds.push(exemplar.traceId)
  }
}
