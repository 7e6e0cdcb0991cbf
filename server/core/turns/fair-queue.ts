// A queue of work that is done one piece at a time, by owner, such as an organisation: the next piece is
// always of the owner that was served least. Start-time fair queueing (Goyal, Vin and Cheng, "Start-time Fair
// Queuing", SIGCOMM 1996) with equal weights. However much one owner has waiting, a piece of another owner
// waits for at most one piece of each of the others.

interface Lane<T> {
  readonly waiting: { readonly cost: number; readonly item: T }[]
  /**
   * Virtual time at which its first piece starts: what an owner that always waited has been served until
   * then.
   */
  start: number
}

export class FairQueue<T> {
  /** Owners that wait, and those that were served more than the virtual time. */
  readonly #lanes = new Map<string, Lane<T>>()
  #waiting = 0
  #virtual = 0

  get waiting(): number {
    return this.#waiting
  }

  push(owner: string, cost: number, item: T): void {
    this.#laneOf(owner).waiting.push({ cost, item })
    this.#waiting++
  }

  /** Counts a cost that was not known when the piece was pushed. */
  addCost(owner: string, cost: number): void {
    this.#laneOf(owner).start += cost
  }

  /**
   * Removes and returns the next piece; undefined where nothing waits.
   *
   * @param isHeld whether pieces of the owner must wait
   */
  shift(
    isHeld: (owner: string) => boolean = () => false,
  ): { readonly item: T; readonly owner: string } | undefined {
    let next: Lane<T> | undefined
    let nextOwner = ''
    for (const [owner, lane] of this.#lanes) {
      if (lane.waiting.length === 0) {
        if (lane.start <= this.#virtual) this.#lanes.delete(owner)
      } else if (lane.start < (next?.start ?? Number.POSITIVE_INFINITY) && !isHeld(owner)) {
        next = lane
        nextOwner = owner
      }
    }
    const first = next?.waiting.shift()
    if (next === undefined || first === undefined) return undefined
    this.#waiting--
    this.#virtual = next.start
    next.start += first.cost
    return { item: first.item, owner: nextOwner }
  }

  /** Whether a piece of an owner waits that is not held. */
  hasNext(isHeld: (owner: string) => boolean): boolean {
    return this.#lanes.entries().some(([owner, lane]) => lane.waiting.length > 0 && !isHeld(owner))
  }

  /**
   * Forgets what owners were served. Call it where nothing waits, so that no owner has to be compared with
   * another.
   */
  forget(): void {
    this.#lanes.clear()
    this.#virtual = 0
  }

  #laneOf(owner: string): Lane<T> {
    const known = this.#lanes.get(owner)
    const lane = known ?? { waiting: [], start: this.#virtual }
    // An owner gains nothing by being idle.
    if (lane.waiting.length === 0) lane.start = Math.max(lane.start, this.#virtual)
    if (known === undefined) this.#lanes.set(owner, lane)
    return lane
  }
}
