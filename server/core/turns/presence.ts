// Whether an owner is the only one that has asked for something lately. It keeps two owners, however many
// there are: the last one, and the last one that is not the same.

/** How long an owner counts as present, milliseconds. Exporters send more often than this. */
export const presentMs = 10_000

interface Sighting {
  readonly owner: string
  readonly atMs: number
}

export class Presence {
  readonly #nowMs: () => number
  #latest: Sighting | null = null
  #other: Sighting | null = null

  /** @param nowMs a clock that never goes back, milliseconds */
  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
  }

  /** The owner asks for something now. */
  note(owner: string): void {
    if (this.#latest !== null && this.#latest.owner !== owner) this.#other = this.#latest
    this.#latest = { owner, atMs: this.#nowMs() }
  }

  /** Whether no other owner is present. */
  isAlone(owner: string): boolean {
    const another = this.#latest?.owner === owner ? this.#other : this.#latest
    return another === null || this.#nowMs() - another.atMs >= presentMs
  }
}
