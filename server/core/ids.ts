// Identifiers. An id is opaque to clients; inside it starts with a kind and sorts by creation time (the
// layout of ULID), so that paging by id is paging by time, and a log line shows what an id belongs to.

import { randomBytes } from 'node:crypto'

const alphabet = '0123456789abcdefghjkmnpqrstvwxyz'

type IdKind =
  | 'cnt'
  | 'del'
  | 'det'
  | 'ano'
  | 'tok'
  | 'run'
  | 'req'
  | 'prv'
  | 'hld'
  | 'bak'
  | 'mut'
  | 'rch'
  | 'rpl'
  | 'ses'

/** Returns a new id such as `del_01kb2m…`: 10 characters of milliseconds, 16 of randomness (80 bits). */
export function newId(kind: IdKind, nowMs: number): string {
  let time = ''
  for (let rest = nowMs, i = 0; i < 10; i++, rest = Math.floor(rest / 32)) time = alphabet[rest % 32] + time
  let random = ''
  for (const byte of randomBytes(16)) random += alphabet[byte % 32]
  return `${kind}_${time}${random}`
}

/** Returns 256 random bits as URL-safe text, for secrets. */
export function newSecret(): string {
  return randomBytes(32).toString('base64url')
}
