// Divides a time window into slices that each cost about the same to search, in the order of the search. The
// distribution of data is read from the lengths of texts, which the engine stores beside the texts, so it
// costs little however long they are. A window is divided into buckets of equal length, and a bucket that
// costs too much is divided again, down to a single instant, which is a slice whatever it costs.

import type { StatementLimits } from '../telemetry/engine.ts'
import { raw, type Sql, sql, uint } from '../telemetry/sql.ts'
import { rangeCondition, type TenantReader } from '../telemetry/tenant-reader.ts'
import { specOf, type TimeOrder } from './time-order.ts'
import type { TimeWindow } from './time-window.ts'

export interface Slice {
  readonly window: TimeWindow
  /** Bytes of the searched columns. */
  readonly bytes: number
  /** Bytes of the longest row, as estimated from lengths. */
  readonly widest: number
}

/** What a search reads and what it returns, as expressions over lengths. */
export interface Lengths {
  readonly searched: Sql
  readonly row: Sql
}

/** Enough that a long window seldom needs more than two divisions, few enough to group at no cost. */
const buckets = 512n

/** The cost of a row besides its texts, bytes: its instant, the short columns, and testing it. */
const rowBytes = 64

interface Bucket {
  readonly bucket: string
  readonly bytes: string
  readonly widest: string
}

/**
 * Yields slices of at most `sliceBytes` where possible, which together are the window; the gaps between rows
 * belong to the slice before them. Nothing is read for a slice before it is requested.
 */
export async function* slicesOf(
  reader: TenantReader,
  order: TimeOrder,
  asked: { readonly window: TimeWindow; readonly lengths: Lengths; readonly sliceBytes: number },
  limits: StatementLimits,
): AsyncGenerator<Slice> {
  const { sliceBytes, window } = asked
  const width = (window.endNs - window.startNs + buckets - 1n) / buckets
  const found = await readBuckets(reader, order, asked, width, limits)
  const isNewest = order.first === 'newest'
  /** The start of the part that is not yet in a slice, in the direction of the search. */
  let from = isNewest ? window.endNs : window.startNs
  let open: Pick<Slice, 'bytes' | 'widest'> = { bytes: 0, widest: 0 }
  const upTo = (edge: bigint): TimeWindow => {
    const slice = isNewest ? { startNs: edge, endNs: from } : { startNs: from, endNs: edge }
    from = edge
    return slice
  }
  for (const { bucket, bytes, widest } of found) {
    const startNs = window.startNs + BigInt(bucket) * width
    const endNs = startNs + width < window.endNs ? startNs + width : window.endNs
    const [near, far] = isNewest ? [endNs, startNs] : [startNs, endNs]
    const own = { bytes: Number(bytes), widest: Number(widest) }
    if (open.bytes > 0 && open.bytes + own.bytes > sliceBytes) {
      yield { window: upTo(near), ...open }
      open = { bytes: 0, widest: 0 }
    }
    if (own.bytes > sliceBytes && width > 1n) {
      if (from !== near) upTo(near)
      yield* slicesOf(reader, order, { ...asked, window: { startNs, endNs } }, limits)
      upTo(far)
    } else open = { bytes: open.bytes + own.bytes, widest: Math.max(open.widest, own.widest) }
  }
  const last = isNewest ? window.startNs : window.endNs
  if (open.bytes > 0 || from !== last) yield { window: upTo(last), ...open }
}

function readBuckets(
  reader: TenantReader,
  { conditions, first, table }: TimeOrder,
  { lengths, window }: { readonly window: TimeWindow; readonly lengths: Lengths },
  width: bigint,
  limits: StatementLimits,
): Promise<Bucket[]> {
  const { timeColumn } = specOf(table)
  const bucket = sql`intDiv(toUnixTimestamp64Nano(${raw(timeColumn)}) - ${raw(window.startNs.toString())}, ${raw(width.toString())})`
  return reader.rows<Bucket>(
    (from) =>
      sql`${from.select(table, {
        columns: sql`toString(${bucket}) AS bucket, toString(sum(${lengths.searched} + ${uint(rowBytes)})) AS bytes, toString(max(${lengths.row})) AS widest`,
        conditions: [rangeCondition(timeColumn, window), ...conditions],
        groupBy: bucket,
      })} ORDER BY ${bucket} ${raw(first === 'newest' ? 'DESC' : 'ASC')}`,
    limits,
  )
}
