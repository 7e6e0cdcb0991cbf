// Which new request is accepted: none that exists already, none above the limits, and none beside a full
// erasure that is running. Every check reads inside the transaction that writes the request, with the lock of
// its organisation, so two requests at once can't both pass.

import { sql } from 'kysely'
import { readActor } from '../../control/actor-columns.ts'
import type { Control, ControlTransaction } from '../../control/database.ts'
import { lock } from '../../control/dialect.ts'
import type { Actor } from '../../core/actor.ts'
import { AppError, InvalidInput, problem } from '../../core/app-error.ts'
import { type RequestRow, type StoredDeletion, toStored } from './request.ts'
import type { DeletionSelection } from './selection.ts'
import { openOfPersonMax, openRequestsMax, openStatuses } from './states.ts'

/** Who asks, and with which Idempotency-Key. */
export interface RequestedBy {
  readonly requester: Actor
  readonly idempotencyKey: string | null
}

/**
 * The existing request that this one repeats: one with the same Idempotency-Key, or one of a person that asks
 * for the same and is not finished. Null where there is none. Throws InvalidInput where the key belongs to
 * another request. What the system requests is repeated only by its key: a request that waits for approval,
 * or for a date, must not take the place of retention. Call it with the lock of the organisation.
 */
export async function findExisting(
  trx: ControlTransaction,
  tenantId: string,
  { idempotencyKey, requester }: RequestedBy,
  selectionHash: string,
): Promise<RequestRow | null> {
  const own = trx.selectFrom('deletion_requests').selectAll().where('tenant_id', '=', tenantId)
  if (idempotencyKey !== null) {
    const same = await own.where('idempotency_key', '=', idempotencyKey).executeTakeFirst()
    if (same !== undefined && same.selection_hash !== selectionHash) throw reusedKey(idempotencyKey)
    if (same !== undefined) return same
  }
  if (requester.kind === 'system') return null
  const active = await own
    .where('selection_hash', '=', selectionHash)
    .where('status', 'in', [...openStatuses])
    // A request that was given up is not repeated: asking again starts a new try.
    .where('status', '!=', 'failed')
    .executeTakeFirst()
  return active ?? null
}

function reusedKey(key: string): InvalidInput {
  return new InvalidInput([
    problem(
      ['header', 'Idempotency-Key'],
      'value_error',
      'This key was used for another deletion; take a new key for a new request',
      key,
    ),
  ])
}

/** Returns which of `others` may be the same person as `requester`. */
export type FindRelated = (
  control: Control | ControlTransaction,
  tenantId: string,
  requester: Actor,
  others: readonly Actor[],
) => Promise<(other: Actor) => boolean>

/**
 * Throws `too_many_requests` where people of the organisation, or this one, have as many open requests as
 * they may have. Requests of retention neither count nor are refused: it has a limit of its own, and what
 * people leave open for weeks must not stop it.
 */
export async function refuseTooManyDeletions(
  trx: ControlTransaction,
  findRelated: FindRelated,
  { requester, tenantId }: { readonly tenantId: string; readonly requester: Actor },
): Promise<void> {
  if (requester.kind === 'system') return
  const rows = await trx
    .selectFrom('deletion_requests')
    .select(['requested_by_kind', 'requested_by_id', 'requested_by_name'])
    .where('tenant_id', '=', tenantId)
    .where('status', 'in', [...openStatuses])
    .where('requested_by_kind', '!=', 'system')
    .execute()
  if (rows.length >= openRequestsMax) throw tooManyOpen(rows.length, 'your organisation')
  if (rows.length < openOfPersonMax) return
  const open = rows.map((row) => readActor('requested_by', row))
  const own = open.filter(await findRelated(trx, tenantId, requester, open)).length
  if (own >= openOfPersonMax) throw tooManyOpen(own, 'yours')
}

