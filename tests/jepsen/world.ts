// What the checker knows of rows, holds and backups, and which rows a selection has in it.

import type { Signal } from '../../server/telemetry/schema/tables.ts'
import type { Selected, Span } from './history.ts'

export interface Row {
  readonly n: number
  readonly org: string
  readonly signal: Signal
  readonly timeS: number
  /** Place in the history of the invocation that sent it. */
  readonly sentAt: number
  isAcknowledged: boolean
  /** Processes that had ended when its sending had its outcome. */
  generation: number
  /** In the telemetry that is in place now, seen or hidden. An erasure's effect is kept apart from it. */
  presence: 'there' | 'maybe' | 'absent'
  /** Since when it is known to be there, or gone. */
  since: number
  /** When it was acknowledged or seen first, ever. */
  firstKnownAt: number | null
  isReported: boolean
}

export interface Hold {
  readonly org: string
  readonly selected: Selected
  readonly askedAt: number
  readonly placedAt: number | null
  /** Since when it has been active without a gap; null where it may not be there. */
  readonly surelySince: number | null
  /** When somebody first tried to release it. */
  readonly releasedAt: number | null
  /** A control plane that may not know it was put in place, and nobody has looked since. */
  readonly isUnsure: boolean
}

export interface Backup {
  /** Null while it is taken. */
  readonly id: string | null
  readonly askedAt: number
  readonly doneAt: number | null
  /** Rows that are in it. */
  readonly sure: ReadonlySet<number>
  /** Rows that are or may be in it. */
  readonly possible: ReadonlySet<number>
  readonly holds: ReadonlyMap<string, Hold>
}

export function overlaps({ startS, endS }: Span, timeS: number): boolean {
  return (startS === null || timeS >= startS) && (endS === null || timeS < endS)
}

export function selects(selected: Selected, row: Pick<Row, 'signal' | 'timeS'>): boolean {
  return selected.signals.includes(row.signal) && overlaps(selected, row.timeS)
}
