// A Prometheus remote write request, uncompressed, becomes rows of the metric tables; docs/prometheus.md has the whole
// mapping. Each sample is a row of its own, also those of classic histograms and summaries, whose series may come in
// different requests. The three kinds of record are counted apart, because the protocol's answer does so. An exemplar
// is a row without a value beside its series: Prometheus sends it apart from the samples, often in another request.

import type { AttributeMap } from '../telemetry/rows.ts'
import { createAttributeMap } from './attributes.ts'
import { MetricRows, noRecordedValue } from './metric-rows.ts'
import { customSchema, fillHistogram } from './native-histogram.ts'
import { Place } from './otlp-decode-error.ts'
import { kindOfSeries, metricTypes, unitOf } from './prometheus-names.ts'
import { fault } from './record-fault.ts'
import {
  type NativeHistogram,
  type PromExemplar,
  type RemoteWriteVersion,
  readRemoteWrite,
  type Sample,
  type Series,
} from './remote-write-wire.ts'
import { type DecodedExport, RowCollector } from './row-collector.ts'
import type { Uint64 } from './uint64.ts'

/** OTLP's number for a count since a start. */
const cumulative = 2

const twoTo32 = 4_294_967_296

/** Samples, native histograms and exemplars, in this order. */
export type RemoteWriteParts = readonly [DecodedExport, DecodedExport, DecodedExport]

/** Throws `bad_request` where the body as a whole can't be read; nothing of it may then be stored. */
export function decodeRemoteWrite(version: RemoteWriteVersion, body: Buffer): RemoteWriteParts {
  const reader = new SeriesRows()
  readRemoteWrite(version, body, (series) => reader.add(series))
  return reader.finish()
}

/** What the labels of a series say, taken apart. */
interface SeriesLabels {
  name: string
  scopeName: string
  scopeVersion: string
  resource: AttributeMap
  attributes: AttributeMap
  readonly count: number
  isBroken: boolean
}

class SeriesRows {
  readonly #place = new Place(['timeseries', '', ''])
  readonly #samples = new MetricRows(new RowCollector(this.#place, 'sample'))
  readonly #histograms = new MetricRows(new RowCollector(this.#place, 'histogram'))
  readonly #exemplars = new MetricRows(new RowCollector(this.#place, 'exemplar'))
  /** One map for all rows of a resource, as row-collector.ts promises. */
  readonly #resources = new Map<string, AttributeMap>()

  add(series: Series): void {
    this.#place.resource++
    const labels = this.#takeApart(series.labels)
    if (series.samples.length > 0) this.#addSamples(series, labels)
    if (series.histograms.length > 0) this.#addHistograms(series, labels)
    if (series.exemplars.length > 0) this.#addExemplars(series, labels)
  }

  finish(): RemoteWriteParts {
    return [this.#samples.rows.finish(), this.#histograms.rows.finish(), this.#exemplars.rows.finish()]
  }

  #addSamples(series: Series, labels: SeriesLabels): void {
    const out = this.#samples
    const kind = this.#begin(out, series, labels)
    for (const sample of series.samples) this.#addSample(out, kind, sample, labels)
  }

