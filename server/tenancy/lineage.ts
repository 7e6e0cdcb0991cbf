// Which access token was made with which: whoever makes a token has seen its secret, so two tokens speak for two
// people only where neither descends from the other.

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

/** Whether one of the two was made with the other, at whatever distance, or both are the same. */
export async function areRelated(
  control: Control,
  tenantId: string,
  first: string,
  second: string,
): Promise<boolean> {
  const [ofFirst, ofSecond] = [
    await ancestry(control, tenantId, first),
    await ancestry(control, tenantId, second),
  ]
  const [a, b] = [ofFirst[0], ofSecond[0]]
  if (a === undefined || b === undefined) return first === second
  return ofFirst.includes(b) || ofSecond.includes(a)
}
