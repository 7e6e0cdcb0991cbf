// Log records, newest first.

import type { z } from 'zod'
import { formatInstant } from '../../contract/instant.ts'
import type { LogQuery, LogRecord } from '../../contract/telemetry.ts'
import { attributesOf, hasAttribute, pairsColumn } from '../telemetry/attribute.ts'
import { raw, type Sql, sql } from '../telemetry/sql.ts'
import type { StatementLimits } from '../telemetry/telemetry.ts'
import type { TenantReader } from '../telemetry/tenant-reader.ts'
import { newestFirst, newestFirstPage, newestFirstPosition, type Placed } from './newest-first.ts'
import { pageStart } from './time-window.ts'

type Query = z.output<typeof LogQuery>

interface LogRow extends Placed {
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

/** Where each severity begins (OpenTelemetry, logs data model, SeverityNumber). */
const leastSeverity = { trace: 1, debug: 5, info: 9, warn: 13, error: 17, fatal: 21 } as const

const columns = sql`toString(ServiceName) AS service, toString(SeverityText) AS severity, SeverityNumber AS severity_number,
  Body AS body, TraceId AS trace_id, SpanId AS span_id, toString(EventName) AS event_name,
  ${pairsColumn('LogAttributesPairs')} AS attributes, ${pairsColumn('ResourceAttributesPairs')} AS resource_attributes`

/** A page of log records. Throws InvalidInput for a foreign cursor or an empty range. */
export async function listLogs(
  reader: TenantReader,
  query: Query,
  nowNs: bigint,
  limits?: StatementLimits,
): Promise<{ items: z.infer<typeof LogRecord>[]; next_cursor: string | null }> {
  const page = { ...pageStart(query, nowNs, newestFirstPosition), limit: query.limit }
  const rows = await reader.rows<LogRow>(
    (from) => newestFirst(from, { ...page, table: 'otel_logs', columns, conditions: conditionsOf(query) }),
    limits,
  )
  return newestFirstPage(page, rows, ({ time_ns, row_hash: _, ...record }) => ({
    time: formatInstant(BigInt(time_ns)),
    ...record,
    attributes: attributesOf(record.attributes),
    resource_attributes: attributesOf(record.resource_attributes),
  }))
}

function conditionsOf(query: Query): Sql[] {
  const conditions = query.attribute.map(([key, value]) => hasAttribute('LogAttributesPairs', key, value))
  if (query.service !== undefined) conditions.push(sql`ServiceName = ${query.service}`)
  if (query.severity !== undefined) {
    conditions.push(sql`SeverityNumber >= ${raw(String(leastSeverity[query.severity]))}`)
  }
  if (query.text !== undefined) conditions.push(sql`positionCaseInsensitiveUTF8(Body, ${query.text}) > 0`)
  if (query.trace_id !== undefined) conditions.push(sql`TraceId = ${query.trace_id.toLowerCase()}`)
  return conditions
}
