// The parts of the service that act on requests, as requests and hash chains name them.

/** Moves requests that are due. */
export const deletionActor = 'system:deletion'

/** Reapplies what a restore from an older copy has brought back. */
export const restoreGuardActor = 'system:restore-guard'

/** Asks for the erasures that retention rules call for. */
export const retentionRequester = 'system:retention'
