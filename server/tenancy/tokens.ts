// Makes access tokens. A token never lasts longer than its ancestors, and none is made with a token that has
// ended meanwhile: both are checked in the transaction that writes it.

import type { AccessToken } from '../../contract/organisation/tenancy.ts'
import type { Role } from '../../contract/role.ts'
import { appendAudit } from '../audit/log.ts'
import { lockForAct, requireLive } from '../control/acting.ts'
import { actorValues } from '../control/actor-columns.ts'
import type { Control, ControlTransaction } from '../control/database.ts'
import type { Actor } from '../core/actor.ts'
import { AppError, InvalidInput, problem } from '../core/app-error.ts'
import { instantText } from '../core/clock.ts'
import { newId } from '../core/ids.ts'
import { hashSecret, prefixOf } from './tenancy.ts'
import type { TokenOrigin } from './token-caller.ts'
import { isOver, type TokenRow, textOf, toToken } from './token-list.ts'
import { refuseTooManyTokens } from './token-share.ts'

const msPerDay = 86_400_000

export interface NewToken {
  readonly tenantId: string
  readonly name: string
  readonly role: Role
  readonly secret: string
  /** Null to last as long as the token that it is made with; for ever where the operator makes it. */
  readonly expiresAtMs: number | null
  /** The maker; where it is a token, the new token descends from it. */
  readonly actor: Actor
}

/** What a new token inherits. */
interface Line {
  /** Null where it is made with no token. */
  readonly maker: TokenOrigin | null
  readonly rootId: string | null
  /** The last possible expiry in the line; null where it has no limit. */
  readonly expiresAtMs: number | null
}

/**
 * Inserts a token with its audit entry and returns its id. Throws `name_taken` where any organisation has a
 * token with the secret; `too_many_tokens` as {@link refuseTooManyTokens}, which does not limit the operator;
 * InvalidInput where it would outlast its line; `token_unknown`, `token_revoked`, `token_expired` or
 * `token_line_expired` where the token it is made with has ended, or an ancestor of it.
 */
export async function insertToken(trx: ControlTransaction, token: NewToken, nowMs: number): Promise<string> {
  await lockForAct(trx, token, nowMs)
  const id = newId('tok', nowMs)
  const secretHash = hashSecret(token.secret)
  await refuseTakenSecret(trx, secretHash)
  const line = await lineOf(trx, token, id, nowMs)
  if (token.actor.kind !== 'operator') await refuseTooManyTokens(trx, token.tenantId, line.maker, nowMs)
  const expiresAtMs = expiryWithin(line, token.expiresAtMs, nowMs)
  const { numInsertedOrUpdatedRows } = await trx
    .insertInto('access_tokens')
    .values({
      id,
      tenant_id: token.tenantId,
      name: token.name,
      role: token.role,
      prefix: prefixOf(token.secret),
      secret_hash: secretHash,
      created_at_ms: nowMs,
      ...actorValues('created_by', token.actor),
      expires_at_ms: expiresAtMs,
      revoked_at_ms: null,
      made_with: line.maker?.token_id ?? null,
      root_id: line.rootId,
      line_expires_at_ms: expiresAtMs,
    })
    // Another organisation, with another lock, may be storing the same secret.
    .onConflict((conflict) => conflict.column('secret_hash').doNothing())
    .executeTakeFirstOrThrow()
  if (numInsertedOrUpdatedRows !== 1n) throw secretTaken()
  await appendAudit(trx, token.tenantId, nowMs, {
    actor: token.actor,
    action: 'token.created',
    target: id,
    outcome: 'accepted',
    facts: { role: token.role, expires_at: textOf(expiresAtMs) },
  })
  return id
}

async function refuseTakenSecret(trx: ControlTransaction, secretHash: string): Promise<void> {
  const taken = await trx
    .selectFrom('access_tokens')
    .select('id')
    .where('secret_hash', '=', secretHash)
    .executeTakeFirst()
  if (taken !== undefined) throw secretTaken()
}

function secretTaken(): AppError {
  return new AppError('name_taken', {
    sentence: 'This secret is in use for another token; choose a new one.',
  })
}

async function lineOf(
  trx: ControlTransaction,
  { actor, tenantId }: NewToken,
  id: string,
  nowMs: number,
): Promise<Line> {
  if (actor.kind !== 'token') {
    // Only the operator is outside of every line; for any other actor its tokens are unknown.
    return { maker: null, rootId: actor.kind === 'operator' ? id : null, expiresAtMs: null }
  }
  const maker = await findLiveToken(trx, { tenantId, actor }, nowMs)
  if (isOver(maker.line_expires_at_ms, nowMs)) throw new AppError('token_line_expired')
  const { id: token_id, line_expires_at_ms, made_with, root_id } = maker
  return { maker: { token_id, made_with, root_id }, rootId: root_id, expiresAtMs: line_expires_at_ms }
}

function expiryWithin({ expiresAtMs: endMs }: Line, askedMs: number | null, nowMs: number): number | null {
  if (endMs === null || askedMs === null) return askedMs ?? endMs
  if (askedMs <= endMs) return askedMs
  const days = Math.floor((endMs - nowMs) / msPerDay)
  const advice = days >= 1 ? `Input should be at most ${days}, or left out` : 'Leave this field out'
  throw new InvalidInput([
    problem(
      ['body', 'expires_in_days'],
      'less_than_equal',
      `${advice}: a token lasts at most as long as the one it is made with, which expires at ${instantText(endMs)}`,
      Math.round((askedMs - nowMs) / msPerDay),
      { le: days, expires_at: instantText(endMs) },
    ),
  ])
}

/** Returns a token that has just been made, so that it has no descendants. */
export async function readNewToken(
  trx: ControlTransaction,
  tenantId: string,
  id: string,
): Promise<AccessToken> {
  const row = await findToken(trx, tenantId, id)
  if (row === undefined) throw new Error('The token that was just inserted is not there.')
  return toToken(row, 0)
}

/**
 * Returns the token of an actor. Throws `token_unknown`, `token_revoked` or `token_expired` where it has
 * ended since the request was authenticated.
 */
export async function findLiveToken(
  trx: ControlTransaction,
  act: { readonly tenantId: string; readonly actor: Actor },
  nowMs: number,
): Promise<TokenRow> {
  const token = await findToken(trx, act.tenantId, act.actor.id)
  if (token === undefined) throw new AppError('token_unknown')
  requireLive(token, act, nowMs)
  return token
}

/** Returns a token of the organisation, also one that has ended. */
export async function findToken(
  control: Control | ControlTransaction,
  tenantId: string,
  id: string,
): Promise<TokenRow | undefined> {
  return control
    .selectFrom('access_tokens')
    .selectAll()
    .where('tenant_id', '=', tenantId)
    .where('id', '=', id)
    .executeTakeFirst()
}
