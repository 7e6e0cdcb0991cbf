// All SQL of quotas and of sent amounts: limits that the operator sets, which are remembered for a moment,
// and counts for each UTC day. Counts are only added to, so several writers of the same day can't overwrite
// one another, and a batch of them is added once, however often it is sent.

import { appendAudit } from '../audit/log.ts'
import { lockForAct } from '../control/acting.ts'
import type { Control, ControlTransaction } from '../control/database.ts'
import { outsideWritesOf } from '../control/dialect.ts'
import { transact } from '../control/transaction.ts'
import type { Actor } from '../core/actor.ts'
import type { Clock } from '../core/clock.ts'
import { newId } from '../core/ids.ts'
import { Remembered } from '../core/remembered.ts'

/** The limits of an organisation; null is no limit. */
export interface IngestLimits {
  readonly rowsPerSecond: number | null
  readonly bytesPerDay: number | null
}

/** A change of limits: an absent one stays, null is the default of the settings, 0 is no limit. */
interface LimitsChange {
  readonly rowsPerSecond?: number | null
  readonly bytesPerDay?: number | null
}

export interface DayCounts {
  readonly bytes: number
  readonly rowsAccepted: number
  readonly rowsRejected: number
  readonly requestsRefused: number
}

interface DayDelta extends DayCounts {
  readonly tenantId: string
  readonly day: string
}

/** Counts that are stored together, once; see {@link QuotaStore.add}. */
export interface CountsBatch {
  readonly id: string
  readonly deltas: readonly DayDelta[]
}

export const noCounts: DayCounts = { bytes: 0, rowsAccepted: 0, rowsRejected: 0, requestsRefused: 0 }

export function addCounts(a: DayCounts, b: DayCounts): DayCounts {
  return {
    bytes: a.bytes + b.bytes,
    rowsAccepted: a.rowsAccepted + b.rowsAccepted,
    rowsRejected: a.rowsRejected + b.rowsRejected,
    requestsRefused: a.requestsRefused + b.requestsRefused,
  }
}

/** The most days that are returned. */
const daysMax = 31

export class QuotaStore {
  readonly #control: Control
  readonly #clock: Clock
  readonly #defaults: IngestLimits

  /** Every request asks it, with its organisation. */
  readonly #ownLimits: Remembered<OwnLimits>

  constructor(control: Control, clock: Clock, defaults: IngestLimits) {
    this.#control = control
    this.#clock = clock
    this.#defaults = defaults
    this.#ownLimits = new Remembered({
      lookUp: (tenantIds) => readLimits(control, tenantIds),
      elapsedMs: () => clock.elapsedMs(),
      outsideWrites: () => outsideWritesOf(control),
    })
  }

  /**
   * Returns the limits of an organisation that exists. A change applies to the next call, also one by the
   * command line on SQLite; on PostgreSQL that applies when what was read is old ({@link rememberedMs}).
   */
  async limitsOf(tenantId: string): Promise<IngestLimits> {
    const row = await this.#ownLimits.get(tenantId)
    return {
      rowsPerSecond: inForce(row?.rows_per_second, this.#defaults.rowsPerSecond),
      bytesPerDay: inForce(row?.bytes_per_day, this.#defaults.bytesPerDay),
    }
  }

  async setLimits(tenantId: string, change: LimitsChange, actor: Actor): Promise<void> {
    try {
      await this.#storeLimits(tenantId, change, actor)
    } finally {
      this.#ownLimits.forget(tenantId)
    }
  }

  async #storeLimits(tenantId: string, change: LimitsChange, actor: Actor): Promise<void> {
    const columns = {
      ...(change.rowsPerSecond !== undefined && { rows_per_second: change.rowsPerSecond }),
      ...(change.bytesPerDay !== undefined && { bytes_per_day: change.bytesPerDay }),
    }
    await transact(this.#control, async (trx) => {
      await lockForAct(trx, { tenantId, actor }, this.#clock.nowMs())
      await trx
        .insertInto('ingest_quotas')
        .values({ tenant_id: tenantId, rows_per_second: null, bytes_per_day: null, ...columns })
        .onConflict((conflict) => conflict.column('tenant_id').doUpdateSet(columns))
        .execute()
      await appendAudit(trx, tenantId, this.#clock.nowMs(), {
        actor,
        action: 'quota.changed',
        target: tenantId,
        outcome: 'accepted',
        facts: columns,
      })
    })
  }

  async countsOf(tenantId: string, day: string): Promise<DayCounts> {
    const row = await this.#control
      .selectFrom('ingest_usage')
      .selectAll()
      .where('tenant_id', '=', tenantId)
      .where('day', '=', day)
      .executeTakeFirst()
    return row === undefined ? noCounts : toCounts(row)
  }

  /** Newest first. */
  async daysOf(tenantId: string): Promise<(DayCounts & { readonly day: string })[]> {
    const rows = await this.#control
      .selectFrom('ingest_usage')
      .selectAll()
      .where('tenant_id', '=', tenantId)
      .orderBy('day', 'desc')
      .limit(daysMax)
      .execute()
    return rows.map((row) => ({ day: row.day, ...toCounts(row) }))
  }

  /** Returns a batch that was never stored. */
  batchOf(deltas: readonly DayDelta[]): CountsBatch {
    // A statement writes each row once, and a day can be there twice after a clock has gone back.
    const merged = new Map<string, DayDelta>()
    for (const delta of deltas) {
      const key = `${delta.tenantId} ${delta.day}`
      merged.set(key, { ...delta, ...addCounts(merged.get(key) ?? noCounts, delta) })
    }
    return { id: newId('cnt', this.#clock.nowMs()), deltas: [...merged.values()] }
  }

  /**
   * Adds all counts in one transaction, except those of organisations that were removed. Does nothing where
   * the batch is the last one that was stored: send it again where the answer to its commit was lost, before
   * any other.
   */
  async add({ id, deltas }: CountsBatch): Promise<void> {
    await transact(this.#control, async (trx) => {
      if (!(await isNewBatch(trx, id))) return
      for (let at = 0; at < deltas.length; at += deltasPerStatement) {
        await storeCounts(trx, deltas.slice(at, at + deltasPerStatement))
      }
    })
  }
}

