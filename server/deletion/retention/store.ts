// Stores retention rules: days per organisation and signal, with an audit entry for every change. Where the
// policy asks for a second person, fewer days of a signal, also the first ones, wait for another owner or
// admin, because a shorter rule erases as much as a deletion. More days, or no limit, are in force at once.

import type { PatchRetention, Retention } from '../../../contract/deletion/governance.ts'
import { appendAudit } from '../../audit/log.ts'
import { lockForAct } from '../../control/acting.ts'
import { readActor } from '../../control/actor-columns.ts'
import type { Control, ControlTransaction } from '../../control/database.ts'
import { lock } from '../../control/dialect.ts'
import { transact } from '../../control/transaction.ts'
import { type Actor, actorText } from '../../core/actor.ts'
import { AppError } from '../../core/app-error.ts'
import { type Clock, instantText } from '../../core/clock.ts'
import { type Signal, signals } from '../../telemetry/schema/tables.ts'
import { readingOf } from '../../worker/clock-watch.ts'
import { approvalRuleOf, ownRequest } from '../governance/policy.ts'
import type { FindRelated } from '../requests/admission.ts'
import type { StoredDeletion } from '../requests/request.ts'
import { retentionRequester } from '../requests/system-actors.ts'
import {
  byChange,
  type ChangeRow,
  daysOf,
  insertChange,
  isWaiting,
  pendingOf,
  readChanges,
  removeChanges,
} from './changes.ts'
import { isShorter, keepsPart, type RetentionRule } from './retention.ts'

export class RetentionStore {
  readonly #control: Control
  readonly #clock: Clock
  readonly #findRelated: FindRelated

  constructor(control: Control, clock: Clock, findRelated: FindRelated) {
    this.#control = control
    this.#clock = clock
    this.#findRelated = findRelated
  }

