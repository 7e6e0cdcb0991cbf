// What an erasure has to touch: the partitions that hold selected rows, with their counts, read from the engine
// at the time of planning. Whether a partition is dropped or rewritten is decided later, under its lock, by
// counting again; a plan is a list of places, never a licence.

import { tablesOf } from '../telemetry/schema/tables.ts'
import { raw, sql, uint } from '../telemetry/sql.ts'
import type { TelemetryEngine, TenantPlace } from '../telemetry/telemetry.ts'
import { rangeCondition } from '../telemetry/tenant-reader.ts'
import type { DeletionSelection } from './deletion.ts'

/** A place to erase from: a partition of a telemetry table, or the anomalies of the control plane (no partition). */
export interface PlannedStep {
  readonly store: string
  readonly partitionId: string | null
  /** Selected rows found. */
  readonly rows: number
  /** Their share of the partition's bytes on disk. */
  readonly bytes: number
}

/** Empty where nothing is selected. Ordered by table, then oldest week first. */
export async function planErasure(
  engine: TelemetryEngine,
  place: TenantPlace,
  selection: DeletionSelection,
): Promise<PlannedStep[]> {
  const steps: PlannedStep[] = []
  for (const table of tablesOf(selection.signals)) {
    const found = await engine.select<{ partition_id: string; selected: string }>(sql`
      SELECT _partition_id AS partition_id, count() AS selected
      FROM ${raw(table.name)}
      WHERE Placement = ${uint(place.placement)} AND TenantId = ${place.tenantId}
        AND ${rangeCondition(table.timeColumn, selection.range)}
      GROUP BY partition_id ORDER BY partition_id`)
    for (const { partition_id, selected } of found) {
      const size = await partitionSize(engine, table.name, partition_id)
      const rows = Number(selected)
      const bytes = size.rows === 0 ? 0 : Math.round((size.bytes * rows) / size.rows)
      steps.push({ store: table.name, partitionId: partition_id, rows, bytes })
    }
  }
  return steps
}

async function partitionSize(
  engine: TelemetryEngine,
  table: string,
  partitionId: string,
): Promise<{ rows: number; bytes: number }> {
  const [size] = await engine.select<{ rows: string; bytes: string }>(sql`
    SELECT sum(rows) AS rows, sum(bytes_on_disk) AS bytes FROM system.parts
    WHERE database = currentDatabase() AND table = ${table} AND partition_id = ${partitionId} AND active`)
  return { rows: Number(size?.rows ?? 0), bytes: Number(size?.bytes ?? 0) }
}
