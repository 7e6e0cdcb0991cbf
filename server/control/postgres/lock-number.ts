// Names of advisory locks.

import { createHash } from 'node:crypto'

/** 64 bits of a hash: the same number in every process, and two names have two numbers. */
export function lockNumber(name: string): string {
  return createHash('sha256').update(`lethe ${name}`).digest().readBigInt64BE().toString()
}
