// What the copy of rows costs, from the size of their partition or part.

import type { PartitionSize } from '../../telemetry/partitions.ts'

/**
 * What an INSERT from SELECT takes on a core of its own, milliseconds: a part for each row, and one for each
 * compressed byte (docs/decisions/0046).
 */
const perRow = 0.002
const perByte = 0.0001

/** Returns the rows of the partition that are copied in `ms` milliseconds. */
export function rowsCopiedIn(ms: number, { bytes, rows }: PartitionSize): number {
  const bytesPerRow = rows === 0 ? 0 : bytes / rows
  return Math.floor(ms / copyMs({ rows: 1, bytes: bytesPerRow }))
}

/** Returns how long an INSERT from SELECT of so many rows and bytes takes, milliseconds. */
export function copyMs({ bytes, rows }: PartitionSize): number {
  return perRow * rows + perByte * bytes
}

/**
 * A copy that takes longer than this is large, milliseconds, as estimated: attempts make only one at a time.
 */
export const largeCopyMs = 2000

/**
 * Others wait for the slice of a piece that is being copied. Each slice adds a part to the copy, and a part
 * adds some milliseconds to the swap under the lock; an INSERT of more than a million rows makes several
 * parts itself. So a piece has at most this many slices, until each takes the longest time.
 */
const slicesMax = 16
const [shortestSliceMs, longestSliceMs] = [1000, 4000] as const

/** Returns how long a slice may take of a piece that takes `pieceMs`, milliseconds. */
export function usualSliceMs(pieceMs: number): number {
  return Math.max(shortestSliceMs, Math.min(pieceMs / slicesMax, longestSliceMs))
}
