// Leaves out of a batch what came too late: rows whose event time is erased and, because the organisation asked for
// that, refused for good. Unlike a fence this is no reason to retry, so it is a rejection within a success.

import { type TimeRange, touches } from '../core/time-range.ts'
import { markLength, type RowBatch, type TableRows } from '../telemetry/rows.ts'
import { type Signal, tables } from '../telemetry/schema/tables.ts'

/** What a completed deletion refuses. */
export interface LateSelection {
  /** The deletion. */
  readonly id: string
  readonly signals: readonly Signal[]
  readonly range: TimeRange
}

export interface InTime {
  readonly batch: RowBatch
  /** Rows left out, by the deletion that refuses them; a row that several refuse counts for the first. */
  readonly late: ReadonlyMap<string, number>
}

const signalOf = new Map(tables.map(({ name, signal }) => [name, signal]))

/** The batch itself where nothing of it is late, which costs a comparison per table. */
export function withoutLate(batch: RowBatch, selections: readonly LateSelection[]): InTime {
  const late = new Map<string, number>()
  if (selections.length === 0) return { batch, late }
  const inTime = batch.map((part) => partInTime(part, selections, late))
  return late.size === 0 ? { batch, late } : { batch: inTime.filter(({ bytes }) => bytes.length > 0), late }
}

function partInTime(
  part: TableRows,
  selections: readonly LateSelection[],
  late: Map<string, number>,
): TableRows {
  const signal = signalOf.get(part.table)
  if (signal === undefined) throw new Error(`No table ${part.table}`)
  const refusing = selections.filter(
    ({ range, signals }) => signals.includes(signal) && touches(range, part.minTimeNs, part.maxTimeNs),
  )
  if (refusing.length === 0) return part
  const kept: Buffer[] = []
  const marks: number[] = []
  const times: bigint[] = []
  let [start, keptBytes] = [0, 0]
  for (const row of rowsOf(part)) {
    const refusedBy = refusing.find(({ range }) => touches(range, row.timeNs, row.timeNs))
    if (refusedBy === undefined) {
      kept.push(part.bytes.subarray(start, row.end))
      keptBytes += row.end - start
      marks.push(keptBytes, Number(row.timeNs >> 32n), Number(row.timeNs & 0xffff_ffffn))
      times.push(row.timeNs)
    } else late.set(refusedBy.id, (late.get(refusedBy.id) ?? 0) + 1)
    start = row.end
  }
  return { ...part, bytes: Buffer.concat(kept), marks: Uint32Array.from(marks), ...extentOf(times, part) }
}

function* rowsOf({ marks }: TableRows): Generator<{ readonly end: number; readonly timeNs: bigint }> {
  for (let at = 0; at < marks.length; at += markLength) {
    const timeNs = (BigInt(marks[at + 1] ?? 0) << 32n) | BigInt(marks[at + 2] ?? 0)
    yield { end: marks[at] ?? 0, timeNs }
  }
}

function extentOf(times: readonly bigint[], before: TableRows): Pick<TableRows, 'minTimeNs' | 'maxTimeNs'> {
  let { minTimeNs, maxTimeNs } =
    times.length === 0 ? before : { minTimeNs: before.maxTimeNs, maxTimeNs: before.minTimeNs }
  for (const timeNs of times) {
    if (timeNs < minTimeNs) minTimeNs = timeNs
    if (timeNs > maxTimeNs) maxTimeNs = timeNs
  }
  return { minTimeNs, maxTimeNs }
}
