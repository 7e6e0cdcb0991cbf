// Completes the swaps that interrupted attempts left in the engine, and records it: at the start of the
// service, before each attempt in its placement, and while a placement is closed and has no attempt. The
// worker and its attempts share one object.

import type { FastifyBaseLogger } from 'fastify'
import type { Fences } from '../../telemetry/fences.ts'
import type { TelemetryGate } from '../../telemetry/gate.ts'
import type { ErasureLocks } from '../../telemetry/placement-locks.ts'
import { recoverSideTables, type SwapDeps } from './side-tables.ts'
import type { StepStore } from './step-store.ts'

interface SwapRecoveryDeps extends SwapDeps {
  readonly gate: TelemetryGate
  readonly fences: Fences
  readonly locks: ErasureLocks
  readonly steps: StepStore
  readonly logger: Pick<FastifyBaseLogger, 'error'>
}

export class SwapRecovery {
  readonly #deps: SwapRecoveryDeps

  constructor(deps: SwapRecoveryDeps) {
    this.#deps = deps
  }

  /**
   * Makes promised swaps and drops unfinished copies; only those of `placement` where given, because attempts
   * may be running in the others. A swap that fails keeps its placement closed, and its error is logged.
   * Throws what the stores throw.
   */
  async run(placement?: number): Promise<void> {
    const { logger, steps } = this.#deps
    const failed = await recoverSideTables(this.#deps, placement)
    for (const [closed, err] of failed) {
      logger.error({ err, placement: closed }, 'a promised swap failed; its placement stays closed')
    }
    await steps.keptPromises([...failed.keys()], placement)
  }
}
