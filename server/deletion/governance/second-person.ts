// Whether a deletion needs a second person, with what its requester has asked for before: many short ranges erase as
// much as a long one. Whoever may be the requester counts as the requester.

import type { Control, ControlTransaction } from '../../control/database.ts'
import type { BoundedRange } from '../../core/time-range.ts'
import { isClockInDoubt } from '../../worker/clock-watch.ts'
import { readRange } from '../requests/request.ts'
import type { DeletionSelection } from '../requests/selection.ts'
import { hidingStatuses } from '../requests/states.ts'
import { retentionRequester } from '../requests/system-actors.ts'
import { type ApprovalCause, approvalCause, approvalRuleOf, withinLimit } from './policy.ts'

/** Which of `others` may be the same person as `requester`. */
export type FindRelated = (
  control: Control | ControlTransaction,
  tenantId: string,
  requester: string,
  others: readonly string[],
) => Promise<ReadonlySet<string>>

interface Asker {
  readonly tenantId: string
  readonly requester: string
}

/**
 * As long as the time that one person may erase alone: so telemetry is not erased by one person faster than it comes
 * in, and the others have a month to see what goes.
 */
const windowMs = 31 * 86_400_000

/** States in which something is erased, or will be, without anybody else. */
const erasing = [...hidingStatuses, 'completed'] as const

/**
 * Why the deletion needs a second person; null where it needs none. Read in the transaction that writes it, so that two
 * can't both pass. Retention asks nobody: who had a say in its rule was asked before.
 */
export async function secondPersonCause(
  control: Control | ControlTransaction,
  findRelated: FindRelated,
  asker: Asker,
  selection: Pick<DeletionSelection, 'range'>,
  nowMs: number,
): Promise<ApprovalCause | null> {
  if (asker.requester === retentionRequester) return null
  const rule = await approvalRuleOf(control, asker.tenantId, nowMs)
  const cause = approvalCause(rule, selection)
  if (rule !== 'full_erasures' || cause !== null) return cause
  return approvalCause(rule, selection, await rangesAskedAlone(control, findRelated, asker, nowMs))
}

/**
 * Ranges that this person has asked for and nobody has approved: those that are not completed, and those that were
 * within the window; all of them while the clock is in doubt. What was given back counts for nothing. A full erasure
 * that nobody approved was asked for under another rule, and is no part of this sum.
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
    .select(['requested_by', 'range_start_ns', 'range_end_ns'])
    .where('tenant_id', '=', tenantId)
    .where('requested_by', '!=', retentionRequester)
    .where('approved_by', 'is', null)
    .where('status', 'in', [...erasing])
    // What failed may be tried again, so only what is done is ever over.
    .where((where) => where.or([where('status', '!=', 'completed'), where('finished_at_ms', '>', sinceMs)]))
    .execute()
  const requesters = [...new Set(rows.map(({ requested_by }) => requested_by))]
  const related = await findRelated(control, tenantId, requester, requesters)
  return rows
    .filter(({ requested_by }) => related.has(requested_by))
    .flatMap((row) => withinLimit(readRange(row)) ?? [])
}
