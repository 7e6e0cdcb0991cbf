// Reads telemetry over HTTP, for people and tokens of the organisation, never for ingest tokens.

import type { FastifyInstance } from 'fastify'
import { telemetryOperations } from '../../contract/operations/telemetry.ts'
import type { Caller } from '../core/caller.ts'
import type { Clock } from '../core/clock.ts'
import { serve } from '../http/serve.ts'
import type { TenantReader } from '../telemetry/tenant-reader.ts'
import { listAttributes } from './attribute-names.ts'
import { listMetrics, listServices } from './catalogue.ts'
import { listDeploys } from './deploys.ts'
import { countLogs } from './log-counts.ts'
import { listLogs } from './logs.ts'
import { interactiveLimits, type ReadLimits } from './search.ts'
import { answerSeries } from './series-answer.ts'
import { listSpans, readTrace } from './traces.ts'

export function addQueryRoutes(
  http: FastifyInstance,
  readerOf: (caller: Caller) => TenantReader,
  clock: Clock,
  limits: ReadLimits = interactiveLimits,
): void {
  serve(http, telemetryOperations.series, {
    handle: async ({ caller, query }) => ({
      body: await answerSeries(readerOf(caller), query, clock.nowNs(), limits),
    }),
  })

  serve(http, telemetryOperations.logs, {
    handle: async ({ caller, query }) => ({
      body: await listLogs(readerOf(caller), query, clock.nowNs(), timed(limits, clock)),
    }),
  })

  serve(http, telemetryOperations.logCounts, {
    handle: async ({ caller, query }) => ({
      body: await countLogs(readerOf(caller), query, clock.nowNs(), limits),
    }),
  })

  serve(http, telemetryOperations.spans, {
    handle: async ({ caller, query }) => ({
      body: await listSpans(readerOf(caller), query, clock.nowNs(), timed(limits, clock)),
    }),
  })

  serve(http, telemetryOperations.trace, {
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
  serve(http, telemetryOperations.services, {
    handle: async ({ caller, query }) => ({
      body: await listServices(readerOf(caller), query, clock.nowNs(), limits),
    }),
  })

  serve(http, telemetryOperations.metrics, {
    handle: async ({ caller, query }) => ({
      body: await listMetrics(readerOf(caller), query, clock.nowNs(), limits),
    }),
  })

  serve(http, telemetryOperations.attributes, {
    handle: async ({ caller, query }) => ({
      body: await listAttributes(readerOf(caller), query, clock.nowNs(), limits),
    }),
  })

  serve(http, telemetryOperations.deploys, {
    handle: async ({ caller, query }) => ({
      body: await listDeploys(readerOf(caller), query, clock.nowNs(), limits),
    }),
  })
}

/** Returns the limits for a request that begins now. */
function timed(limits: ReadLimits, clock: Clock): ReadLimits {
  const begunMs = clock.elapsedMs()
  return { ...limits, elapsedMs: () => clock.elapsedMs() - begunMs }
}
