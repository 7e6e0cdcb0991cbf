// Checks a history while it grows. It knows which rows must be visible, which must not, and which may be
// either because an outcome is unknown or an erasure was in progress. It is written from
// server/deletion/SPEC.md and docs/backup.md and uses none of their code. The rules:
//
// - an acknowledged row exists until an erasure selects it, or until a restore of a backup that cannot have
//   it;
// - a row that existed when an erasure was requested is visible to nobody from the 202 on, and never again,
//   whatever is restored, unless the erasure is cancelled before it has begun; then it is visible again;
// - rows that a hold has covered since before the erasure stay, and the erasure doesn't complete;
// - no row exists twice;
// - a certificate names every existing backup that may have a certified row; a verification finds nothing
//   left;
// - what was answered with 2xx stays known.
//
// Possible effects of a call without a response are no violations: every reported violation is certain.

import { ErasureRecord } from './erasure-record.ts'
import type { Event, Of, Operation, Outcome, Value, Violation } from './history.ts'
import { Knowledge } from './knowledge.ts'
import { type Backup, overlaps, type Row, selects } from './world.ts'

interface Pending {
  readonly at: number
  readonly op: Operation
}

const hidingStatuses = new Set(['scheduled', 'held', 'running', 'verifying', 'incomplete', 'failed'])

export class Checker {
  readonly violations: Violation[] = []
  readonly #known = new Knowledge()
  readonly #report: (violation: Violation) => void
  readonly #backups = new Map<string, Backup>()
  /** By the certified ledger entry: the first part of a certificate's number. */
  readonly #signatures = new Map<string, { readonly jws: string; readonly at: number }>()
  /** By the complete number. */
  readonly #numbers = new Map<string, string>()
  readonly #pending = new Map<number, Pending>()
  #at = 0

  constructor(report: (violation: Violation) => void = () => {}) {
    this.#report = report
  }

