// Rows on their way from a decoder to the engine. A decoder names values by column; the engine port adds
// placement and tenant and encodes. A batch is one request's rows: it is committed as a whole before the
// request is acknowledged, and all its rows belong to one organisation.

import type { TableName } from './schema/tables.ts'

/** An OTLP attribute set as the engine holds it: every value as text (objects and arrays as JSON text). */
export type AttributeMap = Record<string, string>

/**
 * What a column may hold on its way in. Instants are text `ssssssssss.nnnnnnnnn` with the seconds padded to ten digits: the engine refuses or, worse, misreads fewer. 64-bit
 * integers are decimal text; NaN, infinities and negative zero are the text `nan`, `inf`, `-inf`, `-0`, because JSON has no
 * number for them and a silent null would be a lie.
 */
export type Cell = string | number | boolean | null | AttributeMap | readonly Cell[]

/** Values in the order of the table's `columns` (without placement and tenant). */
export type Row = readonly Cell[]

export interface TableRows {
  readonly table: TableName
  readonly rows: readonly Row[]
  /** Smallest and largest event time among `rows`, nanoseconds since 1970; what a fence is compared with. */
  readonly minTimeNs: bigint
  readonly maxTimeNs: bigint
}

export type RowBatch = readonly TableRows[]
