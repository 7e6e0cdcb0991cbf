// A rate with bursts, as a bucket that fills at the rate and is emptied by what is taken. An amount larger
// than the bucket is accepted when the bucket is full and leaves a debt, because refusing it for ever would
// lose it; over any time longer than the debt the rate is exact.

export class TokenBucket {
  readonly perSecond: number
  readonly capacity: number
  #tokens: number
  #atMs: number

  /** The bucket is full at the start. */
  constructor(perSecond: number, capacity: number, nowMs: number) {
    this.perSecond = perSecond
    this.capacity = capacity
    this.#tokens = capacity
    this.#atMs = nowMs
  }

  /**
   * Takes tokens and returns 0, or takes nothing and returns the whole seconds after which the same amount
   * succeeds if nothing else is taken meanwhile. A clock that goes back neither fills nor empties it.
   */
  take(tokens: number, nowMs: number): number {
    this.#fill(nowMs)
    const needed = Math.min(tokens, this.capacity)
    if (tokens > 0 && this.#tokens < needed) return Math.ceil((needed - this.#tokens) / this.perSecond)
    this.#tokens -= tokens
    return 0
  }

  giveBack(tokens: number): void {
    this.#tokens = Math.min(this.capacity, this.#tokens + tokens)
  }

  #fill(nowMs: number): void {
    const elapsedMs = Math.max(0, nowMs - this.#atMs)
    this.#atMs = nowMs
    this.giveBack((elapsedMs / 1000) * this.perSecond)
  }
}
