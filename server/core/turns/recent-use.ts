// Who has used most of something in the last seconds, such as the event loop: a flood is noticed within
// seconds, and forgotten as soon.

/** Amounts are compared over the last one to two of these, milliseconds. */
const windowMs = 2_000

/** Above this share of all use an owner has most. Of two that use the same none has. */
const shareMax = 0.6

/** Amounts of one window, in any unit. */
interface Window {
  readonly sinceMs: number
  readonly byOwner: Map<string, number>
  total: number
}

export class RecentUse {
  readonly #nowMs: () => number
  #current: Window
  #previous: Window

  /** @param nowMs a clock that never goes back, milliseconds */
  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
    this.#current = newWindow(nowMs())
    this.#previous = newWindow(this.#current.sinceMs)
  }

  count(owner: string, amount: number): void {
    this.#roll()
    const { byOwner } = this.#current
    byOwner.set(owner, (byOwner.get(owner) ?? 0) + amount)
    this.#current.total += amount
  }

  /** Also true of an owner that is alone. */
  hasMost(owner: string): boolean {
    this.#roll()
    const windows = [this.#previous, this.#current]
    const own = windows.reduce((sum, { byOwner }) => sum + (byOwner.get(owner) ?? 0), 0)
    return own > windows.reduce((sum, { total }) => sum + total, 0) * shareMax
  }

  #roll(): void {
    const nowMs = this.#nowMs()
    const ageMs = nowMs - this.#current.sinceMs
    if (ageMs < windowMs) return
    this.#previous = ageMs < 2 * windowMs ? this.#current : newWindow(nowMs)
    this.#current = newWindow(nowMs)
  }
}

function newWindow(sinceMs: number): Window {
  return { sinceMs, byOwner: new Map(), total: 0 }
}
