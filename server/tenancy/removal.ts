// Takes an organisation off the books once nothing of its telemetry is left. What it did stays on record for
// good: its deletion requests, certificates, legal holds, ledger and audit log, which hold no telemetry. Its
// tenant_id is never given away again, so nobody ever reads another's chains. Nothing is removed unless the
// stores are empty while no writer can add to them.

import type { OrganisationRemoved } from '../../contract/tenancy.ts'
import { appendAudit, type ChainName } from '../audit/log.ts'
import type { Control, ControlTransaction } from '../control/database.ts'
import { lock } from '../control/dialect.ts'
import type { Actor } from '../core/actor.ts'
import { AppError } from '../core/app-error.ts'
import { type Clock, instantText } from '../core/clock.ts'
import { signals } from '../telemetry/schema/tables.ts'

interface RemovalDeps {
  readonly control: Control
  readonly clock: Clock
  /**
   * Nothing more can be stored for the organisation, and what was under way has settled. Answers how to undo
   * it.
   */
  readonly closeToWriters: (tenantId: string) => Promise<() => Promise<void>>
  /** Rows of telemetry in every store, counted past everything that hides. */
  readonly countTelemetry: (tenantId: string) => Promise<number>
  /** Makes removed control-plane rows leave the disk, as soon as that can be. */
  readonly flushControl: () => Promise<void>
  readonly signCheckpoint: (chain: ChainName, tenantId: string) => Promise<string>
}

/** What belongs to a living organisation, in an order that references allow. The rest is its record. */
const livingTables = [
  'held_anomaly_versions',
  'anomalies',
  'detector_mutes',
  'detectors',
  'access_tokens',
  'deletion_policies',
  'deletion_previews',
  'retention_policies',
  'retention_changes',
  'ingest_quotas',
  'ingest_usage',
  'organisations',
] as const

/** Deletions in any other state may still change something, or have failed to. */
const endedWell = ['completed', 'cancelled', 'rejected', 'expired']

export class OrganisationRemoval {
  readonly #deps: RemovalDeps
  readonly #underWay = new Set<string>()

  constructor(deps: RemovalDeps) {
    this.#deps = deps
  }

  /**
   * Removes it in one transaction. Throws `not_removable` where a deletion has not ended well, a legal hold
   * stands, no full erasure is completed, or something was stored since; then everything is as it was.
   */
  async remove(tenantId: string, actor: Actor): Promise<OrganisationRemoved> {
    if (this.#underWay.has(tenantId)) throw notRemovable('Somebody else is removing it just now.')
    this.#underWay.add(tenantId)
    try {
      return await this.#removeAlone(tenantId, actor)
    } finally {
      this.#underWay.delete(tenantId)
    }
  }

  /** An attempt with a wrong confirmation leaves an audit entry and nothing else. */
  async recordRefusal(tenantId: string, actor: Actor): Promise<void> {
    await this.#deps.control.transaction().execute((trx) =>
      appendAudit(trx, tenantId, this.#deps.clock.nowMs(), {
        actor,
        action: 'organisation.removed',
        target: tenantId,
        outcome: 'refused',
        facts: { problems: ['body.confirm: value_error'] },
      }),
    )
  }

  async #removeAlone(tenantId: string, actor: Actor): Promise<OrganisationRemoved> {
    const { clock, control, flushControl, signCheckpoint } = this.#deps
    await requireErased(control, tenantId)
    const reopen = await this.#deps.closeToWriters(tenantId)
    const nowMs = clock.nowMs()
    try {
      const rows = await this.#deps.countTelemetry(tenantId)
      if (rows > 0) throw notRemovable(`${rows} rows were stored since its last full erasure; erase again.`)
      await control.transaction().execute((trx) => removeRows(trx, tenantId, actor, nowMs))
    } catch (error) {
      await reopen()
      throw error
    }
    // It stays closed: a request that was let in before its token was removed must not store anything now.
    await flushControl()
    return {
      tenant_id: tenantId,
      removed_at: instantText(nowMs),
      checkpoints: {
        ledger: await signCheckpoint('ledger', tenantId),
        audit: await signCheckpoint('audit', tenantId),
      },
    }
  }
}

async function removeRows(
  trx: ControlTransaction,
  tenantId: string,
  actor: Actor,
  nowMs: number,
): Promise<void> {
  await lock(trx, { tenantId })
  // Again, because everybody could still ask for deletions and holds until this transaction began.
  const erasedBy = await requireErased(trx, tenantId)
  const removed: Record<string, number> = {}
  for (const table of livingTables) {
    const { numDeletedRows } = await trx
      .deleteFrom(table)
      .where('tenant_id', '=', tenantId)
      .executeTakeFirstOrThrow()
    removed[table] = Number(numDeletedRows)
  }
  await appendAudit(trx, tenantId, nowMs, {
    actor,
    action: 'organisation.removed',
    target: tenantId,
    outcome: 'accepted',
    facts: { erased_by: erasedBy, removed },
  })
}

/** Answers the full erasure that vouches for it. */
async function requireErased(control: Control | ControlTransaction, tenantId: string): Promise<string> {
  const known = await control
    .selectFrom('organisations')
    .select('tenant_id')
    .where('tenant_id', '=', tenantId)
    .executeTakeFirst()
  if (known === undefined) throw new AppError('not_found')
  const requests = await control
    .selectFrom('deletion_requests')
    .select(['request_id', 'status', 'scope', 'signals'])
    .where('tenant_id', '=', tenantId)
    .orderBy('request_id', 'desc')
    .execute()
  const open = requests.find(({ status }) => !endedWell.includes(status))
  if (open !== undefined) throw notRemovable(`Its deletion ${open.request_id} is ${open.status}.`)
  const hold = await control
    .selectFrom('legal_holds')
    .select('hold_id')
    .where('tenant_id', '=', tenantId)
    .where('released_at_ms', 'is', null)
    .executeTakeFirst()
  if (hold !== undefined) throw notRemovable(`The legal hold ${hold.hold_id} stands.`)
  const erasure = requests.find(
    (request) => request.status === 'completed' && request.scope === 'all' && isOfAllSignals(request.signals),
  )
  if (erasure === undefined) throw notRemovable('No erasure of all its telemetry is completed.')
  return erasure.request_id
}

function isOfAllSignals(stored: string): boolean {
  const named: unknown = JSON.parse(stored)
  return Array.isArray(named) && signals.every((signal) => named.includes(signal))
}

function notRemovable(reason: string): AppError {
  return new AppError('not_removable', { sentence: `The organisation can’t be removed yet. ${reason}` })
}
