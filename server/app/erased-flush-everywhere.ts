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

/**
 * Removes what was deleted of the organisation, of all where it is null. Throws ErasedBytesKept where a use
 * of the database, or a control plane that was left, keeps it.
 */
export async function flushErasedEverywhere(
  { config, control }: FlushNeeds,
  tables: readonly string[],
  tenantId: string | null,
): Promise<void> {
  // First, because the flush may rewrite whole tables, and is repeated until the erasure completes.
  await assertNoneLeft({ control, address: config.control, dataDir: config.dataDir })
  await erasedFlushOf(control).flush(tables, tenantId)
}
