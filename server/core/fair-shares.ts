// A bounded resource, such as memory, that several holders share by max-min fairness. While there is room
// everybody gets what they ask for. When there is none, whoever holds the most gives way: a holder that asks
// is refused where nobody holds more than it would, and otherwise the youngest shares of those that hold more
// are cut until it fits. So one holder alone may have everything, n that all want as much as they can get
// have an n-th each, and a holder that stays below that is never refused. Max-min fairness: Bertsekas and
// Gallager, "Data Networks", section 6.5.2.

interface Holder {
  readonly name: string
  units: number
  /** Oldest first. */
  readonly shares: Set<Share>
}

export class FairShares {
  readonly #limit: number
  readonly #holders = new Map<string, Holder>()
  #reserved = 0

  /** @param limit units, such as bytes, of all holders together */
  constructor(limit: number) {
    this.#limit = limit
  }

  /** Of all holders, units. */
  get reserved(): number {
    return this.#reserved
  }

  reservedBy(name: string): number {
    return this.#holders.get(name)?.units ?? 0
  }

  /** How many shares the holder has. */
  countOf(name: string): number {
    return this.#holders.get(name)?.shares.size ?? 0
  }

  /**
   * An empty share, which is released by whoever opens it.
   *
   * @param onCut called when the share is taken away for a holder with less, after it was
   *   released. Must not throw.
   */
  open(name: string, onCut: () => void): Share {
    const known = this.#holders.get(name)
    const holder = known ?? { name, units: 0, shares: new Set() }
    if (known === undefined) this.#holders.set(name, holder)
    const share: Share = new Share(onCut, {
      take: (units) => this.#take(holder, share, units),
      leave: () => this.#leave(holder, share),
    })
    holder.shares.add(share)
    return share
  }

  /** True where a new share of so many units would be refused now. */
  refuses(name: string, units: number): boolean {
    const missing = this.#reserved + units - this.#limit
    return (
      missing > 0 &&
      this.#reserved > 0 &&
      this.#planCuts(name, this.reservedBy(name) + units, missing) === null
    )
  }

  #take(holder: Holder, share: Share, units: number): boolean {
    const missing = this.#reserved + units - this.#limit
    const isAlone = this.#reserved === share.units
    if (missing > 0 && units > 0 && !isAlone) {
      const cuts = this.#planCuts(holder.name, holder.units + units, missing)
      if (cuts === null) return false
      for (const other of cuts) other.cut()
    }
    holder.units += units
    this.#reserved += units
    return true
  }

  #leave(holder: Holder, share: Share): void {
    if (!holder.shares.delete(share)) return
    holder.units -= share.units
    this.#reserved -= share.units
    if (holder.shares.size === 0) this.#holders.delete(holder.name)
  }

  /**
   * The shares whose cut brings back what is missing; null where that would take more than fairness allows.
   *
   * @param own what the one that asks would hold
   */
  #planCuts(name: string, own: number, missing: number): readonly Share[] | null {
    const richer = [...this.#holders.values()]
      .filter((holder) => holder.name !== name && holder.units > own)
      .map(({ units, shares }) => ({ units, shares: [...shares].filter((share) => share.canBeCut) }))
    const cuts: Share[] = []
    let left = missing
    while (left > 0) {
      let richest: (typeof richer)[number] | undefined
      for (const holder of richer) {
        const isRicher = holder.units > (richest?.units ?? own)
        if (isRicher && holder.shares.length > 0) richest = holder
      }
      const share = richest?.shares.pop()
      if (richest === undefined || share === undefined) return null
      richest.units -= share.units
      left -= share.units
      cuts.push(share)
    }
    return cuts
  }
}

export class Share {
  readonly #onCut: () => void
  readonly #door: { readonly take: (units: number) => boolean; readonly leave: () => void }
  #units = 0
  #isKept = false
  #isReleased = false

  constructor(
    onCut: () => void,
    door: { readonly take: (units: number) => boolean; readonly leave: () => void },
  ) {
    this.#onCut = onCut
    this.#door = door
  }

  get units(): number {
    return this.#units
  }

  get canBeCut(): boolean {
    return !this.#isKept
  }

  /**
   * False where there is no room for it; the share is then as large as before. Of a share
   * that is released, nothing.
   */
  grow(units: number): boolean {
    if (this.#isReleased) return true
    if (!this.#door.take(units)) return false
    this.#units += units
    return true
  }

  /** From now on nobody takes it away. */
  keep(): void {
    this.#isKept = true
  }

  /** Idempotent. */
  release(): void {
    if (this.#isReleased) return
    this.#isReleased = true
    this.#door.leave()
  }

  cut(): void {
    this.release()
    this.#onCut()
  }
}
