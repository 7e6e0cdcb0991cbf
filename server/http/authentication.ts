// From the Authorization header to the caller, the same for HTTP and gRPC, and why there is none, in the words of
// RFC 6750 section 3. That a token has expired or was revoked is told only to who presents the whole of it; every
// other secret is unknown, whatever it resembles.

import type { ErrorCode } from '../../contract/errors.ts'
import { AppError } from '../core/app-error.ts'
import type { Caller } from '../core/caller.ts'
import { basicSecret } from './basic-secret.ts'

/** The caller that a secret stands for, or null. Throws `token_expired` or `token_revoked` for one that did. */
export type Authenticate = (secret: string) => Promise<Caller | null>

/**
 * Throws `unauthenticated` where there is no header, `token_malformed` where there is no secret in it, and otherwise
 * what is wrong with the token.
 */
export async function identify(
  header: string | undefined,
  authenticate: Authenticate,
  { takesBasic }: { readonly takesBasic: boolean },
): Promise<Caller> {
  if (header === undefined || header.trim() === '') throw new AppError('unauthenticated')
  const secret = bearerSecret(header) ?? (takesBasic ? basicSecret(header) : null)
  if (secret === null) throw new AppError('token_malformed')
  const caller = await authenticate(secret)
  if (caller === null) throw new AppError('token_unknown')
  return caller
}

/** RFC 6750 section 2.1; the scheme in any case. */
function bearerSecret(header: string): string | null {
  return /^bearer +([\x21-\x7e]{1,512})$/i.exec(header)?.[1] ?? null
}

/** Codes and descriptions of RFC 6750 section 3; a description is ASCII without quotes. A request without a token has neither. */
const faults: Partial<Record<ErrorCode, readonly [error: string, description: string]>> = {
  token_malformed: ['invalid_request', 'The Authorization header holds no bearer token'],
  token_unknown: ['invalid_token', 'The access token is unknown'],
  token_expired: ['invalid_token', 'The access token has expired'],
  token_revoked: ['invalid_token', 'The access token was revoked'],
}

/** The value of WWW-Authenticate beside a refusal; null where the refusal is not about who asks. */
export function challengeOf({ code, status }: AppError): string | null {
  if (status !== 401) return null
  const [error, description] = faults[code] ?? []
  const realm = 'Bearer realm="lethe"'
  return error === undefined ? realm : `${realm}, error="${error}", error_description="${description}"`
}
