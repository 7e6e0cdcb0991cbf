// Stores the steps of each request: where it erases, how much was planned there, and when it was done. Counts
// are written before a step acts, so a crash in between loses the time and never the number.

import type { Control } from '../../control/database.ts'
import { lock } from '../../control/dialect.ts'
import { transact } from '../../control/transaction.ts'
import type { ActiveHold } from '../../telemetry/held-part.ts'
import { acting, hasUnseenHold, interrupted, promised } from '../governance/hold-conflicts.ts'
import type { DeletionProgress, StoredDeletion } from '../requests/request.ts'
import type { ErasureAction } from './eraser.ts'
import { ErasureError } from './erasure-error.ts'
import type { PlannedStep } from './planner.ts'

export interface StoredStep extends PlannedStep {
  readonly ordinal: number
  readonly action: string
  readonly doneAtMs: number | null
}

/** Action of a step that has not acted. */
const planned = 'planned'

/**
 * Action of a step that was acting when its attempt ended, and whose rows are gone: that attempt had finished
 * it, or this part of it.
 */
const resumed = 'found_done'

/** Actions of a step that is not done and whose rows may be gone. */
const mayHaveActed: readonly string[] = [acting, interrupted, promised]

export class StepStore {
  readonly #control: Control

  constructor(control: Control) {
    this.#control = control
  }

