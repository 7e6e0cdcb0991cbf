// Revokes an access token, or a whole line of them. A long line is read before the transaction, in pieces;
// the transaction adds what was made meanwhile, so that it misses no descendant.

import type { RevokedAccessToken } from '../../contract/organisation/tenancy.ts'
import type { Role } from '../../contract/role.ts'
import { appendAudit } from '../audit/log.ts'
import { lockForActNow } from '../control/acting.ts'
import type { Control, ControlTransaction } from '../control/database.ts'
import { transact } from '../control/transaction.ts'
import type { Actor } from '../core/actor.ts'
import { AppError } from '../core/app-error.ts'
import type { Clock } from '../core/clock.ts'
import { Pace } from '../core/turns/pace.ts'
import { type ClockReading, readingOf } from '../worker/clock-watch.ts'
import { endSessions } from './sessions.ts'
import { readActiveTokens, TokenDescent, TokenLines, type TokenTurn } from './token-lines.ts'
import { isOver, readFewDescendants, selectDescendants, type TokenRow, toToken } from './token-list.ts'
import { findToken } from './tokens.ts'

/** Ids in one audit entry: keeps an entry below 20 kB, however many tokens a line has. */
const idsPerEntry = 500

export interface Revocation {
  readonly tenantId: string
  readonly id: string
  readonly actor: Actor
  readonly actorRole: Role
  /** Whether all its descendants end as well. */
  readonly withDescendants: boolean
  readonly onAdministratorRevoked: OnAdministratorRevoked
}

/**
 * Runs in the transaction that revokes the token of an owner or admin; `id` is the token at its head, and
 * `at` a reading of the clock from before its line was read.
 */
export type OnAdministratorRevoked = (
  trx: ControlTransaction,
  revoked: Pick<Revocation, 'tenantId' | 'id' | 'actor'> & { readonly revokedAtMs: number },
  at: ClockReading,
) => Promise<void>

/**
 * Ends a token and, with descendants, also expired ones: a clock that goes back would make them valid again.
 * Tokens that are revoked already stay unchanged, and where all are, nothing is written. Throws `not_found`,
 * and `role_not_permitted` where an owner token would end and the actor is not an owner; then nothing is
 * revoked. Others take turns between two pieces of what it reads. The time of the revocation is that of its
 * transaction: whatever the token did until then is recorded before.
 */
export async function revokeTokens(
  control: Control,
  revocation: Revocation,
  clock: Clock,
  turn: TokenTurn,
): Promise<RevokedAccessToken> {
  const { id, tenantId } = revocation
  // From before everything that is read: what is made while this runs counts as active.
  const at = readingOf(clock)
  const token = await findToken(control, tenantId, id)
  if (token === undefined) throw new AppError('not_found')
  requireRole(revocation, [token])
  for (const line of [new NearLine(revocation, at.wallMs), new FarLine(revocation, at.wallMs)]) {
    const known = await line.read(control, turn)
    if (known === null) continue
    if (token.revoked_at_ms !== null && known.ending.length === 0) {
      return { ...toToken(token, known.live), revoked_descendants: 0 }
    }
    const revoked = await transact(control, async (trx) => {
      const revokedAtMs = await lockForActNow(trx, revocation, clock)
      const current = await line.read(trx, noTurn)
      return current === null ? null : revokeLine(trx, { ...revocation, revokedAtMs }, current, at)
    })
    if (revoked !== null) return revoked
  }
  throw new Error('Every line can be read.')
}

/** Inside a transaction nobody else takes turns: they would wait for it. */
const noTurn: TokenTurn = async () => {}

interface DescendantsNow {
  /** How many work. */
  readonly live: number
  /** Those that the revocation ends: not revoked; none where they are to stay. */
  readonly ending: readonly EndingToken[]
}

type EndingToken = Pick<TokenRow, 'id' | 'role'>

/** The descendants of a token where they are few and near, as those of most are. */
class NearLine {
  readonly #revocation: Revocation
  readonly #nowMs: number

  constructor(revocation: Revocation, nowMs: number) {
    this.#revocation = revocation
    this.#nowMs = nowMs
  }

