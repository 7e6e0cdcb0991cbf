// What interrupts an attempt to erase, and the sentence that the request's detail says about it: which kind of thing failed,
// without SQL or telemetry.

import type { StorageFault } from '../../core/storage-fault.ts'
import { EngineError } from '../../telemetry/engine.ts'
import { LeaseLost } from '../../worker/lease.ts'

/** The engine or the disk is not as it must be for going on; the attempt ends and is repeated later. */
export class ErasureError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'ErasureError'
  }
}

/** The work is stopped, by the signal whose reason it names; nothing failed, and the attempt doesn't count. */
export class ErasureStopped extends ErasureError {
  constructor({ reason }: AbortSignal) {
    super(
      reason instanceof LeaseLost
        ? 'The process lost the lease on erasures; the erasure goes on where the lease is'
        : 'The service was stopped; the erasure goes on when it starts again',
    )
  }
}

const diskReasons: Readonly<Record<StorageFault, string>> = {
  full: 'The disk is full, and the erasure waits for room: to drop whole weeks takes little, to keep what survives of a week takes its size once more',
  failing: 'The disk takes no writes, and the erasure waits until it does',
}

/** `fault` is what the error says of the disk; null where the disk is not the cause. */
export function reasonOf(error: unknown, fault: StorageFault | null): string {
  if (fault !== null) return diskReasons[fault]
  if (error instanceof ErasureError) return error.message
  if (error instanceof EngineError)
    return `The telemetry engine refused a step (code ${error.code ?? 'unknown'})`
  return 'A step failed unexpectedly; the log names the cause'
}
