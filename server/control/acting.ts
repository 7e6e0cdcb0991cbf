// The lock of an organisation for acts of people, tokens and the operator. A request is authenticated before
// its body is read, and may take a minute from there to its transaction. So the transaction asks again, under
// the lock that a revocation and a removal take too: nothing is written in the name of a token or a session
// that has ended, nor for an organisation that was removed.

import type { Actor, Credential } from '../core/actor.ts'
import { AppError } from '../core/app-error.ts'
import type { Clock } from '../core/clock.ts'
import { EndedToken } from '../core/ended-token.ts'
import type { ControlTransaction } from './database.ts'
import { lock } from './dialect.ts'

/** Who acts in which organisation. */
interface Act {
  readonly tenantId: string
  readonly actor: Actor
}

/** When a token ends, and whether it was revoked. */
interface TokenLife {
  readonly expires_at_ms: number | null
  readonly revoked_at_ms: number | null
}

/**
 * Takes the lock of the organisation. Throws `token_unknown`, `token_revoked`, `token_expired` or
 * `session_ended` where the actor could not authenticate any more, and `not_found` where the operator acts in
 * an organisation that does not exist. Of the system only the lock is taken: it also erases what a restore
 * brings back of a removed organisation. Await it before the reads that the act depends on.
 */
export async function lockForAct(trx: ControlTransaction, act: Act, nowMs: number): Promise<void> {
  await lock(trx, { tenantId: act.tenantId })
  await requireActor(trx, act, nowMs)
}

/**
 * The same by the time at which the lock was taken, which it returns: for an act that may have waited long,
 * and for a time that is recorded and must not be earlier than what it says.
 */
export async function lockForActNow(
  trx: ControlTransaction,
  act: Act,
  clock: Pick<Clock, 'nowMs'>,
): Promise<number> {
  await lock(trx, { tenantId: act.tenantId })
  const nowMs = clock.nowMs()
  await requireActor(trx, act, nowMs)
  return nowMs
}

async function requireActor(trx: ControlTransaction, act: Act, nowMs: number): Promise<void> {
  const { actor, tenantId } = act
  if (actor.credential !== undefined) await requireCredential(trx, act, actor.credential, nowMs)
  if (actor.kind === 'operator') await requireOrganisation(trx, tenantId)
}

/** The tokens of a removed organisation are removed with it, so they are unknown. */
async function requireCredential(
  trx: ControlTransaction,
  act: Act,
  { sessionId }: Credential,
  nowMs: number,
): Promise<void> {
  const { actor, tenantId } = act
  const token = await trx
    .selectFrom('access_tokens')
    .select(['expires_at_ms', 'revoked_at_ms'])
    .where('tenant_id', '=', tenantId)
    .where('id', '=', actor.id)
    .executeTakeFirst()
  if (token === undefined) throw new AppError('token_unknown')
  requireLive(token, act, nowMs)
  if (sessionId === null) return
  const session = await trx
    .selectFrom('sessions')
    .select('id')
    .where('tenant_id', '=', tenantId)
    .where('id', '=', sessionId)
    .where('ends_at_ms', '>', nowMs)
    .executeTakeFirst()
  if (session === undefined) throw new AppError('session_ended')
}

async function requireOrganisation(trx: ControlTransaction, tenantId: string): Promise<void> {
  const organisation = await trx
    .selectFrom('organisations')
    .select('tenant_id')
    .where('tenant_id', '=', tenantId)
    .executeTakeFirst()
  if (organisation === undefined) throw new AppError('not_found')
}

/** Throws `token_revoked` or `token_expired` where the actor's token has ended. */
export function requireLive({ expires_at_ms, revoked_at_ms }: TokenLife, sender: Act, nowMs: number): void {
  if (revoked_at_ms !== null) throw new EndedToken('token_revoked', sender)
  if (expires_at_ms !== null && expires_at_ms <= nowMs) throw new EndedToken('token_expired', sender)
}
