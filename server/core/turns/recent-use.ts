// Who has used most of something in the last seconds, such as the event loop: a flood is noticed within
// seconds, and forgotten as soon.

/** Amounts are counted over the last one to two windows, milliseconds. */
const usualWindowMs = 2_000

/** Above this share of all use an owner has most. Of two that use the same none has. */
const shareMax = 0.6

/** So that the first amounts after a rest are no high rate, milliseconds. */
const leastRateMs = 1_000

/** Amounts of one window, in any unit. */
interface Window {
  readonly sinceMs: number
  readonly byOwner: Map<string, number>
  total: number
}

export class RecentUse {
  readonly #nowMs: () => number
  readonly #windowMs: number
  #current: Window
  #previous: Window

  /** @param nowMs a clock that never goes back, milliseconds */
  constructor(nowMs: () => number, windowMs: number = usualWindowMs) {
    this.#nowMs = nowMs
    this.#windowMs = windowMs
    this.#current = newWindow(nowMs())
    this.#previous = newWindow(this.#current.sinceMs)
  }

  count(owner: string, amount: number): void {
    this.#roll()
    const { byOwner } = this.#current
    byOwner.set(owner, (byOwner.get(owner) ?? 0) + amount)
    this.#current.total += amount
  }

  amountOf(owner: string): number {
    this.#roll()
    const { byOwner: earlier } = this.#previous
    return (earlier.get(owner) ?? 0) + (this.#current.byOwner.get(owner) ?? 0)
  }

  /** Who has used some of it. */
  owners(): ReadonlySet<string> {
    this.#roll()
    return new Set([...this.#previous.byOwner.keys(), ...this.#current.byOwner.keys()])
  }

  /**
   * Returns how much each owner has used in a millisecond, on average since the windows began, and at least
   * over {@link leastRateMs}.
   */
  rates(): ReadonlyMap<string, number> {
    return new Map([...this.owners()].map((owner) => [owner, this.rateOf(owner)]))
  }

  /** The same of one owner. */
  rateOf(owner: string): number {
    const amount = this.amountOf(owner)
    return amount / Math.max(this.#nowMs() - this.#previous.sinceMs, leastRateMs)
  }

  /** Also true of an owner that is alone. */
  hasMost(owner: string): boolean {
    return this.amountOf(owner) > (this.#previous.total + this.#current.total) * shareMax
  }

  #roll(): void {
    const nowMs = this.#nowMs()
    const ageMs = nowMs - this.#current.sinceMs
    if (ageMs < this.#windowMs) return
    this.#previous = ageMs < 2 * this.#windowMs ? this.#current : newWindow(nowMs)
    this.#current = newWindow(nowMs)
  }
}

function newWindow(sinceMs: number): Window {
  return { sinceMs, byOwner: new Map(), total: 0 }
}
