// Reads telemetry over HTTP, for people and tokens of the organisation, never for ingest tokens.

import type { FastifyInstance } from 'fastify'
import { telemetryOperations } from '../../contract/operations/telemetry.ts'
import { parseInstant } from '../../contract/values/instant.ts'
import type { Caller } from '../core/caller.ts'
import type { Clock } from '../core/clock.ts'
import { allTime } from '../core/time-range.ts'
import { serve } from '../http/serve.ts'
import type { Coverage } from '../telemetry/gate.ts'
import type { Signal } from '../telemetry/schema/tables.ts'
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
  const answer = async <T>(caller: Caller, read: Read<T>, coverageOf?: (body: T) => Coverage) => {
    const [reader, nowNs, own] = [readerOf(caller), clock.nowNs(), timed(limits, clock)]
    const found = await reader.answer(() => read(reader, nowNs, own), coverageOf && { coverageOf })
    return { ...found, isRepeatable: true }
  }

  serve(http, telemetryOperations.series, {
    handle: ({ caller, query }) =>
      answer(caller, (reader, ...given) => answerSeries(reader, query, ...given)),
  })
  serve(http, telemetryOperations.logs, {
    handle: ({ caller, query }) =>
      answer(
        caller,
        (reader, ...given) => listLogs(reader, query, ...given),
        ({ items }) => timesOf('logs', items),
      ),
  })
  serve(http, telemetryOperations.logCounts, {
    handle: ({ caller, query }) => answer(caller, (reader, ...given) => countLogs(reader, query, ...given)),
  })
  serve(http, telemetryOperations.spans, {
    handle: ({ caller, query }) =>
      answer(
        caller,
        (reader, ...given) => listSpans(reader, query, ...given),
        ({ items }) => timesOf('traces', items),
      ),
  })
  serve(http, telemetryOperations.trace, {
    handle: ({ caller, params, query }) =>
      answer(
        caller,
        (reader, _, own) => readTrace(reader, params.trace_id, query, own),
        ({ spans }) => timesOf('traces', spans),
      ),
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

/** The coverage of a page of rows in the order of time, either way: its rows, and nothing beside them. */
function timesOf(signal: Signal, items: readonly { readonly time: string }[]): Coverage {
  const [first, last] = [items[0], items.at(-1)].map((item) => (item ? parseInstant(item.time) : null))
  if (!first || !last) return { signals: [], range: allTime }
  if (!('ns' in first && 'ns' in last)) return { signals: [signal], range: allTime }
  const [startNs, lastNs] = first.ns < last.ns ? [first.ns, last.ns] : [last.ns, first.ns]
  return { signals: [signal], range: { startNs, endNs: lastNs + 1n } }
}

/** Returns the limits for a request that begins now. */
function timed(limits: ReadLimits, clock: Clock): ReadLimits {
  const begunMs = clock.elapsedMs()
  return { ...limits, elapsedMs: () => clock.elapsedMs() - begunMs }
}
