// Who is asking: the one answer of authentication, whichever way it was given, and all that features may
// decide by. It carries the organisation's place in the engine, so that nobody looks it up twice.

import type { Role } from '../../contract/tenancy.ts'
import type { Actor } from './actor.ts'

export interface Caller {
  readonly tenantId: string
  readonly placement: number
  readonly organisationName: string
  readonly role: Role
  /** Who acts, as acts are recorded. */
  readonly requester: Actor
  /** Aborts when whoever asked has gone before the answer; absent where nobody can tell. */
  readonly signal?: AbortSignal
}
