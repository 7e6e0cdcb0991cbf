// Plans an erasure: reads from the engine which partitions have selected rows, and how many. Whether a
// partition is dropped or rewritten is decided later, under the lock of its placement, by counting again.

import { overlaps, type TimeRange, union } from '../../core/time-range.ts'
import { Pace } from '../../core/turns/pace.ts'
import { selectOfAll } from '../../telemetry/all-tables.ts'
import type { TelemetryEngine, TenantPlace } from '../../telemetry/engine.ts'
import type { RowWeights } from '../../telemetry/row-weights.ts'
import { type TableSpec, tablesOf } from '../../telemetry/schema/tables.ts'
import { allOf, Bound, raw, type Sql, sql, uint } from '../../telemetry/sql.ts'
import { rangeCondition } from '../../telemetry/tenant-reader.ts'
import type { ErasureTarget } from '../requests/selection.ts'

/** A part to erase from: a partition of a telemetry table, or a derived store (no partition). */
export interface PlannedStep {
  readonly store: string
  readonly partitionId: string | null
  /** Selected rows. */
  readonly rows: number
  /** Their size on disk, estimated from what the organisation may know. */
  readonly bytes: number
}

/**
 * Returns the partitions that have selected rows, ordered by table, then oldest week first. Empty where there
 * are none.
 */
export async function planErasure(
  engine: TelemetryEngine,
  place: TenantPlace,
  target: ErasureTarget,
  weights: RowWeights,
): Promise<PlannedStep[]> {
  const planned = tablesOf(target.signals)
  const found = await selectOfAll<{ partition_id: string; selected: string }>(
    engine,
    planned,
    (table) => sql`
      SELECT _partition_id AS partition_id, count() AS selected
      FROM ${raw(table.name)}
      WHERE Placement = ${uint(place.placement)} AND ${selectedIn(table, place.tenantId, target)}
      GROUP BY partition_id`,
  )
  const perTable = Map.groupBy(found, ({ store }) => store)
  const steps: PlannedStep[] = []
  // A table may have nine thousand partitions.
  const pace = new Pace()
  for (const { name } of planned) {
    if (pace.isOver()) await pace.turn()
    const oldestFirst = (perTable.get(name) ?? []).toSorted((a, b) =>
      a.partition_id < b.partition_id ? -1 : 1,
    )
    for (const { store, partition_id, selected } of oldestFirst) {
      const rows = Number(selected)
      steps.push({ store, partitionId: partition_id, rows, bytes: weights(store, partition_id, rows) })
    }
  }
  return steps
}

/**
 * A condition that is true exactly for rows that are to be erased now: selected, and not under a legal hold.
 */
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
 * A condition that is true for times in one of the ranges: the last range that starts at or before the time
 * ends after it. The engine finds that start by binary search, so a thousand ranges cost little more per row
 * than one; as separate conditions they would take minutes to plan. The first start is before all times, so
 * there always is one.
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
