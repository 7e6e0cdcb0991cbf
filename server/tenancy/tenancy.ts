// Rules of organisations and access tokens, without I/O: the form of a secret, how it is stored, and the
// placement of an organisation.

import { createHash } from 'node:crypto'
import type { Role } from '../../contract/role.ts'
import { newSecret } from '../core/ids.ts'

/**
 * Number of placements. One commit may contain all of them and stay below the engine's limit of 100
 * partitions per insert; up to this many organisations have their partitions to themselves.
 */
export const placementCount = 64

/** Shorter secrets can be guessed; longer ones only cost hashing. */
export const secretLengthMin = 32
export const secretLengthMax = 512

/** Returns a new secret. The role in it is for people and decides nothing. */
export function newTokenSecret(role: Role): string {
  return `lethe_${role}_${newSecret()}`
}

/** SHA-256 is enough: a secret of 256 random bits needs no slow hash. */
export function hashSecret(secret: string): string {
  return createHash('sha256').update(secret, 'utf8').digest('hex')
}

/**
 * Returns the first characters of a generated secret. Of a chosen one nothing is shown, because every
 * character counts.
 */
export function prefixOf(secret: string): string {
  const generated = /^lethe_[a-z]+_/.exec(secret)
  return generated === null ? '' : secret.slice(0, generated[0].length + 4)
}

/**
 * Returns the least used placement, the lowest of equals, so that organisations share one only when there are
 * more than 64.
 */
export function choosePlacement(taken: readonly number[]): number {
  const counts = new Array<number>(placementCount).fill(0)
  for (const placement of taken) counts[placement] = (counts[placement] ?? 0) + 1
  return counts.indexOf(Math.min(...counts))
}
