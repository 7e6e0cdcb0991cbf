// Look-ups whose results are remembered for a moment, so that what every request asks costs no statement in
// the steady state. A result is forgotten when its writer says so, when another process may have written, and
// at a short age in any case. Only values that exist are remembered, and not too many: keys that a client
// invents fill no memory.

import { BatchedLookUps } from './batched-look-ups.ts'

/**
 * How old a result may be, milliseconds. Only this limit applies where a write of another process can't be
 * noticed, so it is how long a token that was revoked there can still send.
 */
export const rememberedMs = 2_000

/** Some 5 MB of callers. Beyond it, those that were looked up first are looked up again. */
const rememberedMax = 10_000

interface RememberedOptions<V> {
  /** Returns the values of the keys; leaves out those that have none. */
  readonly lookUp: (keys: readonly string[]) => Promise<ReadonlyMap<string, V>>
  /** A clock that never goes back. */
  readonly elapsedMs: () => number
  /**
   * A number that changes when another process writes; null where only a look-up shows it. It must cost
   * almost nothing.
   */
  readonly outsideWrites: () => number | null
}

interface Known<V> {
  readonly value: V
  readonly askedMs: number
}

export class Remembered<V> {
  readonly #options: RememberedOptions<V>
  readonly #lookUps: BatchedLookUps<V>
  /** In the order in which they were looked up. */
  readonly #known = new Map<string, Known<V>>()
  #outside: number | null = null
  /** Counts what has been forgotten, so that a look-up that began before is not remembered. */
  #forgotten = 0

  constructor(options: RememberedOptions<V>) {
    this.#options = options
    this.#lookUps = new BatchedLookUps(options.lookUp)
  }

  /** Returns the value of a key; undefined where it has none. Throws what the look-up throws. */
  async get(key: string): Promise<V | undefined> {
    this.#noticeOutsideWrites()
    const askedMs = this.#options.elapsedMs()
    const known = this.#known.get(key)
    if (known !== undefined && askedMs - known.askedMs < rememberedMs) return known.value
    const forgotten = this.#forgotten
    const value = await this.#lookUps.get(key)
    if (forgotten === this.#forgotten) this.#remember(key, value, askedMs)
    return value
  }

  /** Looks the key up again when it is asked for next. Call it after the write, also where that fails. */
  forget(key: string): void {
    this.#forgotten++
    this.#known.delete(key)
  }

  /** As {@link forget}, for every key whose value it accepts. */
  forgetWhere(isStale: (value: V) => boolean): void {
    this.#forgotten++
    for (const [key, { value }] of this.#known) if (isStale(value)) this.#known.delete(key)
  }

  /** Number of keys that are remembered. */
  get size(): number {
    return this.#known.size
  }

  #noticeOutsideWrites(): void {
    const outside = this.#options.outsideWrites()
    if (outside === this.#outside) return
    this.#outside = outside
    this.#forgotten++
    this.#known.clear()
  }

  #remember(key: string, value: V | undefined, askedMs: number): void {
    this.#known.delete(key)
    if (value === undefined) return
    this.#known.set(key, { value, askedMs })
    if (this.#known.size <= rememberedMax) return
    const [oldest] = this.#known.keys()
    if (oldest !== undefined) this.#known.delete(oldest)
  }
}
