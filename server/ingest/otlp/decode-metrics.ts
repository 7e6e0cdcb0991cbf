// OTLP metrics in both encodings: the reader and the names of each. The readers are in metrics-proto.ts and
// metrics-json.ts, the content of rows is in metric-rows.ts.

import { MetricRows } from '../rows/metric-rows.ts'
import { type DecodedExport, RowCollector, type RowOrigin, type SignalShape } from '../rows/row-collector.ts'
import { JsonReader, type OuterNames, parseJson, readJsonRequest } from './json-reader.ts'
import { MetricJson } from './metrics-json.ts'
import { MetricProto } from './metrics-proto.ts'
import { ProtoReader } from './proto-reader.ts'
import { readProtoRequest } from './proto-request.ts'

const names: OuterNames = {
  resources: ['resourceMetrics', 'resource_metrics'],
  scopes: ['scopeMetrics', 'scope_metrics'],
  records: ['metrics', 'metrics'],
}

const shape: SignalShape = {
  signal: 'metrics',
  names: [names.resources[0], names.scopes[0], names.records[0]],
  noun: 'point',
}

/**
 * Reads an `ExportMetricsServiceRequest`.
 *
 * @throws OtlpDecodeError
 */
export function decodeMetricsProto(origin: RowOrigin): DecodedExport {
  const rows = new RowCollector(shape, origin)
  const metrics = new MetricProto(new ProtoReader(origin.body, rows), new MetricRows(rows))
  readProtoRequest(metrics.reader, metrics)
  return rows.finish()
}

/**
 * Reads an `ExportMetricsServiceRequest`.
 *
 * @throws OtlpDecodeError
 */
export function decodeMetricsJson(origin: RowOrigin): DecodedExport {
  const rows = new RowCollector(shape, origin)
  const metrics = new MetricJson(new JsonReader(rows), new MetricRows(rows))
  readJsonRequest(metrics.reader, parseJson(origin.body), names, metrics)
  return rows.finish()
}
