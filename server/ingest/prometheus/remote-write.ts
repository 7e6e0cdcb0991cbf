// Turns an uncompressed Prometheus remote write request into rows of the metric tables; docs/prometheus.md
// has the whole mapping. Each sample is a row of its own, also for classic histograms and summaries, whose
// series may arrive in different HTTP requests. The three kinds of record are counted separately, because the
// response of the protocol does so. An exemplar is a row without a value beside its series: Prometheus sends
// it separately from the samples, often in another HTTP request.

import type { TenantPlace } from '../../telemetry/engine.ts'
import { type MapCell, TextCell } from '../rows/cells.ts'
import { fault } from '../rows/faults.ts'
import { MetricRows, noRecordedValue } from '../rows/metric-rows.ts'
import { type DecodedExport, RowCollector, type RowOrigin } from '../rows/row-collector.ts'
import type { Uint64 } from '../rows/uint64.ts'
import { kindOfSeries, metricTypes, unitOf } from './names.ts'
import { customSchema, fillHistogram } from './native-histogram.ts'
import {
  type NativeHistogram,
  type PromExemplar,
  type RemoteWriteVersion,
  readRemoteWrite,
  type Sample,
  type TimeSeries,
} from './remote-write-wire.ts'

/** OTLP's number for a count since a start. */
const cumulative = 2

const twoTo32 = 4_294_967_296

/** Samples, native histograms and exemplars, in this order. */
type RemoteWriteParts = readonly [DecodedExport, DecodedExport, DecodedExport]

/**
 * Throws `bad_request` where the body as a whole can't be read, and `body_too_large` where its rows would be
 * out of proportion to its size; nothing of it may then be stored. Throws ManyRowBytes where its samples,
 * histograms or exemplars take more than `rowBytesMax`.
 */
export function decodeRemoteWrite(
  version: RemoteWriteVersion,
  body: Buffer,
  place: TenantPlace,
  rowBytesMax?: number,
): RemoteWriteParts {
  const reader = new SeriesRows({ place, body, rowBytesMax })
  readRemoteWrite(version, body, (series) => reader.add(series))
  return reader.finish()
}

/** Names and values, alternating. */
type Pairs = readonly string[]

/** The source of a series: its resource and scope are made from it. */
interface Source {
  job: string
  instance: string
  scopeName: string
  scopeVersion: string
}

/** The labels of a series, by their use. */
interface SeriesLabels {
  readonly name: string
  readonly source: Readonly<Source>
  readonly attributes: Pairs
  readonly count: number
  readonly isBroken: boolean
}

class SeriesRows {
  readonly #samples: MetricRows
  readonly #histograms: MetricRows
  readonly #exemplars: MetricRows
  /** The source whose resource and scope each has at present: series of one source follow each other. */
  readonly #sources = new Map<MetricRows, Readonly<Source>>()
  readonly #key = new TextCell()
  readonly #value = new TextCell()

  constructor(origin: RowOrigin) {
    const rowsOf = (noun: string) =>
      new MetricRows(new RowCollector({ signal: 'metrics', names: ['timeseries', '', ''], noun }, origin))
    this.#samples = rowsOf('sample')
    this.#histograms = rowsOf('histogram')
    this.#exemplars = rowsOf('exemplar')
  }

  add(series: TimeSeries): void {
    // One symbol may be named by any number of labels.
    this.#samples.rows.bytes.addCopied(lengthOf(series.labels))
    const labels = takeApart(series.labels)
    if (series.samples.length > 0) this.#addSamples(series, labels)
    if (series.histograms.length > 0) this.#addHistograms(series, labels)
    if (series.exemplars.length > 0) this.#addExemplars(series, labels)
  }

  finish(): RemoteWriteParts {
    return [this.#samples.rows.finish(), this.#histograms.rows.finish(), this.#exemplars.rows.finish()]
  }

  #addSamples(series: TimeSeries, labels: SeriesLabels): void {
    const out = this.#samples
    const kind = this.#begin(out, series, labels)
    for (const sample of series.samples) this.#addSample(out, kind, sample, labels)
  }

