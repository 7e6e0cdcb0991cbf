// What waits for something that one does at a time, by organisation: next is always the one that has been given the
// least. Start-time fair queueing (Goyal, Vin and Cheng, "Start-time Fair Queuing", SIGCOMM 1996) with equal weights. So
// however much one organisation has waiting, what another one has waits for at most one of each of the others.

interface Lane<T> {
  readonly waiting: { readonly cost: number; readonly item: T }[]
  /** Virtual time at which its first one starts: what each of those who always waited has been given until then. */
  start: number
}

export class FairQueue<T> {
  /** Of organisations that wait, and of those that were given more than the virtual time says. */
  readonly #lanes = new Map<string, Lane<T>>()
  #waiting = 0
  #virtual = 0

  get waiting(): number {
    return this.#waiting
  }

  push(tenantId: string, cost: number, item: T): void {
    this.#laneOf(tenantId).waiting.push({ cost, item })
    this.#waiting++
  }

  /** The organisation was given something without waiting. */
  charge(tenantId: string, cost: number): void {
    const lane = this.#laneOf(tenantId)
    this.#virtual = lane.start
    lane.start += cost
  }

  /** Takes out what is next; undefined where nothing waits. */
  shift(): { readonly cost: number; readonly item: T } | undefined {
    let next: Lane<T> | undefined
    for (const lane of this.#lanes.values()) {
      if (lane.waiting.length > 0 && lane.start < (next?.start ?? Number.POSITIVE_INFINITY)) next = lane
    }
    const first = next?.waiting.shift()
    if (next === undefined || first === undefined) return undefined
    this.#waiting--
    this.#virtual = next.start
    next.start += first.cost
    return first
  }

  /** Who was given what is forgotten. To be called where nothing waits, so that nobody has to be held against another. */
  forget(): void {
    this.#lanes.clear()
    this.#virtual = 0
  }

  #laneOf(tenantId: string): Lane<T> {
    const known = this.#lanes.get(tenantId)
    const lane = known ?? { waiting: [], start: this.#virtual }
    // Nobody saves turns for later by not taking any.
    if (lane.waiting.length === 0) lane.start = Math.max(lane.start, this.#virtual)
    if (known === undefined) this.#lanes.set(tenantId, lane)
    return lane
  }
}
