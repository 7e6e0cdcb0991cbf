// The store of organisations, and of the caller of each secret: a look-up by hash is an indexed read that
// begins after the request has arrived, so a revoked token stops working with the next request. Callers that
// send telemetry are remembered for a moment, and forgotten by what ends them here. What tokens.ts does with
// tokens runs here in its transactions.

import { setImmediate as nextRound } from 'node:timers/promises'
import type { AccessToken, RevokedAccessToken } from '../../contract/organisation/tenancy.ts'
import { appendAudit, chainTables, readChainFrom, readHead } from '../audit/log.ts'
import type { Control, ControlTransaction } from '../control/database.ts'
import { lock, outsideWritesOf } from '../control/dialect.ts'
import { transact } from '../control/transaction.ts'
import type { Actor } from '../core/actor.ts'
import { AppError } from '../core/app-error.ts'
import { BatchedLookUps } from '../core/batched-look-ups.ts'
import type { Caller } from '../core/caller.ts'
import type { Clock } from '../core/clock.ts'
import { Remembered } from '../core/remembered.ts'
import type { TenantPlace } from '../telemetry/engine.ts'
import { choosePlacement, hashSecret } from './tenancy.ts'
import { callerColumns, callerIn } from './token-caller.ts'
import type { TokenTurn } from './token-lines.ts'
import { readTokenPage, type TokenPage } from './token-list.ts'
import { type Revocation, revokeTokens } from './token-revocation.ts'
import { TokenUses } from './token-use.ts'
import { insertToken, type NewToken, readNewToken } from './tokens.ts'

export interface NewOrganisation {
  readonly tenantId: string
  readonly name: string
  readonly actor: Actor
}

/** The first action in every audit log. */
const created = 'organisation.created'

export class TenancyStore {
  readonly #control: Control
  readonly #clock: Clock
  readonly #uses: TokenUses

  /** By the hash of the secret. */
  readonly #callers: BatchedLookUps<CallerOfHash>
  readonly #senders: Remembered<CallerOfHash>

