// The store of console sessions and of one-time sign-in codes. A session stands for one access token: it acts
// under its name and role, and works only while the token does. Both secrets are stored as hashes.

import {
  type Session,
  sessionDaysMax,
  sessionIdleMinutes,
  signInCodePrefix,
} from '../../contract/organisation/session.ts'
import { appendAudit } from '../audit/log.ts'
import { lockForAct } from '../control/acting.ts'
import type { Control, ControlTransaction } from '../control/database.ts'
import { lock } from '../control/dialect.ts'
import { transact } from '../control/transaction.ts'
import { type Actor, actorText } from '../core/actor.ts'
import { AppError } from '../core/app-error.ts'
import { BatchedLookUps } from '../core/batched-look-ups.ts'
import type { Caller } from '../core/caller.ts'
import { type Clock, instantText } from '../core/clock.ts'
import { newId, newSecret } from '../core/ids.ts'
import { storageFaultOf } from '../core/storage-fault.ts'
import { hashSecret } from './tenancy.ts'
import { callerColumns, callerIn } from './token-caller.ts'
import { TokenUses } from './token-use.ts'
import { findLiveToken } from './tokens.ts'

const msPerMinute = 60_000
const msPerDay = 86_400_000
const idleMs = sessionIdleMinutes * msPerMinute

/** A code is printed at a start, and the person may read it after the demo has loaded its telemetry. */
const codeMs = 60 * msPerMinute

/** Browsers of one token; where there are more, the oldest session ends. */
const sessionsPerToken = 20

export class SessionStore {
  readonly #control: Control
  readonly #clock: Clock
  readonly #uses: TokenUses
  /** By the hash of the secret. */
  readonly #rows: BatchedLookUps<SessionRow>
  /** Sessions whose use is being written: requests that come at once write it once. */
  readonly #touching = new Set<string>()

  constructor(control: Control, clock: Clock) {
    this.#control = control
    this.#clock = clock
    this.#rows = new BatchedLookUps((hashes) => readSessions(control, hashes))
    this.#uses = new TokenUses(control)
  }

  /**
   * Returns the caller of a session's secret; null where the session is unknown or has ended. Throws
   * `token_revoked` or `token_expired` where its token has ended.
   */
  async findCaller(secret: string): Promise<Caller | null> {
    const nowMs = this.#clock.nowMs()
    const row = await this.#rows.get(hashSecret(secret))
    if (row === undefined) return null
    const caller = callerIn(row, nowMs, row.session_id)
    if (row.ends_at_ms <= nowMs || row.seen_at_ms + idleMs <= nowMs) return null
    if (nowMs - row.seen_at_ms >= msPerMinute) await this.#touch(row.session_id, nowMs)
    await this.#uses.note(row, nowMs)
    return { ...caller, standIn: { kind: 'session', id: row.session_id } }
  }

  /** Returns the caller of a one-time code that was not used; null where there is none. */
  async findCallerOfCode(code: string): Promise<Caller | null> {
    const nowMs = this.#clock.nowMs()
    const hash = hashSecret(code)
    const row = await this.#control
      .selectFrom('sign_in_codes')
      .innerJoin('access_tokens', 'access_tokens.id', 'sign_in_codes.token_id')
      .innerJoin('organisations', 'organisations.tenant_id', 'sign_in_codes.tenant_id')
      .select(callerColumns)
      .where('code_hash', '=', hash)
      .where('ends_at_ms', '>', nowMs)
      .executeTakeFirst()
    if (row === undefined) return null
    return { ...callerIn(row, nowMs), standIn: { kind: 'sign_in_code', hash } }
  }

