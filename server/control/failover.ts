// Detects that another server has taken over the database of a control plane. It may lack the last commits of
// the former server, which this process has acknowledged and remembers. So a connection to it is never used,
// and the process has to start again: a start compares the database with the telemetry and the journal, and
// carries out again the erasures that the database lacks.

/** Of one handle. A database in a file is not taken over. */
export class Failover {
  readonly #happened = Promise.withResolvers<void>()
  #history: string | null = null

  /** Resolves when a connection has reached another server; pending until then. */
  get happened(): Promise<void> {
    return this.#happened.promise
  }

  /**
   * Records the history that the server of a new connection writes, by a name that changes with each
   * takeover; null where it is unknown. Returns whether it is that of the earlier connections.
   */
  isSame(history: string | null): boolean {
    this.#history ??= history
    if (history === null || history === this.#history) return true
    this.#happened.resolve()
    return false
  }
}
