// Actors for tests in which nothing but a name tells one from another.

import { type Actor, tokenActor } from './actor.ts'

/** The actor of a token with this name, and an id made of it. */
export function tokenNamed(name: string): Actor {
  return tokenActor(`tok_${name.toLowerCase().replaceAll(/[^0-9a-z]/g, '')}`, name)
}
