// One statement over several telemetry tables. A statement costs the engine some milliseconds before it reads
// anything, and many times as much while the machine is busy, so an erasure that asked each table on its own
// would take longest where others use the service most.

import { type TelemetryEngine, usualLimits } from './engine.ts'
import type { TableSpec } from './schema/tables.ts'
import { join, type Sql, sql } from './sql.ts'

/**
 * Runs a reading statement for each of the tables, as one, and returns the rows of all, in any order, with
 * the table that each is of. All must have the same columns. The limit of time is that of as many statements.
 */
export async function selectOfAll<Row, Table extends { readonly name: string } = TableSpec>(
  engine: TelemetryEngine,
  tables: readonly Table[],
  statement: (table: Table) => Sql,
): Promise<readonly (Row & { readonly store: string })[]> {
  if (tables.length === 0) return []
  const each = tables.map((table) => sql`SELECT ${table.name} AS store, * FROM (${statement(table)})`)
  const limits = { ...usualLimits, maxSeconds: usualLimits.maxSeconds * tables.length }
  return await engine.select(sql`SELECT * FROM (${join(each, ' UNION ALL ')})`, limits)
}
