// Limits the weeks of the rows of one HTTP request. Each week of a table is a partition, and each partition
// in a commit costs the engine some 12 ms, however few rows it has. So a few kilobytes of rows that are a
// week apart would make every organisation wait: 24 seconds for 2,000 of them, as measured.

import { AppError } from '../../core/app-error.ts'
import { markLength, type RowBatch, type TableRows } from '../../telemetry/rows.ts'

/** A little more than two years of one signal in one body. */
export const partitionsMax = 128

const nsPerWeek = 604_800_000_000_000n

/** 1970-01-01 was a Thursday; weeks begin on Mondays. */
const mondayShiftNs = 3n * 86_400_000_000_000n

/**
 * Throws `body_too_large` where the rows are in more than {@link partitionsMax} weeks, counted for each
 * table.
 */
export function requireFewPartitions(batch: RowBatch): void {
  // Where even the whole time range has few weeks, which is nearly always so, no row is read.
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
