// Rules of organisations and access tokens, without I/O: how a secret looks, how it is kept, and in which
// partition group an organisation lives.

import { createHash } from 'node:crypto'
import type { Role } from '../../contract/tenancy.ts'
import { newSecret } from '../core/ids.ts'

/**
 * Partition groups. One commit may touch all of them and stay below the engine's limit of 100 partitions per
 * insert; up to this many organisations have their partitions to themselves.
 */
export const placementCount = 64

/** Secrets shorter than this can be guessed; longer ones only cost hashing. */
export const secretLengthMin = 32
export const secretLengthMax = 512

/** A new secret; the role in it is for people's eyes and decides nothing. */
export function newTokenSecret(role: Role): string {
  return `lethe_${role}_${newSecret()}`
}

/** SHA-256 is enough: a secret of 256 random bits needs no slow hash. */
export function hashSecret(secret: string): string {
  return createHash('sha256').update(secret, 'utf8').digest('hex')
}

/**
 * The first characters of a generated secret. Of a chosen one nothing is shown, since every character counts.
 */
export function prefixOf(secret: string): string {
  const generated = /^lethe_[a-z]+_/.exec(secret)
  return generated === null ? '' : secret.slice(0, generated[0].length + 4)
}

/**
 * The least used placement, the lowest of equals, so that organisations share only when there are more than
 * 64.
 */
export function choosePlacement(taken: readonly number[]): number {
  const counts = new Array<number>(placementCount).fill(0)
  for (const placement of taken) counts[placement] = (counts[placement] ?? 0) + 1
  return counts.indexOf(Math.min(...counts))
}
