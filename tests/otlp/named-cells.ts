// Reading decoded rows by column name, and checking them against the table list, for tests.

import assert from 'node:assert/strict'
import type { Cell, RowBatch } from '../../server/telemetry/rows.ts'
import { type ColumnSpec, type TableName, tables } from '../../server/telemetry/schema/tables.ts'

/** Rows of one table as objects by column; empty when the batch has none. Attribute maps become plain objects. */
export function namedRows(batch: RowBatch, table: TableName): Record<string, unknown>[] {
  const columns = columnsOf(table)
  const rows = batch.find((part) => part.table === table)?.rows ?? []
  return rows.map((row) => Object.fromEntries(columns.map((column, at) => [column.name, plain(row[at])])))
}

/** Fails when a cell isn't what its column's type may hold, or when the time bounds are not those of the rows. */
export function assertBatchFits(batch: RowBatch): void {
  for (const { table, rows, minTimeNs, maxTimeNs } of batch) {
    const spec = tables.find((one) => one.name === table)
    assert.ok(spec)
    const timeAt = spec.columns.findIndex((column) => column.name === spec.timeColumn)
    const times: bigint[] = []
    for (const row of rows) {
      assert.equal(row.length, spec.columns.length, table)
      for (const [at, column] of spec.columns.entries()) assertCellFits(row[at], column.type, column.name)
      times.push(BigInt(String(row[timeAt]).replace('.', '')))
    }
    assert.ok(rows.length > 0)
    times.sort((a, b) => (a < b ? -1 : a > b ? 1 : 0))
    assert.equal(minTimeNs, times[0])
    assert.equal(maxTimeNs, times.at(-1))
  }
}

function columnsOf(table: TableName): readonly ColumnSpec[] {
  return tables.find((one) => one.name === table)?.columns ?? []
}

function plain(cell: Cell | undefined): unknown {
  if (Array.isArray(cell)) return cell.map(plain)
  return typeof cell === 'object' && cell !== null ? Object.fromEntries(Object.entries(cell)) : cell
}

function assertCellFits(cell: unknown, type: string, name: string): void {
  const item = /^Array\((.*)\)$/.exec(type)?.[1]
  const inner = /^(?:Nullable|LowCardinality)\((.*)\)$/.exec(type)?.[1]
  if (item !== undefined) {
    assert.ok(Array.isArray(cell), name)
    for (const one of cell) assertCellFits(one, item, name)
  } else if (inner !== undefined) {
    if (cell !== null || !type.startsWith('Nullable')) assertCellFits(cell, inner, name)
  } else if (type.startsWith('Map(')) assertMap(cell, name)
  else assert.ok(scalarFits(cell, type), `${name} (${type}) holds ${String(cell)}`)
}

function assertMap(cell: unknown, name: string): void {
  assert.ok(
    typeof cell === 'object' && cell !== null && Object.getPrototypeOf(Object.getPrototypeOf(cell)) === null,
  )
  for (const value of Object.values(cell)) assert.equal(typeof value, 'string', name)
}

function scalarFits(cell: unknown, type: string): boolean {
  switch (type) {
    case "DateTime64(9, 'UTC')":
      return typeof cell === 'string' && /^\d{10}\.\d{9}$/.test(cell)
    case 'String':
      return typeof cell === 'string' && cell.isWellFormed()
    case 'UInt64':
      return typeof cell === 'string' && /^\d{1,20}$/.test(cell) && BigInt(cell) < 2n ** 64n
    case 'Float64':
      return typeof cell === 'number'
        ? Number.isFinite(cell)
        : ['nan', 'inf', '-inf', '-0'].includes(String(cell))
    case 'Bool':
      return typeof cell === 'boolean'
    default:
      return integerFits(cell, type)
  }
}

function integerFits(cell: unknown, type: string): boolean {
  const [low, high] =
    { UInt8: [0, 255], UInt32: [0, 2 ** 32 - 1], Int32: [-(2 ** 31), 2 ** 31 - 1] }[type] ?? []
  return typeof cell === 'number' && Number.isInteger(cell) && cell >= Number(low) && cell <= Number(high)
}