  #addSample(out: MetricRows, kind: 'gauge' | 'sum', sample: Sample, { attributes }: SeriesLabels): void {
    const { point } = out
    point.clear(kind)
    point.attributes = attributes
    setMs(point.time, sample.timeMs)
    setMs(point.startTime, sample.startMs)
    point.flags = sample.isStale ? noRecordedValue : 0
    point.value = sample.value
    point.hasValue = true
    out.addPoint(kind)
  }

  #addExemplars(series: Series, labels: SeriesLabels): void {
    const out = this.#exemplars
    const kind = this.#begin(out, series, labels)
    for (const exemplar of series.exemplars) {
      const { point } = out
      point.clear(kind)
      point.attributes = labels.attributes
      setMs(point.time, exemplar.timeMs)
      point.flags = noRecordedValue
      this.#fillExemplar(out, exemplar)
      out.addPoint(kind)
    }
  }

  #fillExemplar(out: MetricRows, { labels, value, timeMs }: PromExemplar): void {
    const exemplar = out.startExemplar()
    const attributes = createAttributeMap()
    for (let i = 0; i < labels.length; i += 2) {
      const [key, text] = [labels[i] ?? '', labels[i + 1] ?? '']
      if (key === 'trace_id' && /^[0-9a-f]{32}$/i.test(text)) exemplar.traceId = text.toLowerCase()
      else if (key === 'span_id' && /^[0-9a-f]{16}$/i.test(text)) exemplar.spanId = text.toLowerCase()
      else {
        out.rows.noteLongAttribute(key, text)
        attributes[key] = text
      }
    }
    out.rows.noteManyAttributes(labels.length / 2)
    exemplar.attributes = attributes
    exemplar.value = value
    setMs(exemplar.time, timeMs)
    out.addExemplar()
  }

  #addHistograms(series: Series, labels: SeriesLabels): void {
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
    point.attributes = attributes
    setMs(point.time, histogram.timeMs)
    setMs(point.startTime, histogram.startMs)
    if (histogram.isStale) point.flags = noRecordedValue
    else {
      const unfit = fillHistogram(point, histogram)
      if (unfit !== null) out.rows.note(unfit)
    }
    out.addPoint(kind)
  }

  /** Sets resource, scope and metric for the series' next rows. Answers the kind of its float samples. */
  #begin(out: MetricRows, { metadata }: Series, labels: SeriesLabels): 'gauge' | 'sum' {
    const { rows, metric } = out
    rows.startResource()
    rows.resource.attributes = labels.resource
    rows.finishResource()
    rows.startScope()
    rows.scope.name = labels.scopeName
    rows.scope.version = labels.scopeVersion
    rows.finishScope()
    out.startMetric()
    const kind = kindOfSeries(labels.name, metadata.type)
    metric.name = labels.name
    metric.description = metadata.help
    metric.unit = unitOf(metadata.unit)
    metric.temporality = kind === 'gauge' ? 0 : cumulative
    metric.isMonotonic = kind === 'counter'
    if (labels.isBroken) rows.note(fault.labels)
    rows.noteManyAttributes(labels.count)
    for (const map of [labels.attributes, labels.resource]) {
      for (const key in map) rows.noteLongAttribute(key, map[key] ?? '')
    }
    out.finishMetric()
    return kind === 'gauge' ? 'gauge' : 'sum'
  }

  #takeApart(pairs: readonly string[]): SeriesLabels {
    const attributes = createAttributeMap()
    const labels = {
      name: '',
      scopeName: '',
      scopeVersion: '',
      resource: attributes,
      attributes,
      count: pairs.length / 2,
      isBroken: false,
    }
    const seen = new Set<string>()
    let [job, instance] = ['', '']
    for (let i = 0; i < pairs.length; i += 2) {
      const [key, value] = [pairs[i] ?? '', pairs[i + 1] ?? '']
      if (key === '' || seen.has(key)) labels.isBroken = true
      seen.add(key)
      if (key === '__name__') labels.name = value
      else if (key === 'job') job = value
      else if (key === 'instance') instance = value
      else if (key === 'otel_scope_name') labels.scopeName = value
      else if (key === 'otel_scope_version') labels.scopeVersion = value
      // To Prometheus an empty label is none.
      else if (value !== '') attributes[key] = value
    }
    labels.resource = this.#resourceOf(job, instance)
    return labels
  }

  /** `job` is the service, with its namespace before a slash; `instance` is which one of it. */
  #resourceOf(job: string, instance: string): AttributeMap {
    const key = JSON.stringify([job, instance])
    const known = this.#resources.get(key)
    if (known !== undefined) return known
    const resource = createAttributeMap()
    const [, namespace, service = job] = /^([^/]+)\/([^/]+)$/.exec(job) ?? []
    if (namespace !== undefined) resource['service.namespace'] = namespace
    if (service !== '') resource['service.name'] = service
    if (instance !== '') resource['service.instance.id'] = instance
    this.#resources.set(key, resource)
    return resource
  }
}

/** Milliseconds as nanoseconds, exact; what no table holds becomes the largest time, which the collector refuses. */
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
