// The caller: the result of every kind of authentication, and all that features may decide by. It contains
// the organisation's placement in the engine, so that it is not looked up twice.

import type { Role } from '../../contract/role.ts'
import type { Actor } from './actor.ts'

/** What a caller authenticated with in place of an access token. */
type StandIn =
  /** A session of the console, by its id. */
  | { readonly kind: 'session'; readonly id: string }
  /** A one-time sign-in code, by its hash. */
  | { readonly kind: 'sign_in_code'; readonly hash: string }

export interface Caller {
  readonly tenantId: string
  readonly placement: number
  readonly organisationName: string
  readonly role: Role
  /** The actor, as in records. */
  readonly requester: Actor
  /** Absent where the access token itself was sent; `requester` is that token in each case. */
  readonly standIn?: StandIn
  /** Aborts where the client has disconnected before the response; absent where that is unknown. */
  readonly signal?: AbortSignal
}
