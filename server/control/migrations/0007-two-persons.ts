// The origin of each access token: the token that created it, the root of its line, and the earliest expiry
// in that line. Older rows have it only in the text `created_by`, so the table is walked once. A line that
// ends in a missing token or in a circle has no root: its tokens count as related to every other one.
//
// Also the changes of retention that wait for a second person, a row for each signal.

import { type Kysely, sql } from 'kysely'

const statements = [
  'alter table access_tokens add column made_with text',
  'alter table access_tokens add column root_id text',
  'alter table access_tokens add column line_expires_at_ms bigint',
  'create index access_tokens_by_maker on access_tokens (tenant_id, made_with)',
  'create index access_tokens_not_revoked on access_tokens (tenant_id) where revoked_at_ms is null',
  'create index deletion_requests_by_end on deletion_requests (tenant_id, finished_at_ms)',
  `create table retention_changes (
    tenant_id text not null,
    signal text not null check (signal in ('metrics', 'logs', 'traces')),
    change_id text not null,
    days integer not null check (days >= 1),
    requested_by text not null,
    requested_at_ms bigint not null,
    approve_by_ms bigint not null,
    primary key (tenant_id, signal)
  )`,
]

interface TokenRow {
  readonly id: string
  readonly tenant_id: string
  readonly created_by: string
  readonly expires_at_ms: number | null
}

interface Line {
  readonly root: string | null
  readonly expiresAtMs: number | null
}

export const twoPersons = {
  async up(db: Kysely<unknown>): Promise<void> {
    for (const statement of statements) await sql.raw(statement).execute(db)
    const { rows } = await sql<TokenRow>`
      select id, tenant_id, created_by, expires_at_ms from access_tokens`.execute(db)
    const lines = linesOf(rows)
    for (const row of rows) {
      const { root, expiresAtMs } = lines.get(row.id) ?? unknownLine
      await sql`
        update access_tokens
        set made_with = ${makerOf(row)}, root_id = ${root}, line_expires_at_ms = ${expiresAtMs}
        where id = ${row.id}`.execute(db)
    }
  },
}

const unknownLine: Line = { root: null, expiresAtMs: null }

/**
 * Returns the token that `created_by` names. Names of tokens are free text; the part in the last brackets is
 * written by us.
 */
function makerOf({ created_by }: TokenRow): string | null {
  return /\((tok_[0-9a-z]+)\)$/.exec(created_by)?.[1] ?? null
}

/** Walks each line once: up from a token to one whose line is known, and down again. */
function linesOf(rows: readonly TokenRow[]): Map<string, Line> {
  const byId = new Map(rows.map((row) => [row.id, row]))
  const lines = new Map<string, Line>()
  for (const start of rows) {
    const path: TokenRow[] = []
    const onPath = new Set<string>()
    let above: Line | null = null
    for (let row: TokenRow | undefined = start; above === null; ) {
      if (row === undefined || onPath.has(row.id)) above = unknownLine
      else if (lines.has(row.id)) above = lines.get(row.id) ?? unknownLine
      else {
        path.push(row)
        onPath.add(row.id)
        const maker = makerOf(row)
        if (maker === null) above = { root: rootWithoutMaker(row), expiresAtMs: null }
        else row = ofTenant(byId.get(maker), start.tenant_id)
      }
    }
    for (const row of path.toReversed()) {
      above = { root: above.root, expiresAtMs: earlier(above.expiresAtMs, row.expires_at_ms) }
      lines.set(row.id, above)
    }
  }
  return lines
}

/**
 * The operator's tokens are roots. A token that was created by another one which its text doesn't name has no
 * root.
 */
function rootWithoutMaker({ created_by, id }: TokenRow): string | null {
  return created_by.startsWith('token:') ? null : id
}

function ofTenant(row: TokenRow | undefined, tenantId: string): TokenRow | undefined {
  return row?.tenant_id === tenantId ? row : undefined
}

function earlier(first: number | null, second: number | null): number | null {
  if (first === null || second === null) return first ?? second
  return Math.min(first, second)
}
