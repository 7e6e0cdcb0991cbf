// What the spans of an incident show, compared with the time before it: which service calls which, where
// failures begin, where time is spent, and which calls get no answer. Spans are read like all telemetry, so
// nothing that is hidden or erased is shown.
// The work is limited: a fixed share of many traces is read, chosen by a hash of their id, so that each trace
// is complete and the choice is the same each time.

import { longestName } from '../../../contract/telemetry/queries.ts'
import { type Ns, nsPerMinute } from '../../../contract/values/instant.ts'
import { pairIn } from '../../telemetry/attribute.ts'
import { isTooExpensive, type StatementLimits } from '../../telemetry/engine.ts'
import { join, raw, type Sql, sql, uint } from '../../telemetry/sql.ts'
import { type From, rangeCondition, type TenantReader } from '../../telemetry/tenant-reader.ts'
import { earliest } from './timed-anomalies.ts'

/** The time looked at. Both ranges are half-open, and `before` ends where `during` begins, or earlier. */
export interface EvidenceWindow {
  readonly before: { readonly startNs: Ns; readonly endNs: Ns }
  readonly during: { readonly startNs: Ns; readonly endNs: Ns }
}

/** Numbers of one side of the comparison. */
export interface Reading {
  /** Number of requests of a service, or of calls, that the other figures are about. */
  readonly count: number
  readonly failed: number
  /** Of the failures, those below which nothing failed. Of calls, those with a span of the caller. */
  readonly ownFailed: number
  /** Mean and standard deviation of the time spent there itself, ms. Of calls, between caller and callee. */
  readonly ownMs: number
  readonly ownSpreadMs: number
}

export interface ServiceReading {
  readonly service: string
  readonly before: Reading
  readonly during: Reading
}

/** Calls of a service to another, or to something without spans of its own. */
export interface CallReading {
  readonly caller: string
  /** As the caller names it: an address, a database, a topic; may be empty. */
  readonly peer: string
  /** Null where no span of a callee is there: a database, or a service that did not answer. */
  readonly callee: string | null
  readonly before: Reading
  readonly during: Reading
}

export interface TraceEvidence {
  readonly window: EvidenceWindow
  readonly services: readonly ServiceReading[]
  readonly calls: readonly CallReading[]
}

/** Spans looked at, over both times. */
const sampleMax = 100_000
const servicesMax = 200
const callsMax = 300

/** A person waits for the answer. */
const limits: StatementLimits = { maxSeconds: 2, maxMemoryBytes: 512 * 1024 * 1024 }

/** Ends before the start of an incident, because its first bucket may contain a part of it. */
const marginNs = 5n * nsPerMinute
const comparedNs = 30n * nsPerMinute

/**
 * From `fromNs` to `untilNs`, half an hour at most, and the half hour before an incident that began at
 * `startedNs`.
 */
export function windowAround(startedNs: Ns, fromNs: Ns, untilNs: Ns): EvidenceWindow {
  const beforeEndNs = startedNs > marginNs ? startedNs - marginNs : 0n
  return {
    before: { startNs: beforeEndNs > comparedNs ? beforeEndNs - comparedNs : 0n, endNs: beforeEndNs },
    during: { startNs: fromNs, endNs: earliest(untilNs, fromNs + comparedNs) },
  }
}

/** Null where there are no spans of that time, or where they cannot be read within the limits. */
export async function readTraceEvidence(
  reader: TenantReader,
  window: EvidenceWindow,
): Promise<TraceEvidence | null> {
  try {
    return await reader.together(() => readBoth(reader, window))
  } catch (error) {
    if (isTooExpensive(error)) return null
    throw error
  }
}

async function readBoth(reader: TenantReader, window: EvidenceWindow): Promise<TraceEvidence | null> {
  const [total] = await reader.rows<{ spans: number }>(
    (from) => sql`SELECT toUInt32(count()) AS spans FROM ${from('otel_traces', inWindow(window))}`,
    limits,
  )
  if (total === undefined || total.spans === 0) return null
  const every = Math.ceil(total.spans / sampleMax)
  const services = await reader.rows<ServiceRow>((from) => servicesStatement(from, window, every), limits)
  const calls = await reader.rows<CallRow>((from) => callsStatement(from, window, every), limits)
  return {
    window,
    services: [...Map.groupBy(services, ({ service }) => service)].map(([service, rows]) => ({
      service,
      ...bothSides(rows),
    })),
    calls: [...Map.groupBy(calls, callKey).values()].flatMap((rows) => {
      const [first] = rows
      if (first === undefined) return []
      return [{ caller: first.caller, peer: first.peer, callee: first.callee || null, ...bothSides(rows) }]
    }),
  }
}

interface SideRow extends Reading {
  readonly isDuring: number
}
type ServiceRow = SideRow & { readonly service: string }
type CallRow = SideRow & { readonly caller: string; readonly peer: string; readonly callee: string }

const callKey = ({ callee, caller, peer }: CallRow) => JSON.stringify([caller, peer, callee])

const none: Reading = { count: 0, failed: 0, ownFailed: 0, ownMs: 0, ownSpreadMs: 0 }

function bothSides(rows: readonly SideRow[]) {
  const side = (isDuring: number): Reading => rows.find((row) => row.isDuring === isDuring) ?? none
  return { before: side(0), during: side(1) }
}

