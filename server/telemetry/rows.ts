// Rows on their way from a decoder to the engine, already in the form the engine takes: RowBinary, the
// columns in the order of `insertColumns`, placement and tenant in each row. A batch is one request's rows:
// it is committed as a whole before the request is acknowledged, and all its rows belong to one organisation.

import { BytePool } from './byte-pool.ts'
import type { TenantPlace } from './engine.ts'
import type { TableName } from './schema/tables.ts'

/** Where and when rows are, which is all that a fence asks. */
export interface TableExtent {
  readonly table: TableName
  /** Smallest and largest event time among the rows, nanoseconds since 1970. */
  readonly minTimeNs: bigint
  readonly maxTimeNs: bigint
}

export interface TableRows extends TableExtent {
  /** Whose rows these are: the placement and tenant that are written in each. */
  readonly place: TenantPlace
  /** The rows in RowBinary, one after another. */
  readonly bytes: Buffer
  /** Three numbers a row, see {@link markLength}. */
  readonly marks: Uint32Array
}

export type RowBatch = readonly TableRows[]

/** Where decoders have `bytes` from, and where they are given back when they are committed. */
export const rowMemory = new BytePool(96 * 1024 * 1024)

/** Of each row: the offset of its end in `bytes`, then the upper and the lower half of its event time. */
export const markLength = 3

export function rowCount({ marks }: TableRows): number {
  return marks.length / markLength
}
