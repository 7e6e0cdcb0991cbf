// Reads encoded rows back by column name, with the types of the table list and not those of the encoder, and
// checks them against that list, for tests.

import assert from 'node:assert/strict'
import { isUtf8 } from 'node:buffer'
import type { Cell } from '../../server/telemetry/row-fixture.ts'
import { markLength, type RowBatch, type TableRows } from '../../server/telemetry/rows.ts'
import { mapColumnType } from '../../server/telemetry/schema/attribute-pairs.ts'
import { insertColumns } from '../../server/telemetry/schema/create-schema.ts'
import { type ColumnSpec, type TableName, tables } from '../../server/telemetry/schema/tables.ts'
import { here } from './decode-here.ts'
import { seriesIdOf } from './series-id-model.ts'

/**
 * Rows of one table as objects by column, without placement, tenant and the id of a metric's series, which
 * are checked here; empty when the batch has none. Instants are text `seconds.nanoseconds`, 64-bit integers
 * decimal text, and floats without a JSON number `nan`, `inf`, `-inf` and `-0`.
 */
export function namedRows(batch: RowBatch, table: TableName): Record<string, Cell>[] {
  return batch.filter((part) => part.table === table).flatMap(readRows)
}

/**
 * Fails when the bytes are not rows of their table, or when marks or time bounds differ from those of the
 * rows.
 */
export function assertBatchFits(batch: RowBatch): void {
  for (const part of batch) {
    const spec = tables.find((one) => one.name === part.table)
    assert.ok(spec)
    const times = readRows(part).map((row) => BigInt(String(row[spec.timeColumn]).replace('.', '')))
    assert.ok(times.length > 0)
    assert.deepEqual(part.place, here)
    const marked = Array.from({ length: times.length }, (_, at) => part.marks.slice(at * markLength + 1))
    assert.deepEqual(
      marked.map(([hi = 0, lo = 0]) => (BigInt(hi) << 32n) | BigInt(lo)),
      times,
    )
    times.sort((a, b) => (a < b ? -1 : a > b ? 1 : 0))
    assert.equal(part.minTimeNs, times[0])
    assert.equal(part.maxTimeNs, times.at(-1))
  }
}

function readRows(part: TableRows): Record<string, Cell>[] {
  const spec = tables.find((one) => one.name === part.table)
  assert.ok(spec)
  const columns = insertColumns(spec)
  const reader = new CellReader(part.bytes)
  const rows: Record<string, Cell>[] = []
  for (let at = 0; at < part.marks.length; at += markLength) {
    const { Placement, TenantId, SeriesId, ...row } = reader.row(columns)
    assert.deepEqual([Placement, TenantId], [part.place.placement, part.place.tenantId])
    assert.equal(SeriesId, spec.signal === 'metrics' ? seriesIdOf(row) : undefined)
    assert.equal(reader.pos, part.marks[at], 'a mark is at the end of its row')
    rows.push(row)
  }
  assert.equal(reader.pos, part.bytes.length, 'there is nothing after the last row')
  return rows
}

/** Rows in RowBinary with their placement and tenant, until the bytes end. */
export function placedRows(table: TableName, bytes: Buffer): Record<string, Cell>[] {
  const spec = tables.find((one) => one.name === table)
  assert.ok(spec)
  const reader = new CellReader(bytes)
  const rows: Record<string, Cell>[] = []
  while (reader.pos < bytes.length) rows.push(reader.row(insertColumns(spec)))
  return rows
}

class CellReader {
  readonly #bytes: Buffer
  pos = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  row(columns: readonly ColumnSpec[]): Record<string, Cell> {
    return Object.fromEntries(
      columns.map(({ name, type, map }) => [
        map?.name ?? name,
        this.#cell(map === undefined ? type : mapColumnType(map)),
      ]),
    )
  }

  #cell(type: string): Cell {
    const [, wrapper, inner = ''] = /^(Array|Nullable|LowCardinality)\((.*)\)$/.exec(type) ?? []
    if (wrapper === 'Array') return Array.from({ length: this.#varint() }, () => this.#cell(inner))
    if (wrapper === 'Nullable') return this.#flag() ? null : this.#cell(inner)
    if (wrapper === 'LowCardinality') return this.#cell(inner)
    return type.startsWith('Map(') ? this.#map() : this.#scalar(type)
  }

  /** Each pair begins with a byte 254 and has a byte 255 between key and value; a last 254 follows. */
  #map(): Cell {
    const length = this.#varint()
    const start = this.#take(length)
    const bytes = this.#bytes.subarray(start, start + length)
    if (length === 0) return {}
    assert.deepEqual([bytes[0], bytes.at(-1)], [0xfe, 0xfe])
    const entries = bytes
      .subarray(1, -1)
      .toString('latin1')
      .split('\xfe')
      .map((pair) => pair.split('\xff').map((text) => utf8Of(Buffer.from(text, 'latin1'))))
    for (const pair of entries) assert.equal(pair.length, 2)
    assert.equal(new Set(entries.map(([key]) => key)).size, entries.length, 'a key occurs once')
    return Object.fromEntries(entries)
  }

  #scalar(type: string): Cell {
    switch (type) {
      case 'String':
        return this.#text()
      case 'UInt8':
        return this.#bytes.readUInt8(this.#take(1))
      case 'Bool':
        return this.#flag()
      case 'UInt16':
        return this.#bytes.readUInt16LE(this.#take(2))
      case 'UInt32':
        return this.#bytes.readUInt32LE(this.#take(4))
      case 'Int32':
        return this.#bytes.readInt32LE(this.#take(4))
      case 'UInt64':
        return String(this.#bytes.readBigUInt64LE(this.#take(8)))
      case 'Float64':
        return floatCell(this.#bytes.readDoubleLE(this.#take(8)))
      case "DateTime64(9, 'UTC')":
        return this.#instant()
      default:
        throw new Error(`No way to read ${type}`)
    }
  }

  #instant(): string {
    const digits = String(this.#bytes.readBigInt64LE(this.#take(8))).padStart(19, '0')
    return `${digits.slice(0, -9)}.${digits.slice(-9)}`
  }

  #flag(): boolean {
    const byte = this.#bytes.readUInt8(this.#take(1))
    assert.ok(byte < 2)
    return byte === 1
  }

  #text(): string {
    const length = this.#varint()
    const start = this.#take(length)
    return utf8Of(this.#bytes.subarray(start, start + length))
  }

  #varint(): number {
    let value = 0
    for (let shift = 1; ; shift *= 128) {
      const byte = this.#bytes.readUInt8(this.#take(1))
      value += (byte & 127) * shift
      if (byte < 128) return value
    }
  }

  #take(count: number): number {
    const at = this.pos
    this.pos += count
    assert.ok(this.pos <= this.#bytes.length, 'a row ends where its bytes end')
    return at
  }
}

function utf8Of(bytes: Buffer): string {
  assert.ok(isUtf8(bytes), 'a text is UTF-8')
  return bytes.toString()
}

function floatCell(value: number): Cell {
  if (Number.isFinite(value)) return Object.is(value, -0) ? '-0' : value
  return Number.isNaN(value) ? 'nan' : value > 0 ? 'inf' : '-inf'
}
