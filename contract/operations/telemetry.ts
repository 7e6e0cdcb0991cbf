// Reading telemetry, for people and tokens of the organisation. Tokens that only send telemetry cannot read
// it.

import {
  attributeNamesExample,
  deployPageExample,
  logCountsExample,
  logPageExample,
  metricPageExample,
  seriesExample,
  servicePageExample,
  spanPageExample,
  traceExample,
} from '../examples/telemetry.ts'
import { operation } from '../operation.ts'
import { readers } from '../role.ts'
import { DeployPage, DeployQuery } from '../telemetry/deploys.ts'
import {
  AttributeNames,
  AttributeQuery,
  CatalogueQuery,
  LogCountQuery,
  LogCounts,
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
} from '../telemetry/queries.ts'

const shared = { method: 'GET', access: readers, tag: 'Telemetry' } as const

export const telemetryOperations = {
  series: operation({
    ...shared,
    id: 'getTelemetrySeries',
    path: '/telemetry/series',
    summary: 'A metric or a built-in series over time, a point per step',
    query: SeriesQuery,
    results: { 200: { body: SeriesAnswer, example: seriesExample } },
    refusals: ['query_too_expensive', 'erasing'],
  }),
  logs: operation({
    ...shared,
    id: 'getTelemetryLogs',
    path: '/telemetry/logs',
    summary: 'Log records in the order of time, newest first where nothing else is asked for',
    query: LogQuery,
    results: { 200: { body: LogPage, example: logPageExample } },
    refusals: ['query_too_expensive', 'erasing'],
  }),
  logCounts: operation({
    ...shared,
    id: 'getTelemetryLogsCounts',
    path: '/telemetry/logs/counts',
    summary: 'How many log records match, by severity and time',
    query: LogCountQuery,
    results: { 200: { body: LogCounts, example: logCountsExample } },
    refusals: ['query_too_expensive', 'erasing'],
  }),
  spans: operation({
    ...shared,
    id: 'getTelemetrySpans',
    path: '/telemetry/spans',
    summary: 'Spans, newest first',
    query: SpanQuery,
    results: { 200: { body: SpanPage, example: spanPageExample } },
    refusals: ['query_too_expensive', 'erasing'],
  }),
  trace: operation({
    ...shared,
    id: 'getTelemetryTracesByTraceId',
    path: '/telemetry/traces/:trace_id',
    summary: 'The spans of one trace by start time',
    params: TraceParams,
    query: TraceQuery,
    results: { 200: { body: Trace, example: traceExample } },
    refusals: ['not_found', 'query_too_expensive', 'erasing'],
  }),
  services: operation({
    ...shared,
    id: 'getTelemetryServices',
    path: '/telemetry/services',
    summary: 'Services with telemetry in a time range, by name',
    query: CatalogueQuery,
    results: { 200: { body: ServicePage, example: servicePageExample } },
    refusals: ['query_too_expensive', 'erasing'],
  }),
  metrics: operation({
    ...shared,
    id: 'getTelemetryMetrics',
    path: '/telemetry/metrics',
    summary: 'Metric names with points in a time range, by name',
    query: CatalogueQuery,
    results: { 200: { body: MetricPage, example: metricPageExample } },
    refusals: ['query_too_expensive', 'erasing'],
  }),
  attributes: operation({
    ...shared,
    id: 'getTelemetryAttributes',
    path: '/telemetry/attributes',
    summary: 'Names of attributes, or values of one of them, in the newest rows of a time range',
    query: AttributeQuery,
    results: { 200: { body: AttributeNames, example: attributeNamesExample } },
    refusals: ['query_too_expensive', 'erasing'],
  }),
  deploys: operation({
    ...shared,
    id: 'getTelemetryDeploys',
    path: '/telemetry/deploys',
    summary: 'When services were deployed, newest first',
    description:
      'A deploy is the time from which the telemetry of a service has another `service.version` than just before, in one `deployment.environment.name`. Several versions at once, as in a rolling deploy, are one deploy; going back to an older version is also one. A log event named `deployment` is a deploy as well: it has `service.name`, `service.version` and `deployment.environment.name` in its attributes, or else in its resource. An event with the `deployment.status` `failed` is not a deploy. The previous version is read from the six hours before the range. Computed from the telemetry on request and not stored.',
    query: DeployQuery,
    results: { 200: { body: DeployPage, example: deployPageExample } },
    refusals: ['query_too_expensive', 'erasing'],
  }),
} as const
