// Reads back after an erasure, by a path of its own: it shares no statement with the eraser, asks by tenant and
// time alone (so a row in a wrong partition is found too), looks past everything that hides, and looks at every
// store that can hold a byte of telemetry. Only a count of zero in all of them lets a request complete.

import { engineInstant } from '../core/time-range.ts'
import { type Signal, type TableSpec, tables } from '../telemetry/schema/tables.ts'
import { Bound, raw, type Sql, sql } from '../telemetry/sql.ts'
import { EngineError, type TelemetryEngine } from '../telemetry/telemetry.ts'
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
  // First: a copy that is swapped in meanwhile is then counted in its table.
  const unfinished = await countInSideTables(engine, tenantId, target)
  const rowsLeft: Record<string, number> = {}
  for (const table of tables) {
    if (!target.signals.includes(table.signal)) continue
    rowsLeft[table.name] = await countIn(engine, table.name, table, tenantId, target)
  }
  rowsLeft.anomalies = await countAnomalies(tenantId, target)
  rowsLeft.unfinished_copies = unfinished
  return { rowsLeft, isClean: Object.values(rowsLeft).every((rows) => rows === 0) }
}

/** Selected rows that no hold keeps, in a table or in a copy of it. */
async function countIn(
  engine: TelemetryEngine,
  from: string,
  { signal, timeColumn }: TableSpec,
  tenantId: string,
  target: ErasureTarget,
): Promise<number> {
  const since = new Bound('Nullable(String)', boundText(target.range.startNs))
  const until = new Bound('Nullable(String)', boundText(target.range.endNs))
  const time = raw(timeColumn)
  const [found] = await engine.select<{ n: string }>(sql`
      SELECT countIf(NOT ${heldAt(time, signal, target)}) AS n FROM ${raw(from)}
      WHERE TenantId = ${tenantId}
        AND ifNull(${time} >= toDateTime64OrNull(${since}, 9, 'UTC'), 1)
        AND ifNull(${time} < toDateTime64OrNull(${until}, 9, 'UTC'), 1)`)
  if (found === undefined) throw new Error(`The read-back of ${from} answered nothing.`)
  return Number(found.n)
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

/** How often the side tables are listed again because one of them went while it was counted. */
const listingsMax = 20

/**
 * A copy that still waits to be swapped in could bring back what it holds, whoever's erasure made it. Survivors of a
 * neighbour's erasure that this one does not select are nobody's remains. A table may go or take its other name at any
 * moment, because the erasure of a neighbour is at work: then all are listed again, so that none is passed over.
 */
async function countInSideTables(
  engine: TelemetryEngine,
  tenantId: string,
  target: ErasureTarget,
): Promise<number> {
  for (let listing = 1; ; listing++) {
    try {
      let rows = 0
      for (const { name } of await sideTables(engine)) {
        const table = tables.find((of) => name.endsWith(`_${of.name}`))
        if (table === undefined) throw new Error(`${name} is a copy of no table.`)
        if (target.signals.includes(table.signal))
          rows += await countIn(engine, name, table, tenantId, target)
      }
      return rows
    } catch (error) {
      if (!isUnknownTable(error) || listing === listingsMax) throw error
    }
  }
}

/** ClickHouse: UNKNOWN_TABLE, TABLE_IS_DROPPED. */
const goneCodes = new Set<unknown>([60, 218])

function isUnknownTable(error: unknown): boolean {
  return error instanceof EngineError && goneCodes.has(error.code)
}
