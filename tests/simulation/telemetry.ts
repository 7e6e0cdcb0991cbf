// The telemetry of a simulation: rows that have their own number in a column that every reader shows, the
// exports that send them, and the statements that find out which of them exist.

import { type Signal, type TableName, tables } from '../../server/telemetry/schema/tables.ts'
import { join, raw, type Sql, sql } from '../../server/telemetry/sql.ts'

/** Anomalies are derived from telemetry and stored in the control plane; an erasure removes them as well. */
export type StoreName = TableName | 'anomalies'

export interface SentRow {
  /** Unique, unless it is sent again. */
  readonly id: string
  readonly table: StoreName
  readonly timeNs: bigint
}

/** How often each row exists, by {@link keyOf}. */
export type Counted = ReadonlyMap<string, number>

export function keyOf({ table, id }: Pick<SentRow, 'table' | 'id'>): string {
  return `${table} ${id}`
}

const idColumns: Partial<Record<TableName, string>> = { otel_logs: 'Body', otel_traces: 'SpanName' }

function idColumn(table: TableName): Sql {
  return raw(`toString(${idColumns[table] ?? 'MetricName'})`)
}

export const tableNames: readonly TableName[] = tables.map(({ name }) => name)

/** Every row of some tables, at least one; `from` turns a table's name into what to read. */
export function listRows(names: readonly TableName[], from: (table: TableName) => Sql): Sql {
  const rows = names.map(
    (name) =>
      sql`SELECT toString(TenantId) AS tenant, ${name} AS store, ${idColumn(name)} AS id FROM ${from(name)}`,
  )
  return join(rows, ' UNION ALL ')
}

export interface ListedRow {
  readonly tenant: string
  readonly store: TableName
  readonly id: string
}

/** Counts by organisation. */
export function countedOf(rows: readonly ListedRow[]): ReadonlyMap<string, Counted> {
  const counted = new Map<string, Map<string, number>>()
  for (const { tenant, store, id } of rows) {
    const own = counted.get(tenant) ?? new Map<string, number>()
    counted.set(tenant, own)
    const key = keyOf({ table: store, id })
    own.set(key, (own.get(key) ?? 0) + 1)
  }
  return counted
}

const resource = { attributes: [{ key: 'service.name', value: { stringValue: 'shop' } }] }

/** An export request in OTLP/JSON form with these rows, all of one signal. */
export function exportOf(signal: Signal, rows: readonly SentRow[]): object {
  if (signal === 'logs') {
    const logRecords = rows.map(({ id, timeNs }) => ({
      timeUnixNano: `${timeNs}`,
      body: { stringValue: id },
    }))
    return { resourceLogs: [{ resource, scopeLogs: [{ logRecords }] }] }
  }
  if (signal === 'traces') {
    const spans = rows.map(({ id, timeNs }) => ({
      traceId: id.padStart(32, '0'),
      spanId: id.padStart(16, '0'),
      name: id,
      startTimeUnixNano: `${timeNs}`,
      endTimeUnixNano: `${timeNs + 1n}`,
    }))
    return { resourceSpans: [{ resource, scopeSpans: [{ spans }] }] }
  }
  return { resourceMetrics: [{ resource, scopeMetrics: [{ metrics: rows.map(metricOf) }] }] }
}

function metricOf({ id, table, timeNs }: SentRow): object {
  const point = { timeUnixNano: `${timeNs}` }
  const counts = { ...point, count: '1', sum: 1 }
  const kinds: Partial<Record<StoreName, object>> = {
    otel_metrics_gauge: { gauge: { dataPoints: [{ ...point, asInt: '7' }] } },
    otel_metrics_sum: {
      sum: { aggregationTemporality: 2, isMonotonic: true, dataPoints: [{ ...point, asInt: '7' }] },
    },
    otel_metrics_histogram: {
      histogram: {
        aggregationTemporality: 2,
        dataPoints: [{ ...counts, bucketCounts: ['1', '0'], explicitBounds: [1] }],
      },
    },
    otel_metrics_exponential_histogram: {
      exponentialHistogram: {
        aggregationTemporality: 2,
        dataPoints: [{ ...counts, scale: 0, zeroCount: '1', positive: { offset: 0, bucketCounts: [] } }],
      },
    },
    otel_metrics_summary: { summary: { dataPoints: [{ ...counts, quantileValues: [] }] } },
  }
  return { name: id, ...kinds[table] }
}

/** Monday 2026-01-05T00:00:00Z: weeks are the engine's partitions. */
export const mondayNs = 1_767_571_200_000_000_000n
export const dayNs = 86_400_000_000_000n

/** Start of a simulation: in the third of its weeks. */
export const startMs = Number((mondayNs + 16n * dayNs) / 1_000_000n)

/** Times of bounds and rows, just before and just after: edges of weeks and days, and one time within. */
export const edgesNs: readonly bigint[] = [
  mondayNs,
  mondayNs + 3n * dayNs,
  mondayNs + 3n * dayNs + 12_345_678_901n,
  mondayNs + 7n * dayNs,
  mondayNs + 9n * dayNs,
  mondayNs + 14n * dayNs,
  mondayNs + 15n * dayNs,
  // In the future for most of a simulation.
  mondayNs + 60n * dayNs,
]

/** Times of rows: around the edges, long ago, and in the future. */
export const instantsNs: readonly bigint[] = [
  ...edgesNs.flatMap((edge) => [edge - 1n, edge, edge + 1n]),
  mondayNs + 11n * dayNs,
  1_000_000_000n,
  mondayNs + 28n * dayNs,
]
