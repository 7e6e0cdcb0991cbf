// The caller of an access token, however its row was found: by the secret itself, a session of the console or
// a one-time code. A token that has ended has no caller.

import { Role } from '../../contract/role.ts'
import { requireLive } from '../control/acting.ts'
import { type Actor, tokenActor } from '../core/actor.ts'
import { type Caller, furtherBranch } from '../core/caller.ts'

/** Columns of a statement over tokens and their organisations, of which {@link callerIn} reads a row. */
export const callerColumns = [
  'access_tokens.id as token_id',
  'access_tokens.name as token_name',
  'access_tokens.made_with as made_with',
  'access_tokens.root_id as root_id',
  'access_tokens.role as role',
  'access_tokens.expires_at_ms as expires_at_ms',
  'access_tokens.revoked_at_ms as revoked_at_ms',
  'access_tokens.last_used_at_ms as last_used_at_ms',
  'organisations.tenant_id as tenant_id',
  'organisations.name as organisation_name',
  'organisations.placement as placement',
] as const

/** A token, and where it is in its line. */
export interface TokenOrigin {
  readonly token_id: string
  readonly made_with: string | null
  readonly root_id: string | null
}

interface CallerRow extends TokenOrigin {
  readonly expires_at_ms: number | null
  readonly revoked_at_ms: number | null
  readonly token_name: string
  readonly role: string
  readonly tenant_id: string
  readonly organisation_name: string
  readonly placement: number
}

/**
 * Throws `token_revoked` or `token_expired` where the token has ended.
 *
 * @param sessionId the session by which the row was found; null where it was found in another way
 */
export function callerIn(row: CallerRow, nowMs: number, sessionId: string | null = null): Caller {
  const requester: Actor = { ...tokenActor(row.token_id, row.token_name), credential: { sessionId } }
  requireLive(row, { tenantId: row.tenant_id, actor: requester }, nowMs)
  return {
    tenantId: row.tenant_id,
    placement: row.placement,
    organisationName: row.organisation_name,
    role: Role.parse(row.role),
    requester,
    ...lineIn(row),
  }
}

/** Returns the line and branch of a token; no line where its root is unknown. */
export function lineIn({ made_with, root_id, token_id }: TokenOrigin): Pick<Caller, 'line'> {
  if (root_id === null) return {}
  const isNear = token_id === root_id || made_with === root_id
  return { line: { root: root_id, branch: isNear ? token_id : furtherBranch } }
}
