// Reading telemetry over HTTP, for people and tokens of the organisation, never for ingest tokens.

import type { FastifyInstance } from 'fastify'
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
} from '../../contract/telemetry.ts'
import type { Caller } from '../core/caller.ts'
import type { Clock } from '../core/clock.ts'
import { route } from '../http/route.ts'
import type { TenantReader } from '../telemetry/tenant-reader.ts'
import { listMetrics, listServices } from './catalogue.ts'
import { listLogs } from './logs.ts'
import { interactiveLimits, type ReadLimits } from './search.ts'
import { answerSeries } from './series-answer.ts'
import { listSpans, readTrace } from './traces.ts'

const access = ['owner', 'admin', 'member', 'viewer'] as const
const tag = 'Telemetry'

export function addQueryRoutes(
  http: FastifyInstance,
  readerOf: (caller: Caller) => TenantReader,
  clock: Clock,
  limits: ReadLimits = interactiveLimits,
): void {
  route(http, {
    method: 'GET',
    url: '/telemetry/series',
    access,
    tag,
    summary: 'A metric or a built-in series over time, a point per step',
    query: SeriesQuery,
    result: SeriesAnswer,
    handle: async ({ caller, query }) => ({
      body: await answerSeries(readerOf(caller), query, clock.nowNs(), limits),
    }),
  })

  route(http, {
    method: 'GET',
    url: '/telemetry/logs',
    access,
    tag,
    summary: 'Log records, newest first',
    query: LogQuery,
    result: LogPage,
    handle: async ({ caller, query }) => ({
      body: await listLogs(readerOf(caller), query, clock.nowNs(), timed(limits, clock)),
    }),
  })

  route(http, {
    method: 'GET',
    url: '/telemetry/spans',
    access,
    tag,
    summary: 'Spans, newest first',
    query: SpanQuery,
    result: SpanPage,
    handle: async ({ caller, query }) => ({
      body: await listSpans(readerOf(caller), query, clock.nowNs(), timed(limits, clock)),
    }),
  })

  route(http, {
    method: 'GET',
    url: '/telemetry/traces/:trace_id',
    access,
    tag,
    summary: 'The spans of one trace by start time',
    params: TraceParams,
    query: TraceQuery,
    result: Trace,
    refusals: [404],
    handle: async ({ caller, params, query }) => ({
      body: await readTrace(readerOf(caller), params.trace_id, query, timed(limits, clock)),
    }),
  })
  addCatalogueRoutes(http, readerOf, clock, limits)
}

function addCatalogueRoutes(
  http: FastifyInstance,
  readerOf: (caller: Caller) => TenantReader,
  clock: Clock,
  limits: ReadLimits,
): void {
  route(http, {
    method: 'GET',
    url: '/telemetry/services',
    access,
    tag,
    summary: 'Services with telemetry in a time range, by name',
    query: CatalogueQuery,
    result: ServicePage,
    handle: async ({ caller, query }) => ({
      body: await listServices(readerOf(caller), query, clock.nowNs(), limits),
    }),
  })

  route(http, {
    method: 'GET',
    url: '/telemetry/metrics',
    access,
    tag,
    summary: 'Metric names with points in a time range, by name',
    query: CatalogueQuery,
    result: MetricPage,
    handle: async ({ caller, query }) => ({
      body: await listMetrics(readerOf(caller), query, clock.nowNs(), limits),
    }),
  })
}

/** The limits of a request that begins now. */
function timed(limits: ReadLimits, clock: Clock): ReadLimits {
  const begunMs = clock.steady().ms
  return { ...limits, elapsedMs: () => clock.steady().ms - begunMs }
}
