// Whether a deletion needs a second person, considering what its requester has erased before: many short
// ranges erase as much as a long one, and a short one may be all that is stored. Everybody who may be the
// requester counts as the requester.

import type { FastifyBaseLogger } from 'fastify'
import { nsPerMs } from '../../../contract/values/instant.ts'
import { readActor } from '../../control/actor-columns.ts'
import type { Control, ControlTransaction } from '../../control/database.ts'
import { dialectOf } from '../../control/dialect.ts'
import type { Actor } from '../../core/actor.ts'
import { isSameActor } from '../../core/actor.ts'
import { AppError } from '../../core/app-error.ts'
import type { BoundedRange } from '../../core/time-range.ts'
import {
  EngineError,
  isBecauseOfOthers,
  isOutOfTime,
  isTooExpensive,
  type TenantPlace,
} from '../../telemetry/engine.ts'
import type { HeldPart } from '../../telemetry/held-part.ts'
import type { Signal } from '../../telemetry/schema/tables.ts'
import { type ClockReading, isClockInDoubt } from '../../worker/clock-watch.ts'
import type { FindRelated } from '../requests/admission.ts'
import { readRange, readSignals, type StoredDeletion } from '../requests/request.ts'
import type { DeletionSelection } from '../requests/selection.ts'
import { hidingStatuses } from '../requests/states.ts'
import { retentionRequester } from '../requests/system-actors.ts'
import { type ApprovalCause, approvalCause, approvalRuleOf, withinLimit } from './policy.ts'
import { leavesNothing, type ReadRemaining, type Remaining } from './remaining.ts'

interface Asker {
  readonly tenantId: string
  readonly requester: Actor
}

export interface SecondPersonDeps {
  readonly control: Control
  readonly readRemaining: ReadRemaining
  readonly findPlace: (tenantId: string) => Promise<TenantPlace | null>
  readonly findRelated: FindRelated
  readonly logger: Pick<FastifyBaseLogger, 'warn'>
}

const dayMs = 86_400_000

/**
 * How far back requests count, milliseconds: as long as the range that one person may erase alone. So one
 * person can't erase telemetry faster than it arrives, and others have a month to notice.
 */
const windowMs = 31 * dayMs

/**
 * How many completed requests are read, newest first; with more of them, all further ones need a second
 * person. A range of five minutes after the other is fewer in a month. Reading these takes some 30 ms, of the
 * event loop and in the transaction of each request.
 */
export const completedMax = 10_000

/**
 * Returns what the deletion would leave, for {@link secondPersonCause}; null where it is not asked, because
 * the answer is known without it. Throws where it can't be read. Reads the engine, so it is called before
 * the transaction. What the requester has erased alone and what is hidden does not stay, nor does what is
 * younger than a day: a sender that runs always has that.
 */
async function remainingBeside(
  { control, findPlace, findRelated, readRemaining }: SecondPersonDeps,
  asker: Asker,
  selection: DeletionSelection,
  at: ClockReading,
  signal?: AbortSignal,
): Promise<Remaining | null> {
  const { requester, tenantId } = asker
  if (isSameActor(requester, retentionRequester)) return null
  if ((await approvalRuleOf(control, tenantId, at)) !== 'full_erasures') return null
  const alone = await partsAskedAlone(control, findRelated, asker, at)
  if (alone === null || approvalCause('full_erasures', selection, boundsOf(alone)) !== null) return null
  if (await isClockInDoubt(control, at)) return null
  const place = await findPlace(tenantId)
  if (place === null) return null
  const apart = [...alone, ...(await goingParts(control, tenantId, at.wallMs))]
  const untilNs = BigInt(at.wallMs - dayMs) * nsPerMs
  return readRemaining(place, selection, { apart, untilNs, signal })
}

/**
 * Returns why the deletion needs a second person; null where it needs none. Reads in the transaction that
 * writes the request, so that two requests at once can't both pass; `remaining` is from before it. Retention
 * needs nobody: its rule was approved before.
 */
export async function secondPersonCause(
  control: Control | ControlTransaction,
  findRelated: FindRelated,
  asker: Asker,
  selection: Pick<DeletionSelection, 'range'>,
  at: ClockReading,
  remaining: Remaining | null,
): Promise<ApprovalCause | null> {
  const { requester, tenantId } = asker
  if (isSameActor(requester, retentionRequester)) return null
  const rule = await approvalRuleOf(control, tenantId, at)
  const cause = approvalCause(rule, selection)
  if (rule !== 'full_erasures' || cause !== null) return cause
  const alone = await partsAskedAlone(control, findRelated, asker, at)
  // What is not read may cover any time.
  if (alone === null) return 'ranges_together'
  const together = approvalCause(rule, selection, boundsOf(alone))
  if (together !== null) return together
  const apart = [...alone, ...(await goingParts(control, tenantId, at.wallMs))]
  return remaining === null || leavesNothing(remaining, apart) ? 'nothing_left' : null
}

/**
 * Looks at what the deletion would leave, and returns {@link secondPersonCause} with that, for the
 * transaction that writes the request. Throws `overloaded` where others prevent the look, and the reason of
 * the signal.
 *
 * @param signal aborts when the result is no longer needed
 */
export async function secondPersonTest(
  deps: SecondPersonDeps,
  asker: Asker,
  selection: DeletionSelection,
  at: ClockReading,
  signal?: AbortSignal,
): Promise<(control: Control | ControlTransaction) => Promise<ApprovalCause | null>> {
  const remaining = await remainingBeside(deps, asker, selection, at, signal).catch((err: unknown) => {
    if (isBusy(err)) throw tooBusy(err)
    if (!(err instanceof EngineError || isTooExpensive(err))) throw err
    // The next look may fail as well, so the request is not refused: a second person is the safe answer.
    const { tenantId } = asker
    deps.logger.warn({ err, tenantId }, 'what a deletion would leave is not known; it needs a second person')
    return null
  })
  return (control) => secondPersonCause(control, deps.findRelated, asker, selection, at, remaining)
}

