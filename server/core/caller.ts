// The caller: the result of every kind of authentication, and all that features may decide by. It contains
// the organisation's placement in the engine, so that it is not looked up twice.

import type { Role } from '../../contract/tenancy.ts'
import type { Actor } from './actor.ts'

export interface Caller {
  readonly tenantId: string
  readonly placement: number
  readonly organisationName: string
  readonly role: Role
  /** The actor, as in records. */
  readonly requester: Actor
  /** Aborts where the client has disconnected before the response; absent where that is unknown. */
  readonly signal?: AbortSignal
}
