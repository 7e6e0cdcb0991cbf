// Which deletions of an organisation need a second person. A stricter rule takes effect at once, a looser one
// a day later with an audit entry at once, so that nobody loosens the rule and erases before others have seen
// it. Revoking the token of an owner or admin during that day drops the looser rule: they might object to it.

import {
  type ApprovalRule,
  approvalRules,
  type DeletionPolicy,
  oldApprovalRules,
} from '../../../contract/deletion/governance.ts'
import { appendAudit } from '../../audit/log.ts'
import { lockForAct } from '../../control/acting.ts'
import type { Control, ControlTransaction } from '../../control/database.ts'
import { transact } from '../../control/transaction.ts'
import type { Actor } from '../../core/actor.ts'
import { AppError } from '../../core/app-error.ts'
import { type Clock, instantText } from '../../core/clock.ts'
import { type BoundedRange, coveredNs, type TimeRange } from '../../core/time-range.ts'
import { type ClockReading, isClockInDoubt, readingOf } from '../../worker/clock-watch.ts'
import type { DeletionSelection } from '../requests/selection.ts'

/** The part of the policy that an organisation sets. */
type OwnPolicy = Omit<DeletionPolicy, 'second_person'>

/** How long a looser rule waits, milliseconds: everybody who has to notice it has a working day. */
const looserAfterMs = 86_400_000

interface StoredPolicy {
  readonly approval: ApprovalRule
  readonly pending: { readonly approval: ApprovalRule; readonly fromMs: number } | null
}

/** Ranges longer than this count as full erasures, because for most organisations they erase as much. */
const longRangeNs = 31n * 86_400_000_000_000n

/**
 * Why a deletion needs a second person: because of the rule, because of what it selects, because it covers
 * too much together with earlier requests, or because nothing that is older than a day is known to stay of a
 * signal.
 */
export type ApprovalCause = 'every_deletion' | 'full_erasure' | 'ranges_together' | 'nothing_left'

/**
 * Returns why the rule asks for a second person; null where it doesn't. Under `full_erasures` a range without
 * a start, or longer than 31 days, counts as a full erasure. So does one that covers more than 31 days
 * together with `alone`, the ranges that the same person has erased without approval.
 */
export function approvalCause(
  rule: ApprovalRule,
  { range }: Pick<DeletionSelection, 'range'>,
  alone: readonly BoundedRange[] = [],
): ApprovalCause | null {
  if (rule === 'none') return null
  if (rule === 'every_deletion') return rule
  const bounded = withinLimit(range)
  if (bounded === null) return 'full_erasure'
  return coveredNs([...alone, bounded]) > longRangeNs ? 'ranges_together' : null
}

/**
 * Returns the range where one person may erase it alone under `full_erasures`; null where it counts as a full
 * erasure.
 */
export function withinLimit({ startNs, endNs }: TimeRange): BoundedRange | null {
  if (startNs === null || endNs === null || endNs - startNs > longRangeNs) return null
  return { startNs, endNs }
}

/** What the service can tell about people from tokens; the policy returns it. */
export const secondPerson = {
  told_by: 'tokens',
  limit:
    'Two tokens count as two people unless one descends from the other or both descend from the same token. Tokens that the operator made descend from none, so two of them count as two people even where one person has both: the operator must give each person one.',
} as const satisfies DeletionPolicy['second_person']

/**
 * Returns the refusal of an approval by somebody who may be the requester. `what` is the subject of its
 * sentence, such as `A deletion`.
 */
export function ownRequest(what: string): AppError {
  return new AppError('own_request', {
    sentence: `${what} is approved by someone else than its requester: with a token that neither was made with the requester’s, nor made it, nor was made with the same one; the operator can make one for each person.`,
  })
}

export class DeletionPolicies {
  readonly #control: Control
  readonly #clock: Clock

  constructor(control: Control, clock: Clock) {
    this.#control = control
    this.#clock = clock
  }

