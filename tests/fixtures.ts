// What tests of several rooms need: throw-away stores, and rows that are easy to recognise. Every option that a
// test passes means something to that test; everything else has a default here.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pino from 'pino'
import type { Control } from '../server/control/database.ts'
import { migrate } from '../server/control/migrate.ts'
import { openSqlite } from '../server/control/sqlite.ts'
import { engineInstant } from '../server/core/time-range.ts'
import { openChdb } from '../server/telemetry/chdb.ts'
import type { Cell, Row, TableRows } from '../server/telemetry/rows.ts'
import { insertColumns } from '../server/telemetry/schema/create-schema.ts'
import { type TableName, type TableSpec, tables } from '../server/telemetry/schema/tables.ts'
import type { TelemetryEngine, TenantPlace } from '../server/telemetry/telemetry.ts'

export const silent = pino({ level: 'silent' })

export interface Stores {
  readonly folder: string
  readonly engine: TelemetryEngine
  readonly control: Control
  close(): Promise<void>
}

/** An empty engine and control plane in a temporary folder. One at a time per process: that is the engine's rule. */
export async function openStores(): Promise<Stores> {
  const folder = temporaryFolder()
  const engine = await openChdb({ folder, maxMemoryBytes: 2 ** 30 })
  const control = openSqlite(join(folder, 'control.db'))
  await migrate(control)
  return {
    folder,
    engine,
    control,
    async close() {
      await engine.close()
      await control.destroy()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

export function temporaryFolder(): string {
  return mkdtempSync(join(tmpdir(), 'lethe-test-'))
}

export function tableSpec(name: TableName): TableSpec {
  const spec = tables.find((table) => table.name === name)
  if (spec === undefined) throw new Error(`There is no table ${name}.`)
  return spec
}

/** A row with the given columns, and the engine's empty value for the rest. */
export function rowOf(name: TableName, timeNs: bigint, columns: Readonly<Record<string, Cell>> = {}): Row {
  const spec = tableSpec(name)
  return spec.columns.map(({ name: column, type }) => {
    if (column === spec.timeColumn) return engineInstant(timeNs)
    return columns[column] ?? emptyCell(type)
  })
}

function emptyCell(type: string): Cell {
  if (type.startsWith('Map')) return {}
  if (type.startsWith('Array')) return []
  if (type.startsWith('Nullable')) return null
  if (type.startsWith('DateTime64')) return '0000000000.000000000'
  if (type === 'Bool') return false
  return type.includes('String') ? '' : 0
}

/** Rows of one table as a batch part, with their extent in time. */
export function batchOf(
  table: TableName,
  timesNs: readonly bigint[],
  columns: Readonly<Record<string, Cell>> = {},
): TableRows {
  const sorted = timesNs.toSorted((a, b) => (a < b ? -1 : a > b ? 1 : 0))
  return {
    table,
    rows: timesNs.map((timeNs) => rowOf(table, timeNs, columns)),
    minTimeNs: sorted[0] ?? 0n,
    maxTimeNs: sorted.at(-1) ?? 0n,
  }
}

/** Puts rows into the engine past the writer, for tests that don't test the writer. */
export async function insertRows(
  engine: TelemetryEngine,
  place: TenantPlace,
  part: TableRows,
): Promise<void> {
  const lines = part.rows.map((row) => JSON.stringify([place.placement, place.tenantId, ...row]))
  await engine.insert(part.table, insertColumns(tableSpec(part.table)), Buffer.from(lines.join('\n')))
}
