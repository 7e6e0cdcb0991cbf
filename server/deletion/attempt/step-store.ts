// Stores the steps of each request: where it erases, how much was planned there, and when it was done. Counts
// are written before a step acts, so a crash in between loses the time and never the number. A request may
// have ten thousands of steps, one for each week and table, so they are written some at a time and summed by
// the database.

import type { Control } from '../../control/database.ts'
import { lock } from '../../control/dialect.ts'
import { transact } from '../../control/transaction.ts'
import { Pace } from '../../core/turns/pace.ts'
import type { ActiveHold } from '../../telemetry/held-part.ts'
import { readHolds } from '../governance/active-holds.ts'
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

/** The finished steps of a store with the same action. */
export interface StepSum {
  readonly store: string
  readonly action: string
  readonly steps: number
  /** Those of them that have a partition. */
  readonly partitions: number
  readonly rows: number
  readonly bytes: number
}

/** Steps that are written or removed together: some milliseconds of the event loop. */
const stepsAtOnce = 500

/** Action of a step that has not acted. */
const planned = 'planned'

/**
 * Action of a step that was acting when its attempt ended, and whose rows are gone: that attempt had finished
 * it, or this part of it.
 */
const resumed = 'found_done'

/** Actions of a step that is not done and whose rows may be gone. */
const mayHaveActed: readonly string[] = [acting, interrupted, promised]

/** Legal holds that a step kept when it began; some may have been released since. */
interface KeptHolds {
  /** The same for the same holds. */
  readonly text: string
  readonly holds: readonly ActiveHold[]
}

/** What is left of the selection outside of the holds that steps kept, by the text of these. */
export type LeftOutside = ReadonlyMap<string, readonly PlannedStep[]>

/** Returns the text of {@link KeptHolds}. */
export function keptText(holds: readonly ActiveHold[]): string {
  return JSON.stringify(holds.map(({ holdId }) => holdId).sort())
}

/** Of steps that are done: nobody asks for their holds, and there may be ten thousands of these steps. */
const noHolds = keptText([])

export class StepStore {
  readonly #control: Control

  constructor(control: Control) {
    this.#control = control
  }

  /** Returns which holds were kept by the undone steps that may have acted, the same holds once. */
  async keptHolds({ requestId, tenantId }: StoredDeletion): Promise<KeptHolds[]> {
    const rows = await this.#control
      .selectFrom('deletion_steps')
      .select('kept_holds')
      .distinct()
      .where('request_id', '=', requestId)
      .where('done_at_ms', 'is', null)
      .where('action', 'in', mayHaveActed)
      .execute()
    const read = rows.map(async ({ kept_holds: text }) => ({
      text,
      holds: await readHolds(this.#control, tenantId, JSON.parse(text)),
    }))
    return Promise.all(read)
  }

  /**
   * Replaces undone steps by a new plan and returns its steps. A step that was acting, and whose partition or
   * store has no row any more that it was to erase, was finished by an attempt that ended before it was
   * recorded. It is kept as done, with the counts it had. A store may also have a part left, because it
   * removes in several transactions: then the rest is kept as done. Of steps whose holds are not in
   * `leftOutside` the plan says what is left.
   *
   * Steps are written some at a time, the new ones first. Where that ends early, undone steps of both plans
   * are left, and none of the new plan has acted: the next call replaces them all.
   */
  async replan(
    requestId: string,
    plan: readonly PlannedStep[],
    nowMs: number,
    leftOutside: LeftOutside = new Map(),
  ): Promise<StoredStep[]> {
    const { last } = await this.#control
      .selectFrom('deletion_steps')
      .select(({ fn }) => fn.max('ordinal').as('last'))
      .where('request_id', '=', requestId)
      .executeTakeFirstOrThrow()
    const before = last ?? 0
    const steps = plan.map((step, i) => ({
      ...step,
      ordinal: before + 1 + i,
      action: planned,
      doneAtMs: null,
    }))
    const pace = new Pace()
    for (let at = 0; at < steps.length; at += stepsAtOnce) {
      if (pace.isOver()) await pace.turn()
      await this.#insert(requestId, steps.slice(at, at + stepsAtOnce))
    }
    const inPlan = rowsByTarget(plan)
    const outside = new Map([...leftOutside].map(([text, steps]) => [text, rowsByTarget(steps)] as const))
    const leftOf = (keptHolds: string) => outside.get(keptHolds) ?? inPlan
    for (let after: number | null = 0; after !== null; ) {
      if (pace.isOver()) await pace.turn()
      after = await this.#endUndone(requestId, { after, last: before }, leftOf, nowMs)
    }
    return steps
  }

  async #insert(requestId: string, steps: readonly StoredStep[]): Promise<void> {
    const values = steps.map((step) => ({
      request_id: requestId,
      ordinal: step.ordinal,
      store: step.store,
      action: step.action,
      partition_id: step.partitionId,
      rows: step.rows,
      bytes: step.bytes,
      done_at_ms: step.doneAtMs,
    }))
    await this.#control.insertInto('deletion_steps').values(values).execute()
  }

