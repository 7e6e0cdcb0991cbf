// Counts what is left after an erasure. It shares no statement with the eraser: it selects by tenant and time
// alone (so it also finds a row in a wrong partition), ignores what is hidden, and counts every store that
// can have telemetry. A request completes only if all of them count zero.

import { engineInstant, type TimeRange } from '../../core/time-range.ts'
import { selectOfAll } from '../../telemetry/all-tables.ts'
import type { DerivedStore } from '../../telemetry/derived-store.ts'
import { EngineError, type TelemetryEngine } from '../../telemetry/engine.ts'
import type { ActiveHold, HeldPart } from '../../telemetry/held-part.ts'
import { type TableSpec, tables, tablesOf } from '../../telemetry/schema/tables.ts'
import { Bound, raw, type Sql, sql } from '../../telemetry/sql.ts'
import type { ReadBack } from '../requests/request.ts'
import type { DeletionSelection, ErasureTarget } from '../requests/selection.ts'
import { sideTables } from './side-tables.ts'

export async function readBack(
  engine: TelemetryEngine,
  derivedStores: readonly DerivedStore[],
  tenantId: string,
  target: ErasureTarget,
): Promise<ReadBack> {
  // Counted first: a copy that is swapped in meanwhile is then counted in its table.
  const unfinished = await countInSideTables(engine, tenantId, target)
  const rowsLeft = await countInTables(engine, tenantId, target)
  for (const store of derivedStores) {
    // One count must never replace another.
    if (Object.hasOwn(rowsLeft, store.name)) throw new Error(`Two stores have the name ${store.name}.`)
    rowsLeft[store.name] = await store.count(tenantId, target, target.held)
  }
  rowsLeft.unfinished_copies = unfinished
  return { rowsLeft, isClean: Object.values(rowsLeft).every((rows) => rows === 0) }
}

/**
 * Counts what is left besides what these holds keep, and returns the ids of the holds that keep something:
 * while all of them are in force, nothing of the request becomes free.
 */
export async function readBackOutsideHolds(
  engine: TelemetryEngine,
  derivedStores: readonly DerivedStore[],
  request: DeletionSelection & { readonly tenantId: string },
  holds: readonly ActiveHold[],
): Promise<ReadBack & { readonly heldBy: readonly string[] }> {
  const count = (held: readonly ActiveHold[]) =>
    readBack(engine, derivedStores, request.tenantId, { ...request, held })
  const found = await count(holds)
  if (holds.length === 0 || sumOf(await count([])) <= sumOf(found)) return { ...found, heldBy: [] }
  const keeping = await findKeepers(engine, derivedStores, request, holds)
  const ids = holds.map(({ holdId }) => holdId)
  const known = ids.filter((holdId) => keeping.has(holdId))
  // Something is kept, so the request must not complete. Where no hold is found to keep it, any of them may.
  return { ...found, heldBy: known.length > 0 ? known : ids }
}

function sumOf({ rowsLeft }: ReadBack): number {
  return Object.values(rowsLeft).reduce((sum, rows) => sum + rows, 0)
}

/**
 * Returns the ids of the holds that cover a selected row or keep a derived record. A hold beside the
 * selection may keep an anomaly that begins inside it.
 */
async function findKeepers(
  engine: TelemetryEngine,
  derivedStores: readonly DerivedStore[],
  request: DeletionSelection & { readonly tenantId: string },
  holds: readonly ActiveHold[],
): Promise<ReadonlySet<string>> {
  const keepers = new Set<string>()
  for (const store of derivedStores) {
    for (const holdId of await store.keepers(request.tenantId, request, holds)) keepers.add(holdId)
  }
  const counted = tablesOf(request.signals)
  const filled = await selectOfAll<{ since: string }>(engine, counted, (table) =>
    filledSince(table, request, holds),
  )
  const signalOf = new Map(counted.map(({ name, signal }) => [name as string, signal]))
  for (const { holdId, range, signals } of holds) {
    const { start, end } = boundsOf(range)
    const covers = ({ since, store }: (typeof filled)[number]) =>
      signals.some((signal) => signal === signalOf.get(store)) &&
      start <= BigInt(since) &&
      BigInt(since) < end
    if (filled.some(covers)) keepers.add(holdId)
  }
  return keepers
}

/**
 * A statement that returns where the stretches with selected rows begin. Every bound of a hold begins a
 * stretch, so a hold covers each stretch wholly or not at all. The first one begins before every time.
 */
function filledSince(
  { name, signal, timeColumn }: TableSpec,
  { range, tenantId }: DeletionSelection & { readonly tenantId: string },
  holds: readonly HeldPart[],
): Sql {
  const bounds = holds
    .filter(({ signals }) => signals.includes(signal))
    .map((hold) => boundsOf(hold.range))
    .flatMap(({ start, end }) => [start, end])
  const edges = new Bound('Array(Int64)', [...new Set([earliest, ...bounds])])
  return sql`SELECT DISTINCT since FROM (${selectedRows(name, timeColumn, tenantId, range)}) AS rows
          ASOF LEFT JOIN (SELECT 1 AS one, arrayJoin(${edges}) AS since) AS edges
          ON rows.one = edges.one AND rows.instant >= edges.since`
}