  #addSample(out: MetricRows, kind: 'gauge' | 'sum', sample: Sample, { attributes }: SeriesLabels): void {
    const { point } = out
    point.clear(kind)
    this.#addAll(point.attributes, attributes, out)
    setMs(point.time, sample.timeMs)
    setMs(point.startTime, sample.startMs)
    point.flags = sample.isStale ? noRecordedValue : 0
    point.value = sample.value
    point.hasValue = true
    out.addPoint(kind)
  }

  #addExemplars(series: TimeSeries, labels: SeriesLabels): void {
    const out = this.#exemplars
    const kind = this.#begin(out, series, labels)
    for (const exemplar of series.exemplars) {
      const { point } = out
      point.clear(kind)
      this.#addAll(point.attributes, labels.attributes, out)
      setMs(point.time, exemplar.timeMs)
      point.flags = noRecordedValue
      this.#fillExemplar(out, exemplar)
      out.addPoint(kind)
    }
  }

  #fillExemplar(out: MetricRows, { labels, value, timeMs }: PromExemplar): void {
    const { exemplar } = out
    exemplar.clear()
    const rest: string[] = []
    for (let i = 0; i < labels.length; i += 2) {
      const [key, text] = [labels[i] ?? '', labels[i + 1] ?? '']
      if (key === 'trace_id' && /^[0-9a-f]{32}$/i.test(text)) exemplar.traceId.setHex(text, 16)
      else if (key === 'span_id' && /^[0-9a-f]{16}$/i.test(text)) exemplar.spanId.setHex(text, 8)
      else rest.push(key, text)
    }
    this.#addAll(exemplar.attributes, rest, out)
    out.rows.noteManyAttributes(rest.length / 2)
    exemplar.value = value
    setMs(exemplar.time, timeMs)
    out.addExemplar()
  }

  #addHistograms(series: TimeSeries, labels: SeriesLabels): void {
    const out = this.#histograms
    this.#begin(out, series, labels)
    out.metric.temporality = cumulative
    const isGauge = series.metadata.type === metricTypes.gaugeHistogram
    for (const histogram of series.histograms) {
      histogram.isGauge ||= isGauge
      this.#addHistogram(out, histogram, labels)
    }
  }

  #addHistogram(out: MetricRows, histogram: NativeHistogram, { attributes }: SeriesLabels): void {
    const kind = histogram.schema === customSchema ? 'histogram' : 'exponentialHistogram'
    const { point } = out
    point.clear(kind)
    this.#addAll(point.attributes, attributes, out)
    setMs(point.time, histogram.timeMs)
    setMs(point.startTime, histogram.startMs)
    if (histogram.isStale) point.flags = noRecordedValue
    else {
      const unfit = fillHistogram(point, histogram)
      if (unfit !== null) out.rows.note(unfit)
    }
    out.addPoint(kind)
  }

  /**
   * Sets resource, scope and metric for the next rows of the series. Returns the kind of its float samples.
   */
  #begin(out: MetricRows, { metadata }: TimeSeries, labels: SeriesLabels): 'gauge' | 'sum' {
    const { rows, metric } = out
    this.#beginSource(out, labels.source)
    metric.clear()
    const kind = kindOfSeries(labels.name, metadata.type)
    metric.name.setText(labels.name)
    metric.description.setText(metadata.help)
    metric.unit.setText(unitOf(metadata.unit))
    metric.temporality = kind === 'gauge' ? 0 : cumulative
    metric.isMonotonic = kind === 'counter'
    if (labels.isBroken) rows.note(fault.labels)
    rows.noteManyAttributes(labels.count)
    out.finishMetric()
    return kind === 'gauge' ? 'gauge' : 'sum'
  }

  #beginSource(out: MetricRows, source: Readonly<Source>): void {
    const last = this.#sources.get(out)
    if (last !== undefined && isSameSource(last, source)) return
    this.#sources.set(out, source)
    const { rows } = out
    rows.resource.clear()
    this.#addAll(rows.resource.attributes, resourceOf(source), out)
    rows.finishResource()
    rows.scope.clear()
    rows.scope.name.setText(source.scopeName)
    rows.scope.version.setText(source.scopeVersion)
    rows.finishScope()
  }

  #addAll(into: MapCell, pairs: Pairs, { rows }: MetricRows): void {
    rows.bytes.addCopied(lengthOf(pairs))
    for (let i = 0; i < pairs.length; i += 2) {
      this.#key.setText(pairs[i] ?? '')
      this.#value.setText(pairs[i + 1] ?? '')
      rows.noteLongAttribute(this.#key, this.#value)
      into.add(this.#key, this.#value, rows.body)
    }
  }
}

