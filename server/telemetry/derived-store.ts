// The port of a store of derived telemetry: what a room computed from telemetry and keeps in the control
// plane. An erasure of the telemetry erases it too. Attempt, verifier, preview and certificate walk the list
// of these stores, which is defined in app/derived-stores.ts; a test compares the list with the tables of the
// control plane.

import type { DeletionPreview } from '../../contract/deletion/requests.ts'
import type { TimeRange } from '../core/time-range.ts'
import type { ActiveHold, HeldPart } from './held-part.ts'
import type { Signal } from './schema/tables.ts'

/** A part of an organisation's telemetry that is being erased. */
export interface ErasedPart {
  readonly signals: readonly Signal[]
  readonly range: TimeRange
}

/** Runs work that nobody else's work of the same kind overlaps with, and returns its result. */
export type RunAlone = <T>(work: () => Promise<T>) => Promise<T>

export interface DerivedStore {
  /**
   * The name in the steps, counts and certificate of an erasure. Different from the name of every telemetry
   * table; never changes.
   */
  readonly name: string
  /** Tables of the control plane that contain its records and have a `tenant_id`. */
  readonly tables: readonly string[]
  /**
   * What an erasure of the part removes or changes in the end, with or without legal holds, as fields of a
   * preview. Leaves out what nobody may see because other deletions hide the parts `hidden`.
   */
  preview(
    tenantId: string,
    part: ErasedPart,
    hidden: readonly ErasedPart[],
  ): Promise<Partial<DeletionPreview['derived']>>
  /**
   * Removes what was derived from the part alone, and removes what was learnt from it from records that stay.
   * Leaves what legal holds keep; it reads the holds in each transaction that removes. There may be several,
   * each run by `alone`; after an error a part may be removed, and calling it again removes the rest. Returns
   * how many records it removed or changed; idempotent.
   */
  remove(tenantId: string, part: ErasedPart, alone: RunAlone): Promise<number>
  /**
   * Returns how many records {@link remove} would remove or change except for what `held` keeps. Counts
   * hidden records too.
   */
  count(tenantId: string, part: ErasedPart, held: readonly HeldPart[]): Promise<number>
  /**
   * Returns the ids of the holds that keep a record from {@link remove}. Where several keep it together, all
   * of them: none of its parts becomes free while these are in force.
   */
  keepers(tenantId: string, part: ErasedPart, holds: readonly ActiveHold[]): Promise<ReadonlySet<string>>
}
