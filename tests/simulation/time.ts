// The true state of a simulated machine's clock and of what depends on it, without the service's code: how
// far it was set, whether it is in doubt, and which backups exist until when.

const dayMs = 86_400_000

/** A backup that is on the disk. */
interface Taken {
  readonly folder: string
  readonly expiresAtMs: number
  /** Erasures that were completed when it was taken: it has nothing of them. */
  readonly done: ReadonlySet<string>
}

/** What the control plane stores of the clock, and so also a backup. */
export interface ClockState {
  /** The total offset of the clock when it was last known to be right. */
  readonly rightAtMs: number
  readonly isInDoubt: boolean
}

/** The true state of the clock and of what depends on it, without the service's code. */
export class SimulatedTime {
  state: ClockState = { rightAtMs: 0, isInDoubt: false }
  /** The total offset of the clock since the beginning, and whether it was ever set. */
  setMs = 0
  wasSet = false
  taken: Taken[] = []
  /** Folders of all backups that ever existed. */
  readonly ever = new Set<string>()
  /**
   * Erasures that may have been repeated after a restore; which backups are from before them is known only
   * with a margin.
   */
  readonly again = new Set<string>()

  set(byMs: number): void {
    this.setMs += byMs
    this.wasSet = true
  }

  /** The service checks the clock: with each pass and each start. */
  look(): void {
    this.state = { ...this.state, isInDoubt: this.isDoubted }
  }

  /** Whether the clock is in doubt for a decision that is made now, also between two checks. */
  get isDoubted(): boolean {
    return this.state.isInDoubt || Math.abs(this.setMs - this.state.rightAtMs) > dayMs
  }

  keep(backup: Taken): void {
    this.taken.push(backup)
    this.ever.add(backup.folder)
  }

  confirm(): void {
    this.state = { rightAtMs: this.setMs, isInDoubt: false }
  }

  /** The time by which delayed requests start: the earliest possible time while the clock is in doubt. */
  dueMs(nowMs: number): number {
    return this.state.isInDoubt ? 0 : nowMs
  }

  /** A pass removes expired backups. */
  expire(nowMs: number): void {
    if (this.state.isInDoubt) return
    this.taken = this.taken.filter(({ expiresAtMs }) => expiresAtMs > nowMs)
  }
}