/** Without services whose names are longer than a query may name: names are in each call and sentence. */
function inWindow({ before, during }: EvidenceWindow): Sql {
  return sql`(${rangeCondition('Timestamp', before)} OR ${rangeCondition('Timestamp', during)}) AND lengthUTF8(ServiceName) <= ${uint(longestName)}`
}

/** Attributes by which a caller names what it calls (OpenTelemetry semantic conventions, old and new). */
const peerKeys = [
  'server.address',
  'peer.service',
  'net.peer.name',
  'rpc.service',
  'db.system.name',
  'db.system',
  'messaging.destination.name',
]
const peers = join(
  peerKeys.map((key) => sql`nullIf(${pairIn('SpanAttributesPairs', key)}, '')`),
  ', ',
)

/**
 * The sampled spans: each with its parent, which for the work that a message causes is the span that sent the
 * message.
 */
function sampledSpans(from: From, window: EvidenceWindow, every: number): Sql {
  const sampled = every === 1 ? [] : [sql`cityHash64(TraceId) % ${uint(every)} = 0`]
  const isLinked = raw(`ParentSpanId = '' AND notEmpty(\`Links.SpanId\`)`)
  return sql`SELECT TraceId AS trace, SpanId AS span, if(${isLinked}, \`Links.TraceId\`[1], TraceId) AS parent_trace,
  if(${isLinked}, \`Links.SpanId\`[1], ParentSpanId) AS parent, ServiceName AS service, SpanKind AS kind,
  toFloat64(Duration) / 1e6 AS ms, StatusCode = 'Error' AS is_failed, ${rangeCondition('Timestamp', window.during)} AS is_during,
  if(SpanKind IN ('Client', 'Producer'), substringUTF8(coalesce(${peers}, ''), 1, 200), '') AS peer
FROM ${from('otel_traces', inWindow(window), ...sampled)}`
}

/**
 * Each span with what its callees took and whether one of them failed. What a message causes comes later and
 * takes no time of the sender.
 */
function joinedSpans(from: From, window: EvidenceWindow, every: number): Sql {
  const spans = sampledSpans(from, window, every)
  return sql`SELECT spans.trace AS trace, spans.service AS service, spans.kind AS kind, spans.peer AS peer, spans.is_during AS is_during,
  spans.is_failed AS is_failed, spans.is_failed AND children.failed = 0 AS is_origin,
  greatest(0., spans.ms - children.ms) AS own_ms, children.callees AS callees
FROM (${spans}) AS spans LEFT JOIN (
  SELECT parent_trace, parent, sumIf(ms, kind != 'Consumer') AS ms, countIf(is_failed) AS failed, groupUniqArray(16)(toString(service)) AS callees
  FROM (${spans}) WHERE parent != '' GROUP BY parent_trace, parent
) AS children ON spans.trace = children.parent_trace AND spans.span = children.parent`
}

/**
 * By service and side. A request is what one trace does in one service. The time between a caller and a
 * callee that answered belongs to neither.
 */
function servicesStatement(from: From, window: EvidenceWindow, every: number): Sql {
  const isAnswered = sql`kind IN ('Client', 'Producer') AND arrayExists(one -> one != service, callees)`
  const requests = sql`SELECT toString(service) AS name, is_during, trace,
  countIf(kind IN ('Server', 'Consumer')) AS entered, greatest(1, entered) AS entries,
  if(entered = 0, toUInt64(max(is_failed)), countIf(is_failed AND kind IN ('Server', 'Consumer'))) AS failed,
  least(entries, countIf(is_origin AND kind NOT IN ('Client', 'Producer') OR is_origin AND empty(callees))) AS own_failed,
  sumIf(own_ms, NOT (${isAnswered})) / entries AS own_ms
FROM (${joinedSpans(from, window, every)}) WHERE service != '' GROUP BY service, is_during, trace`
  return sql`SELECT name AS service, toUInt8(is_during) AS "isDuring", toFloat64(sum(entries)) AS count,
  toFloat64(sum(failed)) AS failed, toFloat64(sum(own_failed)) AS "ownFailed",
  avg(own_ms) AS "ownMs", stddevPop(own_ms) AS "ownSpreadMs"
FROM (${requests}) GROUP BY name, is_during ORDER BY count DESC, name, is_during LIMIT ${uint(2 * servicesMax)}`
}

/** By caller, peer, callee and side. */
function callsStatement(from: From, window: EvidenceWindow, every: number): Sql {
  const outgoing = sql`SELECT toString(service) AS caller, peer, is_during, is_failed, is_origin, own_ms,
  arrayFilter(one -> one != service, callees) AS others, kind IN ('Client', 'Producer') AS is_client
FROM (${joinedSpans(from, window, every)})`
  const calls = sql`SELECT caller, if(is_client, peer, '') AS peer, is_client, is_during, is_failed, is_origin, own_ms,
  arrayJoin(if(empty(others), [''], others)) AS callee
FROM (${outgoing}) WHERE caller != '' AND (notEmpty(others) OR (is_client AND peer != ''))`
  return sql`SELECT caller, peer, callee, toUInt8(is_during) AS "isDuring", toFloat64(count()) AS count,
  toFloat64(countIf(is_failed)) AS failed, toFloat64(countIf(is_origin AND is_client)) AS "ownFailed",
  avg(own_ms) AS "ownMs", stddevPop(own_ms) AS "ownSpreadMs"
FROM (${calls}) GROUP BY caller, peer, callee, is_during ORDER BY count DESC, caller, peer, callee, is_during LIMIT ${uint(2 * callsMax)}`
}
