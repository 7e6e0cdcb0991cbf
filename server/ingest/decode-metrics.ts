// OTLP metrics in both encodings: which reader, which names. The readers are in metrics-proto.ts and
// metrics-json.ts, what a row holds in metric-rows.ts.

import { MetricRows } from './metric-rows.ts'
import { MetricJson } from './metrics-json.ts'
import { MetricProto } from './metrics-proto.ts'
import { Place } from './otlp-decode-error.ts'
import { JsonReader, type OuterNames, parseJson, readJsonRequest } from './otlp-json.ts'
import { ProtoReader, readProtoRequest } from './otlp-proto.ts'
import { type DecodedExport, RowCollector } from './row-collector.ts'

const names: OuterNames = {
  resources: ['resourceMetrics', 'resource_metrics'],
  scopes: ['scopeMetrics', 'scope_metrics'],
  records: ['metrics', 'metrics'],
}

function createCollector(): RowCollector {
  return new RowCollector(new Place([names.resources[0], names.scopes[0], names.records[0]]), 'point')
}

/**
 * Reads an `ExportMetricsServiceRequest`.
 *
 * @throws OtlpDecodeError
 */
export function decodeMetricsProto(body: Buffer): DecodedExport {
  const rows = createCollector()
  const metrics = new MetricProto(new ProtoReader(body, rows), new MetricRows(rows))
  readProtoRequest(metrics.reader, metrics)
  return rows.finish()
}

/**
 * Reads an `ExportMetricsServiceRequest`.
 *
 * @throws OtlpDecodeError
 */
export function decodeMetricsJson(body: Buffer): DecodedExport {
  const rows = createCollector()
  const metrics = new MetricJson(new JsonReader(rows), new MetricRows(rows))
  readJsonRequest(metrics.reader, parseJson(body), names, metrics)
  return rows.finish()
}
