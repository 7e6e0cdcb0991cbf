// The rows of one request until they are committed. Those of a large request are divided into slices, because
// a commit makes others wait until it ends. The request succeeds when all its slices are committed, and fails
// with the first one that is not: its sender then repeats the whole request.

import type { Share } from '../../core/turns/fair-shares.ts'
import type { TenantPlace } from '../../telemetry/engine.ts'
import { markLength, type RowBatch, rowCount, rowMemory } from '../../telemetry/rows.ts'
import type { TableName } from '../../telemetry/schema/tables.ts'
import type { CostedRows } from './commit-cost.ts'
import { partitionOf, partitionsOf } from './partition-spread.ts'

/** The most in a slice, bytes of encoded rows: some 0.1 s of an insert, on one core. */
export const sliceBytes = 8 * 1024 * 1024

/** Rows by table; more than one buffer where a table is there twice. */
type EncodedRows = readonly (readonly [TableName, Buffer])[]

/** What a commit takes of a request: all its rows, or a part of many. */
export interface RowSlice extends CostedRows {
  readonly batch: PendingBatch
  readonly place: TenantPlace
  readonly encoded: EncodedRows
  readonly rows: number
}

export class PendingBatch implements CostedRows {
  readonly place: TenantPlace
  readonly slices: readonly RowSlice[]
  readonly bytes: number
  readonly partitions: ReadonlySet<number>
  /** Resolves when all slices are committed. */
  readonly committed: Promise<void>
  readonly #rows: RowBatch
  readonly #share: Share
  readonly #settled = Promise.withResolvers<void>()
  #waiting: number

  /**
   * @param openShare opens the share of the buffer that all the bytes need. It can't be taken back after a
   * commit with a slice has begun.
   */
  constructor(place: TenantPlace, rows: RowBatch, openShare: (batch: PendingBatch) => Share) {
    this.place = place
    this.#rows = rows
    this.bytes = rows.reduce((sum, { bytes }) => sum + bytes.length, 0)
    this.partitions = new Set(rows.flatMap((part) => [...partitionsOf(part)]))
    this.slices = divide(rows, this).map((slice) => ({ ...slice, place, batch: this }))
    this.#waiting = this.slices.length
    this.committed = this.#settled.promise
    this.#share = openShare(this)
  }

  /** Returns false, and nothing is kept, where the buffer has no room. */
  reserve(): boolean {
    if (this.#share.grow(this.bytes)) return true
    this.#share.release()
    return false
  }

  /** A commit with a slice begins. */
  begin(): void {
    this.#share.keep()
  }

  /** A slice was committed. The bytes must not be used after the last one. */
  sliceCommitted(): void {
    this.#waiting--
    if (this.#waiting > 0) return
    for (const { bytes } of this.#rows) rowMemory.giveBack(bytes)
    this.#share.release()
    this.#settled.resolve()
  }

  /** Slices that wait must not be committed after this. Idempotent. */
  refuse(error: Error): void {
    this.#share.release()
    this.#settled.reject(error)
  }
}

/** The rows of a slice while it is filled. */
function newSlice() {
  return { encoded: [] as [TableName, Buffer][], rows: 0, bytes: 0, partitions: new Set<number>() }
}

/**
 * Returns the rows in parts of about the same size, none with more than {@link sliceBytes} or one row. They
 * are not divided by week too: rows may be in any order, and each part could then be of all weeks again.
 */
function divide(batch: RowBatch, { bytes, partitions }: CostedRows): Omit<RowSlice, 'batch' | 'place'>[] {
  const all = {
    encoded: batch.map((part) => [part.table, part.bytes] as const),
    rows: batch.reduce((sum, part) => sum + rowCount(part), 0),
    bytes,
    partitions,
  }
  if (all.bytes <= sliceBytes) return [all]
  const mostBytes = Math.ceil(all.bytes / Math.ceil(all.bytes / sliceBytes))
  const slices: ReturnType<typeof newSlice>[] = []
  let slice = newSlice()
  for (const { table, bytes, marks } of batch) {
    let from = 0
    let end = 0
    const take = () => {
      if (end > from) slice.encoded.push([table, bytes.subarray(from, end)])
      from = end
    }
    for (let at = 0; at < marks.length; at += markLength) {
      const rowEnd = marks[at] ?? 0
      if (slice.rows > 0 && slice.bytes + rowEnd - end > mostBytes) {
        take()
        slices.push(slice)
        slice = newSlice()
      }
      slice.bytes += rowEnd - end
      slice.rows++
      slice.partitions.add(partitionOf(table, marks[at + 1] ?? 0, marks[at + 2] ?? 0))
      end = rowEnd
    }
    take()
  }
  return [...slices, slice]
}
