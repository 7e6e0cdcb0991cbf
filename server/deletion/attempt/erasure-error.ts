// Errors that end an attempt, and the sentence for the detail of the request: which kind of thing failed,
// without SQL or telemetry.

import { ErasedBytesKept } from '../../control/erased-flush.ts'
import { AppError } from '../../core/app-error.ts'
import type { StorageFault } from '../../core/storage-fault.ts'
import { EngineError } from '../../telemetry/engine.ts'
import { LeaseLost } from '../../worker/lease.ts'

/**
 * The engine or the disk is not in the state that the erasure needs; the attempt ends and is repeated later.
 */
export class ErasureError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'ErasureError'
  }
}

/**
 * The work is stopped by a signal, whose reason it names. Nothing failed, and the attempt doesn't
 * count against the limit.
 */
export class ErasureStopped extends ErasureError {
  constructor({ reason }: Pick<AbortSignal, 'reason'>) {
    super(
      reason instanceof LeaseLost
        ? 'The process lost the lease on erasures; the erasure continues in the process that has the lease'
        : 'The service was stopped; the erasure continues when it starts again',
    )
  }
}

const diskReasons: Readonly<Record<StorageFault, string>> = {
  full: 'The disk is full, and the erasure waits for room: dropping whole weeks needs little, and keeping the other rows of a week needs their size once more',
  failing: 'The disk refuses writes, and the erasure waits until it accepts them',
}

/** Refusals of the control plane's database that end without a change here, or when its operator acts. */
const databaseReasons: ReadonlyMap<string, string> = new Map([
  ['overloaded', 'The control-plane database was busy for too long'],
  ['outcome_unknown', 'The control-plane database did not answer'],
  ['storage_unavailable', 'The control-plane database did not answer'],
  ['storage_full', 'The disk of the control-plane database is full, and the erasure waits for room'],
])

/**
 * Whether an attempt ended because the control plane's database could not continue, or because its other
 * users keep erased bytes, such as a dump that takes hours. The erasure waits for that, however long it
 * takes.
 */
export function waitsForDatabase(error: unknown): boolean {
  return error instanceof ErasedBytesKept || (error instanceof AppError && databaseReasons.has(error.code))
}

/**
 * Returns the sentence. `fault` is the fault of the disk that caused the error; null where the disk is not
 * the cause.
 */
export function reasonOf(error: unknown, fault: StorageFault | null): string {
  if (fault !== null) return diskReasons[fault]
  if (error instanceof ErasureError || error instanceof ErasedBytesKept) return error.message
  const databaseReason = error instanceof AppError ? databaseReasons.get(error.code) : undefined
  if (databaseReason !== undefined) return databaseReason
  if (error instanceof EngineError)
    return `The telemetry engine refused a step (code ${error.code ?? 'unknown'})`
  return 'A step failed unexpectedly; the log names the cause'
}