/** Counts selected rows that no hold keeps, by table. */
async function countInTables(
  engine: TelemetryEngine,
  tenantId: string,
  target: ErasureTarget,
): Promise<Record<string, number>> {
  const counted = tablesOf(target.signals)
  const found = await selectOfAll<{ n: string }>(engine, counted, (table) =>
    countOf(table.name, table, tenantId, target),
  )
  const rowsOf = new Map(found.map(({ store, n }) => [store, Number(n)]))
  return Object.fromEntries(
    counted.map(({ name }) => {
      const rows = rowsOf.get(name)
      if (rows === undefined) throw new Error(`The read-back of ${name} answered nothing.`)
      return [name, rows]
    }),
  )
}

/** A statement that counts selected rows that no hold keeps as `n`, in a table or in a copy of it. */
function countOf(
  from: string,
  { signal, timeColumn }: TableSpec,
  tenantId: string,
  target: ErasureTarget,
): Sql {
  const selected = selectedRows(from, timeColumn, tenantId, target.range)
  const held = target.held.filter((part) => part.signals.includes(signal))
  return held.length === 0
    ? sql`SELECT count() AS n FROM (${selected})`
    : sql`SELECT countIf(instant >= furthest) AS n FROM (${selected}) AS rows
          ASOF LEFT JOIN (${heldUntil(held)}) AS holds ON rows.one = holds.one AND rows.instant >= holds.since`
}

/** A statement that selects the time of each selected row as `instant`. */
function selectedRows(from: string, timeColumn: string, tenantId: string, range: TimeRange): Sql {
  const since = new Bound('Nullable(String)', boundText(range.startNs))
  const until = new Bound('Nullable(String)', boundText(range.endNs))
  const time = raw(timeColumn)
  return sql`
      SELECT 1 AS one, toUnixTimestamp64Nano(${time}) AS instant FROM ${raw(from)}
      WHERE TenantId = ${tenantId}
        AND ifNull(${time} >= toDateTime64OrNull(${since}, 9, 'UTC'), 1)
        AND ifNull(${time} < toDateTime64OrNull(${until}, 9, 'UTC'), 1)`
}

/** The times that open bounds of a hold stand for. */
const [earliest, latest] = [-(2n ** 63n), 2n ** 63n - 1n]

function boundsOf({ endNs, startNs }: TimeRange): { readonly start: bigint; readonly end: bigint } {
  return { start: startNs ?? earliest, end: endNs ?? latest }
}

/**
 * A table with the start of each hold and the furthest end of the holds that start at or before it. A time is
 * held where the last start at or before it has a furthest end after it. The first row is before every time.
 */
function heldUntil(held: readonly HeldPart[]): Sql {
  const bounds = held.map(({ range }) => boundsOf(range)).toSorted((a, b) => (a.start < b.start ? -1 : 1))
  const starts = [earliest]
  const ends = [earliest]
  let furthest = earliest
  for (const { start, end } of bounds) {
    if (end > furthest) furthest = end
    if (starts.at(-1) === start) ends[ends.length - 1] = furthest
    else {
      starts.push(start)
      ends.push(furthest)
    }
  }
  const column = (values: readonly bigint[]) => new Bound('Array(Int64)', values)
  return sql`SELECT 1 AS one, since, furthest FROM (SELECT ${column(starts)} AS since, ${column(ends)} AS furthest)
          ARRAY JOIN since, furthest`
}

function boundText(ns: bigint | null): string | null {
  return ns === null ? null : engineInstant(ns)
}

/** How often the side tables are listed again because one of them disappeared while it was counted. */
const listingsMax = 20

/**
 * Counts selected rows in side tables, whichever erasure made them: a copy that is swapped in later could
 * bring them back. Other rows in a copy of a neighbour's erasure are not counted. A table may disappear or be
 * renamed at any moment, because erasures of neighbours are running; then all are listed again, so that none
 * is missed.
 */
async function countInSideTables(
  engine: TelemetryEngine,
  tenantId: string,
  target: ErasureTarget,
): Promise<number> {
  for (let listing = 1; ; listing++) {
    try {
      const copies = (await sideTables(engine))
        .map(({ name }) => ({ name, table: copiedTable(name) }))
        .filter(({ table }) => target.signals.includes(table.signal))
      const counts = await selectOfAll<{ n: string }, (typeof copies)[number]>(engine, copies, (copy) =>
        countOf(copy.name, copy.table, tenantId, target),
      )
      if (counts.length !== copies.length) throw new Error('The read-back of side tables answered nothing.')
      return counts.reduce((rows, { n }) => rows + Number(n), 0)
    } catch (error) {
      if (!isUnknownTable(error) || listing === listingsMax) throw error
    }
  }
}

/** Returns the table that a side table is a copy of. */
function copiedTable(name: string): TableSpec {
  const table = tables.find((of) => name.endsWith(`_${of.name}`))
  if (table === undefined) throw new Error(`${name} is a copy of no table.`)
  return table
}

/** ClickHouse: UNKNOWN_TABLE, TABLE_IS_DROPPED. */
const goneCodes = new Set<unknown>([60, 218])

function isUnknownTable(error: unknown): boolean {
  return error instanceof EngineError && goneCodes.has(error.code)
}
