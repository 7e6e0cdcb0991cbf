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
