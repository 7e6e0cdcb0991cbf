// Look-ups of many callers at once, in few statements: while one look-up runs, the keys that are asked for
// wait, and the next one looks all of them up. A look-up begins after everybody who gets its result has
// asked, so nobody gets a result that is older than the question.

import { workForAll } from './work-owner.ts'

/** Keys of one look-up at most. */
const keysMax = 500

export class BatchedLookUps<V> {
  readonly #lookUp: (keys: readonly string[]) => Promise<ReadonlyMap<string, V>>
  readonly #waiting = new Map<string, PromiseWithResolvers<V | undefined>>()
  #isRunning = false

  /** `lookUp` returns the values of the keys; it leaves out those that have none. */
  constructor(lookUp: (keys: readonly string[]) => Promise<ReadonlyMap<string, V>>) {
    this.#lookUp = lookUp
  }

  /** Returns the value of a key; undefined where it has none. Throws what the look-up throws. */
  get(key: string): Promise<V | undefined> {
    let asked = this.#waiting.get(key)
    if (asked === undefined) {
      asked = Promise.withResolvers()
      this.#waiting.set(key, asked)
    }
    if (!this.#isRunning) void workForAll(() => this.#run())
    return asked.promise
  }

  async #run(): Promise<void> {
    this.#isRunning = true
    while (this.#waiting.size > 0) {
      const batch = [...this.#waiting].slice(0, keysMax)
      for (const [key] of batch) this.#waiting.delete(key)
      try {
        const found = await this.#lookUp(batch.map(([key]) => key))
        for (const [key, { resolve }] of batch) resolve(found.get(key))
      } catch (error) {
        for (const [, { reject }] of batch) reject(error)
      }
    }
    this.#isRunning = false
  }
}
