// What is true of a simulated machine's clock and of what goes by it, kept without the service's code: how
// far it was set, whether it is in doubt, and which backups are there until when.

const dayMs = 86_400_000

/** A backup that is on the disk. */
interface Taken {
  readonly folder: string
  readonly expiresAtMs: number
  /** Erasures that were completed when it was taken: it holds nothing of them. */
  readonly done: ReadonlySet<string>
}

/** What the control plane keeps of the clock, and a backup with it. */
export interface ClockState {
  /** How far the clock had been set, all in all, when it was last known to be right. */
  readonly rightAtMs: number
  readonly isInDoubt: boolean
}

/** What is true of the clock and of what goes by it, kept without the service's code. */
export class SimulatedTime {
  state: ClockState = { rightAtMs: 0, isInDoubt: false }
  /** How far the clock has been set since the beginning, and whether it ever was. */
  setMs = 0
  wasSet = false
  taken: Taken[] = []
  /** Folders of all backups that there ever were. */
  readonly ever = new Set<string>()
  /**
   * Erasures that a restore may have had made again: which backups are from before them is told with a
   * margin.
   */
  readonly again = new Set<string>()

  set(byMs: number): void {
    this.setMs += byMs
    this.wasSet = true
  }

  /** The service looks at the clock: with each pass and each start. */
  look(): void {
    const isJump = Math.abs(this.setMs - this.state.rightAtMs) > dayMs
    this.state = { ...this.state, isInDoubt: this.state.isInDoubt || isJump }
  }

  keep(backup: Taken): void {
    this.taken.push(backup)
    this.ever.add(backup.folder)
  }

  confirm(): void {
    this.state = { rightAtMs: this.setMs, isInDoubt: false }
  }

  /** The time to start delayed requests by: the beginning of all time while the clock is in doubt. */
  dueMs(nowMs: number): number {
    return this.state.isInDoubt ? 0 : nowMs
  }

  /** A pass removes what has expired. */
  expire(nowMs: number): void {
    if (this.state.isInDoubt) return
    this.taken = this.taken.filter(({ expiresAtMs }) => expiresAtMs > nowMs)
  }
}
