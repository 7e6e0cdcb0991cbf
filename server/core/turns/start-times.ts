// Start-time fair queueing (Goyal, Vin and Cheng, 1996): whoever has used the least is next. Everybody has a
// clock that advances by what they used, divided by their weight. The common clock is the start of what began
// last, so who was idle gains nothing for that time.

/** One of those that share. `clock` is in units of cost; a new one has that of {@link StartTimes.now}. */
export interface Sharer {
  clock: number
}

export class StartTimes {
  #now = 0

  /** The common clock, in units of cost. */
  get now(): number {
    return this.#now
  }

  /** When the next work of this one starts by the common clock: the lowest is next. */
  startOf({ clock }: Sharer): number {
    return Math.max(this.#now, clock)
  }

  /** Work of this one begins, which is expected to cost this much. */
  begin(one: Sharer, cost: number, weight: number): void {
    this.#now = this.startOf(one)
    one.clock = this.#now + cost / weight
  }

  /** Work has cost this much more than expected when it began, or less where negative. */
  correct(one: Sharer, more: number, weight: number): void {
    one.clock += more / weight
  }
}
