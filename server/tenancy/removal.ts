// Removes an organisation after all its telemetry is erased. The evidence of what it did stays for ever: its
// deletion requests, certificates, legal holds, ledger and audit log, which contain no telemetry. Its
// tenant_id is never used again, so nobody else ever reads its chains. Nothing is removed unless the stores
// are empty while no writer can add to them.

import { type Selectable, sql } from 'kysely'
import { deletionStatuses } from '../../contract/deletion/requests.ts'
import type { OrganisationRemoved } from '../../contract/organisation/tenancy.ts'
import { appendAudit, type ChainName } from '../audit/log.ts'
import { lockForAct, lockForActNow } from '../control/acting.ts'
import type { Control, ControlTransaction, DeletionRequestsTable } from '../control/database.ts'
import { lock } from '../control/dialect.ts'
import { transact } from '../control/transaction.ts'
import type { Actor } from '../core/actor.ts'
import { AppError, isOutcomeUnknown, storageRetrySeconds } from '../core/app-error.ts'
import { type Clock, instantText } from '../core/clock.ts'
import { signals } from '../telemetry/schema/tables.ts'
import { type ClockReading, readingOf } from '../worker/clock-watch.ts'

/** What the removal asks other rooms, also inside its transaction. */
interface RemovalRules {
  /** Whether a full erasure of the organisation needs a second person at this reading of the clock. */
  readonly isGuarded: (
    control: Control | ControlTransaction,
    tenantId: string,
    at: ClockReading,
  ) => Promise<boolean>
  readonly isClockInDoubt: (control: Control | ControlTransaction, at: ClockReading) => Promise<boolean>
}

interface RemovalDeps extends RemovalRules {
  readonly control: Control
  readonly clock: Clock
  /**
   * Ends all writing for the organisation and waits for running writes. Returns the function that undoes it.
   */
  readonly closeToWriters: (tenantId: string) => Promise<() => Promise<void>>
  /** Called after its tokens may have been removed, and before anything else is done. */
  readonly forgetSenders: (tenantId: string) => void
  /** Counts rows of telemetry in every store, including hidden ones. */
  readonly countTelemetry: (tenantId: string) => Promise<number>
  /** Makes the removed rows of these tables leave the disk as soon as possible. */
  readonly flushControl: (tables: readonly string[], tenantId: string) => Promise<void>
  readonly signCheckpoint: (chain: ChainName, tenantId: string) => Promise<string>
}

/** Tables whose rows are removed, in an order that references allow. All others are evidence and stay. */
const removedTables = [
  'held_anomaly_versions',
  'anomalies',
  'detector_mutes',
  'detectors',
  'sessions',
  'sign_in_codes',
  'access_tokens',
  'deletion_policies',
  'deletion_previews',
  'retention_policies',
  'retention_changes',
  'ingest_quotas',
  'ingest_usage',
  'organisations',
] as const

/** Deletions in these states may still change something, or have failed to. */
const unsettledStates = deletionStatuses.filter(
  (status) => !['completed', 'cancelled', 'rejected', 'expired'].includes(status),
)

/** As requests have them stored: always in this order. */
const allSignals = JSON.stringify(signals)

export class OrganisationRemoval {
  readonly #deps: RemovalDeps
  readonly #underWay = new Set<string>()

  constructor(deps: RemovalDeps) {
    this.#deps = deps
  }

  /**
   * Removes it in one transaction. Throws `not_removable` where a deletion is unfinished or failed, a
   * legal hold is in force, no full erasure is completed, or something was stored since; then nothing has
   * changed. Where full erasures need two people, also where no second person approved the last one within
   * the last 7 days.
   */
  async remove(tenantId: string, actor: Actor): Promise<OrganisationRemoved> {
    if (this.#underWay.has(tenantId)) throw notRemovable('Another request is removing it at present.')
    this.#underWay.add(tenantId)
    try {
      return await this.#removeAlone(tenantId, actor)
    } finally {
      this.#underWay.delete(tenantId)
    }
  }

  /** Records an attempt with a wrong confirmation in the audit log, and changes nothing else. */
  async recordRefusal(tenantId: string, actor: Actor): Promise<void> {
    const nowMs = this.#deps.clock.nowMs()
    await transact(this.#deps.control, async (trx) => {
      await lockForAct(trx, { tenantId, actor }, nowMs)
      await appendAudit(trx, tenantId, nowMs, {
        actor,
        action: 'organisation.removed',
        target: tenantId,
        outcome: 'refused',
        facts: { problems: ['body.confirm: value_error'] },
      })
    })
  }

