// Sending telemetry: OTLP/HTTP and Prometheus remote write. The protocols define the bodies and the refusals;
// success means that the engine has committed.

import { z } from 'zod'
import { exportExamples } from '../examples/ingest.ts'
import { type Operation, operation } from '../operation.ts'
import { senders } from '../role.ts'
import { ExportResult, RpcStatus } from '../telemetry/ingest.ts'

const otlpTypes = ['application/x-protobuf', 'application/json']

function otlpExport(id: string, signal: 'metrics' | 'logs' | 'traces', request: string): Operation {
  return operation({
    id,
    method: 'POST',
    path: `/v1/${signal}`,
    access: senders,
    takesBasic: true,
    tag: 'Ingest',
    summary: `OTLP/HTTP export of ${signal}`,
    description:
      'Body: the OTLP export request as application/x-protobuf or application/json, optionally with Content-Encoding gzip. ' +
      '200 means committed; rejected records are counted in partial_success. Retry a 503 or 429 after Retry-After. ' +
      'A refusal is a google.rpc.Status in the encoding of the request. A 400 names the location of the error; do not retry it.',
    protocol: 'OTLP/HTTP',
    body: z.unknown().describe(`An OTLP ${request}.`),
    bodyExample: exportExamples[signal],
    bodyTypes: otlpTypes,
    results: {
      200: {
        meaning: 'Committed. An ExportServiceResponse; rejected records are in partial_success.',
        body: ExportResult,
        example: {},
        types: otlpTypes,
      },
    },
    refusals: ['quota_exceeded', 'erasing'],
    refusalForm: { types: otlpTypes, body: RpcStatus },
  })
}

export const ingestOperations = {
  metrics: otlpExport('exportMetrics', 'metrics', 'ExportMetricsServiceRequest'),
  logs: otlpExport('exportLogs', 'logs', 'ExportLogsServiceRequest'),
  traces: otlpExport('exportTraces', 'traces', 'ExportTraceServiceRequest'),
  remoteWrite: operation({
    id: 'remoteWrite',
    method: 'POST',
    path: '/api/v1/write',
    access: senders,
    takesBasic: true,
    tag: 'Ingest',
    summary: 'Prometheus remote write, 1.0 and 2.0',
    description:
      'Body: `prometheus.WriteRequest`, or `io.prometheus.write.v2.Request` with `proto=` in the content type, compressed with Snappy (block format), with or without Content-Encoding. ' +
      '204 means committed. X-Prometheus-Remote-Write-Samples-Written, -Histograms-Written and -Exemplars-Written count what was stored, also beside a 400.',
    protocol: 'Prometheus remote write',
    body: z.unknown().describe('A remote write request.'),
    bodyTypes: ['application/x-protobuf'],
    results: {
      204: {
        meaning: 'Everything is committed.',
        body: z.undefined(),
        headers: [
          'x-prometheus-remote-write-samples-written',
          'x-prometheus-remote-write-histograms-written',
          'x-prometheus-remote-write-exemplars-written',
        ],
      },
    },
    refusals: ['partial_write', 'quota_exceeded', 'erasing'],
  }),
} as const
