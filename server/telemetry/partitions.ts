// Sizes of the engine's partitions, from its system tables. A partition is one week of one placement, so only
// organisations of that placement share it. Its id is `<placement>-<yyyymmdd of the Monday>`.

import type { TelemetryEngine } from './engine.ts'
import { raw, type Sql, sql } from './sql.ts'

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
