// A hash chain: every entry has the hash of the one before, over its RFC 8785 canonical form, so that anyone
// with the chain finds a changed, removed or reordered entry without trusting us. The first entry of a chain
// has 64 zeros in place of a hash.

import { createHash } from 'node:crypto'
import canonicalize from 'canonicalize'
import { fileBounds, parseBoundedJson } from '../core/input/json-bounds.ts'

export const chainStart = '0'.repeat(64)

/** An entry as it is hashed and stored: everything but its own hash. */
interface ChainedEntry {
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

/**
 * Throws where the entry contains something that JSON can't represent, such as a bigint: a chain must not
 * guess.
 */
export function seal(entry: ChainedEntry): SealedEntry {
  const text = canonicalize(entry)
  if (text === undefined) throw new TypeError('A chain entry must be a JSON object.')
  return { text, hash: hashOf(text) }
}

export function hashOf(text: string): string {
  return createHash('sha256').update(text, 'utf8').digest('hex')
}

/** Follows a chain from its start, entry by entry; results after the first break have no meaning. */
export class ChainWalk {
  #entries = 0
  #head = chainStart

  /** How many entries followed each other so far. */
  get entries(): number {
    return this.#entries
  }

  /** Hash of the last of them; 64 zeros before the first. */
  get head(): string {
    return this.#head
  }

  /**
   * Accepts the next entry. Returns null where it follows the one before, otherwise what is wrong with it.
   */
  next({ text, hash }: SealedEntry): string | null {
    if (hashOf(text) !== hash) return 'the entry does not match its hash'
    const entry = readEntry(text)
    if (entry === null) return 'the entry is not a JSON object'
    if (entry.seq !== this.#entries + 1) return `the entry is numbered ${entry.seq}`
    if (entry.prev_hash !== this.#head) return 'the entry does not follow the one before'
    this.#entries += 1
    this.#head = hash
    return null
  }
}

/** Returns the fields of an entry; null where the text is not a JSON object. Does not check the entry. */
export function readEntry(text: string): Record<string, unknown> | null {
  try {
    const entry = parseBoundedJson(text, fileBounds)
    if (typeof entry !== 'object' || entry === null || Array.isArray(entry)) return null
    return entry as Record<string, unknown>
  } catch {
    return null
  }
}

/**
 * Checks entries in stored order. Returns null where the chain is consistent, otherwise the first `seq` at
 * which it isn't, and why.
 */
export function findBreak(entries: readonly SealedEntry[]): { seq: number; problem: string } | null {
  const walk = new ChainWalk()
  for (const entry of entries) {
    const problem = walk.next(entry)
    if (problem !== null) return { seq: walk.entries + 1, problem }
  }
  return null
}
