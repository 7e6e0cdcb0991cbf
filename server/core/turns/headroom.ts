// Keeps a part of the cores free for others. The event loop has a higher priority than the threads that run
// statements, so one owner whose work fills it, or the thread that decodes large bodies, also takes the cores
// from everybody's statements. So while the process uses most of its cores, an owner that has used most of
// the loop and of that thread lately, and much of them, pauses after each piece of its work, if an
// organisation other than itself is present. As soon as enough is free it works without pauses again: where
// there are free cores nothing is limited.

import { elapsedMs, systemClock } from '../clock.ts'
import { CoreUse, shortPausePerMs } from './core-use.ts'
import { isOrganisation } from './loop-owner.ts'
import { Presence } from './presence.ts'
import { RecentUse } from './recent-use.ts'

interface HeadroomOptions {
  /** A clock that never goes back, milliseconds. */
  readonly nowMs: () => number
  readonly cores: CoreUse
  readonly sleep: (ms: number) => Promise<void>
}

const longestPauseMs = 500

/**
 * An owner that works for less than this share of the time fills nothing, also where others work less: their
 * statements and merges may be what keeps the cores busy. One that is held works a quarter of the time.
 */
const leastShare = 0.2

export class Headroom {
  readonly #options: HeadroomOptions
  readonly #use: RecentUse
  /** A health check or a scrape without a token is no reason to limit anybody. */
  readonly #organisations: Presence
  /** Ends of pauses by owner. */
  readonly #pausedUntilMs = new Map<string, number>()

  constructor(options: HeadroomOptions) {
    this.#options = options
    this.#use = new RecentUse(options.nowMs)
    this.#organisations = new Presence(options.nowMs)
  }

  /** Watches this process. */
  static ofProcess(): Headroom {
    const sleep = (ms: number) => systemClock.sleep(ms)
    return new Headroom({ nowMs: elapsedMs, cores: CoreUse.ofProcess(), sleep })
  }

  /** Whether the process uses most of its cores. */
  areCoresShort(): boolean {
    return this.#options.cores.areShort()
  }

  /** Counts work of an owner, milliseconds. */
  used(owner: string, ms: number): void {
    this.#use.count(owner, ms)
    if (isOrganisation(owner)) this.#organisations.note(owner)
    if (!this.areCoresShort() || this.#organisations.isAlone(owner) || !this.#fillsLoop(owner)) return
    const nowMs = this.#options.nowMs()
    const fromMs = Math.max(nowMs, this.#pausedUntilMs.get(owner) ?? 0)
    this.#pausedUntilMs.set(owner, Math.min(fromMs + ms * shortPausePerMs, nowMs + longestPauseMs))
  }

  #fillsLoop(owner: string): boolean {
    return this.#use.hasMost(owner) && this.#use.rateOf(owner) >= leastShare
  }

  /** Whether the next work of the owner must wait. */
  holds(owner: string): boolean {
    const untilMs = this.#pausedUntilMs.get(owner)
    if (untilMs === undefined) return false
    if (untilMs > this.#options.nowMs()) return true
    this.#pausedUntilMs.delete(owner)
    return false
  }

  /** Resolves when the next pause ends; at once where there is none. */
  async untilNext(): Promise<void> {
    const nowMs = this.#options.nowMs()
    const untilMs = [...this.#pausedUntilMs.values()].filter((ms) => ms > nowMs)
    if (untilMs.length > 0) await this.#options.sleep(Math.min(...untilMs) - nowMs)
  }
}