  /** Reads all of them; null where they are too many. */
  async read(control: Control | ControlTransaction): Promise<DescendantsNow | null> {
    const { id, tenantId, withDescendants } = this.#revocation
    const below = await readFewDescendants(control, tenantId, id)
    if (below === null) return null
    const unrevoked = await readUnrevoked(control, tenantId, below)
    const live = unrevoked.filter(({ expires_at_ms }) => !isOver(expires_at_ms, this.#nowMs))
    return { live: live.length, ending: withDescendants ? unrevoked : [] }
  }
}

/**
 * The descendants of any token. The first reading, before the transaction, follows all lines in pieces; the
 * next one adds what was made since.
 */
class FarLine {
  readonly #revocation: Revocation
  readonly #nowMs: number
  readonly #lines: TokenLines
  readonly #descent: TokenDescent
  #below: readonly string[] | null = null

  constructor(revocation: Revocation, nowMs: number) {
    this.#revocation = revocation
    this.#nowMs = nowMs
    this.#lines = new TokenLines(revocation.tenantId)
    this.#descent = new TokenDescent(this.#lines, revocation.id)
  }

  async read(control: Control | ControlTransaction, turn: TokenTurn): Promise<DescendantsNow> {
    const { id, tenantId, withDescendants } = this.#revocation
    if (withDescendants && this.#below === null) {
      const scope = { control, tenantId, nowMs: this.#nowMs, turn }
      const rows = await selectDescendants(scope, id, { beforeId: null })
      this.#below = rows.filter((row) => row.revoked_at_ms === null).map((row) => row.id)
    }
    const active = await readActiveTokens(control, tenantId, this.#nowMs)
    await this.#lines.read(control, active, turn)
    const live = (await this.#descent.select(active, new Pace(turn))).map((token) => token.id)
    const below = [...new Set([...(this.#below ?? []), ...live])]
    return {
      live: live.length,
      ending: withDescendants ? await readUnrevoked(control, tenantId, below) : [],
    }
  }
}

async function revokeLine(
  trx: ControlTransaction,
  revocation: Revocation & { readonly revokedAtMs: number },
  { ending, live }: DescendantsNow,
  at: ClockReading,
): Promise<RevokedAccessToken> {
  const { actor, id, revokedAtMs: nowMs, tenantId, withDescendants } = revocation
  const token = await findToken(trx, tenantId, id)
  if (token === undefined) throw new AppError('not_found')
  requireRole(revocation, [token, ...ending])
  const isNew = token.revoked_at_ms === null
  const ids = ending.map((row) => row.id)
  if (isNew) await endTokens(trx, tenantId, [id], nowMs)
  await endTokens(trx, tenantId, ids, nowMs)
  const left = withDescendants ? 0 : live
  for (let at = 0; (at === 0 && isNew) || at < ids.length; at += idsPerEntry) {
    await appendAudit(trx, tenantId, nowMs, {
      actor,
      action: 'token.revoked',
      target: id,
      outcome: 'accepted',
      facts: { descendants_revoked: ids.slice(at, at + idsPerEntry), descendants_left: left },
    })
  }
  const isAdministrator = ({ role }: Pick<TokenRow, 'role'>) => role === 'owner' || role === 'admin'
  if ((isNew && isAdministrator(token)) || ending.some(isAdministrator)) {
    await revocation.onAdministratorRevoked(trx, revocation, at)
  }
  const revoked = { ...token, revoked_at_ms: token.revoked_at_ms ?? nowMs }
  return { ...toToken(revoked, left), revoked_descendants: ids.length }
}

function requireRole({ actorRole }: Revocation, ending: readonly Pick<TokenRow, 'role'>[]): void {
  if (actorRole === 'owner' || ending.every(({ role }) => role !== 'owner')) return
  throw new AppError('role_not_permitted', { sentence: 'Only an owner can revoke an owner token.' })
}

/** Reads those of the tokens that are not revoked, in the order of their ids. */
async function readUnrevoked(
  control: Control | ControlTransaction,
  tenantId: string,
  ids: readonly string[],
): Promise<Pick<TokenRow, 'id' | 'role' | 'expires_at_ms'>[]> {
  const sorted = ids.toSorted()
  const found: Pick<TokenRow, 'id' | 'role' | 'expires_at_ms'>[] = []
  for (let at = 0; at < sorted.length; at += idsPerEntry) {
    const rows = await control
      .selectFrom('access_tokens')
      .select(['id', 'role', 'expires_at_ms'])
      .where('tenant_id', '=', tenantId)
      .where('id', 'in', sorted.slice(at, at + idsPerEntry))
      .where('revoked_at_ms', 'is', null)
      .orderBy('id')
      .execute()
    found.push(...rows)
  }
  return found
}

async function endTokens(
  trx: ControlTransaction,
  tenantId: string,
  ids: readonly string[],
  nowMs: number,
): Promise<void> {
  for (let at = 0; at < ids.length; at += idsPerEntry) {
    await trx
      .updateTable('access_tokens')
      .set({ revoked_at_ms: nowMs })
      .where('tenant_id', '=', tenantId)
      .where('id', 'in', ids.slice(at, at + idsPerEntry))
      .execute()
    await endSessions(trx, tenantId, ids.slice(at, at + idsPerEntry))
  }
}
