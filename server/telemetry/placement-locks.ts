// The port of the locks of placements. Each time a lock is taken it has a fencing token, which grows, and a
// signal that reports its loss: code must check the signal before it does what can't be undone. Invariant:
// work on a placement never overlaps with other work under a lock of the same kind, as long as nobody acts
// after the loss of a lock.

/** The parameter of work that runs under a lock. */
export interface PlacementLock {
  /** Higher than the token of every earlier lock on one of the placements. */
  readonly token: number
  /** Aborts when the lock is lost, with the reason, and when the work has ended. */
  readonly signal: AbortSignal
}

export interface PlacementLocks {
  /**
   * Runs `work` while nobody else has one of the placements. Callers get a placement in the order in which
   * they asked for it. `right` aborts when the caller loses the right to work, such as the lease of its loop:
   * a lock in use is then lost, and one that is waited for is not taken. Throws the reason of `right` where
   * it aborted before the lock was taken, otherwise the error of `work`.
   */
  exclusively<T>(
    placements: readonly number[],
    work: (lock: PlacementLock) => Promise<T>,
    right?: AbortSignal,
  ): Promise<T>
  /** Whether work on the placement is in progress; a caller with other work to do need not wait for it. */
  isTaken(placement: number): boolean
}

/** The locks of the service, by what they exclude. Code that takes both takes `attempts` first. */
export interface ErasureLocks {
  /** A commit, a step of an erasure, and the placing of a hold, each alone in its placement. */
  readonly writes: PlacementLocks
  /** One attempt of an erasure in a placement at a time, and none while a backup is copied. */
  readonly attempts: PlacementLocks
}

/**
 * Locks in the memory of one process. A lock ends with its process, so there is nothing to renew, and it is
 * lost only with the right to it. The next caller gets the placement when the work before has ended, also
 * after a loss.
 */
export class MemoryPlacementLocks implements PlacementLocks {
  readonly #last = new Map<number, Promise<void>>()
  readonly #taken = new Set<number>()
  #tokens = 0

  exclusively<T>(
    placements: readonly number[],
    work: (lock: PlacementLock) => Promise<T>,
    right?: AbortSignal,
  ): Promise<T> {
    const before = placements.map((placement) => this.#last.get(placement))
    const running = Promise.all(before).then(() => this.#run(placements, work, right))
    const settled = running.then(
      () => undefined,
      () => undefined,
    )
    for (const placement of placements) this.#last.set(placement, settled)
    return running
  }

  isTaken(placement: number): boolean {
    return this.#taken.has(placement)
  }

  async #run<T>(
    placements: readonly number[],
    work: (lock: PlacementLock) => Promise<T>,
    right: AbortSignal | undefined,
  ): Promise<T> {
    right?.throwIfAborted()
    const ended = new AbortController()
    const signal = right === undefined ? ended.signal : AbortSignal.any([ended.signal, right])
    for (const placement of placements) this.#taken.add(placement)
    try {
      return await work({ token: ++this.#tokens, signal })
    } finally {
      for (const placement of placements) this.#taken.delete(placement)
      ended.abort(workEnded)
    }
  }
}

/** Created once: a commit takes a lock, and a stack for each would cost more than the lock. */
const workEnded = new Error('The work under this lock has ended.')

export function memoryLocks(): ErasureLocks {
  return { writes: new MemoryPlacementLocks(), attempts: new MemoryPlacementLocks() }
}
