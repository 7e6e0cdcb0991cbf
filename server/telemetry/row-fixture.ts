// Rows for tests, written by naming only the columns that matter: the rest get the empty value of their type.
// It writes past the gate and the grouped commits on purpose, so that a test of reading depends on no writer.

import { engineInstant } from '../core/time-range.ts'
import type { Cell } from './rows.ts'
import { insertColumns } from './schema/create-schema.ts'
import { type ColumnSpec, type TableName, tables } from './schema/tables.ts'
import type { TelemetryEngine, TenantPlace } from './telemetry.ts'

/** Values by column; a bigint is an instant in nanoseconds since 1970. */
export type FixtureRow = Readonly<Record<string, Cell | bigint>>

/** Commits the rows. Throws on a column that the table doesn't have. */
export async function insertFixture(
  engine: TelemetryEngine,
  place: TenantPlace,
  table: TableName,
  rows: readonly FixtureRow[],
): Promise<void> {
  const spec = tables.find(({ name }) => name === table)
  if (spec === undefined) throw new Error(`No table ${table}`)
  const known = new Set(spec.columns.map(({ name }) => name))
  const lines = rows.map((row) => {
    const foreign = Object.keys(row).find((column) => !known.has(column))
    if (foreign !== undefined) throw new Error(`${table} has no column ${foreign}`)
    const cells = spec.columns.map((column) => cellOf(column, row[column.name]))
    return JSON.stringify([place.placement, place.tenantId, ...cells])
  })
  await engine.insert(table, insertColumns(spec), Buffer.from(lines.join('\n')))
}

function cellOf({ type }: ColumnSpec, given: Cell | bigint | undefined): Cell {
  if (typeof given === 'bigint')
    return type.startsWith('DateTime64') ? engineInstant(given) : given.toString()
  if (given !== undefined) return given
  if (type.startsWith('Array')) return []
  if (type.startsWith('Map')) return {}
  if (type.startsWith('DateTime64')) return engineInstant(0n)
  if (type.startsWith('Nullable')) return null
  if (type === 'Bool') return false
  return type.includes('String') ? '' : 0
}
