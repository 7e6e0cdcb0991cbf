// Writes the rows of the metric tables. A decoder of any encoding fills the same MetricPoint again for each
// point; its cells are in the insert order of telemetry/schema/tables.ts. Integer points become Float64 as in
// the Collector's ClickHouse exporter: exact up to 2^53, above it the nearest double. Histogram counts stay
// exact. A point with the flag "no recorded value" (the end of a series) is stored with its Flags and with
// NaN as Value or Sum: a reader skips it by `bitAnd(Flags, 1) = 0`, and one that doesn't gets NaN and not a
// zero that was never measured. For the same reason an absent Sum is NaN (the exporter writes 0). An unknown
// id is '' and never a row of zeros.

import { RowBinary } from '../../telemetry/row-binary.ts'
import { SeriesId, seriesParts } from '../../telemetry/schema/series-id.ts'
import type { TableName } from '../../telemetry/schema/tables.ts'
import { IdCell, ListCell, ListsCell, MapCell, TextCell } from './cells.ts'
import { type Fault, fault, maxMetricNameLength, noFault } from './faults.ts'
import type { RowCollector } from './row-collector.ts'
import { Uint64 } from './uint64.ts'

/** Data point flag: the point marks the end of a series and has no value. */
export const noRecordedValue = 1

export type MetricDataKind = 'gauge' | 'sum' | 'histogram' | 'exponentialHistogram' | 'summary'

const tableOf = {
  gauge: 'otel_metrics_gauge',
  sum: 'otel_metrics_sum',
  histogram: 'otel_metrics_histogram',
  exponentialHistogram: 'otel_metrics_exponential_histogram',
  summary: 'otel_metrics_summary',
} as const satisfies Record<MetricDataKind, TableName>

/** What the points of one metric share. */
class Metric {
  readonly name = new TextCell()
  readonly description = new TextCell()
  readonly unit = new TextCell()
  /** 0 unspecified, 1 delta, 2 cumulative. */
  temporality = 0
  isMonotonic = false
  fault: Fault = noFault

  clear(): void {
    this.name.clear()
    this.description.clear()
    this.unit.clear()
    this.temporality = 0
    this.isMonotonic = false
    this.fault = noFault
  }
}

class Exemplar {
  readonly attributes = new MapCell()
  readonly time = new Uint64()
  value = Number.NaN
  readonly spanId = new IdCell()
  readonly traceId = new IdCell()

  clear(): void {
    this.attributes.clear()
    this.time.clear()
    this.value = Number.NaN
    this.spanId.clear()
    this.traceId.clear()
  }
}

/** One side of an exponential histogram: counts of consecutive buckets, the first with index `offset`. */
export class ExponentialBuckets {
  offset = 0
  readonly counts = new ListCell()

  clear(): void {
    this.offset = 0
    this.counts.clear()
  }
}

/** The fields of all five kinds of data point; each kind uses its own. */
export class MetricPoint {
  readonly attributes = new MapCell()
  readonly startTime = new Uint64()
  readonly time = new Uint64()
  flags = 0
  /** Attributes, times, values, span ids, trace ids. */
  readonly exemplars = new ListsCell(5)
  /** Value of a gauge or sum; NaN with `hasValue` false when absent. */
  value = Number.NaN
  hasValue = false
  readonly count = new Uint64()
  /** NaN where absent. */
  sum = Number.NaN
  min: number | null = null
  max: number | null = null
  readonly bucketCounts = new ListCell()
  readonly explicitBounds = new ListCell()
  scale = 0
  readonly zeroCount = new Uint64()
  readonly positive = new ExponentialBuckets()
  readonly negative = new ExponentialBuckets()
  readonly quantiles = new ListCell()
  readonly quantileValues = new ListCell()

  /** @param kind a summary's sum is not an optional field: there absent means 0, in the histograms NaN */
  clear(kind: MetricDataKind): void {
    this.attributes.clear()
    this.startTime.clear()
    this.time.clear()
    this.flags = 0
    this.exemplars.clear()
    this.value = Number.NaN
    this.hasValue = false
    if (kind === 'gauge' || kind === 'sum') return
    this.count.clear()
    this.sum = kind === 'summary' ? 0 : Number.NaN
    this.min = null
    this.max = null
    this.bucketCounts.clear()
    this.explicitBounds.clear()
    this.scale = 0
    this.zeroCount.clear()
    this.positive.clear()
    this.negative.clear()
    this.quantiles.clear()
    this.quantileValues.clear()
  }
}

/** Writes points of the current metric as rows of the collector. */
export class MetricRows {
  readonly rows: RowCollector
  readonly point = new MetricPoint()
  readonly metric = new Metric()
  readonly exemplar = new Exemplar()
  /** Name, description and unit, which all points of the metric share. */
  readonly #head = new RowBinary()
  #headBytes: Uint8Array = Buffer.alloc(0)
  /** What the metric adds to the identity of the series of all its points. */
  readonly #metricSeries = new SeriesId()
  readonly #series = new SeriesId()

  constructor(rows: RowCollector) {
    this.rows = rows
  }