  invoke(id: number, op: Operation): void {
    const at = ++this.#at
    this.#pending.set(id, { at, op })
    if (op.f === 'send') this.#known.sending(op, at)
    else if (op.f === 'erase') this.#erasing(op, at)
    else if (op.f === 'cancel') this.#known.erasures.get(op.key)?.cancelling(at)
    else if (op.f === 'hold')
      this.#known.holds.set(op.key, {
        ...op,
        askedAt: at,
        placedAt: null,
        surelySince: null,
        releasedAt: null,
        isUnsure: false,
      })
    else if (op.f === 'release') this.#known.change(op.key, (hold) => ({ releasedAt: hold.releasedAt ?? at }))
    else if (op.f === 'backup') this.#backups.set(String(id), this.#known.snapshot(at))
  }

  complete(id: number, outcome: Outcome, value: Value = {}): void {
    const pending = this.#pending.get(id)
    if (pending === undefined) throw new Error(`Operation ${id} has no invocation.`)
    this.#pending.delete(id)
    const { at: since, op } = pending
    const at = ++this.#at
    if (op.f === 'send') this.#known.sent(op, outcome, at)
    else if (op.f === 'read') this.#read(op, outcome, value, since, at)
    else if (op.f === 'probe') this.#probed(op, value, since, at)
    else if (op.f === 'count') this.#counted(op, outcome, value, since, at)
    else if (op.f === 'erase') this.#asked(op, outcome, value, at)
    else if (op.f === 'look') this.#looked(op, outcome, value, since, at)
    else if (op.f === 'cancel') this.#cancelled(op, outcome, value, at)
    else if (op.f === 'verify') this.#verified(op, outcome, value, since, at)
    else if (op.f === 'certificate') this.#certified(op, outcome, value, at)
    else if (op.f === 'hold') this.#placed(op, outcome, at)
    else if (op.f === 'look-hold') this.#lookedHold(op, outcome, value, at)
    else if (op.f === 'backup') this.#backedUp(id, outcome, value, at)
    else if (op.f === 'restore') this.#restored(op, outcome, at)
    else if (op.f === 'search-files') this.#searched(value, since)
  }

  event(event: Event): void {
    this.#at++
    if (event.f === 'process-ended') this.#known.generation++
  }

  /** Rows that are erased for good, to be searched for. */
  erasedRows(): Row[] {
    return this.#known.erasedRows()
  }

  #read({ org, signal, span }: Of<'read'>, outcome: Outcome, value: Value, since: number, at: number): void {
    const counts = new Map<number, number>()
    for (const n of value.seen ?? []) counts.set(n, (counts.get(n) ?? 0) + 1)
    for (const [n, times] of counts) {
      const row = this.#known.rows.get(n)
      if (row === undefined || row.org !== org || row.signal !== signal || !overlaps(span, row.timeS)) {
        this.#violate('row of another organisation', `${org} read row ${n} of ${row?.org ?? 'nobody'}`)
        continue
      }
      if (times > 1) this.#once(row, 'row twice', `read ${times} times`)
      this.#seen(row, since, at)
    }
    if (outcome !== 'ok' || value.isWhole === false) return
    for (const row of this.#known.rowsOf(org, signal))
      if (overlaps(span, row.timeS) && !counts.has(row.n)) this.#missed(row, since, at)
  }

  #seen(row: Row, since: number, at: number): void {
    const wrong = this.#known.whyUnseen(row, since, at)
    if (wrong !== null) {
      this.#once(row, wrong.kind, wrong.about)
      return
    }
    this.#known.know(row, at)
    for (const erasure of this.#known.erasuresFor(row)) {
      if (erasure.effect(row, since, at, () => this.#known.isProtected(row, erasure)) === 'maybe')
        erasure.wasSeen(row, since, at)
    }
  }

  #missed(row: Row, since: number, at: number): void {
    const effects = this.#known.effects(row, since, at)
    if (row.presence === 'there' && row.since < since && effects.every(({ effect }) => effect === 'none')) {
      this.#once(row, 'acknowledged row lost', `not read${this.#known.heldBy(row)}`)
      row.presence = 'absent'
      row.since = at
      return
    }
    const isOver = effects.every(
      ({ effect, erasure }) =>
        effect !== 'maybe' || (erasure.state === 'completed' && since > erasure.endedAt),
    )
    const isHidden = effects.some(({ effect }) => effect === 'hides')
    if (
      isOver &&
      !isHidden &&
      row.presence !== 'absent' &&
      this.#known.isSettled(row) &&
      row.sentAt < since
    ) {
      if (row.presence === 'there' && row.since >= since) return
      row.presence = 'absent'
      row.since = at
    }
  }

  #probed({ n }: Of<'probe'>, { seen = [] }: Value, since: number, at: number): void {
    const row = this.#known.rows.get(n)
    if (row === undefined || !seen.includes(n)) return
    this.#seen(row, since, at)
  }

  #counted(
    { org, selected }: Of<'count'>,
    outcome: Outcome,
    { rows }: Value,
    since: number,
    at: number,
  ): void {
    if (outcome !== 'ok' || rows === undefined) return
    let [least, most] = [0, 0]
    for (const row of this.#known.selectedRows(org, selected)) {
      const effects = this.#known.effects(row, since, at)
      if (this.#known.whyUnseen(row, since, at) === null) most++
      const isSure = row.presence === 'there' && row.since < since
      if (isSure && effects.every(({ effect }) => effect === 'none')) least++
    }
    if (rows < least || rows > most)
      this.#violate(
        rows < least ? 'counted too few' : 'counted too many',
        `${org} has ${rows} rows, and must have ${least} to ${most}: ${JSON.stringify(selected)}`,
      )
  }

  // Erasures

  #erasing(op: Of<'erase'>, at: number): void {
    // A repeated request with the same key is the same request.
    if (this.#known.erasures.has(op.key)) return
    const erasure = new ErasureRecord(op, at)
    this.#known.addErasure(erasure)
  }

  #asked({ key }: Of<'erase'>, outcome: Outcome, value: Value, at: number): void {
    const erasure = this.#known.erasures.get(key)
    if (outcome === 'ok') erasure?.taken(at, value.status ?? 'running')
    else if (outcome === 'fail') erasure?.refused()
  }

  #looked({ key }: Of<'look'>, outcome: Outcome, { status }: Value, since: number, at: number): void {
    const erasure = this.#known.erasures.get(key)
    if (outcome !== 'ok' || erasure === undefined || status === undefined) return
    if (status !== null && hidingStatuses.has(status))
      for (const row of erasure.seenBefore(since)) this.#once(row, 'hidden row seen', `${key} was ${status}`)
    const complaint = erasure.observe(status, since, at)
    if (complaint !== null) this.#violate(complaint, `${key} of ${erasure.org}: ${status ?? 'unknown'}`)
    if (status !== 'completed') return
    this.#checkHeld(erasure)
    this.#known.removeErased(erasure)
  }

  #checkHeld(erasure: ErasureRecord): void {
    const protectedRows = this.#known
      .selectedRows(erasure.org, erasure.selected)
      .filter(
        (row) =>
          row.presence === 'there' && row.since < erasure.askedAt && this.#known.isProtected(row, erasure),
      )
    const others = protectedRows.filter((row) =>
      this.#known.erasuresFor(row).every((one) => one === erasure || !one.mayAct),
    )
    if (others.length > 0 && !erasure.isHeldReported) {
      erasure.isHeldReported = true
      this.#violate('completed despite a hold', `${erasure.key}: a hold keeps ${others.length} rows`)
    }
  }

  #cancelled({ key }: Of<'cancel'>, outcome: Outcome, { status }: Value, at: number): void {
    const erasure = this.#known.erasures.get(key)
    if (erasure === undefined) return
    if (outcome === 'fail') erasure.notCancelled()
    if (outcome === 'unknown') erasure.perhapsCancelled()
    if (outcome !== 'ok') return
    const complaint = erasure.observe(status ?? 'cancelled', at, at)
    if (complaint !== null) this.#violate(complaint, `${key} of ${erasure.org} was cancelled`)
  }

  #verified({ key }: Of<'verify'>, outcome: Outcome, value: Value, since: number, at: number): void {
    const erasure = this.#known.erasures.get(key)
    if (outcome !== 'ok' || erasure === undefined || value.isClean !== false) return
    if (erasure.state !== 'completed' || erasure.endedAt > since) return
    const mayBeThere = this.#known
      .selectedRows(erasure.org, erasure.selected)
      .some((row) => this.#known.mayBeStored(row, since, at))
    if (!mayBeThere)
      this.#violate(
        'verification finds rows where there are none',
        `${key} of ${erasure.org}: ${JSON.stringify(value.remaining)}`,
      )
  }

  #certified(op: Of<'certificate'>, outcome: Outcome, value: Value, at: number): void {
    const erasure = this.#known.erasures.get(op.key)
    if (outcome !== 'ok' || erasure === undefined) return
    const { backups = [], jti = '', jws = '' } = value
    const entry = jti.slice(0, jti.lastIndexOf('-'))
    const known = this.#signatures.get(entry)
    const signedJws = this.#numbers.get(jti) ?? known?.jws ?? jws
    if (signedJws !== jws)
      this.#violate('certificate changed', `${op.key} of ${op.org}: ${jti} has another signature than before`)
    this.#numbers.set(jti, jws)
    if (known !== undefined) return
    this.#checkBackups(op, erasure, backups)
    this.#signatures.set(entry, { jws, at })
  }

  #checkBackups(op: Of<'certificate'>, erasure: ErasureRecord, named: readonly string[]): void {
    const rows = [...this.#known.rows.values()].filter(
      (row) =>
        row.org === op.org &&
        selects(erasure.selected, row) &&
        row.firstKnownAt !== null &&
        row.firstKnownAt < erasure.askedAt &&
        !this.#known.isProtected(row, erasure) &&
        !this.#known.wasErased(row, erasure.askedAt),
    )
    for (const { doneAt, id, sure } of this.#backups.values()) {
      if (id === null || doneAt === null || doneAt > erasure.askedAt || !op.backups.includes(id)) continue
      const copied = rows.filter(({ n }) => sure.has(n)).length
      if (copied > 0 && !named.includes(id))
        this.#violate('backup not named', `${op.key} of ${op.org}: ${id} contains ${copied} of its rows`)
    }
  }

  // Holds

  #placed({ key }: Of<'hold'>, outcome: Outcome, at: number): void {
    if (outcome === 'ok') this.#known.change(key, () => ({ placedAt: at, surelySince: at }))
    else if (outcome === 'fail') this.#known.holds.delete(key)
  }

  #lookedHold({ key, org }: Of<'look-hold'>, outcome: Outcome, { status }: Value, at: number): void {
    const hold = this.#known.holds.get(key)
    if (outcome !== 'ok' || hold === undefined) return
    if (hold.isUnsure) {
      if (status === 'active')
        this.#known.change(key, () => ({ isUnsure: false, surelySince: at, releasedAt: null }))
      else this.#known.holds.delete(key)
      return
    }
    if (status === null && hold.placedAt !== null) this.#violate('hold lost', `${key} of ${org}`)
    if (status === 'active' && hold.placedAt === null)
      this.#known.change(key, () => ({ placedAt: at, surelySince: at }))
  }

  // Backups

  #backedUp(id: number, outcome: Outcome, { backup }: Value, at: number): void {
    const taken = this.#backups.get(String(id))
    this.#backups.delete(String(id))
    if (taken === undefined || outcome !== 'ok' || backup === undefined) return
    const possible = new Set<number>()
    for (const row of this.#known.rows.values()) {
      const wasGone = row.presence === 'absent' && row.since < taken.askedAt
      const wasErased = this.#known
        .erasuresFor(row)
        .some(
          (erasure) =>
            erasure.state === 'completed' &&
            erasure.endedAt < taken.askedAt &&
            erasure.effect(row, at, at, () => this.#known.isProtected(row, erasure)) === 'hides',
        )
      if (!wasGone && !wasErased) possible.add(row.n)
    }
    this.#backups.set(backup, { ...taken, id: backup, doneAt: at, possible })
  }

  #restored({ backup, controlPlane }: Of<'restore'>, outcome: Outcome, at: number): void {
    const taken = this.#backups.get(backup)
    if (outcome !== 'ok' || taken === undefined) return
    for (const row of this.#known.rows.values()) {
      row.presence = taken.sure.has(row.n) ? 'there' : taken.possible.has(row.n) ? 'maybe' : 'absent'
      row.since = at
    }
    for (const erasure of this.#known.erasures.values()) erasure.restored(taken.askedAt, at, controlPlane)
    if (controlPlane === 'keep') return
    // An older control plane doesn't know certificates that were issued later, and issues them again.
    for (const [entry, { at: issuedAt }] of this.#signatures)
      if (issuedAt > taken.askedAt) this.#signatures.delete(entry)
    for (const [key, hold] of this.#known.holds) {
      const before = taken.holds.get(key)
      const isSame = before !== undefined && before.placedAt !== null && before.releasedAt === hold.releasedAt
      if (!isSame) this.#known.change(key, () => ({ isUnsure: true }))
    }
  }

  // Files

  #searched({ seen = [], files = [] }: Value, since: number): void {
    for (const [i, n] of seen.entries()) {
      const row = this.#known.rows.get(n)
      if (row !== undefined && this.#known.isErased(row, since))
        this.#once(row, 'bytes of an erased row on the disk', files[i] ?? '')
    }
  }

  /** Each row is reported only once, because later violations follow from the first. */
  #once(row: Row, kind: string, about: string): void {
    if (row.isReported) return
    row.isReported = true
    this.#violate(
      kind,
      `row ${row.n} of ${row.org} (${row.signal}, ${new Date(row.timeS * 1000).toISOString()}): ${about}`,
    )
  }

  #violate(kind: string, about: string): void {
    const violation = { kind, about }
    this.violations.push(violation)
    this.#report(violation)
  }
}
