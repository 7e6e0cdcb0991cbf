// Leases: which process may do a piece of periodic work. One row per lease, taken and renewed by
// compare-and-set, so that two processes on one control database never both believe they hold it. A lease that
// is not renewed runs out by itself.

import type { Control } from '../control/database.ts'
import type { Clock } from '../core/clock.ts'

export class Leases {
  readonly #control: Control
  readonly #clock: Clock
  readonly #holder: string

  /** `holder` names this process and must be unique among those that share the database. */
  constructor(control: Control, clock: Clock, holder: string) {
    this.#control = control
    this.#clock = clock
    this.#holder = holder
  }

  /** Takes or renews the lease for `ms` from now; false while someone else holds it. */
  async hold(name: string, ms: number): Promise<boolean> {
    const nowMs = this.#clock.nowMs()
    const result = await this.#control
      .insertInto('leases')
      .values({ name, holder: this.#holder, until_ms: nowMs + ms })
      .onConflict((conflict) =>
        conflict
          .column('name')
          .doUpdateSet({ holder: this.#holder, until_ms: nowMs + ms })
          .where((where) =>
            where.or([where('leases.holder', '=', this.#holder), where('leases.until_ms', '<=', nowMs)]),
          ),
      )
      .executeTakeFirst()
    return (result.numInsertedOrUpdatedRows ?? 0n) > 0n
  }

  /** Gives the lease up, so that another process needn't wait for it to run out. */
  async release(name: string): Promise<void> {
    await this.#control
      .deleteFrom('leases')
      .where('name', '=', name)
      .where('holder', '=', this.#holder)
      .execute()
  }
}
