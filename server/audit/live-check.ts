// Checks the chains in the control plane. Besides the links of each chain, it compares the ledger with the
// requests that it records, so that a request that was changed or removed without a ledger entry is found
// too.

import type { Selectable } from 'kysely'
import { formatInstant } from '../../contract/values/instant.ts'
import type { Control, DeletionRequestsTable } from '../control/database.ts'
import { dialectOf } from '../control/dialect.ts'
import { ChainWalk, readEntry } from './chain.ts'
import { type ChainName, chainTables } from './log.ts'

interface CheckedChain {
  readonly entries: number
  readonly head: string
  /** Sentences; empty where everything is consistent. */
  readonly problems: readonly string[]
}

/** Checks one organisation's chain as of one moment; other writers continue meanwhile. */
export async function checkChain(
  control: Control,
  chain: ChainName,
  tenantId: string,
): Promise<CheckedChain> {
  const { rows, requests } = await readTogether(control, chain, tenantId)
  const walk = new ChainWalk()
  const entries: Record<string, unknown>[] = []
  for (const { seq, text, hash } of rows) {
    const entry = readEntry(text)
    const problem = walk.next({ text, hash }) ?? problemOfRow(entry, seq, tenantId)
    if (problem !== null || entry === null) {
      const problems = [`where entry ${walk.entries + 1} should be (seq ${seq}): ${problem}`]
      return { entries: walk.entries, head: walk.head, problems }
    }
    entries.push(entry)
  }
  const problems = chain === 'ledger' ? compareRequests(entries, requests) : findMissingStart(entries)
  return { entries: walk.entries, head: walk.head, problems }
}

/** Returns every organisation that has records, also removed ones. */
export async function listTenants(control: Control): Promise<string[]> {
  const rows = await control
    .selectFrom('organisations')
    .select('tenant_id')
    .union(control.selectFrom('audit_entries').select('tenant_id'))
    .union(control.selectFrom('ledger_entries').select('tenant_id'))
    .union(control.selectFrom('deletion_requests').select('tenant_id'))
    .orderBy('tenant_id')
    .execute()
  return rows.map((row) => row.tenant_id)
}

/**
 * Compares the chain with the end of an export: returns what differs, or null. So an export that is kept
 * elsewhere proves that nothing before its end was rewritten since, not even by an attacker who computed
 * every hash again.
 */
export async function findRewriting(
  control: Control,
  chain: ChainName,
  exported: { readonly tenantId: string; readonly entries: number; readonly head: string },
): Promise<string | null> {
  if (exported.entries === 0) return null
  const row = await control
    .selectFrom(chainTables[chain])
    .select('hash')
    .where('tenant_id', '=', exported.tenantId)
    .where('seq', '=', exported.entries)
    .executeTakeFirst()
  if (row?.hash === exported.head) return null
  return `entry ${exported.entries} has the hash ${row?.hash ?? 'of nothing, it is gone'}; it was exported as ${exported.head}`
}

type Request = Pick<
  Selectable<DeletionRequestsTable>,
  'request_id' | 'status' | 'scope' | 'signals' | 'range_start_ns' | 'range_end_ns'
>

/** Both in one snapshot, because a change between two reads would look like a contradiction. */
async function readTogether(control: Control, chain: ChainName, tenantId: string) {
  return dialectOf(control).snapshot(control, async (snapshot) => {
    const rows = await snapshot
      .selectFrom(chainTables[chain])
      .select(['seq', 'entry as text', 'hash'])
      .where('tenant_id', '=', tenantId)
      .orderBy('seq')
      .execute()
    const requests: Request[] = await snapshot
      .selectFrom('deletion_requests')
      .select(['request_id', 'status', 'scope', 'signals', 'range_start_ns', 'range_end_ns'])
      .where('tenant_id', '=', tenantId)
      .orderBy('request_id')
      .execute()
    return { rows, requests }
  })
}

function findMissingStart(entries: readonly unknown[]): string[] {
  return entries.length > 0
    ? []
    : ['it is empty, but every audit log begins with the creation of its organisation']
}

function problemOfRow(entry: Record<string, unknown> | null, seq: number, tenantId: string): string | null {
  if (entry?.seq !== seq) return `the entry is numbered ${entry?.seq}, its row ${seq}`
  if (entry.tenant_id !== tenantId) return `the entry is of ${entry.tenant_id}`
  return null
}

function compareRequests(
  entries: readonly Record<string, unknown>[],
  requests: readonly Request[],
): string[] {
  const byRequest = Map.groupBy(entries, (entry) => String(entry.request_id))
  const stored = new Map(requests.map((request) => [request.request_id, request]))
  const lost = [...byRequest.keys()]
    .filter((id) => !stored.has(id))
    .map((id) => `the ledger has the request ${id}, which is not stored`)
  return [
    ...lost,
    ...requests.flatMap((request) => compare(request, byRequest.get(request.request_id) ?? [])),
  ]
}

function compare(request: Request, told: readonly Record<string, unknown>[]): string[] {
  const [first, newest] = [told[0], told.at(-1)]
  if (first === undefined || newest === undefined) {
    return [`the request ${request.request_id} is stored, but the ledger does not have it`]
  }
  const pairs: readonly (readonly [string, unknown, unknown])[] = [
    ['status', request.status, newest.to_status],
    ...Object.entries(selectionOf(request)).map(
      ([name, value]) => [name, value, (first.facts as Record<string, unknown> | undefined)?.[name]] as const,
    ),
  ]
  return pairs
    .filter(([, is, said]) => JSON.stringify(is) !== JSON.stringify(said))
    .map(
      ([name, is, said]) =>
        `the request ${request.request_id} has ${name} ${JSON.stringify(is)}, the ledger says ${JSON.stringify(said)}`,
    )
}

/**
 * The selection of a request in the form of its first ledger entry; as it is stored where it can't be parsed.
 */
function selectionOf(request: Request): Record<string, unknown> {
  const instant = (ns: string | null) => (ns === null ? null : readOr(ns, () => formatInstant(BigInt(ns))))
  return {
    scope: request.scope,
    signals: readOr(request.signals, () => JSON.parse(request.signals)),
    range_start: instant(request.range_start_ns),
    range_end: instant(request.range_end_ns),
  }
}

function readOr(stored: string, read: () => unknown): unknown {
  try {
    return read()
  } catch {
    return stored
  }
}
