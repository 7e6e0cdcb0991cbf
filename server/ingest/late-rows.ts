// Leaves out of a batch what came too late: rows whose event time is erased and, because the organisation asked for
// that, refused for good. Unlike a fence this is no reason to retry, so it is a rejection within a success.

import { type TimeRange, touches } from '../core/time-range.ts'
import type { Row, RowBatch, TableRows } from '../telemetry/rows.ts'
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

const specOf = new Map(
  tables.map((table) => [
    table.name,
    {
      signal: table.signal,
      timeIndex: table.columns.findIndex(({ name }) => name === table.timeColumn),
    },
  ]),
)

/** The batch itself where nothing of it is late, which costs a comparison per table. */
export function withoutLate(batch: RowBatch, selections: readonly LateSelection[]): InTime {
  const late = new Map<string, number>()
  if (selections.length === 0) return { batch, late }
  const inTime = batch.map((part) => partInTime(part, selections, late))
  return late.size === 0 ? { batch, late } : { batch: inTime.filter(({ rows }) => rows.length > 0), late }
}

function partInTime(
  part: TableRows,
  selections: readonly LateSelection[],
  late: Map<string, number>,
): TableRows {
  const spec = specOf.get(part.table)
  if (spec === undefined) throw new Error(`No table ${part.table}`)
  const refusing = selections.filter(
    ({ range, signals }) => signals.includes(spec.signal) && touches(range, part.minTimeNs, part.maxTimeNs),
  )
  if (refusing.length === 0) return part
  let [minTimeNs, maxTimeNs]: [bigint | null, bigint | null] = [null, null]
  const rows = part.rows.filter((row) => {
    const timeNs = timeOf(row, spec.timeIndex)
    const refusedBy = refusing.find(({ range }) => touches(range, timeNs, timeNs))
    if (refusedBy !== undefined) {
      late.set(refusedBy.id, (late.get(refusedBy.id) ?? 0) + 1)
      return false
    }
    if (minTimeNs === null || timeNs < minTimeNs) minTimeNs = timeNs
    if (maxTimeNs === null || timeNs > maxTimeNs) maxTimeNs = timeNs
    return true
  })
  return { ...part, rows, minTimeNs: minTimeNs ?? part.minTimeNs, maxTimeNs: maxTimeNs ?? part.maxTimeNs }
}

/** Instants are text `ssssssssss.nnnnnnnnn` on their way in. */
function timeOf(row: Row, index: number): bigint {
  const cell = row[index]
  if (typeof cell !== 'string') throw new Error('A row has no event time.')
  return BigInt(cell.replace('.', ''))
}
