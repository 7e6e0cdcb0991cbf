// Actors for tests that distinguish them by name only.

import type { Role } from '../../contract/role.ts'
import { type Actor, tokenActor } from './actor.ts'

/** Returns the actor of a token with this name, and an id derived from it. */
export function tokenNamed(name: string): Actor {
  return tokenActor(`tok_${name.toLowerCase().replaceAll(/[^0-9a-z]/g, '')}`, name)
}

/** Returns that actor with a role, as far as a store needs a caller. */
export function callerNamed(name: string, role: Role = 'member'): { requester: Actor; role: Role } {
  return { requester: tokenNamed(name), role }
}