  async get(tenantId: string): Promise<Retention> {
    return readRetention(this.#control, tenantId, this.#clock.nowMs())
  }

  /**
   * Changes the named signals; null removes the limit. A waiting change of one of them is withdrawn, unless
   * it is the same. `waits`: whether a named change is not yet in force.
   */
  async set(
    tenantId: string,
    changes: PatchRetention,
    actor: Actor,
  ): Promise<{ retention: Retention; waits: boolean }> {
    const at = readingOf(this.#clock)
    const nowMs = at.wallMs
    return transact(this.#control, async (trx) => {
      await lockForAct(trx, { tenantId, actor }, nowMs)
      const rule = await readRule(trx, tenantId)
      const asked = askedOf(changes)
      const isGuarded = (await approvalRuleOf(trx, tenantId, at)) !== 'none'
      const shorter = new Map<Signal, number>()
      for (const [signal, days] of asked) {
        if (isGuarded && days !== null && isShorter(days, rule.get(signal))) shorter.set(signal, days)
      }
      const known = (await readChanges(trx, tenantId)).filter(({ signal }) => asked.has(asSignal(signal)))
      const isRepeat = (row: ChangeRow) =>
        isWaiting(row, nowMs) && shorter.get(asSignal(row.signal)) === row.days
      const by = { actor, tenantId, nowMs }
      await withdraw(
        trx,
        by,
        known.filter((row) => !isRepeat(row)),
      )
      const atOnce = new Map([...asked].filter(([signal]) => !shorter.has(signal)))
      if (atOnce.size > 0 || asked.size === 0) await change(trx, by, rule, atOnce, 'retention.changed', {})
      for (const row of known.filter(isRepeat)) shorter.delete(asSignal(row.signal))
      if (shorter.size > 0) await request(trx, by, shorter)
      const retention = await readRetention(trx, tenantId, nowMs)
      return { retention, waits: [...asked.keys()].some((signal) => !atOnce.has(signal)) }
    })
  }

  /**
   * Puts a waiting change in force. Throws `not_found` where no change with that id waits, and `own_request`
   * where the approver may be the requester.
   */
  async approve(tenantId: string, changeId: string, approver: Actor): Promise<Retention> {
    return this.#decide({ tenantId, actor: approver }, changeId, async (trx, rows, nowMs) => {
      const requesters = rows.map((row) => readActor('requested_by', row))
      const isRelated = await this.#findRelated(trx, tenantId, approver, requesters)
      if (requesters.some(isRelated)) {
        throw ownRequest('A shorter retention')
      }
      const days = new Map(rows.map((row) => [asSignal(row.signal), row.days]))
      const facts = { change_id: changeId, requested_by: requesters[0] && actorText(requesters[0]) }
      const by = { actor: approver, tenantId, nowMs }
      await change(trx, by, await readRule(trx, tenantId), days, 'retention.approved', facts)
    })
  }

  /** Rejects a waiting change; its requester may do so too. Throws `not_found` as {@link approve} does. */
  async reject(tenantId: string, changeId: string, actor: Actor, reason: string): Promise<Retention> {
    return this.#decide({ tenantId, actor }, changeId, (trx, rows, nowMs) =>
      drop(trx, { actor, tenantId, nowMs }, rows, 'retention.rejected', { reason }),
    )
  }

  async #decide(
    { actor, tenantId }: { readonly tenantId: string; readonly actor: Actor },
    changeId: string,
    act: (trx: ControlTransaction, rows: readonly ChangeRow[], nowMs: number) => Promise<void>,
  ): Promise<Retention> {
    const nowMs = this.#clock.nowMs()
    return transact(this.#control, async (trx) => {
      await lockForAct(trx, { tenantId, actor }, nowMs)
      const rows = (await readChanges(trx, tenantId)).filter(
        (row) => row.change_id === changeId && isWaiting(row, nowMs),
      )
      if (rows.length === 0) throw new AppError('not_found')
      await act(trx, rows, nowMs)
      await removeChanges(trx, rows)
      return readRetention(trx, tenantId, nowMs)
    })
  }

  /** Removes changes of all organisations that nobody approved in time. */
  async expire(): Promise<void> {
    const nowMs = this.#clock.nowMs()
    const expired = await this.#control
      .selectFrom('retention_changes')
      .select('tenant_id')
      .distinct()
      .where('approve_by_ms', '<=', nowMs)
      .execute()
    for (const { tenant_id: tenantId } of expired) {
      await transact(this.#control, async (trx) => {
        await lock(trx, { tenantId })
        const rows = (await readChanges(trx, tenantId)).filter((row) => !isWaiting(row, nowMs))
        for (const rowsOfOne of byChange(rows)) {
          await drop(trx, { actor: retentionRequester, tenantId, nowMs }, rowsOfOne, 'retention.expired')
        }
        await removeChanges(trx, rows)
      })
    }
  }

  /** Returns the organisations that have a rule. */
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

/** Who acts, for which organisation, and when. */
interface Act {
  readonly actor: Actor
  readonly tenantId: string
  readonly nowMs: number
}

async function change(
  trx: ControlTransaction,
  { actor, nowMs, tenantId }: Act,
  rule: RetentionRule,
  days: ReadonlyMap<Signal, number | null>,
  action: 'retention.changed' | 'retention.approved',
  facts: Record<string, unknown>,
): Promise<void> {
  for (const [signal, kept] of days) {
    await trx
      .deleteFrom('retention_policies')
      .where('tenant_id', '=', tenantId)
      .where('signal', '=', signal)
      .execute()
    if (kept === null) continue
    await trx.insertInto('retention_policies').values({ tenant_id: tenantId, signal, days: kept }).execute()
  }
  const [before, after] = [wireForm(rule), wireForm(await readRule(trx, tenantId))]
  await appendAudit(trx, tenantId, nowMs, {
    actor,
    action,
    target: tenantId,
    outcome: 'accepted',
    facts: { ...facts, before, after },
  })
}

