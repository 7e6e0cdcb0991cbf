// Which access token was made with which: whoever makes a token has seen its secret, so two tokens speak for two
// people only where no token is an ancestor of both.

import type { Control } from '../control/database.ts'

/** Deeper than any honest chain; ends a walk through a table that somebody has changed by hand. */
const generationsMax = 100

/** Ids of the token that `requester` names and of those it descends from, itself first; empty where it names none. */
async function ancestry(control: Control, tenantId: string, requester: string): Promise<string[]> {
  const ids: string[] = []
  for (let name = requester; ids.length < generationsMax; ) {
    // Names of tokens are free text; what follows the last bracket is ours.
    const id = /\((tok_[0-9a-z]+)\)$/.exec(name)?.[1]
    if (id === undefined) return ids
    ids.push(id)
    const row = await control
      .selectFrom('access_tokens')
      .select('created_by')
      .where('tenant_id', '=', tenantId)
      .where('id', '=', id)
      .executeTakeFirst()
    if (row === undefined) return ids
    name = row.created_by
  }
  return ids
}

/**
 * Whether the two may be one person: the same token, or tokens of which one was made with the other, at whatever
 * distance, or both with the same third one. Who made two tokens holds both, and would ask with one and approve with
 * the other.
 */
export async function areRelated(
  control: Control,
  tenantId: string,
  first: string,
  second: string,
): Promise<boolean> {
  const ofFirst = await ancestry(control, tenantId, first)
  const ofSecond = await ancestry(control, tenantId, second)
  if (ofFirst.length === 0 || ofSecond.length === 0) return first === second
  return ofFirst.some((id) => ofSecond.includes(id))
}