  /**
   * Returns when it was removed. Throws `outcome_unknown` only where the database does not even say whether
   * the organisation exists.
   */
  async #removeRows(tenantId: string, actor: Actor): Promise<number> {
    const { clock, control } = this.#deps
    let removedAtMs = clock.nowMs()
    try {
      await transact(control, async (trx) => {
        await lockForActNow(trx, { tenantId, actor }, clock)
        const at = readingOf(clock)
        removedAtMs = at.wallMs
        await removeRows(this.#deps, trx, { tenantId, actor, at })
      })
    } catch (error) {
      if (!isOutcomeUnknown(error)) throw error
      if (await isStillThere(control, tenantId, error)) throw nothingRemoved(error)
    }
    return removedAtMs
  }

  async #removeAlone(tenantId: string, actor: Actor): Promise<OrganisationRemoved> {
    const { clock, control, flushControl, signCheckpoint } = this.#deps
    await requireErased(this.#deps, control, tenantId, readingOf(clock))
    const reopen = await this.#deps.closeToWriters(tenantId)
    let removedAtMs: number
    try {
      const rows = await this.#deps.countTelemetry(tenantId)
      if (rows > 0) throw notRemovable(`${rows} rows were stored since its last full erasure; erase again.`)
      removedAtMs = await this.#removeRows(tenantId, actor).finally(() => this.#deps.forgetSenders(tenantId))
    } catch (error) {
      // Where it may be removed it stays closed, until it is removed or not once this is repeated.
      if (!isOutcomeUnknown(error)) await reopen()
      throw error
    }
    // It stays closed: a request that was admitted before its token was removed must not store anything.
    await flushControl(removedTables, tenantId)
    return {
      tenant_id: tenantId,
      removed_at: instantText(removedAtMs),
      checkpoints: {
        ledger: await signCheckpoint('ledger', tenantId),
        audit: await signCheckpoint('audit', tenantId),
      },
    }
  }
}

/** Call it with the lock of the organisation. */
async function removeRows(
  rules: RemovalRules,
  trx: ControlTransaction,
  { actor, at, tenantId }: { readonly actor: Actor; readonly at: ClockReading; readonly tenantId: string },
): Promise<void> {
  // Checked again, because deletions and holds could be requested until this transaction began.
  const erasedBy = await requireErased(rules, trx, tenantId, at)
  const removed: Record<string, number> = {}
  for (const table of removedTables) {
    const { numDeletedRows } = await trx
      .deleteFrom(table)
      .where('tenant_id', '=', tenantId)
      .executeTakeFirstOrThrow()
    removed[table] = Number(numDeletedRows)
  }
  await appendAudit(trx, tenantId, at.wallMs, {
    actor,
    action: 'organisation.removed',
    target: tenantId,
    outcome: 'accepted',
    facts: { erased_by: erasedBy, removed },
  })
}

/**
 * Whether the organisation exists after a removal that may be stored or not. Throws `doubt` where the
 * database does not answer.
 */
async function isStillThere(control: Control, tenantId: string, doubt: unknown): Promise<boolean> {
  try {
    return await transact(control, async (trx) => {
      // The transaction in doubt has this lock until it has ended.
      await lock(trx, { tenantId })
      return (await findOrganisation(trx, tenantId)) !== undefined
    })
  } catch {
    throw doubt
  }
}

