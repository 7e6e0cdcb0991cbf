// Divides a partition into pieces, consecutive parts of it, by the engine's block numbers. Each insert of a
// part takes the next number, a merge makes a part of all blocks from its first to its last one, and a part
// never changes. So a piece has the same rows whenever it is read, until a merge puts other rows into one
// part with some of them, or something else changes it. isUnchanged sees both afterwards: a part reaches over
// the edge of the piece and always will, or its rows or its mutation differ.

import type { TelemetryEngine } from '../../telemetry/engine.ts'
import { Bound, join, raw, type Sql, sql } from '../../telemetry/sql.ts'

interface Blocks {
  readonly first: number
  readonly last: number
}

/** An active part, or several consecutive ones together. */
export interface Piece extends Blocks {
  readonly rows: number
  /** Number of the last mutation that changed it; 0 for none. */
  readonly mutation: number
}

/** An active part of a table, or of a copy of it. */
export interface ActivePart extends Piece {
  readonly name: string
  /** Compressed. */
  readonly bytes: number
  /** A hash of all its files: parts with the same one have the same rows. */
  readonly contents: string
}

/** Returns the active parts of a partition in the order of their blocks. */
export async function activeParts(
  engine: TelemetryEngine,
  table: string,
  partitionId: string,
): Promise<readonly ActivePart[]> {
  const parts = await engine.select<Record<keyof ActivePart, string>>(
    sql`SELECT name, toString(min_block_number) AS first, toString(max_block_number) AS last, toString(rows) AS rows,
        toString(if(data_version > max_block_number, data_version, 0)) AS mutation,
        toString(bytes_on_disk) AS bytes, hash_of_all_files AS contents
      FROM system.parts
      WHERE database = currentDatabase() AND table = ${table} AND partition_id = ${partitionId} AND active
      ORDER BY min_block_number`,
  )
  return parts.map(({ bytes, contents, first, last, mutation, name, rows }) => ({
    name,
    contents,
    first: Number(first),
    last: Number(last),
    rows: Number(rows),
    bytes: Number(bytes),
    mutation: Number(mutation),
  }))
}

/** Returns the blocks that each merge in progress will make one part of. */
export async function mergesIn(
  engine: TelemetryEngine,
  table: string,
  partitionId: string,
): Promise<readonly Blocks[]> {
  const merges = await engine.select<{ name: string }>(
    sql`SELECT result_part_name AS name FROM system.merges
      WHERE database = currentDatabase() AND table = ${table} AND partition_id = ${partitionId}`,
  )
  return merges.map(({ name }) => blocksOf(name))
}

/** Returns the blocks of a part: its name is `<partition id>_<first block>_<last block>_<level>`. */
export function blocksOf(name: string): Blocks {
  const [, first, last] = name.split('_')
  return { first: Number(first), last: Number(last) }
}

/** Whether one of the parts has replaced another one: it has all of its blocks. */
export function hasReplaced(parts: readonly Blocks[]): boolean {
  let furthest = Number.NEGATIVE_INFINITY
  return parts
    .toSorted((a, b) => a.first - b.first || b.last - a.last)
    .some(({ last }) => {
      const isReplaced = last <= furthest
      furthest = Math.max(furthest, last)
      return isReplaced
    })
}

/**
 * Divides the parts that are in none of the pieces into new ones. Each has at least half of what is left, so
 * the later ones are small: the youngest parts are merged soon with what arrives next, and a small piece is
 * copied again at little cost. None has less than `rowsMin` rows, except the last of several, and none ends
 * inside a merge in progress. A last one with less than `rowsLeft` rows is left out.
 */
