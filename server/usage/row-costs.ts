// How much longer the rows of one service are than those of another, in the tables whose rows have long texts
// or lists. The engine knows bytes of whole partitions only; without this a service with long logs would
// count as much as one with as many short ones. The lengths are read from the rows of a few days, because
// reading them costs far more than counting rows.

import { type TableName, type TableSpec, tables } from '../telemetry/schema/tables.ts'
import { join, raw, type Sql, sql, uint } from '../telemetry/sql.ts'
import type { TenantReader } from '../telemetry/tenant-reader.ts'

/** The cost of a row besides its texts and lists, bytes. Only ratios matter. */
const rowBytes = 64

/** Lengths by table; the rows of other tables are alike. */
const longParts: Readonly<Partial<Record<TableName, string>>> = {
  otel_metrics_histogram: '8 * length(BucketCounts)',
  otel_metrics_exponential_histogram: '8 * (length(PositiveBucketCounts) + length(NegativeBucketCounts))',
  otel_logs: 'length(Body) + length(LogAttributesPairs)',
  otel_traces: 'length(SpanAttributesPairs)',
}

/** Days that are read of each table: the newest two, and others at equal distances. */
const sampledDays = 4

/** Services of a table with a cost of their own, those with the most rows; the others have the mean. */
const costedServices = 500

/** The mean cost of a row by table, and by hash of the service where that is known. */
export type RowCosts = ReadonlyMap<
  TableName,
  { readonly mean: number; readonly own: ReadonlyMap<string, number> }
>

interface CostRow {
  readonly table_name: TableName
  readonly service_hash: string
  readonly cost: number
  readonly total: string
}

/** @param daysOf the days with rows of a table, oldest first, such as `2026-11-21` */
export async function readRowCosts(
  reader: TenantReader,
  daysOf: (table: TableName) => readonly string[],
): Promise<RowCosts> {
  const sampled = tables.flatMap((table) => {
    const [long, days] = [longParts[table.name], sampleOf(daysOf(table.name))]
    return long === undefined || days.length === 0 ? [] : [{ table, long, days }]
  })
  if (sampled.length === 0) return new Map()
  const rows = await reader.rows<CostRow>((from) =>
    join(
      sampled.map(({ days, long, table }) => {
        const dates = join(
          days.map((day) => sql`toDate(${day})`),
          ', ',
        )
        const isSampled = sql`toDate(${raw(table.timeColumn)}) IN (${dates})`
        return sql`SELECT * FROM (SELECT ${table.name} AS table_name, toString(cityHash64(toString(ServiceName))) AS service_hash,
  avg(${raw(`${rowBytes} + ${long}`)}) AS cost, toString(count()) AS total
FROM ${from(table.name, isSampled)} GROUP BY ServiceName ORDER BY count() DESC LIMIT ${uint(costedServices)})`
      }),
      ' UNION ALL ',
    ),
  )
  return new Map(
    [...Map.groupBy(rows, ({ table_name }) => table_name)].map(([table_name, own]) => [
      table_name,
      { mean: meanOf(own), own: new Map(own.map(({ cost, service_hash }) => [service_hash, cost])) },
    ]),
  )
}

function sampleOf(days: readonly string[]): string[] {
  const newestFirst = days.toReversed()
  if (newestFirst.length <= sampledDays) return newestFirst
  const older = newestFirst.slice(2)
  const step = older.length / (sampledDays - 2)
  return [
    ...newestFirst.slice(0, 2),
    ...Array.from({ length: sampledDays - 2 }, (_, i) => older[Math.floor(i * step)] ?? ''),
  ]
}

function meanOf(rows: readonly CostRow[]): number {
  const total = rows.reduce((sum, row) => sum + Number(row.total), 0)
  return rows.reduce((sum, { cost, total: own }) => sum + cost * Number(own), 0) / total
}

/** The cost of a row of a service, for a SELECT that has the column `service_hash`. */
export function costOf(costs: RowCosts, { name }: TableSpec): Sql {
  const known = costs.get(name)
  if (known === undefined || known.own.size === 0) return raw('1.')
  const own = [...known.own]
  const hashes = join(
    own.map(([hash]) => sql`toUInt64(${hash})`),
    ', ',
  )
  return sql`transform(service_hash, [${hashes}], ${decimals(own.map(([, cost]) => cost))}, ${raw(decimal(known.mean))})`
}

/** A list of floating-point literals. */
export function decimals(values: readonly number[]): Sql {
  return raw(`[${values.map(decimal).join(', ')}]`)
}

/** A floating-point literal: without a fraction the engine would take it for an integer. */
export function decimal(value: number): string {
  return value.toFixed(9)
}
