// The port of a store of derived telemetry: what a room keeps in the control plane that was computed from
// telemetry. An erasure of the telemetry takes it as well. Attempt, verifier, preview and certificate walk
// the list of these stores, which is wired in app/derived-stores.ts; a test holds the list against the tables
// of the control plane.

import type { DeletionPreview } from '../../contract/deletion.ts'
import type { TimeRange } from '../core/time-range.ts'
import type { HeldPart } from './held-part.ts'
import type { Signal } from './schema/tables.ts'

/** Telemetry of an organisation that is to be erased. */
export interface ErasedPart {
  readonly signals: readonly Signal[]
  readonly range: TimeRange
}

export interface DerivedStore {
  /**
   * Names it in the steps, counts and certificate of an erasure. Different from every telemetry table, and
   * for good.
   */
  readonly name: string
  /** Tables of the control plane that hold it and have a `tenant_id`. */
  readonly tables: readonly string[]
  /**
   * What an erasure of the part would remove or change in the end, holds or not, by the fields of a preview.
   */
  preview(tenantId: string, part: ErasedPart): Promise<Partial<DeletionPreview['derived']>>
  /**
   * Removes what was derived from the part, and what was only learnt from it out of what stays. Keeps what
   * legal holds keep, which it reads in the transaction that removes. Returns how many records it removed or
   * changed; idempotent.
   */
  remove(tenantId: string, part: ErasedPart): Promise<number>
  /**
   * How many records {@link remove} would remove or change beside what `held` keeps; reads past everything
   * that hides.
   */
  count(tenantId: string, part: ErasedPart, held: readonly HeldPart[]): Promise<number>
}