  /**
   * Starts a session for the caller's token and returns it with its secret. A code is used up in the same
   * transaction, so that of two simultaneous sign-ins one is refused with `token_unknown`.
   */
  async create(caller: Caller): Promise<{ session: Session; secret: string }> {
    const { standIn, tenantId } = caller
    if (standIn?.kind === 'session') throw new Error('A session is not exchanged for another one.')
    const nowMs = this.#clock.nowMs()
    const secret = newSecret()
    return transact(this.#control, async (trx) => {
      await lock(trx, { tenantId })
      const token = await findLiveToken(trx, { tenantId, actor: caller.requester }, nowMs)
      if (standIn !== undefined) await useCode(trx, standIn.hash, nowMs)
      await removeEnded(trx, tenantId, token.id, nowMs)
      const endsAtMs = Math.min(nowMs + sessionDaysMax * msPerDay, token.expires_at_ms ?? Infinity)
      const id = newId('ses', nowMs)
      await trx
        .insertInto('sessions')
        .values({
          id,
          tenant_id: tenantId,
          token_id: token.id,
          secret_hash: hashSecret(secret),
          created_at_ms: nowMs,
          seen_at_ms: nowMs,
          ends_at_ms: endsAtMs,
        })
        .execute()
      await appendAudit(trx, tenantId, nowMs, {
        actor: caller.requester,
        action: 'session.created',
        target: id,
        outcome: 'accepted',
        facts: { with: standIn === undefined ? 'token' : 'sign_in_code', ends_at: instantText(endsAtMs) },
      })
      return { session: sessionOf(caller, { id, nowMs, endsAtMs }), secret }
    })
  }

  /** Ends the caller's session; does nothing where the caller sent a token. */
  async end({ requester, standIn, tenantId }: Caller): Promise<void> {
    if (standIn?.kind !== 'session') return
    const nowMs = this.#clock.nowMs()
    await transact(this.#control, async (trx) => {
      await lock(trx, { tenantId })
      const { numDeletedRows } = await trx
        .deleteFrom('sessions')
        .where('tenant_id', '=', tenantId)
        .where('id', '=', standIn.id)
        .executeTakeFirstOrThrow()
      if (numDeletedRows === 0n) return
      await appendAudit(trx, tenantId, nowMs, {
        actor: requester,
        action: 'session.ended',
        target: standIn.id,
        outcome: 'accepted',
        facts: {},
      })
    })
  }

  /** Makes a code that signs in once as the token of `caller`. `actor` is who hands it out. */
  async createCode({ requester, tenantId }: Caller, actor: Actor): Promise<string> {
    const nowMs = this.#clock.nowMs()
    const code = `${signInCodePrefix}${newSecret()}`
    await transact(this.#control, async (trx) => {
      await lockForAct(trx, { tenantId, actor }, nowMs)
      await trx
        .deleteFrom('sign_in_codes')
        .where('tenant_id', '=', tenantId)
        .where('ends_at_ms', '<=', nowMs)
        .execute()
      await trx
        .insertInto('sign_in_codes')
        .values({
          code_hash: hashSecret(code),
          tenant_id: tenantId,
          token_id: requester.id,
          ends_at_ms: nowMs + codeMs,
        })
        .execute()
      await appendAudit(trx, tenantId, nowMs, {
        actor,
        action: 'sign_in_code.created',
        target: requester.id,
        outcome: 'accepted',
        facts: { ends_at: instantText(nowMs + codeMs) },
      })
    })
    return code
  }

  /** Where the database refuses it, the session continues, and ends earlier than it would have. */
  async #touch(id: string, nowMs: number): Promise<void> {
    if (this.#touching.has(id)) return
    this.#touching.add(id)
    try {
      await this.#control
        .updateTable('sessions')
        .set({ seen_at_ms: nowMs })
        .where('id', '=', id)
        .where('seen_at_ms', '<', nowMs)
        .execute()
    } catch (error) {
      const isRefused =
        error instanceof AppError || (error instanceof Error && storageFaultOf(error) !== null)
      if (!isRefused) throw error
    } finally {
      this.#touching.delete(id)
    }
  }
}

type SessionRow = Awaited<ReturnType<typeof selectSessions>>[number]

async function readSessions(
  control: Control,
  hashes: readonly string[],
): Promise<ReadonlyMap<string, SessionRow>> {
  return new Map((await selectSessions(control, hashes)).map((row) => [row.secret_hash, row]))
}

function selectSessions(control: Control, hashes: readonly string[]) {
  return control
    .selectFrom('sessions')
    .innerJoin('access_tokens', 'access_tokens.id', 'sessions.token_id')
    .innerJoin('organisations', 'organisations.tenant_id', 'sessions.tenant_id')
    .select([...callerColumns, 'sessions.id as session_id', 'sessions.secret_hash as secret_hash'])
    .select(['seen_at_ms', 'ends_at_ms'])
    .where('sessions.secret_hash', 'in', hashes)
    .execute()
}

async function useCode(trx: ControlTransaction, hash: string, nowMs: number): Promise<void> {
  const { numDeletedRows } = await trx
    .deleteFrom('sign_in_codes')
    .where('code_hash', '=', hash)
    .where('ends_at_ms', '>', nowMs)
    .executeTakeFirstOrThrow()
  if (numDeletedRows === 0n) throw new AppError('token_unknown')
}

/** Removes sessions of the organisation that have ended, and the oldest of the token beyond its number. */
async function removeEnded(
  trx: ControlTransaction,
  tenantId: string,
  tokenId: string,
  nowMs: number,
): Promise<void> {
  await trx
    .deleteFrom('sessions')
    .where('tenant_id', '=', tenantId)
    .where((where) => where.or([where('ends_at_ms', '<=', nowMs), where('seen_at_ms', '<=', nowMs - idleMs)]))
    .execute()
  const live = await trx
    .selectFrom('sessions')
    .select('id')
    .where('tenant_id', '=', tenantId)
    .where('token_id', '=', tokenId)
    .orderBy('id', 'desc')
    .execute()
  const beyond = live.slice(sessionsPerToken - 1).map(({ id }) => id)
  if (beyond.length > 0) await trx.deleteFrom('sessions').where('id', 'in', beyond).execute()
}

function sessionOf(
  { organisationName, requester, role, tenantId }: Caller,
  { id, nowMs, endsAtMs }: { id: string; nowMs: number; endsAtMs: number },
): Session {
  return {
    id,
    tenant_id: tenantId,
    organisation_name: organisationName,
    role,
    token_id: requester.id,
    requester: actorText(requester),
    created_at: instantText(nowMs),
    ends_at: instantText(endsAtMs),
  }
}

/** Removes the sessions and codes of tokens that end, in the transaction that ends them. */
export async function endSessions(
  trx: ControlTransaction,
  tenantId: string,
  tokenIds: readonly string[],
): Promise<void> {
  if (tokenIds.length === 0) return
  for (const table of ['sessions', 'sign_in_codes'] as const) {
    await trx.deleteFrom(table).where('tenant_id', '=', tenantId).where('token_id', 'in', tokenIds).execute()
  }
}
