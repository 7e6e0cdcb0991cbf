// Members that do one thing at a time each, and callers that wait for one. Work belongs to groups, such as
// the inserts of one commit: of those that wait, the group with the fewest members is next, and of equal ones
// the work that came first. One group never has all members, so that the next group finds one.

interface Waiting<Member> {
  readonly group: object
  readonly begin: (member: Member) => void
}

export class Pool<Member> {
  readonly #free: Member[]
  readonly #atOnceByGroup: number
  readonly #waiting: Waiting<Member>[] = []
  readonly #lent = new Map<object, number>()

  constructor(members: readonly Member[]) {
    this.#free = [...members]
    this.#atOnceByGroup = Math.max(1, members.length - 1)
  }

  /**
   * Lends a member until the work has settled.
   *
   * @param group what the work belongs to, compared by identity; absent where it is alone
   */
  async lend<T>(work: (member: Member) => Promise<T>, group: object = {}): Promise<T> {
    const member = await new Promise<Member>((begin) => {
      this.#waiting.push({ group, begin })
      this.#dispatch()
    })
    try {
      return await work(member)
    } finally {
      this.#free.push(member)
      const lent = this.#lentTo(group) - 1
      if (lent === 0) this.#lent.delete(group)
      else this.#lent.set(group, lent)
      this.#dispatch()
    }
  }

  #dispatch(): void {
    for (let next = this.#next(); next !== undefined; next = this.#next()) {
      const member = this.#free.pop() as Member
      this.#waiting.splice(this.#waiting.indexOf(next), 1)
      this.#lent.set(next.group, this.#lentTo(next.group) + 1)
      next.begin(member)
    }
  }

  #next(): Waiting<Member> | undefined {
    if (this.#free.length === 0) return undefined
    let next: Waiting<Member> | undefined
    let fewest = this.#atOnceByGroup
    for (const waiting of this.#waiting) {
      const lent = this.#lentTo(waiting.group)
      if (lent >= fewest) continue
      next = waiting
      fewest = lent
    }
    return next
  }

  #lentTo(group: object): number {
    return this.#lent.get(group) ?? 0
  }
}
