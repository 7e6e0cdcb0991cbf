// Rows for tests. A test names only the columns that matter; the others get the empty value of their type. It
// writes past the gate and the group commits on purpose, so that a test of reading depends on no writer. It
// encodes by the types of the columns, so that a test of ingest does not depend on ingest's own encoder.

import { engineInstant } from '../core/time-range.ts'
import type { TelemetryEngine, TenantPlace } from './engine.ts'
import { RowBinary } from './row-binary.ts'
import { mapColumnType } from './schema/attribute-pairs.ts'
import { insertColumns } from './schema/create-schema.ts'
import { type ColumnSpec, type TableName, tables } from './schema/tables.ts'

export type AttributeMap = Readonly<Record<string, string>>

/**
 * Values of columns in a form that is easy to write: instants as text `seconds.nanoseconds`, 64-bit integers
 * as decimal text, and `nan`, `inf`, `-inf` and `-0` as text too.
 */
export type Cell = string | number | boolean | null | AttributeMap | readonly Cell[]

/** Values by column; a bigint is an instant in nanoseconds since 1970. */
export type FixtureRow = Readonly<Record<string, Cell | bigint>>

/**
 * Commits the rows. Columns that the engine can fill by itself are left to it where no row names them. Throws
 * on a column that the table doesn't have.
 */
export async function insertFixture(
  engine: TelemetryEngine,
  place: TenantPlace,
  table: TableName,
  rows: readonly FixtureRow[],
): Promise<void> {
  const spec = tables.find(({ name }) => name === table)
  if (spec === undefined) throw new Error(`No table ${table}`)
  const columns = insertColumns(spec).filter(
    ({ fallback, name }) => fallback === undefined || rows.some((row) => name in row),
  )
  await engine.insert(table, columns, [encodeFixture(columns, place, rows)])
}

/**
 * Encodes rows in RowBinary, in the order of the columns, of which the first two are placement and tenant.
 * Attributes are given as maps.
 */
export function encodeFixture(
  columns: readonly ColumnSpec[],
  place: TenantPlace,
  rows: readonly FixtureRow[],
): Buffer {
  const known = new Set(columns.map(nameOf))
  const out = new RowBinary()
  for (const row of rows) {
    const foreign = Object.keys(row).find((column) => !known.has(column))
    if (foreign !== undefined) throw new Error(`There is no column ${foreign}`)
    const placed: FixtureRow = { ...row, Placement: place.placement, TenantId: place.tenantId }
    for (const column of columns) writeCell(out, typeOf(column), cellOf(column, placed[nameOf(column)]))
  }
  return out.toBuffer()
}

const nameOf = ({ map, name }: ColumnSpec): string => map?.name ?? name
const typeOf = ({ map, type }: ColumnSpec): string => (map === undefined ? type : mapColumnType(map))

function cellOf(column: ColumnSpec, given: Cell | bigint | undefined): Cell {
  const type = typeOf(column)
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

function writeCell(out: RowBinary, type: string, cell: Cell): void {
  const [, wrapper, inner = ''] = /^(Array|Nullable|LowCardinality)\((.*)\)$/.exec(type) ?? []
  if (wrapper === 'Array') {
    if (!Array.isArray(cell)) throw new Error(`${type} takes a list`)
    out.varint(cell.length)
    for (const item of cell) writeCell(out, inner, item)
  } else if (wrapper === 'Nullable') {
    out.uint8(cell === null ? 1 : 0)
    if (cell !== null) writeCell(out, inner, cell)
  } else if (wrapper === 'LowCardinality') writeCell(out, inner, cell)
  else if (type.startsWith('Map')) {
    const texts = Object.entries(cell ?? {}).map(([key, value]) => [
      0xfe,
      ...Buffer.from(key),
      0xff,
      ...Buffer.from(value),
    ])
    const pairs = Buffer.from(texts.length === 0 ? [] : [...texts.flat(), 0xfe])
    out.varint(pairs.length)
    out.append(pairs, 0, pairs.length)
  } else writeScalar(out, type, cell)
}

function writeScalar(out: RowBinary, type: string, cell: Cell): void {
  switch (type) {
    case 'String':
      out.text(String(cell))
      break
    case 'UInt8':
    case 'Bool':
      out.uint8(Number(cell))
      break
    case 'UInt16':
      out.uint16(Number(cell))
      break
    case 'UInt32':
    case 'Int32':
      out.uint32(Number(cell))
      break
    case 'Float64':
      out.float64(floats.get(cell) ?? Number(cell))
      break
    default: {
      const integer = BigInt.asUintN(64, BigInt(type === 'UInt64' ? String(cell) : ticks(String(cell))))
      out.uint64(Number(integer >> 32n), Number(integer & 0xffff_ffffn))
      break
    }
  }
}

const floats: ReadonlyMap<Cell, number> = new Map<Cell, number>([
  ['nan', Number.NaN],
  ['inf', Number.POSITIVE_INFINITY],
  ['-inf', Number.NEGATIVE_INFINITY],
])

function ticks(instant: string): string {
  const [seconds = '0', nanos = ''] = instant.split('.')
  return `${seconds}${nanos.padEnd(9, '0')}`
}
