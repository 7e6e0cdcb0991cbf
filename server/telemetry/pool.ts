// Members that do one thing at a time each, and callers that wait for one. Callers are served in the order in
// which they came, by any free member.

export class Pool<Member> {
  readonly #free: Member[]
  readonly #waiting: ((member: Member) => void)[] = []

  constructor(members: readonly Member[]) {
    this.#free = [...members]
  }

  /** Lends a member until the work has settled. */
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
