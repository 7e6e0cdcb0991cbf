// Which deletions of an organisation need a second person. Stricter takes effect at once; looser a day later, with
// an audit entry now, so that nobody loosens the rule and erases before the others have seen it.

import {
  type ApprovalRule,
  approvalRules,
  type DeletionPolicy,
  oldApprovalRules,
} from '../../contract/deletion-governance.ts'
import { appendAudit } from '../audit/log.ts'
import type { Control, ControlTransaction } from '../control/database.ts'
import { type Clock, instantText } from '../core/clock.ts'
import { isClockInDoubt } from '../worker/clock-watch.ts'
import type { DeletionSelection } from './deletion.ts'

/** Long enough for a working day of everybody who has to notice. */
const looserAfterMs = 86_400_000

interface StoredPolicy {
  readonly approval: ApprovalRule
  readonly pending: { readonly approval: ApprovalRule; readonly fromMs: number } | null
}

/** A range longer than this erases as much as a full erasure would for most, and counts as one. */
const longRangeNs = 31n * 86_400_000_000_000n

/** Under `full_erasures`, a range without a start or longer than 31 days is judged like a full erasure: it could be one. */
export function needsApproval(rule: ApprovalRule, { range }: Pick<DeletionSelection, 'range'>): boolean {
  if (rule !== 'full_erasures') return rule === 'every_deletion'
  const { endNs, startNs } = range
  return startNs === null || endNs === null || endNs - startNs > longRangeNs
}

export class DeletionPolicies {
  readonly #control: Control
  readonly #clock: Clock

  constructor(control: Control, clock: Clock) {
    this.#control = control
    this.#clock = clock
  }

  async get(tenantId: string): Promise<DeletionPolicy> {
    return wireForm(await readPolicy(this.#control, tenantId, this.#clock.nowMs()))
  }

  /** Asking for the rule in force takes a looser one that is pending back. */
  async set(tenantId: string, approval: ApprovalRule, actor: string): Promise<DeletionPolicy> {
    const nowMs = this.#clock.nowMs()
    return this.#control.transaction().execute(async (trx) => {
      const before = await readPolicy(trx, tenantId, nowMs)
      const isLooser = approvalRules.indexOf(approval) < approvalRules.indexOf(before.approval)
      const after: StoredPolicy = isLooser
        ? { approval: before.approval, pending: { approval, fromMs: nowMs + looserAfterMs } }
        : { approval, pending: null }
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
      await appendAudit(trx, tenantId, nowMs, {
        actor,
        action: 'deletion_policy.changed',
        target: tenantId,
        outcome: 'accepted',
        facts: { before: wireForm(before), after: wireForm(after) },
      })
      return wireForm(after)
    })
  }
}

/** The rule in force at `nowMs`; no second person where nobody ever asked for one. */
export async function approvalRuleOf(
  control: Control | ControlTransaction,
  tenantId: string,
  nowMs: number,
): Promise<ApprovalRule> {
  return (await readPolicy(control, tenantId, nowMs)).approval
}

async function readPolicy(
  control: Control | ControlTransaction,
  tenantId: string,
  nowMs: number,
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
  // A clock that jumps ahead doesn't end the time that the others have to notice.
  const isInForce = pending.fromMs <= nowMs && !(await isClockInDoubt(control))
  return isInForce ? { approval: pending.approval, pending: null } : { approval, pending }
}

/**
 * The table holds the first words for the rules, and takes no others: so a data folder, and a backup of it, can be
 * opened by versions that know only those.
 */
const wordsAtRest = new Map<ApprovalRule, string>([
  ['none', 'none'],
  ...Object.entries(oldApprovalRules).map(([word, rule]) => [rule, word] as const),
])

function wordAtRest(rule: ApprovalRule): string {
  return wordsAtRest.get(rule) ?? rule
}

/** A rule that isn't one of ours counts as the strictest: nothing is to be erased by a typing error in a table. */
function ruleOf(text: string): ApprovalRule {
  return approvalRules.find((rule) => wordAtRest(rule) === text) ?? 'every_deletion'
}

function wireForm({ approval, pending }: StoredPolicy): DeletionPolicy {
  return {
    approval,
    pending:
      pending === null ? null : { approval: pending.approval, effective_at: instantText(pending.fromMs) },
  }
}
