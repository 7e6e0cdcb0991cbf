// Lists access tokens in pages, each with the number of its active descendants. A page never has a secret,
// and nothing of another organisation.

import { type RawBuilder, type Selectable, sql } from 'kysely'
import type { AccessToken } from '../../contract/organisation/tenancy.ts'
import { Role as RoleSchema } from '../../contract/role.ts'
import { actorTextIn } from '../control/actor-columns.ts'
import type { AccessTokensTable, Control, ControlTransaction } from '../control/database.ts'
import { instantText } from '../core/clock.ts'

export type TokenRow = Selectable<AccessTokensTable>

type CountedRow = Pick<TokenRow, 'id' | 'made_with' | 'expires_at_ms' | 'revoked_at_ms'>

export interface TokenPage {
  readonly limit: number
  /** The last token of the previous page; null for the first page. */
  readonly beforeId: string | null
  /** Only tokens that work now, or only those that don't. */
  readonly isActive?: boolean
  /** Only descendants of this token, at any distance. */
  readonly descendantsOf?: string
}

/** Returns a page, newest first. */
export async function readTokenPage(
  control: Control,
  tenantId: string,
  { beforeId, descendantsOf, isActive, limit }: TokenPage,
  nowMs: number,
): Promise<AccessToken[]> {
  let query = control
    .selectFrom('access_tokens')
    .selectAll()
    .where('tenant_id', '=', tenantId)
    .orderBy('id', 'desc')
    .limit(limit)
  if (beforeId !== null) query = query.where('id', '<', beforeId)
  if (descendantsOf !== undefined) query = query.where('id', 'in', descendantIds(tenantId, descendantsOf))
  if (isActive === true) query = query.where('id', 'in', activeIds(tenantId, nowMs))
  if (isActive === false) {
    query = query.where(({ eb, or }) =>
      or([eb('revoked_at_ms', 'is not', null), eb('expires_at_ms', '<=', nowMs)]),
    )
  }
  const rows = await query.execute()
  const counts = await countLiveDescendants(control, tenantId, nowMs)
  return rows.map((row) => toToken(row, counts))
}

/**
 * Selects the ids of descendants at any distance. A circle, which only a manual change of the database can
 * create, is followed once. `cross join` sets the order of the join: the other order reads the whole table
 * for each token of the line.
 */
export function descendantIds(tenantId: string, id: string): RawBuilder<string> {
  return sql<string>`(
    with recursive line (id) as (
      select id from access_tokens where tenant_id = ${tenantId} and made_with = ${id}
      union
      select made.id from line cross join access_tokens made
      where made.tenant_id = ${tenantId} and made.made_with = line.id
    )
    select id from line where id <> ${id})`
}

/**
 * Selects the ids of the tokens that work. In two parts, each of which an index finds, because ended tokens
 * stay stored.
 */
export function activeIds(tenantId: string, nowMs: number): RawBuilder<string> {
  const notRevoked = sql`select id from access_tokens where tenant_id = ${tenantId} and revoked_at_ms is null`
  return sql<string>`(
    ${notRevoked} and expires_at_ms is null union all ${notRevoked} and expires_at_ms > ${nowMs})`
}

/**
 * Counts active descendants, at any distance, by token, of the whole organisation. Reads active tokens and
 * their ancestors: ended tokens stay stored, and an organisation may have made any number of them.
 */
export async function countLiveDescendants(
  control: Control | ControlTransaction,
  tenantId: string,
  nowMs: number,
): Promise<ReadonlyMap<string, number>> {
  const { rows } = await sql<CountedRow>`
    with recursive line (id, made_with, expires_at_ms, revoked_at_ms) as (
      select id, made_with, expires_at_ms, revoked_at_ms from access_tokens
      where id in ${activeIds(tenantId, nowMs)}
      union
      select maker.id, maker.made_with, maker.expires_at_ms, maker.revoked_at_ms
      from line cross join access_tokens maker
      where maker.id = line.made_with and maker.tenant_id = ${tenantId}
    )
    select id, made_with, expires_at_ms, revoked_at_ms from line`.execute(control)
  const byId = new Map(rows.map((row) => [row.id, row]))
  const uncounted = new Map<string, number>()
  for (const { made_with } of rows) {
    if (made_with !== null) uncounted.set(made_with, (uncounted.get(made_with) ?? 0) + 1)
  }
  // From the youngest up; each is added to its maker after everything below it.
  const ready = rows.filter(({ id }) => !uncounted.has(id))
  const counts = new Map<string, number>()
  for (let row = ready.pop(); row !== undefined; row = ready.pop()) {
    const maker = row.made_with === null ? undefined : byId.get(row.made_with)
    if (maker === undefined) continue
    const isLive = row.revoked_at_ms === null && !isOver(row.expires_at_ms, nowMs)
    const below = (counts.get(row.id) ?? 0) + (isLive ? 1 : 0)
    counts.set(maker.id, (counts.get(maker.id) ?? 0) + below)
    const left = (uncounted.get(maker.id) ?? 1) - 1
    uncounted.set(maker.id, left)
    if (left === 0) ready.push(maker)
  }
  return counts
}

export function toToken(row: TokenRow, counts: ReadonlyMap<string, number>): AccessToken {
  return {
    id: row.id,
    name: row.name,
    role: RoleSchema.parse(row.role),
    prefix: row.prefix,
    created_at: instantText(row.created_at_ms),
    created_by: actorTextIn('created_by', row),
    last_used_at: textOf(row.last_used_at_ms),
    expires_at: textOf(row.expires_at_ms),
    revoked_at: textOf(row.revoked_at_ms),
    made_with: row.made_with,
    line_expires_at: textOf(row.line_expires_at_ms),
    live_descendants: counts.get(row.id) ?? 0,
  }
}

export function isOver(endMs: number | null, nowMs: number): boolean {
  return endMs !== null && endMs <= nowMs
}

export function textOf(ms: number | null): string | null {
  return ms === null ? null : instantText(ms)
}
