// Finds attribute values that are more frequent among some events of a time range than among all events
// before it: the first question in the investigation of an incident. The cost is bounded: of many events a
// fixed share is read, chosen by hash so that it is the same each time. Keys whose values hardly repeat (ids)
// are excluded by requiring large shares.

import type { Ns } from '../../contract/values/instant.ts'
import { hasAttribute } from '../telemetry/attribute.ts'
import type { StatementLimits } from '../telemetry/engine.ts'
import { pairKey, pairsIn, pairValue } from '../telemetry/schema/attribute-pairs.ts'
import { type TableName, tablesOf } from '../telemetry/schema/tables.ts'
import { raw, type Sql, sql, uint } from '../telemetry/sql.ts'
import { rangeCondition, type TenantReader } from '../telemetry/tenant-reader.ts'
import { eventSeriesOf } from './event-series.ts'

interface SharesRequest {
  /** A built-in key of spans or of log records. */
  readonly metricKey: string
  /** `service` and attribute keys; an event must match all of them. */
  readonly labels: Readonly<Record<string, string>>
  /** Milliseconds above which a span counts as slow; null where the metric is not a latency. */
  readonly slowerThanMs: number | null
  readonly startNs: Ns
  readonly endNs: Ns
  /** Events of `[beforeNs, startNs)` are the baseline. */
  readonly beforeNs: Ns
}

interface AttributeShares {
  /** Events of the time range, and the concerned ones among them: failed, slow, or all. */
  readonly events: number
  readonly concerned: number
  readonly eventsBefore: number
  /** Values by how much their share among the concerned events exceeds their share before, largest first. */
  readonly values: readonly AttributeShare[]
}

interface AttributeShare {
  readonly key: string
  readonly value: string
  /** Share of the concerned events, 0 to 1. */
  readonly share: number
  /** Share of all events before, 0 to 1. */
  readonly share_before: number
}

/** The most events that are read, over both time ranges. */
const sampleMax = 100_000
const valuesMax = 5
/** A value that fewer of the concerned events have, or hardly more than before, explains nothing. */
const leastShare = 0.2
const leastGain = 0.1

/** Returns null for a metric that is not counted from events of one signal. */
export async function readAttributeShares(
  reader: TenantReader,
  request: SharesRequest,
  limits: StatementLimits,
): Promise<AttributeShares | null> {
  const series = eventSeriesOf(request.metricKey)
  const found = series === undefined ? [] : tablesOf(series.signals)
  const [table] = found
  if (series === undefined || table === undefined || found.length > 1) return null
  const isSpans = table.signal === 'traces'
  const attributes = isSpans ? 'SpanAttributesPairs' : 'LogAttributesPairs'
  const during = sql`${raw(table.timeColumn)} >= ${rangeStart(request)}`
  const concerned = concernedOf(request, series.counted)
  const source = (from: (table: TableName, ...conditions: readonly Sql[]) => Sql, ...more: readonly Sql[]) =>
    from(
      table.name,
      rangeCondition(table.timeColumn, { startNs: request.beforeNs, endNs: request.endNs }),
      series.of,
      ...labelConditions(request.labels, attributes),
      ...more,
    )
  const [counts] = await reader.rows<{ events: number; concerned: number; before: number }>(
    (from) =>
      sql`SELECT toUInt32(countIf(${during})) AS events, toUInt32(countIf(${during} AND ${concerned})) AS concerned, toUInt32(countIf(NOT (${during}))) AS before FROM ${source(from)}`,
    limits,
  )
  const totals = {
    events: counts?.events ?? 0,
    concerned: counts?.concerned ?? 0,
    eventsBefore: counts?.before ?? 0,
  }
  if (totals.concerned === 0 || totals.eventsBefore === 0) return { ...totals, values: [] }
  const every = Math.ceil((totals.events + totals.eventsBefore) / sampleMax)
  const sampled = sql`cityHash64(TraceId, ${raw(isSpans ? 'SpanId' : 'Body')}, Timestamp) % ${uint(every)} = 0`
  const name = raw(isSpans ? `[('span.name', toString(SpanName))]` : `[('severity', toString(SeverityText))]`)
  const values = await reader.rows<AttributeShare>((from) => {
    const pairs = sql`arrayDistinct(arrayConcat([('service', toString(ServiceName))], ${name}, ${pairsOf('ResourceAttributesPairs')}, ${pairsOf(attributes)}))`
    const events = sql`SELECT ${during} AS is_during, is_during AND ${concerned} AS is_concerned, ${pairs} AS pairs FROM ${source(from, sampled)}`
    return sql`WITH events AS (SELECT * FROM (${events}) WHERE is_concerned OR NOT is_during),
  (SELECT (countIf(is_during), countIf(NOT is_during)) FROM events) AS totals
SELECT pair.1 AS key, pair.2 AS value, countIf(is_during) / totals.1 AS share, countIf(NOT is_during) / totals.2 AS share_before
FROM (SELECT is_during, arrayJoin(pairs) AS pair FROM events) GROUP BY pair
HAVING share >= ${raw(String(leastShare))} AND share - share_before >= ${raw(String(leastGain))}
ORDER BY share - share_before DESC, key, value LIMIT ${uint(valuesMax)}`
  }, limits)
  return { ...totals, values }
}

function rangeStart({ startNs }: SharesRequest): Sql {
  return sql`fromUnixTimestamp64Nano(${raw(startNs.toString())})`
}

function concernedOf({ metricKey, slowerThanMs }: SharesRequest, counted: Sql): Sql {
  if (metricKey === 'spans.error_ratio') return raw(`StatusCode = 'Error'`)
  if (slowerThanMs === null) return counted
  return sql`Duration > ${raw((slowerThanMs * 1e6).toFixed(0))}`
}

function labelConditions(labels: Readonly<Record<string, string>>, attributes: string): Sql[] {
  return Object.entries(labels).map(([key, value]) =>
    key === 'service' ? sql`ServiceName = ${value}` : hasAttribute(attributes, key, value),
  )
}

function pairsOf(column: string): Sql {
  return raw(`arrayMap(pair -> (${pairKey}, ${pairValue}), ${pairsIn(column)})`)
}
