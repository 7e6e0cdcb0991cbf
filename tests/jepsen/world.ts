// The checker's records of rows, holds and backups, and which rows a selection contains.

import type { Signal } from '../../server/telemetry/schema/tables.ts'
import type { Selected, Span } from './history.ts'

export interface Row {
  readonly n: number
  readonly org: string
  readonly signal: Signal
  readonly timeS: number
  /** Position in the history of the invocation that sent it. */
  readonly sentAt: number
  isAcknowledged: boolean
  /** Number of processes that had ended when the sending had its outcome. */
  generation: number
  /**
   * Whether the current telemetry has it, visible or hidden. The effect of erasures is recorded separately.
   */
  presence: 'there' | 'maybe' | 'absent'
  /** Since when it is known to exist, or to be absent. */
  since: number
  /** When it was first acknowledged or seen. */
  firstKnownAt: number | null
  isReported: boolean
}

export interface Hold {
  readonly org: string
  readonly selected: Selected
  readonly askedAt: number
  readonly placedAt: number | null
  /** Since when it has been in force without a gap; null where it may not exist. */
  readonly surelySince: number | null
  /** When its release was first requested. */
  readonly releasedAt: number | null
  /** A control plane was restored that may not know it, and its status was not read since. */
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