  /**
   * Replaces undone steps by a new plan and returns the undone steps. A step that was acting, and whose
   * partition or store has no selected rows any more, was finished by an attempt that ended before it was
   * recorded. It is kept as done, with the counts it had. A store may also have a part left, because it
   * removes in several transactions: then the rest is kept as done.
   */
  async replan(requestId: string, plan: readonly PlannedStep[], nowMs: number): Promise<StoredStep[]> {
    const leftIn = new Map(plan.map((step) => [targetOf(step), step.rows]))
    await transact(this.#control, async (trx) => {
      const before = await trx
        .selectFrom('deletion_steps')
        .selectAll()
        .where('request_id', '=', requestId)
        .orderBy('ordinal')
        .execute()
      for (const step of before) {
        if (step.done_at_ms !== null) continue
        const left = leftIn.get(targetOf({ store: step.store, partitionId: step.partition_id }))
        const isWhole = left === undefined
        const removed = isWhole ? step.rows : step.partition_id === null ? step.rows - left : 0
        if (!mayHaveActed.includes(step.action) || (!isWhole && removed <= 0)) {
          await trx
            .deleteFrom('deletion_steps')
            .where('request_id', '=', requestId)
            .where('ordinal', '=', step.ordinal)
            .execute()
        } else {
          await trx
            .updateTable('deletion_steps')
            .set({ done_at_ms: nowMs, action: resumed, rows: removed })
            .where('request_id', '=', requestId)
            .where('ordinal', '=', step.ordinal)
            .execute()
        }
      }
      const first = Math.max(0, ...before.map((step) => step.ordinal)) + 1
      for (const [i, step] of plan.entries()) {
        await trx
          .insertInto('deletion_steps')
          .values({
            request_id: requestId,
            ordinal: first + i,
            store: step.store,
            action: planned,
            partition_id: step.partitionId,
            rows: step.rows,
            bytes: step.bytes,
            done_at_ms: null,
          })
          .execute()
      }
    })
    return (await this.list(requestId)).filter((step) => step.doneAtMs === null)
  }

  /**
   * Records that steps are about to act, with the rows that each is about to erase. From then on the rows may
   * be gone. They can be fewer than planned, because a legal hold may have been placed since. `promised`
   * means that they will be gone, whatever happens. Throws ErasureError where there is a hold that is not
   * among `holds`, those that the steps keep.
   */
  async begin(
    request: StoredDeletion,
    rowsByStep: ReadonlyMap<StoredStep, number>,
    holds: readonly ActiveHold[],
    action: typeof acting | typeof promised = acting,
  ): Promise<void> {
    await transact(this.#control, async (trx) => {
      await lock(trx, request)
      if (await hasUnseenHold(trx, request.tenantId, request, holds)) {
        throw new ErasureError('A legal hold was placed while a step began; the next attempt keeps to it')
      }
      for (const [step, rows] of rowsByStep) {
        const bytes = rows === step.rows ? step.bytes : Math.round((step.bytes * rows) / step.rows)
        const { numUpdatedRows } = await trx
          .updateTable('deletion_steps')
          .set({ action, rows, bytes })
          .where('request_id', '=', request.requestId)
          .where('ordinal', '=', step.ordinal)
          .where('done_at_ms', 'is', null)
          .executeTakeFirstOrThrow()
        // Holds are compared with recorded steps, so a step that is not recorded must not act.
        if (numUpdatedRows !== 1n) throw new ErasureError('A step began that is not on record')
      }
    })
  }

  /**
   * Records that promised swaps were made, or were never promised, except in the closed placements: no step
   * is bound to act any more. Of placement `only`; of all where absent.
   */
  async keptPromises(closedPlacements: readonly number[], only?: number): Promise<void> {
    let query = this.#control
      .updateTable('deletion_steps')
      .set({ action: acting })
      .where('action', '=', promised)
      .where('done_at_ms', 'is', null)
    for (const placement of closedPlacements)
      query = query.where('partition_id', 'not like', `${placement}-%`)
    if (only !== undefined) query = query.where('partition_id', 'like', `${only}-%`)
    await query.execute()
  }

  /** Records that the attempt at a request failed, so that none of its steps acts any more. */
  async interrupted(requestId: string): Promise<void> {
    await this.#control
      .updateTable('deletion_steps')
      .set({ action: interrupted })
      .where('request_id', '=', requestId)
      .where('action', '=', acting)
      .where('done_at_ms', 'is', null)
      .execute()
  }

  /**
   * Records finished steps. A step that found nothing erased nothing, whatever was planned. Throws
   * ErasureError where one of them is not recorded.
   */
  async done(
    requestId: string,
    steps: readonly StoredStep[],
    action: ErasureAction | 'removed',
    nowMs: number,
  ): Promise<void> {
    const { numUpdatedRows } = await this.#control
      .updateTable('deletion_steps')
      .set({ action, done_at_ms: nowMs, ...(action === 'none' && { rows: 0, bytes: 0 }) })
      .where('request_id', '=', requestId)
      .where(
        'ordinal',
        'in',
        steps.map(({ ordinal }) => ordinal),
      )
      .executeTakeFirstOrThrow()
    if (numUpdatedRows !== BigInt(steps.length)) throw new ErasureError('A step ended that is not on record')
  }

  async list(requestId: string): Promise<StoredStep[]> {
    const rows = await this.#control
      .selectFrom('deletion_steps')
      .selectAll()
      .where('request_id', '=', requestId)
      .orderBy('ordinal')
      .execute()
    return rows.map((row) => ({
      ordinal: row.ordinal,
      store: row.store,
      partitionId: row.partition_id,
      action: row.action,
      rows: row.rows,
      bytes: row.bytes,
      doneAtMs: row.done_at_ms,
    }))
  }
}

/** Returns the sums of the finished steps. */
export function progressOf(
  steps: readonly StoredStep[],
  leftOver: Readonly<Record<string, number>> | null,
  heldBy: readonly string[] = [],
): DeletionProgress {
  const done = steps.filter((step) => step.doneAtMs !== null)
  const stores: Record<string, number> = {}
  for (const { store, rows } of done) stores[store] = (stores[store] ?? 0) + rows
  const sum = (pick: (step: StoredStep) => number) => done.reduce((total, step) => total + pick(step), 0)
  return {
    rows_erased: sum((step) => step.rows),
    bytes_erased: sum((step) => step.bytes),
    partitions_dropped: sum((step) => (step.action === 'dropped' ? 1 : 0)),
    partitions_rewritten: sum((step) => (step.action === 'rewritten' ? 1 : 0)),
    steps_done: done.length,
    steps_total: steps.length,
    stores,
    left_over: leftOver,
    held_by: heldBy,
    erased_by: null,
  }
}

function targetOf({ store, partitionId }: { store: string; partitionId: string | null }): string {
  return `${store} ${partitionId ?? ''}`
}