async function request(
  trx: ControlTransaction,
  { actor, nowMs, tenantId }: Act,
  shorter: ReadonlyMap<Signal, number>,
): Promise<void> {
  const rows = await insertChange(trx, tenantId, shorter, actor, nowMs)
  const [first] = rows
  if (first === undefined) return
  await appendAudit(trx, tenantId, nowMs, {
    actor,
    action: 'retention.requested',
    target: first.change_id,
    outcome: 'accepted',
    facts: { ...daysOf(rows), approve_by: instantText(first.approve_by_ms) },
  })
}

async function withdraw(trx: ControlTransaction, act: Act, rows: readonly ChangeRow[]): Promise<void> {
  for (const rowsOfOne of byChange(rows)) await drop(trx, act, rowsOfOne, 'retention.withdrawn')
  await removeChanges(trx, rows)
}

/** Writes the audit entry of signals of a change that will not come into force. */
async function drop(
  trx: ControlTransaction,
  { actor, nowMs, tenantId }: Act,
  rows: readonly ChangeRow[],
  action: 'retention.rejected' | 'retention.expired' | 'retention.withdrawn',
  facts: Record<string, unknown> = {},
): Promise<void> {
  await appendAudit(trx, tenantId, nowMs, {
    actor,
    action,
    target: rows[0]?.change_id ?? null,
    outcome: 'accepted',
    facts: { ...daysOf(rows), ...facts },
  })
}

/** Reads the rule, also inside a transaction. */
export async function readRule(
  control: Control | ControlTransaction,
  tenantId: string,
): Promise<RetentionRule> {
  return ruleOf(
    await control.selectFrom('retention_policies').selectAll().where('tenant_id', '=', tenantId).execute(),
  )
}

/**
 * Returns what tells why a request of retention must not begin; null where it may. It must not where the rule
 * keeps a part of it by now, nor while the clock is in doubt: what the rule keeps is not known then. Reads in
 * the transaction that counts the first attempt, so that a longer rule either was set too late or applies.
 */
export async function retentionRetest(
  trustedNowMs: () => Promise<number | null>,
  request: StoredDeletion,
): Promise<(trx: ControlTransaction) => Promise<'clock_in_doubt' | 'retention_changed' | null>> {
  const nowMs = await trustedNowMs()
  return async (trx) => {
    if (nowMs === null) return 'clock_in_doubt'
    return keepsPart(await readRule(trx, request.tenantId), request, nowMs) ? 'retention_changed' : null
  }
}

async function readRetention(
  control: Control | ControlTransaction,
  tenantId: string,
  nowMs: number,
): Promise<Retention> {
  const rule = wireForm(await readRule(control, tenantId))
  const pending = pendingOf(await readChanges(control, tenantId), nowMs)
  return pending.length === 0 ? rule : { ...rule, pending }
}

function ruleOf(rows: readonly { readonly signal: string; readonly days: number }[]): RetentionRule {
  const rule = new Map<Signal, number>()
  for (const signal of signals) {
    const row = rows.find((candidate) => candidate.signal === signal)
    if (row !== undefined) rule.set(signal, row.days)
  }
  return rule
}

function askedOf(changes: PatchRetention): Map<Signal, number | null> {
  const asked = new Map<Signal, number | null>()
  for (const signal of signals) {
    const days = changes[`${signal}_days`]
    if (days !== undefined) asked.set(signal, days)
  }
  return asked
}

/** Parses a signal of the table; throws for any other text. */
function asSignal(text: string): Signal {
  const signal = signals.find((one) => one === text)
  if (signal === undefined) throw new Error(`The table of retention changes has the signal ${text}.`)
  return signal
}

function wireForm(rule: RetentionRule): Omit<Retention, 'pending'> {
  return {
    metrics_days: rule.get('metrics') ?? null,
    logs_days: rule.get('logs') ?? null,
    traces_days: rule.get('traces') ?? null,
  }
}
