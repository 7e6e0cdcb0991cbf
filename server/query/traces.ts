// Spans, newest first, and whole traces, oldest first.

import type { z } from 'zod'
import { formatInstant } from '../../contract/instant.ts'
import type { Span, SpanQuery, Trace } from '../../contract/telemetry.ts'
import { AppError } from '../core/app-error.ts'
import { attributesOf, hasAttribute, pairListColumn, pairsColumn } from '../telemetry/attribute.ts'
import { type Sql, sql, uint } from '../telemetry/sql.ts'
import type { StatementLimits } from '../telemetry/telemetry.ts'
import type { TenantReader } from '../telemetry/tenant-reader.ts'
import { newestFirst, newestFirstPage, newestFirstPosition, type Placed } from './newest-first.ts'
import { pageStart } from './time-window.ts'

type Query = z.output<typeof SpanQuery>

interface SpanRow {
  readonly time_ns: string
  readonly trace_id: string
  readonly span_id: string
  readonly parent_span_id: string
  readonly duration_ns: string
  readonly service: string
  readonly name: string
  readonly kind: string
  readonly status: string
  readonly status_message: string
  readonly attributes: string
  readonly resource_attributes: string
  readonly event_times: readonly string[]
  readonly event_names: readonly string[]
  readonly event_attributes: readonly string[]
  readonly link_traces: readonly string[]
  readonly link_spans: readonly string[]
  readonly link_attributes: readonly string[]
}

/** What a browser can draw; a trace beyond it is cut at its end. */
const maxTraceSpans = 10_000

const statusCode = { unset: 'Unset', ok: 'Ok', error: 'Error' } as const

const columns = sql`TraceId AS trace_id, SpanId AS span_id, ParentSpanId AS parent_span_id, toString(Duration) AS duration_ns,
  toString(ServiceName) AS service, toString(SpanName) AS name, toString(SpanKind) AS kind, toString(StatusCode) AS status,
  StatusMessage AS status_message, ${pairsColumn('SpanAttributesPairs')} AS attributes,
  ${pairsColumn('ResourceAttributesPairs')} AS resource_attributes,
  arrayMap(t -> toString(toUnixTimestamp64Nano(t)), \`Events.Timestamp\`) AS event_times, \`Events.Name\` AS event_names,
  ${pairListColumn('`Events.AttributesPairs`')} AS event_attributes, \`Links.TraceId\` AS link_traces, \`Links.SpanId\` AS link_spans,
  ${pairListColumn('`Links.AttributesPairs`')} AS link_attributes`

/** A page of spans. Throws InvalidInput for a foreign cursor or an empty range. */
export async function listSpans(
  reader: TenantReader,
  query: Query,
  nowNs: bigint,
  limits?: StatementLimits,
): Promise<{ items: z.infer<typeof Span>[]; next_cursor: string | null }> {
  const page = { ...pageStart(query, nowNs, newestFirstPosition), limit: query.limit }
  const rows = await reader.rows<SpanRow & Placed>(
    (from) => newestFirst(from, { ...page, table: 'otel_traces', columns, conditions: conditionsOf(query) }),
    limits,
  )
  return newestFirstPage(page, rows, spanOf)
}

/** Every span of one trace, whatever its time. Throws `not_found` where the organisation has none. */
export async function readTrace(
  reader: TenantReader,
  traceId: string,
  limits?: StatementLimits,
): Promise<z.infer<typeof Trace>> {
  const id = traceId.toLowerCase()
  const rows = await reader.rows<SpanRow>(
    (from) =>
      sql`SELECT ${columns}, toString(toUnixTimestamp64Nano(Timestamp)) AS time_ns FROM ${from('otel_traces', sql`TraceId = ${id}`)} ORDER BY Timestamp, SpanId LIMIT ${uint(maxTraceSpans + 1)}`,
    limits,
  )
  if (rows.length === 0) throw new AppError('not_found')
  return {
    trace_id: id,
    spans: rows.slice(0, maxTraceSpans).map(spanOf),
    truncated: rows.length > maxTraceSpans,
  }
}

function conditionsOf(query: Query): Sql[] {
  const conditions = query.attribute.map(([key, value]) => hasAttribute('SpanAttributesPairs', key, value))
  if (query.service !== undefined) conditions.push(sql`ServiceName = ${query.service}`)
  if (query.name !== undefined) conditions.push(sql`SpanName = ${query.name}`)
  if (query.status !== undefined) conditions.push(sql`StatusCode = ${statusCode[query.status]}`)
  if (query.min_duration_ms > 0) {
    conditions.push(sql`Duration >= ${uint(BigInt(query.min_duration_ms) * 1_000_000n)}`)
  }
  return conditions
}

function spanOf(row: SpanRow): z.infer<typeof Span> {
  return {
    trace_id: row.trace_id,
    span_id: row.span_id,
    parent_span_id: row.parent_span_id,
    time: formatInstant(BigInt(row.time_ns)),
    duration_ns: row.duration_ns,
    service: row.service,
    name: row.name,
    kind: row.kind,
    status: row.status,
    status_message: row.status_message,
    attributes: attributesOf(row.attributes),
    resource_attributes: attributesOf(row.resource_attributes),
    events: row.event_times.map((timeNs, i) => ({
      time: formatInstant(BigInt(timeNs)),
      name: row.event_names[i] ?? '',
      attributes: attributesOf(row.event_attributes[i] ?? ''),
    })),
    links: row.link_traces.map((traceId, i) => ({
      trace_id: traceId,
      span_id: row.link_spans[i] ?? '',
      attributes: attributesOf(row.link_attributes[i] ?? ''),
    })),
  }
}
