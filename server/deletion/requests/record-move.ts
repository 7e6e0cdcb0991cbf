// Records a move of a deletion request in the ledger, and in the audit log where people care about it. It
// uses the transaction of the move, so a move and its entries are committed together or not at all.

import { appendAudit, appendLedger } from '../../audit/log.ts'
import type { ControlTransaction } from '../../control/database.ts'
import type { Actor } from '../../core/actor.ts'
import type { StoredDeletion } from './request.ts'
import { type DeletionSelection, wireBounds } from './selection.ts'

/**
 * Appends the entries of a move at `nowMs`. `before` is null for a new request, `action` for a move without
 * an audit entry.
 */
export async function recordMove(
  trx: ControlTransaction,
  nowMs: number,
  before: StoredDeletion | null,
  after: StoredDeletion,
  by: { actor: Actor; action: string | null; facts: Record<string, unknown> },
): Promise<void> {
  const facts = { ...selectionFacts(after), ...by.facts }
  await appendLedger(trx, after.tenantId, nowMs, {
    request_id: after.requestId,
    actor: by.actor,
    from_status: before?.status ?? null,
    to_status: after.status,
    facts,
  })
  if (by.action === null) return
  await appendAudit(trx, after.tenantId, nowMs, {
    actor: by.actor,
    action: by.action,
    target: after.requestId,
    outcome: after.status === 'failed' ? 'refused' : 'accepted',
    facts,
  })
}

function selectionFacts({ scope, signals, range }: DeletionSelection): Record<string, unknown> {
  return {
    scope,
    signals: [...signals],
    ...wireBounds(range),
  }
}
