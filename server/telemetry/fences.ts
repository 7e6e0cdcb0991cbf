// The port through which an erasure informs the readers and writers of every node: what is hidden, fenced,
// erased or refused late, and which placements are closed. A change resolves only after every live node has
// acknowledged it: from then on no node reads or writes as before. Nodes ask their own gate (gate.ts). Fails
// closed: a change that is not acknowledged may have reached some nodes, and until the caller ends it those
// are stricter, never looser.

import type { Coverage, FenceChange, TelemetryGate } from './gate.ts'

export interface Fences {
  /**
   * Applies the changes on every node, in their order and together. Changes take effect in the order of the
   * calls, also where a call is not awaited before the next. Resolves with the epoch, the number of the state
   * of all fences after these changes, once every live node has acknowledged it; a later change has a higher
   * epoch.
   *
   * Rejects where something is hidden, fenced or closed and a live node can't acknowledge it. A change that
   * only ends or marks something never rejects: it is repeated until it is acknowledged.
   */
  publish(changes: readonly FenceChange[]): Promise<number>
  /**
   * Resolves when every commit of the organisation that began on any node before the call, and may have rows
   * of this, has ended.
   */
  drain(tenantId: string, coverage: Coverage): Promise<void>
}

/** One process, which is the only node: its gate acknowledges at once. */
export class ProcessFences implements Fences {
  readonly #gate: TelemetryGate
  #epoch = 0

  constructor(gate: TelemetryGate) {
    this.#gate = gate
  }

  async publish(changes: readonly FenceChange[]): Promise<number> {
    // Before the first await, so that changes are applied in the order of the calls.
    const epoch = ++this.#epoch
    this.#gate.apply(epoch, changes)
    return epoch
  }

  drain(tenantId: string, coverage: Coverage): Promise<void> {
    return this.#gate.drain(tenantId, coverage)
  }
}
