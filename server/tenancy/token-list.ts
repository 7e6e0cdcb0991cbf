// Lists access tokens in pages, each with the number of its active descendants. A page never has a secret,
// and nothing of another organisation. Ended tokens stay stored, and there may be any number of them, so what
// follows their lines is read in pieces (token-lines.ts).

import type { Selectable } from 'kysely'
import type { AccessToken } from '../../contract/organisation/tenancy.ts'
import { Role as RoleSchema } from '../../contract/role.ts'
import { actorTextIn } from '../control/actor-columns.ts'
import type { AccessTokensTable, Control, ControlTransaction } from '../control/database.ts'
import { instantText } from '../core/clock.ts'
import { Pace } from '../core/turns/pace.ts'
import {
  activeIds,
  readActiveTokens,
  TokenDescent,
  TokenLines,
  type TokenTurn,
  tokensPerPiece,
} from './token-lines.ts'

export type TokenRow = Selectable<AccessTokensTable>

interface TokenFilter {
  /** Only tokens before this one, such as the last one of the previous page; null for all. */
  readonly beforeId: string | null
  /** Only tokens that work now, or only those that don't. */
  readonly isActive?: boolean
}

export interface TokenPage extends TokenFilter {
  readonly limit: number
  /** Only descendants of this token, at any distance. */
  readonly descendantsOf?: string
}

/** Returns a page, newest first. Others take turns between two pieces of what it reads. */
export async function readTokenPage(
  control: Control,
  tenantId: string,
  { descendantsOf, limit, ...filter }: TokenPage,
  nowMs: number,
  turn: TokenTurn,
): Promise<AccessToken[]> {
  const scope = { control, tenantId, nowMs, turn }
  const rows =
    descendantsOf === undefined
      ? await selectTokens(scope, filter, limit)
      : await selectDescendants(scope, descendantsOf, filter, limit)
  if (rows.length === 0) return []
  const counts = await countLiveDescendants(scope)
  return rows.map((row) => toToken(row, counts.get(row.id) ?? 0))
}

/** Whose tokens are read, and as of when. */
interface Scope {
  readonly control: Control
  readonly tenantId: string
  readonly nowMs: number
  readonly turn: TokenTurn
}

/** Selects tokens that pass the filter, newest first; of these ids where given. */
function selectTokens(
  { control, nowMs, tenantId }: Scope,
  { beforeId, isActive }: TokenFilter,
  limit: number,
  ids?: readonly string[],
): Promise<TokenRow[]> {
  let query = control
    .selectFrom('access_tokens')
    .selectAll()
    .where('tenant_id', '=', tenantId)
    .orderBy('id', 'desc')
    .limit(limit)
  if (beforeId !== null) query = query.where('id', '<', beforeId)
  if (ids !== undefined) query = query.where('id', 'in', ids)
  if (isActive === true) query = query.where('id', 'in', activeIds(tenantId, nowMs))
  if (isActive === false) {
    query = query.where(({ eb, or }) =>
      or([eb('revoked_at_ms', 'is not', null), eb('expires_at_ms', '<=', nowMs)]),
    )
  }
  return query.execute()
}

/**
 * Returns the descendants of a token that pass the filter, newest first, at most `limit`. Where there are
 * few, they are found from above. Otherwise the tokens of the organisation are followed upwards: from above
 * nothing limits how many were made with one of them.
 */
export async function selectDescendants(
  scope: Scope,
  ancestor: string,
  filter: TokenFilter,
  limit = Number.POSITIVE_INFINITY,
): Promise<TokenRow[]> {
  const { control, tenantId, turn } = scope
  const few = await readFewDescendants(control, tenantId, ancestor)
  if (few !== null) {
    return few.length === 0 ? [] : selectTokens(scope, filter, Math.min(limit, few.length), few)
  }
  const lines = new TokenLines(tenantId)
  const descent = new TokenDescent(lines, ancestor)
  const pace = new Pace(turn)
  const found: TokenRow[] = []
  for (let { beforeId } = filter; ; ) {
    const rows = await selectTokens(scope, { ...filter, beforeId }, tokensPerPiece)
    await lines.read(control, rows, turn)
    found.push(...(await descent.select(rows, pace)))
    const last = rows.at(-1)
    if (found.length >= limit || last === undefined || rows.length < tokensPerPiece) break
    beforeId = last.id
    await turn()
  }
  return found.slice(0, limit)
}

/** Generations that are searched for few descendants: tokens of people and programs have one to three. */
const nearGenerations = 10

/** Returns the ids of all descendants; null where they are too many, or too far away, to be found at once. */
export async function readFewDescendants(
  control: Control | ControlTransaction,
  tenantId: string,
  ancestor: string,
): Promise<readonly string[] | null> {
  const found = new Set([ancestor])
  let makers = [ancestor]
  for (let generation = 0; makers.length > 0; generation++) {
    if (generation === nearGenerations) return null
    const rows = await control
      .selectFrom('access_tokens')
      .select('id')
      .where('tenant_id', '=', tenantId)
      .where('made_with', 'in', makers)
      .limit(tokensPerPiece)
      .execute()
    makers = rows.map(({ id }) => id).filter((id) => !found.has(id))
    for (const id of makers) found.add(id)
    if (rows.length === tokensPerPiece || found.size > tokensPerPiece) return null
  }
  found.delete(ancestor)
  return [...found]
}

/**
 * Counts active descendants, at any distance, by token, of the whole organisation. Reads active tokens and
 * their ancestors. Those that were active at first are counted, whatever ends meanwhile.
 */
async function countLiveDescendants(scope: Scope): Promise<ReadonlyMap<string, number>> {
  const { control, nowMs, tenantId, turn } = scope
  const live = await readActiveTokens(control, tenantId, nowMs)
  const lines = new TokenLines(tenantId)
  await lines.read(control, live, turn)
  return lines.countBelow(live, new Pace(turn))
}

/** @param liveDescendants how many of its descendants work */
export function toToken(row: TokenRow, liveDescendants: number): AccessToken {
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
    live_descendants: liveDescendants,
  }
}

export function isOver(endMs: number | null, nowMs: number): boolean {
  return endMs !== null && endMs <= nowMs
}

export function textOf(ms: number | null): string | null {
  return ms === null ? null : instantText(ms)
}
