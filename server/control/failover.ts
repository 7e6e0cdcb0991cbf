// Whether another server has taken over the database of a control plane. It may lack the last commits of the
// one before it, and then what this process has acknowledged and remembers is not true of it. So a
// connection to it is never used, and the process has to start again: a start compares the database with the
// telemetry and the journal, and erases again what the database has forgotten.

/** Of one handle. A database in a file is not taken over. */
export class Failover {
  readonly #happened = Promise.withResolvers<void>()
  #history: string | null = null

  /** Resolves when a connection has reached another server; pending until then. */
  get happened(): Promise<void> {
    return this.#happened.promise
  }

  /**
   * Takes note of the history that the server of a new connection writes, by a name that changes with each
   * takeover; null where it can't be known. Returns whether it is that of the connections before.
   */
  isSame(history: string | null): boolean {
    this.#history ??= history
    if (history === null || history === this.#history) return true
    this.#happened.resolve()
    return false
  }
}
