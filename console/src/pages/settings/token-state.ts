// Whether a token works, as far as the browser's clock can tell; the service decides.

import type { AccessToken } from '../../../../contract/organisation/tenancy.ts'
import { nowMs } from '../../clock.ts'

export function stateOf({ expires_at, revoked_at }: AccessToken): 'works' | 'revoked' | 'expired' {
  if (revoked_at !== null) return 'revoked'
  return expires_at !== null && Date.parse(expires_at) <= nowMs() ? 'expired' : 'works'
}
