// Removes erased bytes of the control plane from the disk, also of one that a move has left behind: there the
// erasure waits until an operator has deleted it.

import type { Config } from '../config.ts'
import type { Control } from '../control/database.ts'
import { erasedFlushOf } from '../control/erased-flush.ts'
import { assertNoneLeft } from '../control/left-planes.ts'

interface FlushNeeds {
  readonly config: Pick<Config, 'control' | 'dataDir'>
  readonly control: Control
}

/** Throws ErasedBytesKept where a use of the database, or a control plane that was left, keeps them. */
export async function flushErasedEverywhere(
  { config, control }: FlushNeeds,
  tables: readonly string[],
): Promise<void> {
  // First, because the flush may rewrite whole tables, and is repeated until the erasure completes.
  await assertNoneLeft({ control, address: config.control, dataDir: config.dataDir })
  await erasedFlushOf(control).flush(tables)
}
