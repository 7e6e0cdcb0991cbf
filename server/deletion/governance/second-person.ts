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

/** States in which something is erased, or will be, without approval. */
const erasing = [...hidingStatuses, 'completed'] as const

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
  return approvalCause(rule, selection, await rangesAskedAlone(control, findRelated, asker, nowMs))
}

/**
 * Returns the ranges that this person has requested without approval: those that are not completed, and those
 * that were completed within the window; all of them while the clock is in doubt. What was cancelled,
 * rejected or has expired does not count, nor do full erasures without approval, which are from before the
 * rule.
 */
async function rangesAskedAlone(
  control: Control | ControlTransaction,
  findRelated: FindRelated,
  { requester, tenantId }: Asker,
  nowMs: number,
): Promise<BoundedRange[]> {
  const sinceMs = (await isClockInDoubt(control)) ? 0 : nowMs - windowMs
  const rows = await control
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
    .where('status', 'in', [...erasing])
    // A failed request may be retried, so only completed ones leave the window.
    .where((where) => where.or([where('status', '!=', 'completed'), where('finished_at_ms', '>', sinceMs)]))
    .execute()
  const asked = rows.map((row) => ({ by: readActor('requested_by', row), range: readRange(row) }))
  const isRelated = await findRelated(
    control,
    tenantId,
    requester,
    asked.map(({ by }) => by),
  )
  return asked.filter(({ by }) => isRelated(by)).flatMap(({ range }) => withinLimit(range) ?? [])
}
