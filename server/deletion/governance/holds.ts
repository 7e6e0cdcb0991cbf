// Legal holds: parts of an organisation's telemetry that may not be erased while they are needed as evidence.
// A hold delays an erasure and never cancels it: what the hold covers is left out, and erased when the hold
// is released. A released hold stays recorded.

import type { Selectable } from 'kysely'
import type { LegalHold, PlaceHold } from '../../../contract/deletion/governance.ts'
import { nsPerMs } from '../../../contract/values/instant.ts'
import { appendAudit } from '../../audit/log.ts'
import { lockForAct } from '../../control/acting.ts'
import { actorTextIn, actorValues, laterActorTextIn, readActor } from '../../control/actor-columns.ts'
import type { Control, LegalHoldsTable } from '../../control/database.ts'
import { transact } from '../../control/transaction.ts'
import type { Actor } from '../../core/actor.ts'
import { AppError } from '../../core/app-error.ts'
import { type Clock, instantText } from '../../core/clock.ts'
import { newId } from '../../core/ids.ts'
import type { TimeRange } from '../../core/time-range.ts'
import type { ActiveHold } from '../../telemetry/held-part.ts'
import { signals as allSignals } from '../../telemetry/schema/tables.ts'
import type { FindRelated } from '../requests/admission.ts'
import { readRange, readSignals } from '../requests/request.ts'
import { wireBounds } from '../requests/selection.ts'
import { readActiveHolds, refuseTooManyHolds } from './active-holds.ts'
import { refuseDuringStep } from './hold-conflicts.ts'

/**
 * Called after a hold was released, and again when the release is repeated: removes what no hold in force
 * keeps.
 */
type HoldReleased = (control: Control, tenantId: string, readHolds: typeof readActiveHolds) => Promise<void>

export class LegalHolds {
  readonly #control: Control
  readonly #clock: Clock
  readonly #findRelated: FindRelated
  readonly #released: HoldReleased

  constructor(
    control: Control,
    clock: Clock,
    findRelated: FindRelated,
    released: HoldReleased = async () => {},
  ) {
    this.#control = control
    this.#clock = clock
    this.#findRelated = findRelated
    this.#released = released
  }

  /**
   * Places a hold. Throws `too_many_holds` above the limits of holds in force, and `erasing` while a step
   * erases a part of what the hold covers. The service calls this while nothing is erased from
   * the organisation's placement; then only a promised swap can be in the way.
   */
  async place(tenantId: string, body: PlaceHold, actor: Actor): Promise<LegalHold> {
    const nowMs = this.#clock.nowMs()
    const holdId = newId('hld', nowMs)
    const range: TimeRange = { startNs: body.range_start ?? null, endNs: body.range_end ?? null }
    const signals = allSignals.filter((signal) => body.signals === undefined || body.signals.includes(signal))
    await transact(this.#control, async (trx) => {
      await lockForAct(trx, { tenantId, actor }, nowMs)
      await refuseTooManyHolds(trx, this.#findRelated, { tenantId, actor })
      await refuseDuringStep(trx, tenantId, { signals, range })
      await trx
        .insertInto('legal_holds')
        .values({
          hold_id: holdId,
          tenant_id: tenantId,
          signals: JSON.stringify(signals),
          range_start_ns: range.startNs?.toString() ?? null,
          range_end_ns: range.endNs?.toString() ?? null,
          case_ref: body.case_ref,
          review_at_ms: body.review_at === undefined ? null : Number(body.review_at / nsPerMs),
          ...actorValues('placed_by', actor),
          placed_at_ms: nowMs,
          released_at_ms: null,
        })
        .execute()
      await appendAudit(trx, tenantId, nowMs, {
        actor,
        action: 'legal_hold.placed',
        target: holdId,
        outcome: 'accepted',
        facts: { signals, ...wireBounds(range) },
      })
    })
    return this.get(tenantId, holdId)
  }

  /**
   * Releases a hold, and then removes what was kept for it alone. Releasing again returns the first release,
   * and continues a removal that was interrupted. A hold of the operator can only be released by the
   * operator.
   */
  async release(tenantId: string, holdId: string, actor: Actor): Promise<LegalHold> {
    const hold = await this.#row(tenantId, holdId)
    if (hold.released_at_ms === null) await this.#release(hold, actor)
    // Not in the transaction: there may be very much to remove, and everything else would wait for it.
    await this.#released(this.#control, tenantId, readActiveHolds)
    return this.get(tenantId, holdId)
  }

  async #release(hold: Selectable<LegalHoldsTable>, actor: Actor): Promise<void> {
    const { hold_id: holdId, tenant_id: tenantId } = hold
    if (readActor('placed_by', hold).kind === 'operator' && actor.kind !== 'operator') {
      throw new AppError('role_not_permitted', {
        sentence: 'The operator placed this hold, and only the operator can release it.',
      })
    }
    const nowMs = this.#clock.nowMs()
    await transact(this.#control, async (trx) => {
      await lockForAct(trx, { tenantId, actor }, nowMs)
      const { numUpdatedRows } = await trx
        .updateTable('legal_holds')
        .set({ ...actorValues('released_by', actor), released_at_ms: nowMs })
        .where('hold_id', '=', holdId)
        .where('released_at_ms', 'is', null)
        .executeTakeFirst()
      if (numUpdatedRows === 0n) return
      await appendAudit(trx, tenantId, nowMs, {
        actor,
        action: 'legal_hold.released',
        target: holdId,
        outcome: 'accepted',
        facts: {},
      })
    })
  }

  /** Throws `not_found` for an unknown id, and for one of another organisation alike. */
  async get(tenantId: string, holdId: string): Promise<LegalHold> {
    return wireForm(await this.#row(tenantId, holdId))
  }

  async #row(tenantId: string, holdId: string): Promise<Selectable<LegalHoldsTable>> {
    const row = await this.#control
      .selectFrom('legal_holds')
      .selectAll()
      .where('tenant_id', '=', tenantId)
      .where('hold_id', '=', holdId)
      .executeTakeFirst()
    if (row === undefined) throw new AppError('not_found')
    return row
  }

  /** Returns a page, newest first, of holds before `beforeId` where given. */
  async list(
    tenantId: string,
    page: { limit: number; beforeId: string | null; isActive: boolean | null },
  ): Promise<LegalHold[]> {
    let query = this.#control
      .selectFrom('legal_holds')
      .selectAll()
      .where('tenant_id', '=', tenantId)
      .orderBy('hold_id', 'desc')
      .limit(page.limit)
    if (page.beforeId !== null) query = query.where('hold_id', '<', page.beforeId)
    if (page.isActive !== null) query = query.where('released_at_ms', page.isActive ? 'is' : 'is not', null)
    return (await query.execute()).map(wireForm)
  }

  /** Returns the holds in force. */
  active(tenantId: string): Promise<ActiveHold[]> {
    return readActiveHolds(this.#control, tenantId)
  }
}

function wireForm(row: Selectable<LegalHoldsTable>): LegalHold {
  const at = (ms: number | null) => (ms === null ? null : instantText(ms))
  return {
    id: row.hold_id,
    hold_id: row.hold_id,
    case_ref: row.case_ref,
    signals: readSignals(row.signals),
    ...wireBounds(readRange(row)),
    review_at: at(row.review_at_ms),
    placed_by: actorTextIn('placed_by', row),
    placed_at: instantText(row.placed_at_ms),
    released_by: laterActorTextIn('released_by', row),
    released_at: at(row.released_at_ms),
  }
}
