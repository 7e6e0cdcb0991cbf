// Why an attempt to erase was interrupted, as a sentence for the request's detail: which kind of thing failed, without SQL or
// telemetry.

import type { StorageFault } from '../core/storage-fault.ts'
import { EngineError } from '../telemetry/engine.ts'
import { ErasureError } from './eraser.ts'

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
