// Spans, newest first, and the spans of a trace, oldest first, within the cost of a page.

import type { z } from 'zod'
import type { Span, SpanQuery, Trace, TraceQuery } from '../../contract/telemetry/queries.ts'
import { earliestNs, formatInstant, latestNs } from '../../contract/values/instant.ts'
import { AppError } from '../core/app-error.ts'
import { mapInTurns, type Pace } from '../core/turns/pace.ts'
import { attributesOf, hasAttribute, pairListColumn, pairsColumn } from '../telemetry/attribute.ts'
import { raw, type Sql, sql, sumOf, uint } from '../telemetry/sql.ts'
import type { TenantReader } from '../telemetry/tenant-reader.ts'
import { type ReadLimits, type SearchPage, searchPage } from './search.ts'
import { type OrderedRow, positionTexts } from './time-order.ts'
import { pageStart } from './time-window.ts'

type Query = z.output<typeof SpanQuery>

interface SpanRow extends OrderedRow {
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

const statusCode = { unset: 'Unset', ok: 'Ok', error: 'Error' } as const

const columns = sql`TraceId AS trace_id, SpanId AS span_id, ParentSpanId AS parent_span_id, toString(Duration) AS duration_ns,
  toString(ServiceName) AS service, toString(SpanName) AS name, toString(SpanKind) AS kind, toString(StatusCode) AS status,
  StatusMessage AS status_message, ${pairsColumn('SpanAttributesPairs')} AS attributes,
  ${pairsColumn('ResourceAttributesPairs')} AS resource_attributes,
  arrayMap(t -> toString(toUnixTimestamp64Nano(t)), \`Events.Timestamp\`) AS event_times, \`Events.Name\` AS event_names,
  ${pairListColumn('`Events.AttributesPairs`')} AS event_attributes, \`Links.TraceId\` AS link_traces, \`Links.SpanId\` AS link_spans,
  ${pairListColumn('`Links.AttributesPairs`')} AS link_attributes`

/**
 * An estimate of the length of a span before it is read. For events and links it uses their number; an SDK
 * keeps less than this of each.
 */
const lengthOfSpan = sumOf([
  raw('length(SpanAttributesPairs)'),
  raw('length(StatusMessage)'),
  raw('length(TraceState)'),
  raw('1024 * (length(`Events.Name`) + length(`Links.TraceId`))'),
])

/** Returns a page of spans. Throws InvalidInput for a foreign cursor or an empty range. */
export async function listSpans(
  reader: TenantReader,
  query: Query,
  nowNs: bigint,
  limits?: ReadLimits,
): Promise<SearchPage<z.infer<typeof Span>>> {
  const costly = query.attribute.map(([key, value]) => hasAttribute('SpanAttributesPairs', key, value))
  const request = {
    ...pageStart(query, nowNs, positionTexts),
    order: { table: 'otel_traces', columns, conditions: conditionsOf(query), costly, first: 'newest' },
    lengths: { searched: sumOf(costly.map(() => raw('length(SpanAttributesPairs)'))), row: lengthOfSpan },
    limit: query.limit,
  } as const
  return searchPage(reader, request, { of: spanOf, withoutAttributes }, limits)
}

/**
 * Returns the spans of one trace, of any time, page by page. Throws `not_found` where the organisation has
 * none.
 */
export async function readTrace(
  reader: TenantReader,
  traceId: string,
  query: z.output<typeof TraceQuery>,
  limits?: ReadLimits,
): Promise<z.infer<typeof Trace>> {
  const id = traceId.toLowerCase()
  const always = { range_start: earliestNs, range_end: latestNs }
  const request = {
    ...pageStart({ ...always, cursor: query.cursor }, latestNs, positionTexts),
    order: {
      table: 'otel_traces',
      columns,
      conditions: [sql`TraceId = ${id}`],
      costly: [],
      first: 'oldest',
    },
    lengths: { searched: raw('0'), row: lengthOfSpan },
    limit: query.limit,
    isFew: true,
  } as const
  const { items, next_cursor, warnings } = await searchPage(
    reader,
    request,
    { of: spanOf, withoutAttributes },
    limits,
  )
  if (query.cursor === undefined && items.length === 0 && next_cursor === null && warnings.length === 0)
    throw new AppError('not_found')
  return { trace_id: id, spans: items, truncated: next_cursor !== null, next_cursor, warnings }
}

function conditionsOf(query: Query): Sql[] {
  const conditions: Sql[] = []
  if (query.service !== undefined) conditions.push(sql`ServiceName = ${query.service}`)
  if (query.name !== undefined) conditions.push(sql`SpanName = ${query.name}`)
  if (query.status !== undefined) conditions.push(sql`StatusCode = ${statusCode[query.status]}`)
  if (query.min_duration_ms > 0) {
    conditions.push(sql`Duration >= ${uint(BigInt(query.min_duration_ms) * 1_000_000n)}`)
  }
  return conditions
}

/** Waits between events and links: with the attributes of all, a span may have millions. */
async function spanOf(row: SpanRow, pace: Pace): Promise<z.infer<typeof Span>> {
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
    attributes: await attributesOf(row.attributes, pace),
    resource_attributes: await attributesOf(row.resource_attributes, pace),
    events: await mapInTurns(row.event_times, pace, async (timeNs, i) => ({
      time: formatInstant(BigInt(timeNs)),
      name: row.event_names[i] ?? '',
      attributes: await attributesOf(row.event_attributes[i] ?? '', pace),
    })),
    links: await mapInTurns(row.link_traces, pace, async (traceId, i) => ({
      trace_id: traceId,
      span_id: row.link_spans[i] ?? '',
      attributes: await attributesOf(row.link_attributes[i] ?? '', pace),
    })),
  }
}

async function withoutAttributes(span: z.infer<typeof Span>, pace: Pace): Promise<z.infer<typeof Span>> {
  return {
    ...span,
    attributes: {},
    resource_attributes: {},
    events: await mapInTurns(span.events, pace, (event) => ({ ...event, attributes: {} })),
    links: await mapInTurns(span.links, pace, (link) => ({ ...link, attributes: {} })),
  }
}
