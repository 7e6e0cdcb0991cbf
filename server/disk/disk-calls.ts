// Calls of one file system that may stop answering, such as one of another machine. A call that does not
// return can't be ended, and occupies one of the few threads that the runtime has for all files and names.
// So one call runs at a time; one that takes too long fails for its caller, and until it returns every other
// call fails at once. Never call `run` inside a call of `run`: the inner one would wait for the outer one.

import { statfs } from 'node:fs/promises'
import { type Clock, systemClock } from '../core/clock.ts'
import { diskNotAnswering } from '../core/storage-fault.ts'

/** A file system did not answer in time; what was called may still happen. */
export class DiskNotAnswering extends Error {
  readonly code = diskNotAnswering
  /** A folder on the file system. */
  readonly path: string

  constructor(path: string) {
    super(`The file system of ${path} does not answer.`)
    this.name = 'DiskNotAnswering'
    this.path = path
  }
}

/** A sync of a busy disk takes seconds. Whoever waits in the meantime, it is not the event loop. */
const limitMs = 30_000

/** Interval of the checks during long work. */
const lookMs = 5_000

/**
 * Consecutive checks without an answer, at least five minutes, after which work is given up that itself keeps
 * the disk busy: on a slow disk, one sync beside a copy of all telemetry takes longer than a call may.
 */
export const patientLooks = 60

export class DiskCalls {
  /** A folder on the file system; it may not exist yet. */
  readonly folder: string
  readonly #clock: Pick<Clock, 'sleep'>
  /** Resolves when the latest call has returned or is late. */
  #last: Promise<void> = Promise.resolve()
  #isLate = false
  /** Long work that was given up and has not ended. */
  #givenUp = 0

  /**
   * @param clock measures the limits. Default: the system clock, whatever clock the service uses: where a
   * simulated one jumps, every call would be late
   */
  constructor(folder: string, clock: Pick<Clock, 'sleep'> = systemClock) {
    this.folder = folder
    this.#clock = clock
  }

  /**
   * Runs a call that is short where the disk answers, after those that are running or waiting. Throws
   * {@link DiskNotAnswering} where it takes too long, or while an earlier one does.
   */
  async run<T>(call: () => Promise<T>): Promise<T> {
    const before = this.#last
    const { promise, resolve: done } = Promise.withResolvers<void>()
    this.#last = promise
    try {
      await before
      if (this.#isLate) throw new DiskNotAnswering(this.folder)
      return await this.#inTime(call())
    } finally {
      done()
    }
  }

  /**
   * Runs work that may take long, beside calls. Throws {@link DiskNotAnswering} when the disk has not
   * answered `silentLooks` checks in a row. The work is then given up: its signal aborts, it may still
   * continue, and other long work is refused until it ends.
   */
  async during<T>(work: (givenUp: AbortSignal) => Promise<T>, silentLooks = 1): Promise<T> {
    if (this.#isLate || this.#givenUp > 0) throw new DiskNotAnswering(this.folder)
    const [ended, givenUp] = [new AbortController(), new AbortController()]
    const working = work(givenUp.signal)
    try {
      return await Promise.race([working, this.#silence(silentLooks, ended.signal)])
    } catch (error) {
      if (error instanceof DiskNotAnswering) {
        this.#giveUp(working)
        givenUp.abort(error)
      }
      throw error
    } finally {
      ended.abort()
    }
  }

  /**
   * Resolves when the disk answers. Throws {@link DiskNotAnswering} after `silentLooks` checks in a row, and
   * the reason of `signal`.
   */
  async untilAnswering(silentLooks: number, signal: AbortSignal): Promise<void> {
    for (let silent = 1; ; silent++) {
      signal.throwIfAborted()
      try {
        return await this.#look()
      } catch (error) {
        if (silent >= silentLooks) throw error
      }
      await this.#clock.sleep(lookMs, signal)
    }
  }

  /** Throws {@link DiskNotAnswering} where long work would be refused, or the disk does not answer. */
  check(): Promise<void> {
    return this.during(() => this.#look())
  }

  async #inTime<T>(running: Promise<T>): Promise<T> {
    const ended = new AbortController()
    const late = this.#clock.sleep(limitMs, ended.signal).then(() => {
      throw new DiskNotAnswering(this.folder)
    })
    try {
      return await Promise.race([running, late])
    } catch (error) {
      if (error instanceof DiskNotAnswering) {
        this.#isLate = true
        onceEnded(running, () => {
          this.#isLate = false
        })
      }
      throw error
    } finally {
      ended.abort()
    }
  }

  #giveUp(working: Promise<unknown>): void {
    this.#givenUp++
    onceEnded(working, () => {
      this.#givenUp--
    })
  }

  /** Rejects when the disk does not answer, or when the signal has aborted. */
  async #silence(silentLooks: number, ended: AbortSignal): Promise<never> {
    for (;;) {
      await this.#clock.sleep(lookMs, ended)
      await this.untilAnswering(silentLooks, ended)
    }
  }

  /** Any answer will do, such as that the folder doesn't exist. */
  async #look(): Promise<void> {
    await this.run(() => statfs(this.folder)).catch((error: unknown) => {
      if (error instanceof DiskNotAnswering) throw error
    })
  }
}

function onceEnded(running: Promise<unknown>, then: () => void): void {
  running.then(then, then)
}
