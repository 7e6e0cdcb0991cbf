// All SQL of quotas and of sent amounts: limits that the operator sets, and counts for each UTC day. Counts
// are only added to, so several writers of the same day can't overwrite one another.

import { appendAudit } from '../audit/log.ts'
import type { Control } from '../control/database.ts'
import { lock } from '../control/dialect.ts'
import { transact } from '../control/transaction.ts'
import type { Actor } from '../core/actor.ts'
import type { Clock } from '../core/clock.ts'
import { Gathered } from '../core/gathered.ts'

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

export interface DayDelta extends DayCounts {
  readonly tenantId: string
  readonly day: string
}

export const noCounts: DayCounts = { bytes: 0, rowsAccepted: 0, rowsRejected: 0, requestsRefused: 0 }

/** The most days that are returned. */
const daysMax = 31

export class QuotaStore {
  readonly #control: Control
  readonly #defaults: IngestLimits

  /** Every request asks it, with its organisation. */
  readonly #ownLimits: Gathered<OwnLimits>

  constructor(control: Control, defaults: IngestLimits) {
    this.#control = control
    this.#defaults = defaults
    this.#ownLimits = new Gathered((tenantIds) => readLimits(control, tenantIds))
  }

  /** Returns the current limits; a change by the command line applies to the next call. */
  async limitsOf(tenantId: string): Promise<IngestLimits> {
    const row = await this.#ownLimits.get(tenantId)
    return {
      rowsPerSecond: inForce(row?.rows_per_second, this.#defaults.rowsPerSecond),
      bytesPerDay: inForce(row?.bytes_per_day, this.#defaults.bytesPerDay),
    }
  }

  async setLimits(tenantId: string, change: LimitsChange, actor: Actor, clock: Clock): Promise<void> {
    const columns = {
      ...(change.rowsPerSecond !== undefined && { rows_per_second: change.rowsPerSecond }),
      ...(change.bytesPerDay !== undefined && { bytes_per_day: change.bytesPerDay }),
    }
    await transact(this.#control, async (trx) => {
      await lock(trx, { tenantId })
      await trx
        .insertInto('ingest_quotas')
        .values({ tenant_id: tenantId, rows_per_second: null, bytes_per_day: null, ...columns })
        .onConflict((conflict) => conflict.column('tenant_id').doUpdateSet(columns))
        .execute()
      await appendAudit(trx, tenantId, clock.nowMs(), {
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

  /** Adds all counts in one transaction, except those of organisations that were removed. */
  async add(deltas: readonly DayDelta[]): Promise<void> {
    await transact(this.#control, async (trx) => {
      // In one order, so that two processes that count at once wait for each other in one direction only.
      for (const { tenantId, day, ...counts } of inOrder(deltas)) {
        const known = await trx
          .selectFrom('organisations')
          .select('tenant_id')
          .where('tenant_id', '=', tenantId)
          .executeTakeFirst()
        if (known === undefined) continue
        await trx
          .insertInto('ingest_usage')
          .values({
            tenant_id: tenantId,
            day,
            bytes: counts.bytes,
            rows_accepted: counts.rowsAccepted,
            rows_rejected: counts.rowsRejected,
            requests_refused: counts.requestsRefused,
          })
          .onConflict((conflict) =>
            conflict.columns(['tenant_id', 'day']).doUpdateSet((eb) => ({
              bytes: eb('ingest_usage.bytes', '+', counts.bytes),
              rows_accepted: eb('ingest_usage.rows_accepted', '+', counts.rowsAccepted),
              rows_rejected: eb('ingest_usage.rows_rejected', '+', counts.rowsRejected),
              requests_refused: eb('ingest_usage.requests_refused', '+', counts.requestsRefused),
            })),
          )
          .execute()
      }
    })
  }
}

interface OwnLimits {
  readonly rows_per_second: number | null
  readonly bytes_per_day: number | null
}

async function readLimits(
  control: Control,
  tenantIds: readonly string[],
): Promise<ReadonlyMap<string, OwnLimits>> {
  const rows = await control
    .selectFrom('ingest_quotas')
    .select(['tenant_id', 'rows_per_second', 'bytes_per_day'])
    .where('tenant_id', 'in', tenantIds)
    .execute()
  return new Map(rows.map((row) => [row.tenant_id, row]))
}

function inOrder(deltas: readonly DayDelta[]): DayDelta[] {
  return deltas.toSorted((a, b) => (a.tenantId < b.tenantId ? -1 : a.tenantId > b.tenantId ? 1 : 0))
}

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
