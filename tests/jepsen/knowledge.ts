// What follows from the history so far: which rows exist, which are hidden or erased by which erasure, which
// a hold keeps. It draws conclusions; the checker decides what is a violation.

import type { Signal } from '../../server/telemetry/schema/tables.ts'
import type { Erasure, ErasureRecord } from './erasure-record.ts'
import type { Of, Outcome, Selected, Violation } from './history.ts'
import { type Backup, type Hold, overlaps, type Row, selects } from './world.ts'

export class Knowledge {
  readonly rows = new Map<number, Row>()
  readonly erasures = new Map<string, ErasureRecord>()
  readonly holds = new Map<string, Hold>()
  /** Number of processes that have ended; nothing that was sent to one of them can still arrive. */
  generation = 0
  /** Rows by organisation and signal, without those that are erased for good. */
  readonly #bySignal = new Map<string, Row[]>()
  readonly #buried = new Set<Row>()
  readonly #byOrg = new Map<string, ErasureRecord[]>()

  addErasure(erasure: ErasureRecord): void {
    this.erasures.set(erasure.key, erasure)
    this.#byOrg.set(erasure.org, [...this.erasuresOf(erasure.org), erasure])
  }

  /** Rows of an organisation's signal, without those that are erased for good. */
  rowsOf(org: string, signal: string): readonly Row[] {
    return this.#bySignal.get(`${org} ${signal}`) ?? []
  }

  erasuresOf(org: string): ErasureRecord[] {
    return this.#byOrg.get(org) ?? []
  }

  /** Rows that are erased for good, to be searched for. */
  erasedRows(): Row[] {
    return [...this.#buried]
  }

  sending({ org, signal, rows }: Of<'send'>, at: number): void {
    for (const { n, timeS } of rows) {
      const row: Row = {
        n,
        org,
        signal,
        timeS,
        sentAt: at,
        isAcknowledged: false,
        generation: Number.POSITIVE_INFINITY,
        presence: 'maybe',
        since: 0,
        firstKnownAt: null,
        isReported: false,
      }
      this.rows.set(n, row)
      const key = `${org} ${signal}`
      const there = this.#bySignal.get(key)
      if (there === undefined) this.#bySignal.set(key, [row])
      else there.push(row)
    }
  }

  sent({ rows }: Of<'send'>, outcome: Outcome, at: number): void {
    for (const { n } of rows) {
      const row = this.rows.get(n)
      if (row === undefined) continue
      row.generation = this.generation
      if (outcome !== 'ok') continue
      row.isAcknowledged = true
      this.know(row, at)
    }
  }

  know(row: Row, at: number): void {
    if (row.presence !== 'there') row.since = at
    row.presence = 'there'
    row.firstKnownAt ??= at
  }

  /** Whether no operation in progress can still store it. */
  isSettled(row: Row): boolean {
    return row.isAcknowledged || row.generation < this.generation
  }

  erasuresFor(row: Row): ErasureRecord[] {
    return this.erasuresOf(row.org).filter(({ selected }) => selects(selected, row))
  }

  effects(row: Row, since: number, at: number) {
    return this.erasuresFor(row).map((erasure) => ({
      erasure,
      effect: erasure.effect(row, since, at, () => this.isProtected(row, erasure)),
    }))
  }

  /** Why nobody may see it between two times; null where it may be seen. */
  whyUnseen(row: Row, since: number, at: number): Violation | null {
    const hiding = this.effects(row, since, at).find(({ effect }) => effect === 'hides')
    if (hiding !== undefined) {
      const { erasure } = hiding
      const kind = erasure.wasCompleted ? 'erased row seen' : 'hidden row seen'
      return { kind, about: `although ${erasure.key} (${erasure.status}) selects it` }
    }
    if (row.presence === 'absent' && row.since < since)
      return { kind: 'absent row seen', about: 'it was absent, or the restored backup can’t have it' }
    return null
  }

  /** Whether it may be in the tables, also where an erasure in progress hides it from every reader. */
  mayBeStored(row: Row, since: number, at: number): boolean {
    if (row.presence === 'absent' && row.since < since) return false
    return !this.effects(row, since, at).some(
      ({ effect, erasure }) => effect === 'hides' && erasure.wasCompleted,
    )
  }

  selectedRows(org: string, selected: Selected): Row[] {
    return selected.signals.flatMap((signal: Signal) =>
      (this.#bySignal.get(`${org} ${signal}`) ?? []).filter((row) => overlaps(selected, row.timeS)),
    )
  }

  /** Whether an erasure that had ended by then has erased it. */
  isErased(row: Row, at: number): boolean {
    return this.effects(row, at, at).some(
      ({ effect, erasure }) => effect === 'hides' && erasure.state === 'completed' && erasure.endedAt < at,
    )
  }

  /** Whether it was already erased when something else was requested. */
  wasErased(row: Row, at: number): boolean {
    return this.erasuresFor(row).some((erasure) => erasure.hasErased(row) && erasure.endedAt < at)
  }

  /** Rows that a completed erasure has certainly erased are removed from the comparison of later reads. */
  removeErased(erasure: ErasureRecord): void {
    for (const signal of erasure.selected.signals) {
      const key = `${erasure.org} ${signal}`
      const left: Row[] = []
      for (const row of this.#bySignal.get(key) ?? []) {
        const isGone =
          selects(erasure.selected, row) && erasure.hasErased(row) && !this.isProtected(row, erasure)
        if (isGone) this.#buried.add(row)
        else left.push(row)
      }
      this.#bySignal.set(key, left)
    }
  }

  /** Whether a hold certainly covers it from before the erasure was requested until the erasure ended. */
  isProtected(row: Row, erasure: Erasure): boolean {
    return [...this.holds.values()].some(
      (hold) =>
        hold.org === row.org &&
        selects(hold.selected, row) &&
        !hold.isUnsure &&
        hold.surelySince !== null &&
        hold.surelySince < erasure.askedAt &&
        (hold.releasedAt === null || hold.releasedAt > erasure.endedAt),
    )
  }

  heldBy(row: Row): string {
    const holds = [...this.holds].filter(([, { org, selected }]) => org === row.org && selects(selected, row))
    return holds.length === 0 ? '' : `, and covered by ${holds.map(([key]) => key).join(', ')}`
  }

  change(key: string, changes: (hold: Hold) => Partial<Hold>): void {
    const hold = this.holds.get(key)
    if (hold !== undefined) this.holds.set(key, { ...hold, ...changes(hold) })
  }

  snapshot(at: number): Backup {
    const sure = new Set<number>()
    for (const row of this.rows.values()) {
      if (row.presence !== 'there') continue
      if (this.effects(row, at, at).every(({ effect }) => effect === 'none')) sure.add(row.n)
    }
    return { id: null, askedAt: at, doneAt: null, sure, possible: new Set(), holds: new Map(this.holds) }
  }
}
