// Counts the weeks of rows. Each week of a table is a partition, and each partition in a commit costs the
// engine 6 to 12 ms, however few rows it has. So a few kilobytes of rows that are a week apart would make
// every organisation wait: 24 seconds for 2,000 of them, as measured. One HTTP request has a limit;
// commit-cost.ts weighs the weeks of several.

import { AppError } from '../../core/app-error.ts'
import { markLength, type RowBatch, type TableRows } from '../../telemetry/rows.ts'
import { type TableName, tables } from '../../telemetry/schema/tables.ts'

/** A little more than two years of one signal in one body. */
export const partitionsMax = 128

const nsPerWeek = 604_800_000_000_000n

/** A week is a whole number of units of 65,536 ns, and so are the three days of {@link mondayShift}. */
const unitsPerWeek = 9_228_515_625

/** 1970-01-01 was a Thursday; weeks begin on Mondays. */
const mondayShift = (unitsPerWeek / 7) * 3

/** More than the weeks that a table can have. */
const weeksOfTable = 16_384

const numberOf = new Map(tables.map(({ name }, at) => [name, at]))

/**
 * Returns the number of the week, counted from the one of 1970-01-01. Exact, without a bigint for each row.
 *
 * @param upper upper half of an event time in nanoseconds
 */
function weekOf(upper: number, lower: number): number {
  return Math.floor((upper * 65_536 + (lower >>> 16) + mondayShift) / unitsPerWeek)
}

function weekOfNs(timeNs: bigint): number {
  return weekOf(Number(timeNs >> 32n), Number(timeNs & 0xffff_ffffn))
}

/** Returns a number for a table and week. Rows of one placement with the same number share a partition. */
export function partitionOf(table: TableName, upper: number, lower: number): number {
  return (numberOf.get(table) ?? 0) * weeksOfTable + weekOf(upper, lower)
}

/** Returns {@link partitionOf} an instant in milliseconds since 1970. */
export function partitionAt(table: TableName, timeMs: number): number {
  return (numberOf.get(table) ?? 0) * weeksOfTable + weekOfNs(BigInt(timeMs) * 1_000_000n)
}

/** Returns the number of the table of a partition, and that of its week. */
export function tableAndWeek(partition: number): { readonly table: number; readonly week: number } {
  return { table: Math.floor(partition / weeksOfTable), week: partition % weeksOfTable }
}

/** Returns the partitions of rows, see {@link partitionOf}. Rows of one week or two are not read. */
export function partitionsOf({ table, marks, minTimeNs, maxTimeNs }: TableRows): ReadonlySet<number> {
  if (marks.length === 0) return new Set()
  const first = (numberOf.get(table) ?? 0) * weeksOfTable
  const [least, most] = [weekOfNs(minTimeNs), weekOfNs(maxTimeNs)]
  if (most - least < 2) return new Set([first + least, first + most])
  const found = new Set<number>()
  let latest = -1
  for (let at = 0; at < marks.length; at += markLength) {
    const week = weekOf(marks[at + 1] ?? 0, marks[at + 2] ?? 0)
    if (week !== latest) found.add(first + week)
    latest = week
  }
  return found
}

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
  const partitions = batch.reduce((sum, part) => sum + partitionsOf(part).size, 0)
  if (partitions <= partitionsMax) return
  throw new AppError('body_too_large', {
    sentence: `The rows of this request are of ${partitions} weeks; send at most ${partitionsMax} weeks at once.`,
  })
}
