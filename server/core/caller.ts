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

/**
 * Where a token is in its line. Limits divide what an organisation has by it, so nobody may be able to
 * multiply them: only the operator makes lines, and only a root makes branches of its line.
 */
export interface CallerLine {
  /** The token that the operator made, with which the line begins. */
  readonly root: string
  /**
   * The tokens of the line that count together: the root alone, a token that was made with the root alone, or
   * all further descendants, which is {@link furtherBranch}.
   */
  readonly branch: string
}

export const furtherBranch = 'further descendants'

export interface Caller {
  readonly tenantId: string
  readonly placement: number
  readonly organisationName: string
  readonly role: Role
  /** The actor, as in records. */
  readonly requester: Actor
  /** Absent where the root is unknown; such tokens of an organisation count as one line. */
  readonly line?: CallerLine
  /** Absent where the access token itself was sent; `requester` is that token in each case. */
  readonly standIn?: StandIn
  /** Aborts where the client has disconnected before the response; absent where that is unknown. */
  readonly signal?: AbortSignal
}
