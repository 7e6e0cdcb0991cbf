// Whether the process uses most of the cores of its machine, so that work of one owner makes that of all
// others slower. Only what this process uses counts: what other programs use can't be limited here.

import { availableParallelism } from 'node:os'
import { elapsedMs } from '../clock.ts'

interface CoreUseOptions {
  /** A clock that never goes back, milliseconds. */
  readonly nowMs: () => number
  /** CPU time that the process has used on all its threads, milliseconds. */
  readonly cpuMs: () => number
  readonly cores: number
}

/**
 * Returns how many threads may work all the time so that one core stays free, but `most` at most and at
 * least one.
 */
export function coresButOne(most: number, cores = availableParallelism()): number {
  return Math.min(most, Math.max(1, cores - 1))
}

/** The share of the cores above which they count as short. */
const shortShare = 0.7

/** The pause of one owner for each millisecond of its work, while cores are short, milliseconds. */
export const shortPausePerMs = 3

/** The use of the cores is measured over at least this time, milliseconds. */
const measuredMs = 200

export class CoreUse {
  readonly #options: CoreUseOptions
  #measured: { readonly atMs: number; readonly cpuMs: number }
  #isShort = false

  constructor(options: CoreUseOptions) {
    this.#options = options
    this.#measured = { atMs: options.nowMs(), cpuMs: options.cpuMs() }
  }

  /** Measures this process. */
  static ofProcess(): CoreUse {
    const cpuMs = () => {
      const { system, user } = process.cpuUsage()
      return (system + user) / 1000
    }
    return new CoreUse({ nowMs: elapsedMs, cpuMs, cores: availableParallelism() })
  }

  /** Whether the process uses most of its cores. */
  areShort(): boolean {
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
}