/** Returns the length of all texts together, in units of UTF-16. */
function lengthOf(pairs: Pairs): number {
  return pairs.reduce((sum, text) => sum + text.length, 0)
}

function takeApart(pairs: Pairs): SeriesLabels {
  const source = { job: '', instance: '', scopeName: '', scopeVersion: '' }
  const attributes: string[] = []
  let name = ''
  for (let i = 0; i < pairs.length; i += 2) {
    const [key, value] = [pairs[i] ?? '', pairs[i + 1] ?? '']
    const own = sourceLabels.get(key)
    if (own !== undefined) source[own] = value
    else if (key === '__name__') name = value
    // In Prometheus an empty label is the same as no label.
    else if (value !== '') attributes.push(key, value)
  }
  return { name, source, attributes, count: pairs.length / 2, isBroken: isBroken(pairs) }
}

/**
 * Whether a label has no name, or two have the same name. The protocol requires sorted labels, for which this
 * is a quick check.
 */
function isBroken(pairs: Pairs): boolean {
  let last = ''
  for (let i = 0; i < pairs.length; i += 2) {
    const key = pairs[i] ?? ''
    if (key <= last) return isBrokenUnsorted(pairs)
    last = key
  }
  return false
}

function isBrokenUnsorted(pairs: Pairs): boolean {
  const keys = pairs.filter((_, i) => i % 2 === 0)
  return keys.includes('') || new Set(keys).size < keys.length
}

/** Labels that name the source of a series. */
const sourceLabels = new Map<string, keyof Source>([
  ['job', 'job'],
  ['instance', 'instance'],
  ['otel_scope_name', 'scopeName'],
  ['otel_scope_version', 'scopeVersion'],
])

function isSameSource(a: Readonly<Source>, b: Readonly<Source>): boolean {
  return (
    a.instance === b.instance &&
    a.job === b.job &&
    a.scopeName === b.scopeName &&
    a.scopeVersion === b.scopeVersion
  )
}

/** `job` is the service, with its namespace before a slash; `instance` identifies one instance of it. */
function resourceOf({ job, instance }: Readonly<Source>): Pairs {
  const [, namespace = '', service = job] = /^([^/]+)\/([^/]+)$/.exec(job) ?? []
  const named = { 'service.namespace': namespace, 'service.name': service, 'service.instance.id': instance }
  return Object.entries(named).flatMap(([key, value]) => (value === '' ? [] : [key, value]))
}

/**
 * Converts milliseconds to nanoseconds, exactly; a time that no table can store becomes the largest one,
 * which the collector refuses.
 */
function setMs(into: Uint64, ms: number): void {
  if (ms < 0 || ms >= 2 ** 43) {
    into.hi = twoTo32 - 1
    into.lo = twoTo32 - 1
    return
  }
  const lower = (ms % twoTo32) * 1_000_000
  into.hi = Math.floor(ms / twoTo32) * 1_000_000 + Math.floor(lower / twoTo32)
  into.lo = lower % twoTo32
}
