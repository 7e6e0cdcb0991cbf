// The two append-only records of an organisation: the audit log (who did what) and the ledger (the steps of
// each deletion request). Appending uses the caller's transaction, so that a record and its change are
// committed together or not at all. There is no update and no delete here, and triggers in the database
// refuse both.

import type { Control, ControlTransaction } from '../control/database.ts'
import { lock } from '../control/dialect.ts'
import { type Actor, actorText } from '../core/actor.ts'
import { instantText } from '../core/clock.ts'
import { chainStart, type SealedEntry, seal } from './chain.ts'

export interface AuditEvent {
  readonly actor: Actor
  /** Noun and verb, such as `deletion.requested`. */
  readonly action: string
  readonly target: string | null
  readonly outcome: 'accepted' | 'refused'
  /** Ids, counts, bounds. Never telemetry, never a secret. */
  readonly facts: Readonly<Record<string, unknown>>
}

interface LedgerEvent {
  readonly request_id: string
  readonly actor: Actor
  readonly from_status: string | null
  readonly to_status: string
  readonly facts: Readonly<Record<string, unknown>>
}

/** The two chains by the names that commands and exports use. */
export const chainTables = { audit: 'audit_entries', ledger: 'ledger_entries' } as const
export type ChainName = keyof typeof chainTables
export type ChainTable = (typeof chainTables)[ChainName]

/** Appends to the organisation's audit log; the entry exists when the transaction commits. */
export async function appendAudit(
  trx: ControlTransaction,
  tenantId: string,
  atMs: number,
  event: AuditEvent,
): Promise<void> {
  await append(trx, 'audit_entries', tenantId, {
    at: instantText(atMs),
    ...event,
    actor: actorText(event.actor),
  })
}

/** Appends to the organisation's ledger, kind `data_deletion_request`. Returns the position of the entry. */
export async function appendLedger(
  trx: ControlTransaction,
  tenantId: string,
  atMs: number,
  event: LedgerEvent,
): Promise<number> {
  return append(trx, 'ledger_entries', tenantId, {
    kind: 'data_deletion_request',
    at: instantText(atMs),
    ...event,
    actor: actorText(event.actor),
  })
}

async function append(
  trx: ControlTransaction,
  table: ChainTable,
  tenantId: string,
  facts: Record<string, unknown>,
): Promise<number> {
  await lock(trx, { tenantId })
  const last = await readHead(trx, table, tenantId)
  const seq = last.entries + 1
  const { text, hash } = seal({ ...facts, tenant_id: tenantId, seq, prev_hash: last.head })
  await trx.insertInto(table).values({ tenant_id: tenantId, seq, entry: text, hash }).execute()
  return seq
}

/** Returns the current end of the chain: its number of entries and the hash of the last one. */
export async function readHead(
  control: Control,
  table: ChainTable,
  tenantId: string,
): Promise<{ entries: number; head: string }> {
  const last = await control
    .selectFrom(table)
    .select(['seq', 'hash'])
    .where('tenant_id', '=', tenantId)
    .orderBy('seq', 'desc')
    .limit(1)
    .executeTakeFirst()
  return { entries: last?.seq ?? 0, head: last?.hash ?? chainStart }
}

/** Returns some entries after `afterSeq`, oldest first. */
export async function readChainFrom(
  control: Control,
  table: ChainTable,
  tenantId: string,
  page: { afterSeq: number; limit: number },
): Promise<SealedEntry[]> {
  return control
    .selectFrom(table)
    .select(['entry as text', 'hash'])
    .where('tenant_id', '=', tenantId)
    .where('seq', '>', page.afterSeq)
    .orderBy('seq')
    .limit(page.limit)
    .execute()
}

/** Yields the whole chain of one organisation, oldest first. */
export async function readChain(
  control: Control,
  table: ChainTable,
  tenantId: string,
): Promise<SealedEntry[]> {
  return control
    .selectFrom(table)
    .select(['entry as text', 'hash'])
    .where('tenant_id', '=', tenantId)
    .orderBy('seq')
    .execute()
}