  constructor(control: Control, clock: Clock) {
    this.#control = control
    this.#clock = clock
    this.#uses = new TokenUses(control)
    const lookUp = (hashes: readonly string[]) => readCallers(control, hashes)
    this.#callers = new BatchedLookUps(lookUp)
    this.#senders = new Remembered({
      lookUp,
      elapsedMs: () => clock.elapsedMs(),
      outsideWrites: () => outsideWritesOf(control),
    })
  }

  /**
   * Creates an organisation and assigns its placement for ever. Throws `name_taken` where the tenant_id
   * exists or ever existed. `within` runs in the same transaction, to add what every new organisation has.
   */
  async createOrganisation(
    organisation: NewOrganisation,
    within: (trx: ControlTransaction, nowMs: number) => Promise<void>,
  ): Promise<TenantPlace> {
    const nowMs = this.#clock.nowMs()
    const { tenantId, name, actor } = organisation
    return transact(this.#control, async (trx) => {
      await lock(trx, { tenantId })
      await lock(trx, 'placements')
      const rows = await trx.selectFrom('organisations').select(['tenant_id', 'placement']).execute()
      if (rows.some((row) => row.tenant_id === tenantId)) {
        throw new AppError('name_taken', { sentence: `The organisation ${tenantId} exists.` })
      }
      if (await isOnRecord(trx, tenantId)) {
        throw new AppError('name_taken', {
          sentence: `${tenantId} was an organisation before; its ledger and audit log stay, so its tenant_id is not given away again.`,
        })
      }
      const placement = choosePlacement(rows.map((row) => row.placement))
      await trx
        .insertInto('organisations')
        .values({ tenant_id: tenantId, name, placement, created_at_ms: nowMs })
        .execute()
      await appendAudit(trx, tenantId, nowMs, {
        actor,
        action: created,
        target: tenantId,
        outcome: 'accepted',
        facts: { placement },
      })
      await within(trx, nowMs)
      return { tenantId, placement }
    })
  }

  async findOrganisation(tenantId: string): Promise<TenantPlace | null> {
    const row = await this.#control
      .selectFrom('organisations')
      .select(['tenant_id', 'placement'])
      .where('tenant_id', '=', tenantId)
      .executeTakeFirst()
    return row === undefined ? null : { tenantId: row.tenant_id, placement: row.placement }
  }

  /**
   * Whether another organisation has the same placement: figures of the placement could then be a
   * neighbour's.
   */
  async sharesPlacement({ placement, tenantId }: TenantPlace): Promise<boolean> {
    const neighbour = await this.#control
      .selectFrom('organisations')
      .select('tenant_id')
      .where('placement', '=', placement)
      .where('tenant_id', '!=', tenantId)
      .limit(1)
      .executeTakeFirst()
    return neighbour !== undefined
  }

  /**
   * Returns the placement of an organisation that exists or existed: what an old copy of the telemetry brings
   * back must be found and erased even if nobody owns it any more. Null for a tenant_id that was never used.
   */
  async findPlace(tenantId: string): Promise<TenantPlace | null> {
    const present = await this.findOrganisation(tenantId)
    if (present !== null) return present
    const [first] = await readChainFrom(this.#control, chainTables.audit, tenantId, { afterSeq: 0, limit: 1 })
    const { action, facts } = first === undefined ? {} : JSON.parse(first.text)
    return action === created ? { tenantId, placement: facts.placement } : null
  }

  /**
   * Identifies this organisation among all that ever had the tenant_id: the hash of its first audit entry.
   * Null where there is none.
   */
  async foundingHash(tenantId: string): Promise<string | null> {
    const [first] = await readChainFrom(this.#control, chainTables.audit, tenantId, { afterSeq: 0, limit: 1 })
    return first?.hash ?? null
  }

  /** Returns when the organisation was created, in milliseconds. Throws `not_found` where it is removed. */
  async createdAtMs(tenantId: string): Promise<number> {
    const row = await this.#control
      .selectFrom('organisations')
      .select('created_at_ms')
      .where('tenant_id', '=', tenantId)
      .executeTakeFirst()
    if (row === undefined) throw new AppError('not_found')
    return row.created_at_ms
  }

  /** Whether the tenant_id belonged to an organisation that was removed. */
  async wasRemoved(tenantId: string): Promise<boolean> {
    return (await this.findOrganisation(tenantId)) === null && (await isOnRecord(this.#control, tenantId))
  }

  async listOrganisations(): Promise<TenantPlace[]> {
    const rows = await this.#control
      .selectFrom('organisations')
      .select(['tenant_id', 'placement'])
      .orderBy('tenant_id')
      .execute()
    return rows.map((row) => ({ tenantId: row.tenant_id, placement: row.placement }))
  }

  /** Returns every organisation with its name, in order of tenant_id. */
  async describeOrganisations(): Promise<{ tenantId: string; name: string; createdAtMs: number }[]> {
    const rows = await this.#control
      .selectFrom('organisations')
      .select(['tenant_id', 'name', 'created_at_ms'])
      .orderBy('tenant_id')
      .execute()
    return rows.map((row) => ({
      tenantId: row.tenant_id,
      name: row.name,
      createdAtMs: row.created_at_ms,
    }))
  }

  async createToken(token: NewToken): Promise<AccessToken> {
    const nowMs = this.#clock.nowMs()
    return transact(this.#control, async (trx) =>
      readNewToken(trx, token.tenantId, await insertToken(trx, token, nowMs)),
    )
  }

  /** See {@link readTokenPage}. */
  listTokens(tenantId: string, page: TokenPage, turn: TokenTurn = nextRound): Promise<AccessToken[]> {
    return readTokenPage(this.#control, tenantId, page, this.#clock.nowMs(), turn)
  }

  /** See {@link revokeTokens}. Revoking again returns the first revocation. */
  async revokeToken(revocation: Revocation, turn: TokenTurn = nextRound): Promise<RevokedAccessToken> {
    try {
      return await revokeTokens(this.#control, revocation, this.#clock, turn)
    } finally {
      this.forgetSendersOf(revocation.tenantId)
    }
  }

  /**
   * Returns the caller of a secret; null where no token has it. Throws `token_revoked` or `token_expired`
   * where a token has it that ended.
   */
  async findCaller(secret: string): Promise<Caller | null> {
    const row = await this.#callers.get(hashSecret(secret))
    return row === undefined ? null : (await this.#callerOf(row)).caller
  }

  /**
   * As {@link findCaller}, for a request that sends telemetry, without a statement where the secret was
   * looked up a moment ago ({@link rememberedMs}). What another process has ended since is noticed at once on
   * SQLite, and at that age on PostgreSQL.
   */
  async findSender(secret: string): Promise<Caller | null> {
    const hash = hashSecret(secret)
    const row = await this.#senders.get(hash)
    if (row === undefined) return null
    const { caller, isUseWritten } = await this.#callerOf(row)
    if (isUseWritten) this.#senders.forget(hash)
    return caller
  }

  /** Looks the senders of an organisation up again, after a write that ends their tokens. */
  forgetSendersOf(tenantId: string): void {
    this.#senders.forgetWhere((row) => row.tenant_id === tenantId)
  }

  async #callerOf(row: CallerOfHash): Promise<{ caller: Caller; isUseWritten: boolean }> {
    const nowMs = this.#clock.nowMs()
    const caller = callerIn(row, nowMs)
    return { caller, isUseWritten: await this.#uses.note(row, nowMs) }
  }
}

type CallerOfHash = Awaited<ReturnType<typeof selectCallers>>[number]

async function readCallers(
  control: Control,
  hashes: readonly string[],
): Promise<ReadonlyMap<string, CallerOfHash>> {
  return new Map((await selectCallers(control, hashes)).map((row) => [row.secret_hash, row]))
}

function selectCallers(control: Control, hashes: readonly string[]) {
  return control
    .selectFrom('access_tokens')
    .innerJoin('organisations', 'organisations.tenant_id', 'access_tokens.tenant_id')
    .select([...callerColumns, 'access_tokens.secret_hash as secret_hash'])
    .where('secret_hash', 'in', hashes)
    .execute()
}

/** Whether anything was ever recorded under this tenant_id. */
async function isOnRecord(control: Control | ControlTransaction, tenantId: string): Promise<boolean> {
  for (const table of Object.values(chainTables)) {
    if ((await readHead(control, table, tenantId)).entries > 0) return true
  }
  return false
}
