// Attempts whose count or end could not be stored, because the control plane's database was not reachable.
// Such an attempt must not use up the attempts of a request: the next attempt gets the same number.
// Remembered in this process only; after a restart such an attempt counts as a crash.

import type { StoredDeletion } from '../requests/request.ts'
import { waitsForDatabase } from './erasure-error.ts'

export class UnstoredAttempts {
  /** The number of the attempt, by request. */
  readonly #from = new Map<string, number>()

  /** Whether the last attempt of the request as it is stored is such a one. */
  isLast({ attempts, attemptsForgiven, requestId, status }: StoredDeletion): boolean {
    const from = this.#from.get(requestId)
    const isAtWork = status === 'running' || status === 'verifying'
    return from !== undefined && isAtWork && attempts >= from && attempts > attemptsForgiven
  }

  /** Runs what stores the count or the end of the attempt. Throws what `store` throws. */
  async noting<T>(requestId: string, attempt: number, store: () => Promise<T>): Promise<T> {
    try {
      return await store()
    } catch (error) {
      const isKnown = this.#from.has(requestId)
      if (waitsForDatabase(error) && !isKnown) this.#from.set(requestId, attempt)
      throw error
    }
  }

  /** Call it when the attempt was forgiven, or ended otherwise. */
  forget(requestId: string): void {
    this.#from.delete(requestId)
  }
}
