// How often what a page follows is read again. A query that is read again forgets its refusal, so one that
// was refused is left alone for as long as the service asks, and for as long as a person needs to read it.

import { Refusal } from './client.ts'

/** Enough to read a refusal and to press Retry. */
const refusedMs = 30_000

interface Read {
  readonly state: { readonly error: Error | null }
}

/** Returns the interval of a query that is read every `ms`: longer while its last response is a refusal. */
export function every(ms: number): (query: Read) => number {
  return ({ state: { error } }) =>
    error instanceof Refusal ? Math.max(ms, refusedMs, (error.retryAfterSeconds ?? 0) * 1_000) : ms
}
