// Leaves late rows out of a batch: rows whose event time is erased and, because the organisation requested
// it, refused for ever. Unlike for a fence, the client must not retry, so they are rejected within a success.

import type { TimeRange } from '../../core/time-range.ts'
import { markLength, type RowBatch, type TableRows } from '../../telemetry/rows.ts'
import { type Signal, tables } from '../../telemetry/schema/tables.ts'
import { LateTime } from './late-time.ts'

/** The selection that a completed deletion refuses. */
export interface LateSelection {
  /** The id of the deletion. */
  readonly id: string
  readonly signals: readonly Signal[]
  readonly range: TimeRange
}

interface InTime {
  readonly batch: RowBatch
  /**
   * Rows that were left out, by the deletion that refuses them; a row that several refuse counts for the
   * first.
   */
  readonly late: ReadonlyMap<string, number>
}

const signalOf = new Map(tables.map(({ name, signal }) => [name, signal]))

/**
 * Returns the batch itself where none of its rows is late; this costs a search for each table. The search is
 * prepared once for each array of selections, so the array must not be changed afterwards.
 */
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
  const refusing = lateTimeOf(selections, signal)
  if (!refusing.touch(part.minTimeNs, part.maxTimeNs)) return part
  const kept: Buffer[] = []
  const marks: number[] = []
  const times: bigint[] = []
  let [start, keptBytes] = [0, 0]
  for (const row of rowsOf(part)) {
    const refusedBy = refusing.at(row.timeNs)
    if (refusedBy === null) {
      kept.push(part.bytes.subarray(start, row.end))
      keptBytes += row.end - start
      marks.push(keptBytes, Number(row.timeNs >> 32n), Number(row.timeNs & 0xffff_ffffn))
      times.push(row.timeNs)
    } else late.set(refusedBy, (late.get(refusedBy) ?? 0) + 1)
    start = row.end
  }
  return { ...part, bytes: Buffer.concat(kept), marks: Uint32Array.from(marks), ...extentOf(times, part) }
}

/**
 * What was prepared for the selections of an organisation, whose array is replaced when such a deletion
 * completes.
 */
const prepared = new WeakMap<readonly LateSelection[], Map<Signal, LateTime>>()

function lateTimeOf(selections: readonly LateSelection[], signal: Signal): LateTime {
  const bySignal = prepared.get(selections) ?? new Map<Signal, LateTime>()
  prepared.set(selections, bySignal)
  const known = bySignal.get(signal)
  if (known !== undefined) return known
  const refusals = new LateTime(selections.filter(({ signals }) => signals.includes(signal)))
  bySignal.set(signal, refusals)
  return refusals
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