  async get(tenantId: string): Promise<OwnPolicy> {
    return wireForm(await readPolicy(this.#control, tenantId, readingOf(this.#clock)))
  }

  /** Sets the rule. Setting the rule that is in force drops a looser one that waits. */
  async set(tenantId: string, approval: ApprovalRule, actor: Actor): Promise<OwnPolicy> {
    const at = readingOf(this.#clock)
    const nowMs = at.wallMs
    return transact(this.#control, async (trx) => {
      await lockForAct(trx, { tenantId, actor }, nowMs)
      const before = await readPolicy(trx, tenantId, at)
      const isLooser = approvalRules.indexOf(approval) < approvalRules.indexOf(before.approval)
      const after: StoredPolicy = isLooser
        ? { approval: before.approval, pending: { approval, fromMs: nowMs + looserAfterMs } }
        : { approval, pending: null }
      await change(trx, { tenantId, before, after }, { actor, nowMs })
      return wireForm(after)
    })
  }
}

/**
 * Drops a looser rule that waits, because the token of an owner or admin is revoked. Any of them, because two
 * tokens of one line may be two people, of whom one could no longer object. Writes nothing where no rule
 * waits. Runs in the transaction that revokes, which has the lock of the organisation.
 */
export async function dropLooserRule(
  trx: ControlTransaction,
  revoked: {
    readonly tenantId: string
    readonly id: string
    readonly actor: Actor
    readonly revokedAtMs: number
  },
  at: ClockReading,
): Promise<void> {
  const { actor, id, revokedAtMs, tenantId } = revoked
  const before = await readPolicy(trx, tenantId, at)
  if (before.pending === null) return
  const after: StoredPolicy = { ...before, pending: null }
  const facts = { cause: 'token_revoked', token_id: id }
  await change(trx, { tenantId, before, after }, { actor, nowMs: revokedAtMs, facts })
}

/** Stores the policy and its audit entry. */
async function change(
  trx: ControlTransaction,
  {
    after,
    before,
    tenantId,
  }: { readonly tenantId: string; readonly before: StoredPolicy; readonly after: StoredPolicy },
  by: { readonly actor: Actor; readonly nowMs: number; readonly facts?: Record<string, unknown> },
): Promise<void> {
  const columns = {
    approval: wordAtRest(after.approval),
    pending_approval: after.pending === null ? null : wordAtRest(after.pending.approval),
    pending_from_ms: after.pending?.fromMs ?? null,
  }
  await trx
    .insertInto('deletion_policies')
    .values({ tenant_id: tenantId, ...columns })
    .onConflict((conflict) => conflict.column('tenant_id').doUpdateSet(columns))
    .execute()
  await appendAudit(trx, tenantId, by.nowMs, {
    actor: by.actor,
    action: 'deletion_policy.changed',
    target: tenantId,
    outcome: 'accepted',
    facts: { before: wireForm(before), after: wireForm(after), ...by.facts },
  })
}

/** Returns the rule in force at this reading of the clock; `none` where no rule was ever set. */
export async function approvalRuleOf(
  control: Control | ControlTransaction,
  tenantId: string,
  at: ClockReading,
): Promise<ApprovalRule> {
  return (await readPolicy(control, tenantId, at)).approval
}

async function readPolicy(
  control: Control | ControlTransaction,
  tenantId: string,
  at: ClockReading,
): Promise<StoredPolicy> {
  const row = await control
    .selectFrom('deletion_policies')
    .selectAll()
    .where('tenant_id', '=', tenantId)
    .executeTakeFirst()
  if (row === undefined) return { approval: 'none', pending: null }
  const approval = ruleOf(row.approval)
  if (row.pending_approval === null || row.pending_from_ms === null) return { approval, pending: null }
  const pending = { approval: ruleOf(row.pending_approval), fromMs: row.pending_from_ms }
  // A clock that jumps ahead must not shorten the day that others have to notice.
  const isInForce = pending.fromMs <= at.wallMs && !(await isClockInDoubt(control, at))
  return isInForce ? { approval: pending.approval, pending: null } : { approval, pending }
}

/**
 * The table stores the first names of the rules and accepts no others, so that older versions can open a data
 * folder or a backup of it.
 */
const wordsAtRest = new Map<ApprovalRule, string>([
  ['none', 'none'],
  ...Object.entries(oldApprovalRules).map(([word, rule]) => [rule, word] as const),
])

function wordAtRest(rule: ApprovalRule): string {
  return wordsAtRest.get(rule) ?? rule
}

/** An unknown rule counts as the strictest: a mistake in the table must not erase anything. */
function ruleOf(text: string): ApprovalRule {
  return approvalRules.find((rule) => wordAtRest(rule) === text) ?? 'every_deletion'
}

function wireForm({ approval, pending }: StoredPolicy): OwnPolicy {
  return {
    approval,
    pending:
      pending === null ? null : { approval: pending.approval, effective_at: instantText(pending.fromMs) },
  }
}
