// Which actors may be one person, as far as tokens tell: whoever makes a token has seen its secret, so two
// tokens speak for two people only where their lines begin with two different tokens. The root of a line is
// written when a token is made. An actor that is no token of the organisation, or whose root is unknown,
// counts as related to everybody: a gap in what is known never makes a second person.

import type { Control, ControlTransaction } from '../control/database.ts'
import type { Actor } from '../core/actor.ts'

/** Ids in one statement; far below the number of parameters that a database takes. */
const idsPerStatement = 500

/**
 * Looks up the lines of `others` and returns a test for which of them may be the same person as
 * `requester`: the same token, a token of the same line, and whoever has no known root. It is true for
 * anybody that was not among `others`.
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

/** The root by token id, of those tokens of the organisation that are there. */
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