function nothingRemoved(cause: unknown): AppError {
  return new AppError('storage_unavailable', {
    sentence: 'The database lost the removal before it was stored, and nothing is removed; repeat it.',
    retryAfterSeconds: storageRetrySeconds,
    cause,
  })
}

/** Returns the full erasure that allows the removal at this reading of the clock. */
async function requireErased(
  { isClockInDoubt, isGuarded }: RemovalRules,
  control: Control | ControlTransaction,
  tenantId: string,
  at: ClockReading,
): Promise<string> {
  if ((await findOrganisation(control, tenantId)) === undefined) throw new AppError('not_found')
  const open = await control
    .selectFrom('deletion_requests')
    .select(['request_id', 'status'])
    .where('tenant_id', '=', tenantId)
    .where('status', 'in', unsettledStates)
    .orderBy('seq', 'desc')
    .limit(1)
    .executeTakeFirst()
  if (open !== undefined) throw notRemovable(`Its deletion ${open.request_id} is ${open.status}.`)
  const hold = await control
    .selectFrom('legal_holds')
    .select('hold_id')
    .where('tenant_id', '=', tenantId)
    .where('released_at_ms', 'is', null)
    .executeTakeFirst()
  if (hold !== undefined) throw notRemovable(`The legal hold ${hold.hold_id} is in force.`)
  const erasure = await newestFullErasure(control, tenantId)
  if (erasure === undefined) throw notRemovable('No erasure of all its telemetry is completed.')
  if (await isGuarded(control, tenantId, at)) {
    if (await isClockInDoubt(control, at)) {
      throw notRemovable(
        'The clock is in doubt, so the age of the approval of its erasure is unknown; the operator confirms it.',
      )
    }
    requireApproved(erasure, at.wallMs)
  }
  return erasure.request_id
}

/** Migration 0021 has an index of these, which is found by the literals of its condition. */
function newestFullErasure(
  control: Control | ControlTransaction,
  tenantId: string,
): Promise<ErasureRow | undefined> {
  return control
    .selectFrom('deletion_requests')
    .select(['request_id', 'approved_by_kind', 'approved_at_ms'])
    .where('tenant_id', '=', tenantId)
    .where('signals', '=', allSignals)
    .where('status', '=', sql.lit('completed'))
    .where('scope', '=', sql.lit('all'))
    .orderBy('seq', 'desc')
    .limit(1)
    .executeTakeFirst()
}

type ErasureRow = Pick<
  Selectable<DeletionRequestsTable>,
  'request_id' | 'approved_by_kind' | 'approved_at_ms'
>

/** Days after a second person has approved a full erasure, in which one owner may remove the organisation. */
const removableDays = 7

/**
 * Throws unless a second person approved the erasure lately: otherwise an erasure from before the rule, or
 * from years ago, would let one person remove detectors, anomalies, tokens and rules. The age is not that of
 * the completion, because an erasure is completed again where a restore has brought back what it erased, or
 * an attempt is retried.
 */
function requireApproved(erasure: ErasureRow, nowMs: number): void {
  const { approved_at_ms, approved_by_kind, request_id } = erasure
  const missing = (what: string) =>
    notRemovable(
      `${what}; request another full erasure; after its completion an owner can remove the organisation until ${removableDays} days after its approval.`,
    )
  if (approved_by_kind === null)
    throw missing(`No second person approved its last full erasure ${request_id}`)
  const ageMs = nowMs - (approved_at_ms ?? Number.NEGATIVE_INFINITY)
  if (ageMs < 0) throw missing(`Its last full erasure ${request_id} was approved in the future of the clock`)
  if (ageMs > removableDays * 86_400_000) {
    throw missing(`Its last full erasure ${request_id} was approved more than ${removableDays} days ago`)
  }
}

function findOrganisation(control: Control | ControlTransaction, tenantId: string) {
  return control
    .selectFrom('organisations')
    .select('tenant_id')
    .where('tenant_id', '=', tenantId)
    .executeTakeFirst()
}

function notRemovable(reason: string): AppError {
  return new AppError('not_removable', { sentence: `The organisation can’t be removed yet. ${reason}` })
}
