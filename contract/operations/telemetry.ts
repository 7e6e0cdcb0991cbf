// Reading telemetry, for people and tokens of the organisation. Tokens that only send telemetry cannot read
// it.

import { operation } from '../operation.ts'
import {
  CatalogueQuery,
  LogPage,
  LogQuery,
  MetricPage,
  SeriesAnswer,
  SeriesQuery,
  ServicePage,
  SpanPage,
  SpanQuery,
  Trace,
  TraceParams,
  TraceQuery,
} from '../telemetry.ts'
import { readers } from '../tenancy.ts'

const shared = { method: 'GET', access: readers, tag: 'Telemetry' } as const

export const telemetryOperations = {
  series: operation({
    ...shared,
    id: 'getTelemetrySeries',
    path: '/telemetry/series',
    summary: 'A metric or a built-in series over time, a point per step',
    query: SeriesQuery,
    results: { 200: { body: SeriesAnswer } },
    refusals: ['query_too_expensive'],
  }),
  logs: operation({
    ...shared,
    id: 'getTelemetryLogs',
    path: '/telemetry/logs',
    summary: 'Log records, newest first',
    query: LogQuery,
    results: { 200: { body: LogPage } },
    refusals: ['query_too_expensive'],
  }),
  spans: operation({
    ...shared,
    id: 'getTelemetrySpans',
    path: '/telemetry/spans',
    summary: 'Spans, newest first',
    query: SpanQuery,
    results: { 200: { body: SpanPage } },
    refusals: ['query_too_expensive'],
  }),
  trace: operation({
    ...shared,
    id: 'getTelemetryTracesByTraceId',
    path: '/telemetry/traces/:trace_id',
    summary: 'The spans of one trace by start time',
    params: TraceParams,
    query: TraceQuery,
    results: { 200: { body: Trace } },
    refusals: ['not_found', 'query_too_expensive'],
  }),
  services: operation({
    ...shared,
    id: 'getTelemetryServices',
    path: '/telemetry/services',
    summary: 'Services with telemetry in a time range, by name',
    query: CatalogueQuery,
    results: { 200: { body: ServicePage } },
    refusals: ['query_too_expensive'],
  }),
  metrics: operation({
    ...shared,
    id: 'getTelemetryMetrics',
    path: '/telemetry/metrics',
    summary: 'Metric names with points in a time range, by name',
    query: CatalogueQuery,
    results: { 200: { body: MetricPage } },
    refusals: ['query_too_expensive'],
  }),
} as const