/** A look takes little memory, so where there is none for it, others use it up. */
function isBusy(error: unknown): error is AppError {
  return isBecauseOfOthers(error) || (isTooExpensive(error) && !isOutOfTime(error))
}

function tooBusy(cause: AppError): AppError {
  return new AppError('overloaded', {
    sentence:
      'The service is too busy to read what the deletion would leave; nothing was stored, repeat after Retry-After.',
    retryAfterSeconds: cause.retryAfterSeconds ?? 1,
    cause,
  })
}

/**
 * Returns {@link secondPersonTest} for a request that was accepted without a second person and has not begun.
 * It needs none where nobody has set the policy since: its rule was applied then. Otherwise it is decided as
 * if it were requested now. Its own range may be among those that are summed, because time that several cover
 * counts once. Throws where it can't be read what would be left: nobody has seen that a second person is
 * needed, and one would make visible again what is hidden.
 */
export async function secondPersonRetest(
  deps: SecondPersonDeps,
  request: StoredDeletion,
  at: ClockReading,
): Promise<(control: Control | ControlTransaction) => Promise<ApprovalCause | null>> {
  const { control, findRelated } = deps
  const asker = { tenantId: request.tenantId, requester: request.requestedBy }
  const isNew = await wasPolicySet(control, request)
  // Where the policy is set from here on, what would be left is unknown, and a second person the safe answer.
  const remaining = isNew ? await remainingBeside(deps, asker, request, at) : null
  return async (open) =>
    (await wasPolicySet(open, request))
      ? secondPersonCause(open, findRelated, asker, request, at, remaining)
      : null
}

/**
 * Whether somebody has set the policy since the request was created, by the order of the audit log. True too
 * where the log has no entry of the creation.
 */
async function wasPolicySet(
  control: Control | ControlTransaction,
  { requestId, tenantId }: StoredDeletion,
): Promise<boolean> {
  const entries = control.selectFrom('audit_entries').select('seq').where('tenant_id', '=', tenantId)
  const field = (name: string) => dialectOf(control).jsonField('entry', name)
  const set = await entries
    .where(field('action'), '=', 'deletion_policy.changed')
    .orderBy('seq', 'desc')
    .limit(1)
    .executeTakeFirst()
  if (set === undefined) return false
  const created = await entries
    .where(field('target'), '=', requestId)
    .orderBy('seq')
    .limit(1)
    .executeTakeFirst()
  return created === undefined || created.seq < set.seq
}

/** Returns what requests of anybody hide now or have erased since `sinceMs`: it does not stay. */
async function goingParts(
  control: Control | ControlTransaction,
  tenantId: string,
  sinceMs: number,
): Promise<HeldPart[]> {
  const own = control
    .selectFrom('deletion_requests')
    .select(['signals', 'range_start_ns', 'range_end_ns'])
    .where('tenant_id', '=', tenantId)
  // In two parts, each of which an index finds.
  const rows = await own
    .where('status', 'in', [...hidingStatuses])
    .unionAll(own.where('status', '=', 'completed').where('finished_at_ms', '>=', sinceMs))
    .execute()
  return rows.map((row) => ({ signals: readSignals(row.signals), range: readRange(row) }))
}

/** A part of telemetry that one person erases alone. */
interface AlonePart {
  readonly signals: readonly Signal[]
  readonly range: BoundedRange
}

const boundsOf = (parts: readonly AlonePart[]) => parts.map(({ range }) => range)

/**
 * Returns what this person has requested without approval: what is not completed, and what was completed
 * within the window; all of it while the clock is in doubt. What was cancelled, rejected or has expired does
 * not count, nor do full erasures without approval, which are from before the rule. Null where the
 * organisation has more than {@link completedMax} of the completed ones.
 */
async function partsAskedAlone(
  control: Control | ControlTransaction,
  findRelated: FindRelated,
  { requester, tenantId }: Asker,
  at: ClockReading,
): Promise<AlonePart[] | null> {
  const sinceMs = (await isClockInDoubt(control, at)) ? 0 : at.wallMs - windowMs
  const asked = control
    .selectFrom('deletion_requests')
    .select(['requested_by_kind', 'requested_by_id', 'requested_by_name'])
    .select(['signals', 'range_start_ns', 'range_end_ns'])
    .where('tenant_id', '=', tenantId)
    .where(({ and, eb, not }) =>
      not(
        and([
          eb('requested_by_kind', '=', retentionRequester.kind),
          eb('requested_by_id', '=', retentionRequester.id),
        ]),
      ),
    )
    .where('approved_by_kind', 'is', null)
  // Something is erased in these states, or will be. A failed request may be retried, so only completed ones
  // leave the window.
  const open = await asked.where('status', 'in', [...hidingStatuses]).execute()
  const completed = await asked
    .where('status', '=', 'completed')
    .where('finished_at_ms', '>', sinceMs)
    .orderBy('finished_at_ms', 'desc')
    .limit(completedMax + 1)
    .execute()
  if (completed.length > completedMax) return null
  const asks = [...open, ...completed].map((row) => ({ by: readActor('requested_by', row), row }))
  const isRelated = await findRelated(
    control,
    tenantId,
    requester,
    asks.map(({ by }) => by),
  )
  return asks
    .filter(({ by }) => isRelated(by))
    .flatMap(({ row }) => {
      const range = withinLimit(readRange(row))
      return range === null ? [] : [{ signals: readSignals(row.signals), range }]
    })
}