  /** Call it after the metric's own fields and before its first point. */
  finishMetric(): void {
    const { rows, metric } = this
    if (metric.name.isEmpty()) rows.note(fault.noName)
    if (metric.name.isLongerThan(maxMetricNameLength, rows.body)) rows.note(fault.nameTooLong)
    rows.noteLongText(metric.description)
    rows.noteLongText(metric.unit)
    metric.fault = Math.min(rows.takeFault(), rows.scope.fault)
    this.#head.clear()
    if (metric.fault !== noFault) return
    metric.name.writeTo(this.#head, rows.body)
    this.#metricSeries.copy(rows.scopeSeries)
    this.#metricSeries.addText(this.#head, 0, this.#head.length, seriesParts.metric)
    metric.description.writeTo(this.#head, rows.body)
    metric.unit.writeTo(this.#head, rows.body)
    this.#headBytes = this.#head.written()
  }

  /** Adds {@link point} as a row of its kind's table, or counts it as rejected. */
  addPoint(kind: MetricDataKind): void {
    const { point, metric, rows } = this
    this.#noteFaults(kind)
    const out = rows.startRow(tableOf[kind], metric.fault)
    if (out === null) return
    out.appendBytes(this.#headBytes)
    point.attributes.writeTo(out)
    out.uint64(point.startTime.hi, point.startTime.lo)
    out.uint64(point.time.hi, point.time.lo)
    this.#writeOwn(kind, out)
    this.#series.copy(this.#metricSeries)
    point.attributes.addTo(this.#series, seriesParts.attributes)
    out.uint64(this.#series.hi, this.#series.lo)
    rows.finishRow(point.time)
  }

  /** Adds {@link exemplar} to the point; without a value its value is NaN. */
  addExemplar(): void {
    const { exemplar, rows } = this
    const { exemplars } = this.point
    rows.noteTime(exemplar.time, fault.innerTimeOutside)
    exemplars.count++
    exemplar.attributes.writeTo(exemplars.list(0))
    exemplars.list(1).uint64(exemplar.time.hi, exemplar.time.lo)
    exemplars.list(2).float64(exemplar.value)
    exemplar.spanId.writeTo(exemplars.list(3))
    exemplar.traceId.writeTo(exemplars.list(4))
  }

  #noteFaults(kind: MetricDataKind): void {
    const { point, rows } = this
    rows.noteTime(point.startTime, fault.startOutside)
    rows.noteEventTime(point.time)
    rows.noteLongList(point.exemplars.count)
    if (kind === 'gauge' || kind === 'sum') {
      if (!point.hasValue && !this.#isWithoutValue()) rows.note(fault.noValue)
      return
    }
    const buckets = point.bucketCounts.count
    const bounds = point.explicitBounds.count
    if (kind === 'histogram' && buckets !== bounds + 1 && buckets + bounds > 0)
      rows.note(fault.bucketMismatch)
    rows.noteLongList(buckets)
    rows.noteLongList(point.positive.counts.count)
    rows.noteLongList(point.negative.counts.count)
    rows.noteLongList(point.quantiles.count)
  }

  #isWithoutValue(): boolean {
    return (this.point.flags & noRecordedValue) !== 0
  }

  #writeOwn(kind: MetricDataKind, out: RowBinary): void {
    switch (kind) {
      case 'gauge':
        this.#writeNumber(out)
        break
      case 'sum':
        this.#writeNumber(out)
        out.uint32(this.metric.temporality)
        out.uint8(this.metric.isMonotonic ? 1 : 0)
        break
      case 'histogram':
        this.#writeHistogram(out)
        break
      case 'exponentialHistogram':
        this.#writeExponentialHistogram(out)
        break
      case 'summary':
        this.#writeSummary(out)
        break
    }
  }

  #writeNumber(out: RowBinary): void {
    out.float64(this.#isWithoutValue() ? Number.NaN : this.point.value)
    out.uint32(this.point.flags)
    this.point.exemplars.writeTo(out)
  }

  #writeCountAndSum(out: RowBinary): void {
    const { count, sum } = this.point
    out.uint64(count.hi, count.lo)
    out.float64(this.#isWithoutValue() ? Number.NaN : sum)
  }

  #writeHistogram(out: RowBinary): void {
    this.#writeCountAndSum(out)
    this.point.bucketCounts.writeTo(out)
    this.point.explicitBounds.writeTo(out)
    this.#writeTail(out)
  }

  #writeExponentialHistogram(out: RowBinary): void {
    const { scale, zeroCount, positive, negative } = this.point
    this.#writeCountAndSum(out)
    out.uint32(scale)
    out.uint64(zeroCount.hi, zeroCount.lo)
    out.uint32(positive.offset)
    positive.counts.writeTo(out)
    out.uint32(negative.offset)
    negative.counts.writeTo(out)
    this.#writeTail(out)
  }

  #writeSummary(out: RowBinary): void {
    this.#writeCountAndSum(out)
    this.point.quantiles.writeTo(out)
    this.point.quantileValues.writeTo(out)
    out.uint32(this.point.flags)
  }

  /** Writes the last columns of both kinds of histogram. */
  #writeTail(out: RowBinary): void {
    this.point.exemplars.writeTo(out)
    out.uint32(this.point.flags)
    writeNullable(out, this.point.min)
    writeNullable(out, this.point.max)
    out.uint32(this.metric.temporality)
  }
}

function writeNullable(out: RowBinary, value: number | null): void {
  out.uint8(value === null ? 1 : 0)
  if (value !== null) out.float64(value)
}
