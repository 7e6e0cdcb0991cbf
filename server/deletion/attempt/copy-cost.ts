// How many rows of a partition are copied in a given time, from its size.

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
  return Math.floor(ms / (perRow + perByte * bytesPerRow))
}
