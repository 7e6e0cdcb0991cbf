// Decides whether a legal hold or a step of an erasure was first, also where two processes decide at once. A
// step is recorded as acting before it acts, in a transaction that finds no hold that the step has not read.
// A hold is placed in a transaction that finds no step acting on what it covers. So a hold that was placed
// keeps what it covers.

import type { ControlTransaction } from '../../control/database.ts'
import { AppError } from '../../core/app-error.ts'
import type { ActiveHold, HeldPart } from '../../telemetry/held-part.ts'
import { readRange, readSignals } from '../requests/request.ts'
import { type DeletionSelection, holdsWithin } from '../requests/selection.ts'
import { readActiveHolds } from './active-holds.ts'

/** Action of a step that has begun, and may have finished when its attempt ended. */
export const acting = 'acting'

/**
 * Action of a step that was acting when its attempt failed. It may have finished, and it does not act any
 * more, whatever the state of its request.
 */
export const interrupted = 'interrupted'

/** Action of a step whose swap is promised: the swap will be made, whatever happens. */
export const promised = 'promised'

/** Whether there is a hold on a part of the selection that is not among `seen`. */
export async function hasUnseenHold(
  trx: ControlTransaction,
  tenantId: string,
  selection: DeletionSelection,
  seen: readonly ActiveHold[],
): Promise<boolean> {
  const known = new Set(seen.map(({ holdId }) => holdId))
  return holdsWithin(selection, await readActiveHolds(trx, tenantId)).some(({ holdId }) => !known.has(holdId))
}

/** Seconds that a step usually takes at most. */
const stepSeconds = 1

/**
 * Throws `erasing` while a step erases a part of what the hold covers, or has promised to: the hold could not
 * keep it. A step whose attempt failed is no obstacle, because the next attempt reads the holds before it
 * acts.
 */
export async function refuseDuringStep(
  trx: ControlTransaction,
  tenantId: string,
  part: HeldPart,
): Promise<void> {
  const rows = await trx
    .selectFrom('deletion_requests')
    .innerJoin('deletion_steps', 'deletion_steps.request_id', 'deletion_requests.request_id')
    .select(['deletion_requests.request_id', 'signals', 'range_start_ns', 'range_end_ns'])
    .distinct()
    .where('tenant_id', '=', tenantId)
    .where('done_at_ms', 'is', null)
    .where(({ and, eb, or }) =>
      or([eb('action', '=', promised), and([eb('action', '=', acting), eb('status', '=', 'running')])]),
    )
    .execute()
  const beside = rows.find((row) => {
    const acted = { scope: 'range', signals: readSignals(row.signals), range: readRange(row) } as const
    return holdsWithin(acted, [part]).length > 0
  })
  if (beside === undefined) return
  throw new AppError('erasing', {
    sentence: `The deletion ${beside.request_id} is erasing some of what this hold covers, so it can’t be kept; repeat after Retry-After.`,
    retryAfterSeconds: stepSeconds,
  })
}
