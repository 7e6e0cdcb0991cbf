// Log records in the order of time, within the cost of a page.

import type { z } from 'zod'
import type { LogQuery, LogRecord } from '../../contract/telemetry/queries.ts'
import { formatInstant } from '../../contract/values/instant.ts'
import type { Pace } from '../core/turns/pace.ts'
import { attributesOf, hasAttribute, pairsColumn } from '../telemetry/attribute.ts'
import { raw, type Sql, sql, sumOf } from '../telemetry/sql.ts'
import type { TenantReader } from '../telemetry/tenant-reader.ts'
import { type ReadLimits, type SearchPage, searchPage } from './search.ts'
import { type OrderedRow, positionTexts } from './time-order.ts'
import { pageStart } from './time-window.ts'

type Query = z.output<typeof LogQuery>

/** The filters of log records, shared by pages and counts. */
type LogFilters = Pick<Query, 'attribute' | 'service' | 'severity' | 'text' | 'trace_id'>

interface LogRow extends OrderedRow {
  readonly service: string
  readonly severity: string
  readonly severity_number: number
  readonly body: string
  readonly trace_id: string
  readonly span_id: string
  readonly event_name: string
  readonly attributes: string
  readonly resource_attributes: string
}

/** The least number of each severity (OpenTelemetry, logs data model, SeverityNumber). */
export const leastSeverity = { trace: 1, debug: 5, info: 9, warn: 13, error: 17, fatal: 21 } as const

const columns = sql`toString(ServiceName) AS service, toString(SeverityText) AS severity, SeverityNumber AS severity_number,
  Body AS body, TraceId AS trace_id, SpanId AS span_id, toString(EventName) AS event_name,
  ${pairsColumn('LogAttributesPairs')} AS attributes, ${pairsColumn('ResourceAttributesPairs')} AS resource_attributes`

/** Returns a page of log records. Throws InvalidInput for a foreign cursor or an empty range. */
export async function listLogs(
  reader: TenantReader,
  query: Query,
  nowNs: bigint,
  limits?: ReadLimits,
): Promise<SearchPage<z.infer<typeof LogRecord>>> {
  const costly = costlyOf(query)
  const request = {
    ...pageStart(query, nowNs, positionTexts),
    order: {
      table: 'otel_logs',
      columns,
      conditions: conditionsOf(query),
      costly: costly.map(({ condition }) => condition),
      first: query.order ?? 'newest',
    },
    lengths: {
      searched: sumOf(costly.map(({ length }) => length)),
      row: sumOf([raw('length(Body)'), raw('length(LogAttributesPairs)')]),
    },
    limit: query.limit,
  } as const
  return searchPage(reader, request, { of: recordOf, withoutAttributes }, limits)
}

async function recordOf(
  { time_ns, row_hash: _, ...record }: LogRow,
  pace: Pace,
): Promise<z.infer<typeof LogRecord>> {
  return {
    time: formatInstant(BigInt(time_ns)),
    ...record,
    attributes: await attributesOf(record.attributes, pace),
    resource_attributes: await attributesOf(record.resource_attributes, pace),
  }
}

function withoutAttributes(record: z.infer<typeof LogRecord>): z.infer<typeof LogRecord> {
  return { ...record, attributes: {}, resource_attributes: {} }
}

/** Conditions on columns that may be long, and the lengths that they read. */
export function costlyOf(query: LogFilters): { condition: Sql; length: Sql }[] {
  const attributes = query.attribute.map(([key, value]) => ({
    condition: hasAttribute('LogAttributesPairs', key, value),
    length: raw('length(LogAttributesPairs)'),
  }))
  if (query.text === undefined) return attributes
  const condition = sql`positionCaseInsensitiveUTF8(Body, ${query.text}) > 0`
  return [...attributes, { condition, length: raw('length(Body)') }]
}

export function conditionsOf(query: LogFilters): Sql[] {
  const conditions: Sql[] = []
  if (query.service !== undefined) conditions.push(sql`ServiceName = ${query.service}`)
  if (query.severity !== undefined) {
    conditions.push(sql`SeverityNumber >= ${raw(String(leastSeverity[query.severity]))}`)
  }
  if (query.trace_id !== undefined) conditions.push(sql`TraceId = ${query.trace_id.toLowerCase()}`)
  return conditions
}