  /**
   * Removes the first undone steps of a range of ordinals, or keeps them as done. Returns the last one of
   * them; null where there are no more.
   */
  #endUndone(
    requestId: string,
    { after, last }: { readonly after: number; readonly last: number },
    leftOf: (keptHolds: string) => ReadonlyMap<string, number>,
    nowMs: number,
  ): Promise<number | null> {
    return transact(this.#control, async (trx) => {
      const undone = await trx
        .selectFrom('deletion_steps')
        .selectAll()
        .where('request_id', '=', requestId)
        .where('ordinal', '>', after)
        .where('ordinal', '<=', last)
        .where('done_at_ms', 'is', null)
        .orderBy('ordinal')
        .limit(stepsAtOnce)
        .execute()
      const gone: number[] = []
      for (const step of undone) {
        const target = targetOf({ store: step.store, partitionId: step.partition_id })
        const left = leftOf(step.kept_holds).get(target)
        const isWhole = left === undefined
        const removed = isWhole ? step.rows : step.partition_id === null ? step.rows - left : 0
        if (!mayHaveActed.includes(step.action) || (!isWhole && removed <= 0)) {
          gone.push(step.ordinal)
          continue
        }
        await trx
          .updateTable('deletion_steps')
          .set({ done_at_ms: nowMs, action: resumed, rows: removed, kept_holds: noHolds })
          .where('request_id', '=', requestId)
          .where('ordinal', '=', step.ordinal)
          .execute()
      }
      if (gone.length > 0) {
        await trx
          .deleteFrom('deletion_steps')
          .where('request_id', '=', requestId)
          .where('ordinal', 'in', gone)
          .execute()
      }
      return undone.length < stepsAtOnce ? null : (undone.at(-1)?.ordinal ?? null)
    })
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
    const keptHolds = keptText(holds)
    await transact(this.#control, async (trx) => {
      await lock(trx, request)
      if (await hasUnseenHold(trx, request.tenantId, request, holds)) {
        throw new ErasureError('A legal hold was placed while a step began; the next attempt keeps to it')
      }
      for (const [step, rows] of rowsByStep) {
        const bytes = rows === step.rows ? step.bytes : Math.round((step.bytes * rows) / step.rows)
        const { numUpdatedRows } = await trx
          .updateTable('deletion_steps')
          .set({ action, rows, bytes, kept_holds: keptHolds })
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
      .set({
        action,
        done_at_ms: nowMs,
        kept_holds: noHolds,
        ...(action === 'none' && { rows: 0, bytes: 0 }),
      })
      .where('request_id', '=', requestId)
      .where(
        'ordinal',
        'in',
        steps.map(({ ordinal }) => ordinal),
      )
      .executeTakeFirstOrThrow()
    if (numUpdatedRows !== BigInt(steps.length)) throw new ErasureError('A step ended that is not on record')
  }

  /**
   * Returns the sums of the finished steps by store and action, in the order in which the first step of each
   * was planned.
   */
  async sums(requestId: string): Promise<StepSum[]> {
    const found = await this.#control
      .selectFrom('deletion_steps')
      .select(({ fn }) => [
        'store',
        'action',
        fn.countAll().as('steps'),
        fn.count('partition_id').as('partitions'),
        fn.sum('rows').as('rows'),
        fn.sum('bytes').as('bytes'),
      ])
      .where('request_id', '=', requestId)
      .where('done_at_ms', 'is not', null)
      .groupBy(['store', 'action'])
      .orderBy(({ fn }) => fn.min('ordinal'))
      .execute()
    return found.map(({ action, bytes, partitions, rows, steps, store }) => ({
      store,
      action,
      steps: Number(steps),
      partitions: Number(partitions),
      rows: Number(rows),
      bytes: Number(bytes),
    }))
  }

  /** Returns what the finished steps have done. */
  async progress(
    requestId: string,
    leftOver: Readonly<Record<string, number>> | null,
    heldBy: readonly string[] = [],
  ): Promise<DeletionProgress> {
    const done = await this.sums(requestId)
    const { total } = await this.#control
      .selectFrom('deletion_steps')
      .select(({ fn }) => fn.countAll().as('total'))
      .where('request_id', '=', requestId)
      .executeTakeFirstOrThrow()
    const stores: Record<string, number> = {}
    for (const { store, rows } of done) stores[store] = (stores[store] ?? 0) + rows
    const sum = (pick: (sum: StepSum) => number) => done.reduce((all, step) => all + pick(step), 0)
    return {
      rows_erased: sum(({ rows }) => rows),
      bytes_erased: sum(({ bytes }) => bytes),
      partitions_dropped: sum(({ action, steps }) => (action === 'dropped' ? steps : 0)),
      partitions_rewritten: sum(({ action, steps }) => (action === 'rewritten' ? steps : 0)),
      steps_done: sum(({ steps }) => steps),
      steps_total: Number(total),
      stores,
      left_over: leftOver,
      held_by: heldBy,
      erased_by: null,
    }
  }
}

function rowsByTarget(steps: readonly PlannedStep[]): ReadonlyMap<string, number> {
  return new Map(steps.map((step) => [targetOf(step), step.rows]))
}

function targetOf({ store, partitionId }: { store: string; partitionId: string | null }): string {
  return `${store} ${partitionId ?? ''}`
}
