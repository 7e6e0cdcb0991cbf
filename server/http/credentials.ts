// Finds the caller of a request by the one credential that counts: the Authorization header where there is
// one, otherwise the cookie of a session. A cookie beside the header is ignored, because no page of another
// origin can set the header. Telemetry is never accepted by cookie.

import { signInCodePrefix } from '../../contract/organisation/session.ts'
import { AppError } from '../core/app-error.ts'
import type { Caller } from '../core/caller.ts'
import { type Authenticate, byAccessToken, type RequestHead } from './authentication.ts'
import { refuseOtherPages, requireOwnPage, requireShownToken, sessionSecret } from './session-cookie.ts'

/**
 * Each returns null for an unknown secret, and throws `token_expired` or `token_revoked` for an ended token.
 */
interface CallerSources {
  ofToken(secret: string, request: RequestHead): Promise<Caller | null>
  ofSession(secret: string): Promise<Caller | null>
  ofSignInCode(code: string): Promise<Caller | null>
}

export function byCredential({ ofSession, ofSignInCode, ofToken }: CallerSources): Authenticate {
  const byToken = byAccessToken(ofToken)
  const byCode = byAccessToken(ofSignInCode)
  const isCode = new RegExp(`^bearer +${signInCodePrefix}`, 'i')
  return async (head) => {
    const { authorization = '', cookie } = head.headers
    if (head.takesSignInCode === true) {
      refuseOtherPages(head)
      return isCode.test(authorization) ? byCode(head) : byToken(head)
    }
    if (authorization.trim() !== '' || head.takesBasic) return byToken(head)
    const secret = sessionSecret(cookie)
    if (secret === null) return byToken(head)
    requireOwnPage(head)
    const caller = await ofSession(secret)
    if (caller === null) throw new AppError('session_ended')
    requireShownToken(head, caller)
    return caller
  }
}
