// A fixed number of things of which each serves one user at a time: who comes when all are taken waits, and is served in
// the order of coming.

export class Lanes<T> {
  readonly all: readonly T[]
  readonly #free: T[]
  readonly #waiting: ((lane: T) => void)[] = []

  /** @param all at least one */
  constructor(all: readonly T[]) {
    this.all = all
    this.#free = [...all]
  }

  /** Resolves or rejects as `work` does, which has the lane until then. */
  async use<R>(work: (lane: T) => Promise<R>): Promise<R> {
    const lane = this.#free.pop() ?? (await new Promise<T>((resolve) => this.#waiting.push(resolve)))
    try {
      return await work(lane)
    } finally {
      const next = this.#waiting.shift()
      if (next === undefined) this.#free.push(lane)
      else next(lane)
    }
  }
}
