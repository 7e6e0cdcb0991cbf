// A hash chain: every entry carries the hash of the one before, over its RFC 8785 canonical form, so that a
// changed, removed or reordered entry is found by anyone who holds the chain, without trusting us. The first
// entry of a chain points at 64 zeros.

import { createHash } from 'node:crypto'
import canonicalize from 'canonicalize'

export const chainStart = '0'.repeat(64)

/** An entry as it is hashed and stored: everything but its own hash. */
export interface ChainedEntry {
  readonly seq: number
  readonly prev_hash: string
  readonly [fact: string]: unknown
}

export interface SealedEntry {
  /** RFC 8785 text of the entry. */
  readonly text: string
  /** SHA-256 of `text`, hexadecimal. */
  readonly hash: string
}

/** Throws when the entry holds something JSON can't say, such as a bigint: a ledger must not guess. */
export function seal(entry: ChainedEntry): SealedEntry {
  const text = canonicalize(entry)
  if (text === undefined) throw new TypeError('A chain entry must be a JSON object.')
  return { text, hash: hashOf(text) }
}

export function hashOf(text: string): string {
  return createHash('sha256').update(text, 'utf8').digest('hex')
}

/**
 * Checks entries in stored order against each other. Answers null when the chain holds, else the first `seq`
 * at which it doesn't and why.
 */
export function findBreak(entries: readonly SealedEntry[]): { seq: number; problem: string } | null {
  let prevHash = chainStart
  for (const [i, { text, hash }] of entries.entries()) {
    const seq = i + 1
    if (hashOf(text) !== hash) return { seq, problem: 'the entry does not match its hash' }
    const entry: Partial<ChainedEntry> = JSON.parse(text)
    if (entry.seq !== seq) return { seq, problem: `the entry is numbered ${entry.seq}` }
    if (entry.prev_hash !== prevHash) return { seq, problem: 'the entry does not follow the one before' }
    prevHash = hash
  }
  return null
}