function tooManyOpen(open: number, whose: string): AppError {
  return new AppError('too_many_requests', {
    sentence: `${open} deletions of ${whose} are not finished; wait until some are, or cancel some.`,
    retryAfterSeconds: 5,
  })
}

export async function refuseDuringFullErasure(
  trx: ControlTransaction,
  tenantId: string,
  draft: DeletionSelection,
): Promise<void> {
  const running = await trx
    .selectFrom('deletion_requests')
    .selectAll()
    .where('tenant_id', '=', tenantId)
    .where('scope', '=', 'all')
    .where('status', 'in', ['running', 'verifying'])
    .execute()
  const conflict = running.map(toStored).find((request) => refusesBeside(request, draft))
  if (conflict !== undefined) {
    throw new AppError('deletion_conflict', {
      sentence: `The full erasure ${conflict.requestId} is running; nothing is left to select until it ends.`,
    })
  }
}

/** Whether a request is a full erasure in progress beside which nothing of the same signals is accepted. */
export function refusesBeside({ scope, signals, status }: StoredDeletion, draft: DeletionSelection): boolean {
  const isInProgress = status === 'running' || status === 'verifying'
  return scope === 'all' && isInProgress && signals.some((signal) => draft.signals.includes(signal))
}

/**
 * Returns the number of the next request, in the order in which requests of all organisations are created.
 */
export async function nextSeq(trx: ControlTransaction): Promise<number> {
  await lock(trx, 'deletion_order')
  const newest = await trx
    .selectFrom('deletion_requests')
    .select((select) => select.fn.max('seq').as('seq'))
    .executeTakeFirstOrThrow()
  return Number(newest.seq ?? 0) + 1
}

/**
 * The most deletions of an organisation that refuse late telemetry. Each is compared with everything that the
 * organisation sends afterwards. One a day is as many in 13 years; preparing them after each addition takes
 * some 20 ms.
 */
const refusingMax = 5000

/** The most of one person. They never end, so one person could otherwise use up those of all others. */
const refusingOfPersonMax = refusingMax / 2

/**
 * Throws InvalidInput where the organisation, or this person, has as many deletions that refuse late
 * telemetry as they may have.
 */
export async function refuseTooManyRefusing(
  trx: ControlTransaction,
  findRelated: FindRelated,
  { requester, tenantId }: { readonly tenantId: string; readonly requester: Actor },
): Promise<void> {
  const requesterColumns = ['requested_by_kind', 'requested_by_id', 'requested_by_name'] as const
  const rows = await trx
    .selectFrom('deletion_requests')
    .select(requesterColumns)
    .select((select) => select.fn.countAll<number>().as('refusing'))
    .where('tenant_id', '=', tenantId)
    // Not bound, so that the index of these requests serves.
    .where('refuse_late', '=', sql.lit(1))
    .where('status', 'not in', ['rejected', 'expired', 'cancelled'])
    .groupBy(requesterColumns)
    .execute()
  const refusing = rows.map((row) => ({ by: readActor('requested_by', row), count: Number(row.refusing) }))
  const sum = (counted: typeof refusing) => counted.reduce((total, { count }) => total + count, 0)
  if (sum(refusing) >= refusingMax) throw tooManyRefusing(refusingMax, 'of your organisation')
  if (sum(refusing) < refusingOfPersonMax) return
  const others = refusing.map(({ by }) => by)
  const isRelated = await findRelated(trx, tenantId, requester, others)
  const own = refusing.filter(({ by }) => isRelated(by))
  if (sum(own) >= refusingOfPersonMax) {
    throw tooManyRefusing(refusingOfPersonMax, 'that you, or tokens of your line, have requested')
  }
}

function tooManyRefusing(limit: number, whose: string): InvalidInput {
  return new InvalidInput([
    problem(
      ['body', 'refuse_late'],
      'value_error',
      `Late telemetry is refused for ${limit} deletions ${whose}, which is the most; leave this field out`,
      true,
      { limit },
    ),
  ])
}
