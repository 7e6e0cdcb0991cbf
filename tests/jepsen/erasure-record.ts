// The checker's record of one erasure: since when it hides, whether and when it ended, and what that means
// for a row between two times. The effect on a row is `hides` (nobody may see it), `none`, or `maybe` (it
// depends on the order in the service, or on an unknown outcome).

import type { ControlPlane, Operation, Selected } from './history.ts'
import type { Row } from './world.ts'

type Effect = 'none' | 'hides' | 'maybe'

/** `asked`: the response is unknown. `lost`: a control plane was restored that doesn't know it. */
type State = 'asked' | 'refused' | 'open' | 'completed' | 'cancelled' | 'lost'

export interface Erasure {
  readonly key: string
  readonly org: string
  readonly selected: Selected
  readonly askedAt: number
  /** When the end was first observed; infinite where it wasn't. */
  readonly endedAt: number
  readonly state: State
}

export class ErasureRecord implements Erasure {
  readonly key: string
  readonly org: string
  readonly selected: Selected
  askedAt: number
  takenAt = Number.POSITIVE_INFINITY
  endedAt = Number.POSITIVE_INFINITY
  state: State = 'asked'
  /** The last status that the service reported. */
  status = 'asked'
  wasCompleted = false
  isHeldReported = false
  /** When a cancel that may have succeeded was first sent. */
  #cancelAt: number | null = null
  #isCancelUnknown = false
  /** When a restore may have changed the service's knowledge of it and its status was not read since. */
  #restoredAt: number | null = null
  /** Rows that were seen after it completed, so they arrived later. */
  readonly #spared = new Set<Row>()
  /** Rows seen while it may have hidden them, with the time at which the read had ended. */
  #doubtful: { row: Row; at: number }[] = []

  constructor(op: Extract<Operation, { f: 'erase' }>, at: number) {
    this.key = op.key
    this.org = op.org
    this.selected = op.selected
    this.askedAt = at
  }

  /** Whether it may have erased something or may still do so. */
  get mayAct(): boolean {
    return this.state !== 'refused' && this.state !== 'cancelled' && this.state !== 'lost'
  }

  taken(at: number, status: string): void {
    if (this.state === 'asked') this.state = 'open'
    this.takenAt = Math.min(this.takenAt, at)
    this.status = status
  }

  refused(): void {
    if (this.state === 'asked') this.state = 'refused'
  }

  cancelling(at: number): void {
    if (this.state === 'open' || this.state === 'asked') this.#cancelAt ??= at
  }

  notCancelled(): void {
    if (!this.#isCancelUnknown) this.#cancelAt = null
  }

  /** A cancel without a response may still be carried out. */
  perhapsCancelled(): void {
    this.#isCancelUnknown = true
  }

  /** Whether a row is erased for good, where no hold protects it. */
  hasErased(row: Row): boolean {
    return this.wasCompleted && row.firstKnownAt !== null && row.firstKnownAt < this.askedAt
  }

  /**
   * Records a status that was read; null where the service doesn't know the erasure. Returns what is wrong
   * with it, or null.
   */
  observe(status: string | null, since: number, at: number): string | null {
    if (this.state === 'asked' && status === null) return null
    const before = this.state
    const wasRestored = this.#restoredAt
    this.#restoredAt = null
    this.status = status ?? 'unknown'
    if (status === null) return this.#unknown(wasRestored !== null, at)
    if (status === 'cancelled') return this.#end('cancelled', at)
    if (status === 'completed') return this.#end('completed', at)
    if (before === 'completed') return this.#reopened(since)
    if (before === 'cancelled' || before === 'lost') {
      if (wasRestored === null) return 'a cancelled deletion continues'
      this.askedAt = wasRestored
    }
    this.state = 'open'
    this.endedAt = Number.POSITIVE_INFINITY
    this.notCancelled()
    this.takenAt = Math.min(this.takenAt, at)
    return null
  }

  #unknown(wasRestored: boolean, at: number): string | null {
    if (this.wasCompleted) return 'a completed deletion is unknown'
    if (!wasRestored && this.state !== 'lost') return 'an accepted deletion is unknown'
    this.state = 'lost'
    this.endedAt = at
    return null
  }

  #end(state: 'completed' | 'cancelled', at: number): string | null {
    if (this.state !== state) this.endedAt = at
    this.state = state
    this.takenAt = Math.min(this.takenAt, at)
    this.#doubtful = []
    if (state === 'completed') this.wasCompleted = true
    return state === 'cancelled' && this.wasCompleted ? 'a completed deletion was cancelled' : null
  }

  /** A read that began before the end was known may have been answered before it. */
  #reopened(since: number): string | null {
    return since > this.endedAt ? 'a completed deletion is not completed any more' : null
  }

  /** The restored data is as old as a backup that was requested at `backupAt`. */
  restored(backupAt: number, at: number, controlPlane: ControlPlane): void {
    if (this.state === 'refused') return
    this.#doubtful = []
    if (this.state === 'completed' && this.endedAt > backupAt) {
      this.state = 'open'
      this.endedAt = Number.POSITIVE_INFINITY
      this.#spared.clear()
    }
    if (controlPlane === 'from-backup' && !(this.state === 'completed')) this.#restoredAt = at
  }

  /** The effect on a row that it selects, for a read between `since` and `at`. */
  effect(row: Row, since: number, at: number, isProtected: () => boolean): Effect {
    if (this.state === 'refused' || this.askedAt > at || this.#spared.has(row)) return 'none'
    const wasThere = row.firstKnownAt !== null && row.firstKnownAt < this.askedAt
    const isTaken = since > this.takenAt
    if (this.wasCompleted && wasThere && !isProtected()) return isTaken ? 'hides' : 'maybe'
    if (this.#restoredAt !== null) return 'maybe'
    if (this.state === 'lost' || this.state === 'cancelled') {
      if (since > this.endedAt) return 'none'
      const isBefore = this.#cancelAt === null || at < this.#cancelAt
      return this.state === 'cancelled' && isBefore && wasThere && isTaken ? 'hides' : 'maybe'
    }
    if (this.state === 'completed') {
      if (row.sentAt > this.endedAt || (since > this.endedAt && isProtected())) return 'none'
      return 'maybe'
    }
    if (this.#cancelAt !== null) return 'maybe'
    return wasThere && isTaken ? 'hides' : 'maybe'
  }

  wasSeen(row: Row, since: number, at: number): void {
    if (this.state === 'completed' && since > this.endedAt) this.#spared.add(row)
    else if (
      this.state === 'open' &&
      since > this.takenAt &&
      this.#cancelAt === null &&
      this.#restoredAt === null
    )
      this.#doubtful.push({ row, at })
  }

  /**
   * Rows that were seen after it was accepted and before `at`: if it still hides at `at`, it hid them then.
   */
  seenBefore(at: number): Row[] {
    if (this.#cancelAt !== null) return []
    return this.#doubtful.filter((doubtful) => doubtful.at < at).map(({ row }) => row)
  }
}
