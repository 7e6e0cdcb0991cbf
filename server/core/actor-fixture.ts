// Actors for tests that distinguish them by name only.

import { type Actor, tokenActor } from './actor.ts'

/** Returns the actor of a token with this name, and an id derived from it. */
export function tokenNamed(name: string): Actor {
  return tokenActor(`tok_${name.toLowerCase().replaceAll(/[^0-9a-z]/g, '')}`, name)
}
