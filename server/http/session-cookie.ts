// The cookie of a session of the console, and which pages may use it. A browser adds a cookie to requests by
// itself, so a request with one counts only where the browser says that a page of this service sent it, and
// changes something only where that page shows the access token of the session.

import { sessionCookies, shownTokenHeader } from '../../contract/organisation/session.ts'
import { AppError } from '../core/app-error.ts'
import type { Caller } from '../core/caller.ts'
import type { RequestHead } from './authentication.ts'

/** 256 random bits as URL-safe text. */
const secretForm = /^[A-Za-z0-9_-]{43}$/

/**
 * Returns the secret in the cookie of a session; null where there is none. Throws `session_ended` where
 * several cookies disagree: another service on this host may have set one of them.
 */
export function sessionSecret(cookie: string | undefined): string | null {
  const values = new Map<string, Set<string>>()
  for (const pair of (cookie ?? '').split(';')) {
    const [name = '', value = ''] = pair.split('=').map((text) => text.trim())
    values.set(name, (values.get(name) ?? new Set()).add(value))
  }
  const found = values.get(sessionCookies.secure) ?? values.get(sessionCookies.plain)
  if (found === undefined) return null
  const [secret = ''] = found
  if (found.size > 1 || !secretForm.test(secret)) throw new AppError('session_ended')
  return secret
}

/** Returns the Set-Cookie header that starts a session; `origin` is the Origin header of the request. */
export function sessionCookie(secret: string, maxAgeSeconds: number, origin: string | undefined): string {
  const isSecure = origin?.startsWith('https://') === true
  const name = isSecure ? sessionCookies.secure : sessionCookies.plain
  const attributes = ['Path=/', 'HttpOnly', 'SameSite=Strict', `Max-Age=${maxAgeSeconds}`]
  return [`${name}=${secret}`, ...attributes, ...(isSecure ? ['Secure'] : [])].join('; ')
}

/**
 * Refuses a request with a session cookie that another origin may have caused, with `other_origin`. Browsers
 * send Sec-Fetch-Site only over TLS and to loopback; elsewhere a request that may change something needs an
 * Origin header that names this host.
 */
export function requireOwnPage({ headers, method }: RequestHead): void {
  const isSafe = isSafeMethod(method)
  const { host, origin, 'sec-fetch-site': site } = headers
  // No page sends the request of a typed address or a bookmark.
  const isOwn =
    site === undefined
      ? origin === undefined
        ? isSafe
        : namesHost(origin, host)
      : site === 'same-origin' || (isSafe && site === 'none')
  if (!isOwn) throw new AppError('other_origin')
}

/**
 * Refuses a request of a page that shows another access token than that of the session, with `other_token`:
 * somebody signed in again in another window of the browser. A request that names no token may only read,
 * because links and typed addresses have no headers.
 */
export function requireShownToken({ headers, method }: RequestHead, caller: Caller): void {
  const shown = headers[shownTokenHeader]
  if (shown !== undefined) requireSameToken(shown, caller)
  else if (!isSafeMethod(method)) throw new AppError('other_token', { sentence: unnamed })
}

/** Refuses another access token than that of the request, with `other_token`. */
export function requireSameToken(shown: string | string[], { requester }: Caller): void {
  if (shown !== requester.id) throw new AppError('other_token')
}

const unnamed =
  'A request with a session cookie must name the access token that its page shows, as Lethe-Token-Id. Nothing was done; reload the page.'

function isSafeMethod(method: string): boolean {
  return method === 'GET' || method === 'HEAD'
}

/**
 * Refuses a request that a page of another origin sends, whatever its credential is. Programs are not pages.
 */
export function refuseOtherPages({ headers }: RequestHead): void {
  const { host, origin, 'sec-fetch-site': site } = headers
  const isOther =
    site === undefined ? origin !== undefined && !namesHost(origin, host) : site !== 'same-origin'
  if (isOther) throw new AppError('other_origin')
}

function namesHost(origin: string, host: string | undefined): boolean {
  return URL.canParse(origin) && new URL(origin).host === host?.toLowerCase()
}
