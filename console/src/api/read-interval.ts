// The interval of queries that a page reads repeatedly. Reading again removes the shown refusal, so after a
// refusal the interval is as long as the service asks, and long enough for a person to read it.

import { Refusal } from './client.ts'

/** Enough to read a refusal and to press Retry. */
const refusedMs = 30_000

interface Read {
  readonly state: { readonly error: Error | null }
}

/** Returns the interval of a query that is read every `ms`: longer while its last response is a refusal. */
export function readEvery(ms: number): (query: Read) => number {
  return ({ state: { error } }) =>
    error instanceof Refusal ? Math.max(ms, refusedMs, (error.retryAfterSeconds ?? 0) * 1_000) : ms
}
