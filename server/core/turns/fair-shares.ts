// A limited resource, such as memory, that several owners share by max-min fairness. While some of it is
// free, everybody gets what they request. When nothing is free, the owner with the most loses shares: a
// request is refused where no owner has more than the requester would have; otherwise the youngest shares of
// those with more are cut until it fits. So a single owner may have everything, n owners that all want as
// much as possible have an n-th each, and an owner below that is never refused. Max-min fairness: Bertsekas
// and Gallager, "Data Networks", section 6.5.2.

interface Owner {
  readonly name: string
  units: number
  /** Oldest first. */
  readonly shares: Set<Share>
}

export class FairShares {
  readonly #limit: number
  readonly #owners = new Map<string, Owner>()
  #reserved = 0

  /** @param limit units, such as bytes, of all owners together */
  constructor(limit: number) {
    this.#limit = limit
  }

  /** Units of all owners. */
  get reserved(): number {
    return this.#reserved
  }

  reservedBy(name: string): number {
    return this.#owners.get(name)?.units ?? 0
  }

  /** Number of shares of the owner. */
  countOf(name: string): number {
    return this.#owners.get(name)?.shares.size ?? 0
  }

  /**
   * Opens an empty share; the caller must release it.
   *
   * @param onCut called when the share was cut for an owner with less; it is released by then. Must not
   * throw.
   */
  open(name: string, onCut: () => void): Share {
    const known = this.#owners.get(name)
    const owner = known ?? { name, units: 0, shares: new Set() }
    if (known === undefined) this.#owners.set(name, owner)
    const share: Share = new Share(onCut, {
      take: (units) => this.#take(owner, share, units),
      leave: () => this.#leave(owner, share),
    })
    owner.shares.add(share)
    return share
  }

  /** True where a new share of `units` units would be refused now. */
  refuses(name: string, units: number): boolean {
    const missing = this.#reserved + units - this.#limit
    return (
      missing > 0 &&
      this.#reserved > 0 &&
      this.#planCuts(name, this.reservedBy(name) + units, missing) === null
    )
  }

  #take(owner: Owner, share: Share, units: number): boolean {
    const missing = this.#reserved + units - this.#limit
    const isAlone = this.#reserved === share.units
    if (missing > 0 && units > 0 && !isAlone) {
      const cuts = this.#planCuts(owner.name, owner.units + units, missing)
      if (cuts === null) return false
      for (const other of cuts) other.cut()
    }
    owner.units += units
    this.#reserved += units
    return true
  }

  #leave(owner: Owner, share: Share): void {
    if (!owner.shares.delete(share)) return
    owner.units -= share.units
    this.#reserved -= share.units
    if (owner.shares.size === 0) this.#owners.delete(owner.name)
  }

  /**
   * Returns the shares to cut for the missing units; null where fairness does not allow that many.
   *
   * @param own the units that the requester would have
   */
  #planCuts(name: string, own: number, missing: number): readonly Share[] | null {
    const richer = [...this.#owners.values()]
      .filter((owner) => owner.name !== name && owner.units > own)
      .map(({ units, shares }) => ({ units, shares: [...shares].filter((share) => share.canBeCut) }))
    const cuts: Share[] = []
    let left = missing
    while (left > 0) {
      let richest: (typeof richer)[number] | undefined
      for (const owner of richer) {
        const isRicher = owner.units > (richest?.units ?? own)
        if (isRicher && owner.shares.length > 0) richest = owner
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
   * Returns false where nothing is free; the share then keeps its size. Does nothing for a released share.
   */
  grow(units: number): boolean {
    if (this.#isReleased) return true
    if (!this.#door.take(units)) return false
    this.#units += units
    return true
  }

  /** From here on the share can't be cut. */
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
