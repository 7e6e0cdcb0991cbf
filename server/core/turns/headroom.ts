// Keeps a part of the cores free for others. The event loop has a higher priority than the threads that run
// statements, so one owner whose work fills it also takes the cores from everybody's statements. So while the
// process uses most of its cores, an owner that has used most of the loop lately pauses after each piece of
// its work, if an organisation other than itself is present. As soon as enough is free it works without
// pauses again: where there are free cores nothing is limited.

import { availableParallelism } from 'node:os'
import { elapsedMs, systemClock } from '../clock.ts'
import { isOrganisation } from './loop-owner.ts'
import { Presence } from './presence.ts'
import { RecentUse } from './recent-use.ts'

interface HeadroomOptions {
  /** A clock that never goes back, milliseconds. */
  readonly nowMs: () => number
  /** CPU time that the process has used on all its threads, milliseconds. */
  readonly cpuMs: () => number
  readonly cores: number
  readonly sleep: (ms: number) => Promise<void>
}

/** The share of the cores above which they count as short. */
const shortShare = 0.7

/** The use of the cores is measured over at least this time, milliseconds. */
const measuredMs = 200

/** A pause for each millisecond of work, milliseconds. */
const pausePerMs = 3

const longestPauseMs = 500

export class Headroom {
  readonly #options: HeadroomOptions
  readonly #use: RecentUse
  /** A health check or a scrape without a token is no reason to limit anybody. */
  readonly #organisations: Presence
  /** Ends of pauses by owner. */
  readonly #pausedUntilMs = new Map<string, number>()
  #measured: { readonly atMs: number; readonly cpuMs: number }
  #isShort = false

  constructor(options: HeadroomOptions) {
    this.#options = options
    this.#use = new RecentUse(options.nowMs)
    this.#organisations = new Presence(options.nowMs)
    this.#measured = { atMs: options.nowMs(), cpuMs: options.cpuMs() }
  }

  /** Watches this process. */
  static ofProcess(): Headroom {
    const cpuMs = () => {
      const { system, user } = process.cpuUsage()
      return (system + user) / 1000
    }
    const sleep = (ms: number) => systemClock.sleep(ms)
    return new Headroom({ nowMs: elapsedMs, cpuMs, cores: availableParallelism(), sleep })
  }

  /** Whether the process uses most of its cores. */
  areCoresShort(): boolean {
    const { cores, cpuMs, nowMs } = this.#options
    const atMs = nowMs()
    const passedMs = atMs - this.#measured.atMs
    if (passedMs >= measuredMs) {
      const usedMs = cpuMs()
      this.#isShort = usedMs - this.#measured.cpuMs > passedMs * cores * shortShare
      this.#measured = { atMs, cpuMs: usedMs }
    }
    return this.#isShort
  }

  /** Counts work of an owner on the event loop, milliseconds. */
  used(owner: string, ms: number): void {
    this.#use.count(owner, ms)
    if (isOrganisation(owner)) this.#organisations.note(owner)
    if (!this.areCoresShort() || this.#organisations.isAlone(owner) || !this.#use.hasMost(owner)) return
    const nowMs = this.#options.nowMs()
    const fromMs = Math.max(nowMs, this.#pausedUntilMs.get(owner) ?? 0)
    this.#pausedUntilMs.set(owner, Math.min(fromMs + ms * pausePerMs, nowMs + longestPauseMs))
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
