// A patch of a detector, from what was sent to what is stored. It is read and validated once, against
// the detector as it is then; only where somebody else changes the detector in between is it read again,
// so that no change is lost.

import type { PatchDetector } from '../../../contract/detection/detectors.ts'
import type { Actor } from '../../core/actor.ts'
import { AppError, InvalidInput } from '../../core/app-error.ts'
import type { Parsed } from '../../core/input/parsed.ts'
import { type DetectorChange, readPatch, type SentDefinition, type StoredDetector } from './detector.ts'
import type { DetectionStore } from './store.ts'

interface PatchTarget {
  readonly tenantId: string
  readonly id: string
}

export interface AskedPatch {
  readonly body: PatchDetector
  /** Merge `params` and `scope` instead of replacing them. */
  readonly isMerge: boolean
  readonly ifMatch: string | undefined
  readonly actor: Actor
}

/** The change that a patch is, or its problems; null for a detector that the organisation doesn't have. */
export async function readPatchOf(
  store: DetectionStore,
  { id, tenantId }: PatchTarget,
  sent: SentDefinition<PatchDetector>,
  isMerge: boolean,
): Promise<Parsed<DetectorChange | null>> {
  const stored = await store.findDetector(tenantId, id)
  return stored === null ? { value: null } : readPatch(stored, sent, isMerge)
}

/**
 * Stores a patch, and returns the detector as it is afterwards. Throws `not_found`, InvalidInput, and what
 * `changeDetector` throws.
 *
 * @param read what `readPatchOf` returned for the same patch; read here where absent
 */
export async function patchDetector(
  store: DetectionStore,
  target: PatchTarget,
  { actor, body, ifMatch, isMerge }: AskedPatch,
  read?: DetectorChange | null,
): Promise<StoredDetector> {
  for (let change = read; ; change = undefined) {
    if (change === undefined) {
      const again = await readPatchOf(store, target, { body, raw: body }, isMerge)
      if ('problems' in again) throw new InvalidInput(again.problems)
      change = again.value
    }
    if (change === null) throw new AppError('not_found')
    const stored = await store.changeDetector(change, ifMatch, actor)
    if (stored !== null) return stored
  }
}
