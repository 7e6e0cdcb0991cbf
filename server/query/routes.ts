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

/** Reads for one request. */
type Read<T> = (reader: TenantReader, nowNs: bigint, limits: ReadLimits) => Promise<T>

export function addQueryRoutes(
  http: FastifyInstance,
  readerOf: (caller: Caller) => TenantReader,
  clock: Clock,
  limits: ReadLimits = interactiveLimits,
): void {
  const answer = <T>(caller: Caller, read: Read<T>) => {
    const [reader, nowNs, own] = [readerOf(caller), clock.nowNs(), timed(limits, clock)]
    return reader.answer(() => read(reader, nowNs, own))
  }

  serve(http, telemetryOperations.series, {
    handle: ({ caller, query }) =>
      answer(caller, (reader, ...given) => answerSeries(reader, query, ...given)),
  })
  serve(http, telemetryOperations.logs, {
    handle: ({ caller, query }) => answer(caller, (reader, ...given) => listLogs(reader, query, ...given)),
  })
  serve(http, telemetryOperations.logCounts, {
    handle: ({ caller, query }) => answer(caller, (reader, ...given) => countLogs(reader, query, ...given)),
  })
  serve(http, telemetryOperations.spans, {
    handle: ({ caller, query }) => answer(caller, (reader, ...given) => listSpans(reader, query, ...given)),
  })
  serve(http, telemetryOperations.trace, {
    handle: ({ caller, params, query }) =>
      answer(caller, (reader, _, own) => readTrace(reader, params.trace_id, query, own)),
  })
  serve(http, telemetryOperations.services, {
    handle: ({ caller, query }) =>
      answer(caller, (reader, ...given) => listServices(reader, query, ...given)),
  })
  serve(http, telemetryOperations.metrics, {
    handle: ({ caller, query }) => answer(caller, (reader, ...given) => listMetrics(reader, query, ...given)),
  })
  serve(http, telemetryOperations.attributes, {
    handle: ({ caller, query }) =>
      answer(caller, (reader, ...given) => listAttributes(reader, query, ...given)),
  })
  serve(http, telemetryOperations.deploys, {
    handle: ({ caller, query }) => answer(caller, (reader, ...given) => listDeploys(reader, query, ...given)),
  })
}

/** Returns the limits for a request that begins now. */
function timed(limits: ReadLimits, clock: Clock): ReadLimits {
  const begunMs = clock.elapsedMs()
  return { ...limits, elapsedMs: () => clock.elapsedMs() - begunMs }
}
