// Reads back after an erasure, by a path of its own: it shares no statement with the eraser, asks by tenant and
// time alone (so a row in a wrong partition is found too), looks past everything that hides, and looks at every
// store that can hold a byte of telemetry. Only a count of zero in all of them lets a request complete.

import { engineInstant } from '../core/time-range.ts'
import { type Signal, tables } from '../telemetry/schema/tables.ts'
import { Bound, raw, type Sql, sql } from '../telemetry/sql.ts'
import type { TelemetryEngine } from '../telemetry/telemetry.ts'
import type { ErasureTarget, HeldPart } from './deletion.ts'
import { sideTables } from './eraser.ts'

/** Counts anomalies that were derived from the target. */
export type CountAnomalies = (tenantId: string, target: ErasureTarget) => Promise<number>

export interface ReadBack {
  /** Rows found per store; every selected store is present, also at zero. */
  readonly rowsLeft: Readonly<Record<string, number>>
  readonly isClean: boolean
}

export async function readBack(
  engine: TelemetryEngine,
  countAnomalies: CountAnomalies,
  tenantId: string,
  target: ErasureTarget,
): Promise<ReadBack> {
  const rowsLeft: Record<string, number> = {}
  for (const table of tables) {
    if (!target.signals.includes(table.signal)) continue
    const from = new Bound('Nullable(String)', boundText(target.range.startNs))
    const to = new Bound('Nullable(String)', boundText(target.range.endNs))
    const time = raw(table.timeColumn)
    const [found] = await engine.select<{ n: string }>(sql`
      SELECT countIf(NOT ${heldAt(time, table.signal, target)}) AS n FROM ${raw(table.name)}
      WHERE TenantId = ${tenantId}
        AND ifNull(${time} >= toDateTime64OrNull(${from}, 9, 'UTC'), 1)
        AND ifNull(${time} < toDateTime64OrNull(${to}, 9, 'UTC'), 1)`)
    if (found === undefined) throw new Error(`The read-back of ${table.name} answered nothing.`)
    rowsLeft[table.name] = Number(found.n)
  }
  rowsLeft.anomalies = await countAnomalies(tenantId, target)
  rowsLeft.unfinished_copies = await ownRowsInSideTables(engine, tenantId)
  return { rowsLeft, isClean: Object.values(rowsLeft).every((rows) => rows === 0) }
}

/** Whether a legal hold keeps a row, found by counting the held ranges around it. */
function heldAt(time: Sql, signal: Signal, target: ErasureTarget): Sql {
  const held = target.held.filter((part) => part.signals.includes(signal))
  const [earliest, latest] = [-(2n ** 63n), 2n ** 63n - 1n]
  const bounds = (of: (part: HeldPart) => bigint | null, open: bigint) =>
    new Bound(
      'Array(Int64)',
      held.map((part) => of(part) ?? open),
    )
  const starts = bounds((part) => part.range.startNs, earliest)
  const ends = bounds((part) => part.range.endNs, latest)
  return sql`arrayExists((since, until) -> toUnixTimestamp64Nano(${time}) >= since AND toUnixTimestamp64Nano(${time}) < until, ${starts}, ${ends})`
}

function boundText(ns: bigint | null): string | null {
  return ns === null ? null : engineInstant(ns)
}

/** A copy that still waits to be swapped in could bring back what it holds, whoever's erasure made it. */
async function ownRowsInSideTables(engine: TelemetryEngine, tenantId: string): Promise<number> {
  let rows = 0
  for (const { name } of await sideTables(engine)) {
    const [found] = await engine.select<{ n: string }>(
      sql`SELECT count() AS n FROM ${raw(name)} WHERE TenantId = ${tenantId}`,
    )
    rows += Number(found?.n ?? 0)
  }
  return rows
}
