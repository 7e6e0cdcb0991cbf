// Work that is done one piece at a time, queued by holder, such as an organisation: the next piece is
// always of the holder that was given the least. Start-time fair queueing (Goyal, Vin and Cheng,
// "Start-time Fair Queuing", SIGCOMM
// 1996) with equal weights. However much one holder has waiting, a piece of another one waits for
//       at most one piece of
// each of the others.

interface Lane<T> {
  readonly waiting: { readonly cost: number; readonly item: T }[]
  /**
   * Virtual time at which its first one starts: what each of those who always waited has been given until
   * then.
   */
  start: number
}

export class FairQueue<T> {
  /** Of holders that wait, and of those that were given more than the virtual time says. */
  readonly #lanes = new Map<string, Lane<T>>()
  #waiting = 0
  #virtual = 0

  get waiting(): number {
    return this.#waiting
  }

  push(holder: string, cost: number, item: T): void {
    this.#laneOf(holder).waiting.push({ cost, item })
    this.#waiting++
  }

  /** Counts what the holder was given without waiting. */
  charge(holder: string, cost: number): void {
    const lane = this.#laneOf(holder)
    this.#virtual = lane.start
    lane.start += cost
  }

  /** Counts cost that was not known when the piece was pushed. */
  addCost(holder: string, cost: number): void {
    this.#laneOf(holder).start += cost
  }

  /** Takes out what is next; undefined where nothing waits. */
  shift(): { readonly cost: number; readonly item: T; readonly holder: string } | undefined {
    let next: Lane<T> | undefined
    let owner = ''
    for (const [holder, lane] of this.#lanes) {
      if (lane.waiting.length === 0) {
        if (lane.start <= this.#virtual) this.#lanes.delete(holder)
      } else if (lane.start < (next?.start ?? Number.POSITIVE_INFINITY)) {
        next = lane
        owner = holder
      }
    }
    const first = next?.waiting.shift()
    if (next === undefined || first === undefined) return undefined
    this.#waiting--
    this.#virtual = next.start
    next.start += first.cost
    return { ...first, holder: owner }
  }

  /**
   * Who was given what is forgotten. To be called where nothing waits, so that nobody has to
   * be held against another.
   */
  forget(): void {
    this.#lanes.clear()
    this.#virtual = 0
  }

  #laneOf(holder: string): Lane<T> {
    const known = this.#lanes.get(holder)
    const lane = known ?? { waiting: [], start: this.#virtual }
    // Nobody saves turns for later by not taking any.
    if (lane.waiting.length === 0) lane.start = Math.max(lane.start, this.#virtual)
    if (known === undefined) this.#lanes.set(holder, lane)
    return lane
  }
}
