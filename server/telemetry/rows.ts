// Rows between a decoder and the engine, already in the engine's input format: RowBinary, the columns in the
// order of `insertColumns`, placement and tenant in each row. A batch has the rows of one HTTP request. It is
// committed as a whole before the response, and all its rows belong to one organisation.

import { BytePool } from './byte-pool.ts'
import type { TenantPlace } from './engine.ts'
import type { TableName } from './schema/tables.ts'

/** Placement, signal and time of rows: all that a fence needs. */
export interface TableExtent {
  readonly table: TableName
  /** Smallest and largest event time among the rows, nanoseconds since 1970. */
  readonly minTimeNs: bigint
  readonly maxTimeNs: bigint
}

export interface TableRows extends TableExtent {
  /** The organisation of the rows: placement and tenant are also written in each row. */
  readonly place: TenantPlace
  /** The rows in RowBinary, one after another. */
  readonly bytes: Buffer
  /** Three numbers for each row, see {@link markLength}. */
  readonly marks: Uint32Array
}

export type RowBatch = readonly TableRows[]

/** The pool from which decoders take `bytes`, and to which they are given back after the commit. */
export const rowMemory = new BytePool(96 * 1024 * 1024)

/** For each row: the offset of its end in `bytes`, then the upper and the lower half of its event time. */
export const markLength = 3

export function rowCount({ marks }: TableRows): number {
  return marks.length / markLength
}
