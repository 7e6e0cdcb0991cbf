// Decides which actors may be one person, as far as tokens show it: whoever makes a token has seen its
// secret, so two tokens belong to two people only where their lines begin with two different tokens. The root
// of a line is stored when a token is made. An actor that is not a token of the organisation, or whose root
// is unknown, counts as related to everybody: missing knowledge never makes a second person.

import type { Control, ControlTransaction } from '../control/database.ts'
import type { Actor } from '../core/actor.ts'

/** Ids in one statement; far below the number of parameters that a database accepts. */
const idsPerStatement = 500

/**
 * Reads the lines of `others` and returns a test whether one of them may be the same person as `requester`:
 * the same token, a token of the same line, or an actor without a known root. The test is true for anybody
 * who was not in `others`.
 */
export async function findRelated(
  control: Control | ControlTransaction,
  tenantId: string,
  requester: Actor,
  others: readonly Actor[],
): Promise<(other: Actor) => boolean> {
  const roots = await rootsOf(control, tenantId, [requester, ...others])
  const rootOf = ({ id, kind }: Actor) => (kind === 'token' ? (roots.get(id) ?? null) : null)
  const own = rootOf(requester)
  return (other) => {
    const root = rootOf(other)
    return own === null || root === null || root === own
  }
}

/** Whether the two may be one person; see {@link findRelated}. */
export async function areRelated(
  control: Control | ControlTransaction,
  tenantId: string,
  first: Actor,
  second: Actor,
): Promise<boolean> {
  const isRelated = await findRelated(control, tenantId, first, [second])
  return isRelated(second)
}

/** Returns the root of each of the tokens that the organisation has, by token id. */
async function rootsOf(
  control: Control | ControlTransaction,
  tenantId: string,
  actors: readonly Actor[],
): Promise<Map<string, string | null>> {
  const ids = [...new Set(actors.filter(({ kind }) => kind === 'token').map(({ id }) => id))]
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
