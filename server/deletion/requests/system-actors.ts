// The parts of the service that act on requests, as requests and hash chains name them.

import { systemActor } from '../../core/actor.ts'

/** Moves requests that are due. */
export const deletionActor = systemActor('deletion')

/** Reapplies what a restore from an older copy has brought back. */
export const restoreGuardActor = systemActor('restore-guard')

/** Asks for the erasures that retention rules call for. */
export const retentionRequester = systemActor('retention')
