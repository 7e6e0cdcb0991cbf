// Sizes of the engine's partitions, from its system tables. A partition is one week of one placement, so only
// organisations of that placement share it. Its id is `<placement>-<yyyymmdd of the Monday>`.

import type { TelemetryEngine, TenantPlace } from './engine.ts'
import { type TableName, tables } from './schema/tables.ts'
import { instant, join, raw, type Sql, sql, uint } from './sql.ts'

/** Rows of every organisation in the partition, hidden rows too; active parts only. */
export interface PartitionSize {
  readonly rows: number
  /** Compressed bytes on disk. */
  readonly bytes: number
}

/** Sizes by `<table> <partition id>`. */
export type PartitionSizes = ReadonlyMap<string, PartitionSize>

/** The partition id of a row, as an expression for statements that can't use the engine's own column. */
export function partitionIdOf(timeColumn: string, placement: number): Sql {
  return sql`concat(${`${placement}-`}, formatDateTime(toMonday(${raw(timeColumn)}), '%Y%m%d'))`
}

/**
 * Returns the sizes by `<table> <partition id>` of every partition of a placement, in all telemetry tables.
 */
export async function partitionSizes(engine: TelemetryEngine, placement: number): Promise<PartitionSizes> {
  const found = await engine.select<{ key: string; total: string; bytes: string }>(
    sql`SELECT concat(table, ' ', partition_id) AS key, toString(sum(rows)) AS total, toString(sum(bytes_on_disk)) AS bytes
FROM system.parts
WHERE database = currentDatabase() AND active AND startsWith(table, 'otel_') AND startsWith(partition_id, ${`${placement}-`})
GROUP BY key`,
  )
  return new Map(found.map(({ key, total, bytes }) => [key, { rows: Number(total), bytes: Number(bytes) }]))
}

/** A week of a table that has rows. */
export interface TableWeek {
  readonly table: TableName
  /** Its Monday at 00:00 UTC, milliseconds since 1970; the first week begins in 1970. */
  readonly startMs: number
}

/** Returns the weeks of all organisations of a placement. */
export async function weeksOfPlacement(
  engine: Pick<TelemetryEngine, 'select'>,
  placement: number,
): Promise<readonly TableWeek[]> {
  const found = await engine.select<{ name: string; partition: string }>(
    sql`SELECT DISTINCT table AS name, partition_id AS partition FROM system.parts
WHERE database = currentDatabase() AND active AND startsWith(partition_id, ${`${placement}-`})`,
  )
  return tableWeeks(found)
}

/**
 * Returns the weeks of an organisation that have rows outside of a half-open time. Reads only partitions with
 * such rows.
 */
export async function weeksOutside(
  engine: Pick<TelemetryEngine, 'select'>,
  { placement, tenantId }: TenantPlace,
  startNs: bigint,
  endNs: bigint,
): Promise<readonly TableWeek[]> {
  const reads = tables.map(({ name, timeColumn }) => {
    const time = raw(timeColumn)
    return sql`SELECT DISTINCT ${name} AS name, _partition_id AS partition FROM ${raw(name)}
WHERE Placement = ${uint(placement)} AND TenantId = ${tenantId} AND (${time} < ${instant(startNs)} OR ${time} >= ${instant(endNs)})`
  })
  return tableWeeks(await engine.select(join(reads, ' UNION ALL ')))
}

function tableWeeks(
  found: readonly { readonly name: string; readonly partition: string }[],
): readonly TableWeek[] {
  return found.flatMap(({ name, partition }) => {
    const table = tables.find((one) => one.name === name)
    const day = /^\d+-(\d{4})(\d\d)(\d\d)$/.exec(partition)
    if (table === undefined || day === null) return []
    return [{ table: table.name, startMs: Date.UTC(Number(day[1]), Number(day[2]) - 1, Number(day[3])) }]
  })
}