/** Seven values each, of the 32,766 that a statement of SQLite may have. */
const deltasPerStatement = 500

/**
 * Records the id of the batch that is being stored. Returns false where it is recorded already. Waits for the
 * transaction that is recording another one, or the same.
 */
async function isNewBatch(trx: ControlTransaction, id: string): Promise<boolean> {
  const { numInsertedOrUpdatedRows } = await trx
    .insertInto('instance')
    .values({ key: 'usage_batch', value: id })
    .onConflict((conflict) =>
      conflict.column('key').doUpdateSet({ value: id }).where('instance.value', '!=', id),
    )
    .executeTakeFirstOrThrow()
  return numInsertedOrUpdatedRows === 1n
}

async function storeCounts(trx: ControlTransaction, deltas: readonly DayDelta[]): Promise<void> {
  const tenantIds = deltas.map(({ tenantId }) => tenantId)
  const known = await trx
    .selectFrom('organisations')
    .select('tenant_id')
    .where('tenant_id', 'in', tenantIds)
    .execute()
  const there = new Set(known.map(({ tenant_id }) => tenant_id))
  const rows = deltas.filter(({ tenantId }) => there.has(tenantId)).map(toRow)
  if (rows.length === 0) return
  await trx
    .insertInto('ingest_usage')
    .values(rows)
    .onConflict((conflict) =>
      conflict.columns(['tenant_id', 'day']).doUpdateSet(({ eb, ref }) => ({
        bytes: eb('ingest_usage.bytes', '+', ref('excluded.bytes')),
        rows_accepted: eb('ingest_usage.rows_accepted', '+', ref('excluded.rows_accepted')),
        rows_rejected: eb('ingest_usage.rows_rejected', '+', ref('excluded.rows_rejected')),
        requests_refused: eb('ingest_usage.requests_refused', '+', ref('excluded.requests_refused')),
      })),
    )
    .execute()
}

function toRow({ tenantId, day, bytes, rowsAccepted, rowsRejected, requestsRefused }: DayDelta) {
  return {
    tenant_id: tenantId,
    day,
    bytes,
    rows_accepted: rowsAccepted,
    rows_rejected: rowsRejected,
    requests_refused: requestsRefused,
  }
}

interface OwnLimits {
  readonly rows_per_second: number | null
  readonly bytes_per_day: number | null
}

/** Organisations without limits of their own have a value too, so that it is remembered. */
async function readLimits(
  control: Control,
  tenantIds: readonly string[],
): Promise<ReadonlyMap<string, OwnLimits>> {
  const rows = await control
    .selectFrom('ingest_quotas')
    .select(['tenant_id', 'rows_per_second', 'bytes_per_day'])
    .where('tenant_id', 'in', tenantIds)
    .execute()
  return new Map<string, OwnLimits>([
    ...tenantIds.map((tenantId) => [tenantId, noLimits] as const),
    ...rows.map((row) => [row.tenant_id, row] as const),
  ])
}

const noLimits: OwnLimits = { rows_per_second: null, bytes_per_day: null }

function inForce(own: number | null | undefined, fallback: number | null): number | null {
  if (own === null || own === undefined) return fallback
  return own === 0 ? null : own
}

function toCounts(row: {
  bytes: number
  rows_accepted: number
  rows_rejected: number
  requests_refused: number
}): DayCounts {
  return {
    bytes: row.bytes,
    rowsAccepted: row.rows_accepted,
    rowsRejected: row.rows_rejected,
    requestsRefused: row.requests_refused,
  }
}
