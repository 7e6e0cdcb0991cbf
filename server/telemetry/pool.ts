// Members that do one thing at a time each, and those who wait for one. Whoever came first is served first,
// by any member that is free.

export class Pool<Member> {
  readonly #free: Member[]
  readonly #waiting: ((member: Member) => void)[] = []

  constructor(members: readonly Member[]) {
    this.#free = [...members]
  }

  /** Lends a member until the work has settled, however it does. */
  async lend<T>(work: (member: Member) => Promise<T>): Promise<T> {
    const member = this.#free.pop() ?? (await new Promise<Member>((resolve) => this.#waiting.push(resolve)))
    try {
      return await work(member)
    } finally {
      const next = this.#waiting.shift()
      if (next === undefined) this.#free.push(member)
      else next(member)
    }
  }
}
