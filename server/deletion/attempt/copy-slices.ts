// Divides a piece of a partition into slices, each copied by a statement of its own, so that others need not
// wait for the whole piece. A row is in one slice at most, however parts are merged meanwhile: a slice has
// either all rows of some blocks or a range of rows of one part, and a part never changes. Where a merge has
// taken parts of a slice, its rows are missing from the copy, and its count shows that.

import { type Sql, sql, uint } from '../../telemetry/sql.ts'
import { copyMs, usualSliceMs } from './copy-cost.ts'
import { type ActivePart, inPiece, type Piece, partsIn, together } from './pieces.ts'

/**
 * Returns the conditions of the slices of a piece, in the order of its blocks.
 *
 * @param parts the active parts of the partition, in the order of their blocks
 * @param sliceMsOf returns how long a slice may take of a piece that takes so long, milliseconds
 */
export function slicesOfPiece(
  piece: Piece,
  parts: readonly ActivePart[],
  sliceMsOf: (pieceMs: number) => number = usualSliceMs,
): readonly Sql[] {
  const own = partsIn(piece, parts)
  const maxMs = sliceMsOf(own.reduce((sum, part) => sum + copyMs(part), 0))
  const slices: Sql[] = []
  let open: { readonly piece: Piece; readonly ms: number } | null = null
  const close = () => {
    if (open !== null) slices.push(inPiece(open.piece))
    open = null
  }
  for (const part of own) {
    const ms = copyMs(part)
    if (open !== null && open.ms + ms > maxMs) close()
    if (ms > maxMs) slices.push(...slicesOfPart(part, Math.min(part.rows, Math.ceil(ms / maxMs))))
    else open = open === null ? { piece: part, ms } : { piece: together(open.piece, part), ms: open.ms + ms }
  }
  close()
  return slices
}

function slicesOfPart({ name, rows }: ActivePart, count: number): readonly Sql[] {
  const edge = (i: number) => Math.round((rows * i) / count)
  return Array.from(
    { length: count },
    (_, i) =>
      sql`(_part = ${name} AND _part_offset >= ${uint(edge(i))} AND _part_offset < ${uint(edge(i + 1))})`,
  )
}
