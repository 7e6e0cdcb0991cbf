// Whether a deletion needs a second person, considering what its requester has erased before: many short
// ranges erase as much as a long one. Everybody who may be the requester counts as the requester.

import { readActor } from '../../control/actor-columns.ts'
import type { Control, ControlTransaction } from '../../control/database.ts'
import type { Actor } from '../../core/actor.ts'
import { isSameActor } from '../../core/actor.ts'
import type { BoundedRange } from '../../core/time-range.ts'
import { isClockInDoubt } from '../../worker/clock-watch.ts'
import { readRange } from '../requests/request.ts'
import type { DeletionSelection } from '../requests/selection.ts'
import { hidingStatuses } from '../requests/states.ts'
import { retentionRequester } from '../requests/system-actors.ts'
import { type ApprovalCause, approvalCause, approvalRuleOf, withinLimit } from './policy.ts'

/** Returns which of `others` may be the same person as `requester`. */
export type FindRelated = (
  control: Control | ControlTransaction,
  tenantId: string,
  requester: Actor,
  others: readonly Actor[],
) => Promise<(other: Actor) => boolean>

interface Asker {
  readonly tenantId: string
  readonly requester: Actor
}

/**
 * How far back requests count, milliseconds: as long as the range that one person may erase alone. So one
 * person can't erase telemetry faster than it arrives, and others have a month to notice.
 */
const windowMs = 31 * 86_400_000

/**
 * How many completed requests are read, newest first; with more of them, all further ones need a second
 * person. A range of five minutes after the other is fewer in a month. Reading these takes some 30 ms, of the
 * event loop and in the transaction of each request.
 */
export const completedMax = 10_000

/**
 * Returns why the deletion needs a second person; null where it needs none. Reads in the transaction that
 * writes the request, so that two requests at once can't both pass. Retention needs nobody: its rule was
 * approved before.
 */
export async function secondPersonCause(
  control: Control | ControlTransaction,
  findRelated: FindRelated,
  asker: Asker,
  selection: Pick<DeletionSelection, 'range'>,
  nowMs: number,
): Promise<ApprovalCause | null> {
  if (isSameActor(asker.requester, retentionRequester)) return null
  const rule = await approvalRuleOf(control, asker.tenantId, nowMs)
  const cause = approvalCause(rule, selection)
  if (rule !== 'full_erasures' || cause !== null) return cause
  const alone = await rangesAskedAlone(control, findRelated, asker, nowMs)
  // What is not read may cover any time.
  return alone === null ? 'ranges_together' : approvalCause(rule, selection, alone)
}

/**
 * Returns the ranges that this person has requested without approval: those that are not completed, and those
 * that were completed within the window; all of them while the clock is in doubt. What was cancelled,
 * rejected or has expired does not count, nor do full erasures without approval, which are from before the
 * rule. Null where the organisation has more than {@link completedMax} of the completed ones.
 */
async function rangesAskedAlone(
  control: Control | ControlTransaction,
  findRelated: FindRelated,
  { requester, tenantId }: Asker,
  nowMs: number,
): Promise<BoundedRange[] | null> {
  const sinceMs = (await isClockInDoubt(control)) ? 0 : nowMs - windowMs
  const asked = control
    .selectFrom('deletion_requests')
    .select(['requested_by_kind', 'requested_by_id', 'requested_by_name'])
    .select(['range_start_ns', 'range_end_ns'])
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
  const ranges = [...open, ...completed].map((row) => ({
    by: readActor('requested_by', row),
    range: readRange(row),
  }))
  const isRelated = await findRelated(
    control,
    tenantId,
    requester,
    ranges.map(({ by }) => by),
  )
  return ranges.filter(({ by }) => isRelated(by)).flatMap(({ range }) => withinLimit(range) ?? [])
}
