// A bound on the weeks that one request may touch. Each week of a table is a partition, and each partition
// that a commit touches costs the engine some 12 ms whatever is in it, so a few kilobytes of rows that are a
// week apart would keep every organisation waiting: 2,000 of them for 24 seconds, where this was measured.

import { AppError } from '../../core/app-error.ts'
import { markLength, type RowBatch, type TableRows } from '../../telemetry/rows.ts'

/** Two years of one signal in one body, and a little more. */
export const partitionsMax = 128

const nsPerWeek = 604_800_000_000_000n

/** 1970-01-01 was a Thursday; weeks begin on Mondays. */
const mondayShiftNs = 3n * 86_400_000_000_000n

/**
 * Throws `body_too_large` where the rows are spread over more than {@link partitionsMax} weeks, table by
 * table.
 */
export function requireFewPartitions(batch: RowBatch): void {
  // Where even the whole extent has few weeks, which is nearly always so, no row is looked at.
  const atMost = batch.reduce(
    (sum, { minTimeNs, maxTimeNs }) => sum + Number((maxTimeNs - minTimeNs) / nsPerWeek) + 2,
    0,
  )
  if (atMost <= partitionsMax) return
  const partitions = batch.reduce((sum, part) => sum + weeksOf(part), 0)
  if (partitions <= partitionsMax) return
  throw new AppError('body_too_large', {
    sentence: `The rows of this request are of ${partitions} weeks; send at most ${partitionsMax} weeks at once.`,
  })
}

function weeksOf({ marks }: TableRows): number {
  const weeks = new Set<bigint>()
  for (let at = 0; at < marks.length; at += markLength) {
    const timeNs = (BigInt(marks[at + 1] ?? 0) << 32n) | BigInt(marks[at + 2] ?? 0)
    weeks.add((timeNs + mondayShiftNs) / nsPerWeek)
  }
  return weeks.size
}
