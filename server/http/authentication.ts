// Finds the caller of a request, for HTTP and gRPC, or the reason why there is none, as RFC 6750 section 3
// defines it. An authentication receives the whole head of the request, because a credential alone doesn't
// decide every case: a cookie counts only with the right origin and method. Only a client with a complete
// token learns that it has expired or was revoked; every other secret is unknown, however similar it is.

import type { IncomingHttpHeaders } from 'node:http'
import type { ErrorCode } from '../../contract/errors.ts'
import { AppError } from '../core/app-error.ts'
import type { Caller } from '../core/caller.ts'
import { basicSecret } from './basic-secret.ts'

/** What is known of a request before its body is read. */
export interface RequestHead {
  readonly method: string
  readonly headers: IncomingHttpHeaders
  /** The key of the client, as limits count it. */
  readonly address: string
  /** Whether the operation also accepts a token as the password of Basic authentication. */
  readonly takesBasic: boolean
  /** Whether the operation also accepts a one-time sign-in code as a bearer token. */
  readonly takesSignInCode?: boolean
  /** Whether the operation stores telemetry; every other one wants the state of its token as it is stored. */
  readonly storesTelemetry?: boolean
}

/**
 * Returns the caller of a request; null where its credential is unknown. Throws `unauthenticated` where it
 * has no credential, `token_malformed` where the credential can't be parsed, and `token_expired` or
 * `token_revoked` where it was valid before.
 */
export type Authenticate = (request: RequestHead) => Promise<Caller | null>

/**
 * How long a caller counts as authenticated while its body arrives, milliseconds; then it is authenticated
 * again. Nearly every body arrives within this time, so that few requests look their token up twice. Within
 * it, a transaction that acts still reads the token itself: see control/acting.ts.
 */
export const identifiedForMs = 1_000

/** Whether the request has a credential of any kind, valid or not. */
export function hasCredential({ headers }: RequestHead): boolean {
  return headers.authorization !== undefined || headers.cookie !== undefined
}

/**
 * Authentication by the access token in the Authorization header. `findCaller` returns
 * null for an unknown secret.
 */
export function byAccessToken(
  findCaller: (secret: string, request: RequestHead) => Promise<Caller | null>,
): Authenticate {
  return async (request) => {
    const { authorization = '' } = request.headers
    if (authorization.trim() === '') throw new AppError('unauthenticated')
    const secret = bearerSecret(authorization) ?? (request.takesBasic ? basicSecret(authorization) : null)
    if (secret === null) throw new AppError('token_malformed')
    return findCaller(secret, request)
  }
}

/** RFC 6750 section 2.1; the scheme in any case. */
function bearerSecret(header: string): string | null {
  return /^bearer +([\x21-\x7e]{1,512})$/i.exec(header)?.[1] ?? null
}

/**
 * Codes and descriptions of RFC 6750 section 3; a description is ASCII without quotes. A request without a
 * token has neither.
 */
const faults: Partial<Record<ErrorCode, readonly [error: string, description: string]>> = {
  token_malformed: ['invalid_request', 'The Authorization header has no bearer token'],
  token_unknown: ['invalid_token', 'The access token is unknown'],
  token_expired: ['invalid_token', 'The access token has expired'],
  token_revoked: ['invalid_token', 'The access token was revoked'],
  session_ended: ['invalid_token', 'The session has ended'],
}

/**
 * Returns the value of WWW-Authenticate for a refusal; null where the refusal is not about authentication.
 */
export function challengeOf({ code, status }: AppError): string | null {
  if (status !== 401) return null
  const [error, description] = faults[code] ?? []
  const realm = 'Bearer realm="lethe"'
  return error === undefined ? realm : `${realm}, error="${error}", error_description="${description}"`
}
