// Retention rules at rest: days per organisation and signal, with an audit entry for every change.

import type { PatchRetention, Retention } from '../../../contract/deletion-governance.ts'
import { appendAudit } from '../../audit/log.ts'
import type { Control, ControlTransaction } from '../../control/database.ts'
import type { Clock } from '../../core/clock.ts'
import { type Signal, signals } from '../../telemetry/schema/tables.ts'
import type { RetentionRule } from './retention.ts'

export class RetentionStore {
  readonly #control: Control
  readonly #clock: Clock

  constructor(control: Control, clock: Clock) {
    this.#control = control
    this.#clock = clock
  }

  async get(tenantId: string): Promise<Retention> {
    return wireForm(await readRule(this.#control, tenantId))
  }

  /** Changes the signals that are named; null keeps one for good. */
  async set(tenantId: string, changes: PatchRetention, actor: string): Promise<Retention> {
    const nowMs = this.#clock.nowMs()
    return this.#control.transaction().execute(async (trx) => {
      const before = wireForm(await readRule(trx, tenantId))
      for (const signal of signals) {
        const days = changes[`${signal}_days`]
        if (days === undefined) continue
        await trx
          .deleteFrom('retention_policies')
          .where('tenant_id', '=', tenantId)
          .where('signal', '=', signal)
          .execute()
        if (days === null) continue
        await trx.insertInto('retention_policies').values({ tenant_id: tenantId, signal, days }).execute()
      }
      const after = wireForm(await readRule(trx, tenantId))
      await appendAudit(trx, tenantId, nowMs, {
        actor,
        action: 'retention.changed',
        target: tenantId,
        outcome: 'accepted',
        facts: { before, after },
      })
      return after
    })
  }

  /** Organisations that have a rule. */
  async tenants(): Promise<string[]> {
    const rows = await this.#control
      .selectFrom('retention_policies')
      .select('tenant_id')
      .distinct()
      .orderBy('tenant_id')
      .execute()
    return rows.map((row) => row.tenant_id)
  }

  rule(tenantId: string): Promise<RetentionRule> {
    return readRule(this.#control, tenantId)
  }
}

/** Also inside a transaction that acts on it. */
export async function readRule(
  control: Control | ControlTransaction,
  tenantId: string,
): Promise<RetentionRule> {
  return ruleOf(
    await control.selectFrom('retention_policies').selectAll().where('tenant_id', '=', tenantId).execute(),
  )
}

function ruleOf(rows: readonly { readonly signal: string; readonly days: number }[]): RetentionRule {
  const rule = new Map<Signal, number>()
  for (const signal of signals) {
    const row = rows.find((candidate) => candidate.signal === signal)
    if (row !== undefined) rule.set(signal, row.days)
  }
  return rule
}

function wireForm(rule: RetentionRule): Retention {
  return {
    metrics_days: rule.get('metrics') ?? null,
    logs_days: rule.get('logs') ?? null,
    traces_days: rule.get('traces') ?? null,
  }
}