export function newPieces(
  parts: readonly Piece[],
  pieces: readonly Blocks[],
  merges: readonly Blocks[],
  { rowsLeft, rowsMin }: { readonly rowsMin: number; readonly rowsLeft: number },
): readonly Piece[] {
  const found: Piece[] = []
  for (const gap of gapsBetween(parts, pieces)) {
    let left = rowsOf(gap)
    let open: Piece | null = null
    for (const part of gap) {
      open = open === null ? part : together(open, part)
      const isMerged = merges.some(({ first, last }) => first <= part.last && part.last < last)
      if (isMerged || open.rows < Math.max(left / 2, rowsMin)) continue
      found.push(open)
      left -= open.rows
      open = null
    }
    if (open !== null && open.rows >= rowsLeft) found.push(open)
  }
  return found
}

/** Returns the parts that are in the piece. */
export function partsIn<P extends Blocks>(piece: Blocks, parts: readonly P[]): readonly P[] {
  return parts.filter((part) => contains(piece, part))
}

/** Returns the parts that are in none of the pieces. */
export function partsOutside<P extends Blocks>(parts: readonly P[], pieces: readonly Blocks[]): readonly P[] {
  return parts.filter((part) => !pieces.some((piece) => contains(piece, part)))
}

/** Returns the parts that are in none of the pieces, those without a piece between them together. */
function gapsBetween(parts: readonly Piece[], pieces: readonly Blocks[]): readonly (readonly Piece[])[] {
  const gaps: Piece[][] = [[]]
  for (const part of parts) {
    if (pieces.some((piece) => contains(piece, part))) gaps.push([])
    else gaps.at(-1)?.push(part)
  }
  return gaps.filter((gap) => gap.length > 0)
}

/** Returns the number of rows of the parts that are in none of the pieces. */
export function rowsOutside(parts: readonly Piece[], pieces: readonly Blocks[]): number {
  return rowsOf(partsOutside(parts, pieces))
}

/** Whether the piece still has exactly the rows that it had, in parts of its own. */
export function isUnchanged(piece: Piece, parts: readonly Piece[]): boolean {
  const own = partsIn(piece, parts)
  return rowsOf(own) === piece.rows && Math.max(0, ...own.map(({ mutation }) => mutation)) === piece.mutation
}

/**
 * Joins pieces whose rows a merge has put into one part: together they still have exactly their rows, and so
 * isUnchanged is true of them if nothing else is in that part. In the order of their blocks.
 */
export function joinMerged<P extends Piece>(
  pieces: readonly P[],
  parts: readonly Piece[],
  join: (a: P, b: P) => P,
): readonly P[] {
  const joined: P[] = []
  for (const piece of pieces.toSorted((a, b) => a.first - b.first)) {
    const before = joined.at(-1)
    const isMerged = parts.some(
      (part) => before !== undefined && part.first <= before.last && piece.first <= part.last,
    )
    if (before !== undefined && isMerged) joined[joined.length - 1] = join(before, piece)
    else joined.push(piece)
  }
  return joined
}

/** Two pieces as one. No block between them has rows. */
export function together(a: Piece, b: Piece): Piece {
  return {
    first: a.first,
    last: b.last,
    rows: a.rows + b.rows,
    mutation: Math.max(a.mutation, b.mutation),
  }
}

export function rowsOf(parts: readonly { readonly rows: number }[]): number {
  return parts.reduce((sum, { rows }) => sum + rows, 0)
}

/** A condition that is true for rows in parts of the piece. */
export function inPiece({ first, last }: Blocks): Sql {
  const bound = (block: number) => new Bound('Int64', block.toString())
  const block = (index: 2 | 3) => raw(`toInt64(splitByChar('_', _part)[${index}])`)
  return sql`(${block(2)} >= ${bound(first)} AND ${block(3)} <= ${bound(last)})`
}

/**
 * A condition that is true for all other rows of the table. Where a merge mixes rows of a piece with others,
 * all of that part are among them: so together with the pieces there may be rows twice, but none is missing.
 */
export function outsideOf(pieces: readonly Blocks[]): Sql {
  return sql`NOT (${join(pieces.map(inPiece), ' OR ', raw('0'))})`
}

function contains(piece: Blocks, part: Blocks): boolean {
  return piece.first <= part.first && part.last <= piece.last
}
