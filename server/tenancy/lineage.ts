// Which requesters may be one person, as far as tokens tell: whoever makes a token has seen its secret, so two tokens
// speak for two people only where their lines begin with two different tokens. The root of a line is written when a
// token is made. Whatever is not known of a requester counts as related: nobody becomes a second person by a gap.

import type { Control, ControlTransaction } from '../control/database.ts'
import { tokenIdIn } from './tenancy.ts'

/** Ids in one statement; far below the number of parameters that a database takes. */
const idsPerStatement = 500

/**
 * Which of `others` may be the same person as `requester`: the same token, tokens of one line, and whoever stands for
 * no token of the organisation whose root is known.
 */
export async function findRelated(
  control: Control | ControlTransaction,
  tenantId: string,
  requester: string,
  others: readonly string[],
): Promise<Set<string>> {
  const roots = await rootsOf(control, tenantId, [requester, ...others])
  const rootOf = (name: string) => roots.get(tokenIdIn(name) ?? '') ?? null
  const own = rootOf(requester)
  return new Set(
    others.filter((other) => {
      const root = rootOf(other)
      return other === requester || own === null || root === null || root === own
    }),
  )
}

/** Whether the two may be one person; see {@link findRelated}. */
export async function areRelated(
  control: Control | ControlTransaction,
  tenantId: string,
  first: string,
  second: string,
): Promise<boolean> {
  return (await findRelated(control, tenantId, first, [second])).has(second)
}

/** The root by token id, of those tokens of the organisation that are there. */
async function rootsOf(
  control: Control | ControlTransaction,
  tenantId: string,
  requesters: readonly string[],
): Promise<Map<string, string | null>> {
  const ids = [...new Set(requesters.map(tokenIdIn))].filter((id) => id !== null)
  const roots = new Map<string, string | null>()
  for (let at = 0; at < ids.length; at += idsPerStatement) {
    const rows = await control
      .selectFrom('access_tokens')
      .select(['id', 'root_id'])
      .where('tenant_id', '=', tenantId)
      .where('id', 'in', ids.slice(at, at + idsPerStatement))
      .execute()
    for (const row of rows) roots.set(row.id, row.root_id)
  }
  return roots
}
