// What an erasure has to touch: the partitions that hold selected rows, with their counts, read from the engine
// at the time of planning. Whether a partition is dropped or rewritten is decided later, under its lock, by
// counting again; a plan is a list of places, never a licence.

import { overlaps, type TimeRange, union } from '../../core/time-range.ts'
import type { TelemetryEngine, TenantPlace } from '../../telemetry/engine.ts'
import type { RowWeights } from '../../telemetry/row-weights.ts'
import { type TableSpec, tablesOf } from '../../telemetry/schema/tables.ts'
import { allOf, Bound, raw, type Sql, sql, uint } from '../../telemetry/sql.ts'
import { rangeCondition } from '../../telemetry/tenant-reader.ts'
import type { ErasureTarget } from '../requests/selection.ts'

/** A place to erase from: a partition of a telemetry table, or the anomalies of the control plane (no partition). */
export interface PlannedStep {
  readonly store: string
  readonly partitionId: string | null
  /** Selected rows found. */
  readonly rows: number
  /** What they take on disk, as far as their organisation may know. */
  readonly bytes: number
}

/** Empty where nothing is selected. Ordered by table, then oldest week first. */
export async function planErasure(
  engine: TelemetryEngine,
  place: TenantPlace,
  target: ErasureTarget,
  weights: RowWeights,
): Promise<PlannedStep[]> {
  const steps: PlannedStep[] = []
  for (const table of tablesOf(target.signals)) {
    const found = await engine.select<{ partition_id: string; selected: string }>(sql`
      SELECT _partition_id AS partition_id, count() AS selected
      FROM ${raw(table.name)}
      WHERE Placement = ${uint(place.placement)} AND ${selectedIn(table, place.tenantId, target)}
      GROUP BY partition_id ORDER BY partition_id`)
    for (const { partition_id, selected } of found) {
      const rows = Number(selected)
      const bytes = weights(table.name, partition_id, rows)
      steps.push({ store: table.name, partitionId: partition_id, rows, bytes })
    }
  }
  return steps
}

/** True exactly for the rows of a table that are to be erased now: selected, and not held. */
export function selectedIn(table: TableSpec, tenantId: string, target: ErasureTarget): Sql {
  const held = target.held
    .filter((part) => part.signals.includes(table.signal) && overlaps(part.range, target.range))
    .map(({ range }) => range)
  return allOf([
    sql`TenantId = ${tenantId}`,
    rangeCondition(table.timeColumn, target.range),
    ...(held.length === 0 ? [] : [sql`NOT (${heldAt(raw(table.timeColumn), held)})`]),
  ])
}

const [earliestNs, latestNs] = [-(2n ** 63n), 2n ** 63n - 1n]

/**
 * Whether an instant lies in one of the ranges: it does where the last start at or before it has its end after it. The
 * engine finds that start by halving a sorted list, so a thousand ranges cost each row little more than one; as conditions
 * beside each other they would take it minutes to plan. The first start is before all instants, so that there always is one.
 */
function heldAt(time: Sql, held: readonly TimeRange[]): Sql {
  const ranges = union(held).map(({ endNs, startNs }) => [startNs ?? earliestNs, endNs ?? latestNs] as const)
  const all = ranges[0]?.[0] === earliestNs ? ranges : [[earliestNs, earliestNs] as const, ...ranges]
  const column = (side: 0 | 1) =>
    new Bound(
      'Array(Int64)',
      all.map((bounds) => bounds[side]),
    )
  const [starts, ends] = [column(0), column(1)]
  const instant = sql`toUnixTimestamp64Nano(${time})`
  return sql`${instant} < transform(roundDown(${instant}, ${starts}), ${starts}, ${ends}, toInt64(0))`
}
