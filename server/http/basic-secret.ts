// A token as the password of Basic authentication (RFC 7617), for senders that can configure a password and
// no bearer token. Only operations that store telemetry accept it; operations that read and erase require a
// bearer token, so that no browser sends a saved password with a request that its user did not make.

/**
 * Returns the password, which may have the characters of a bearer token; null where there is none. The user
 * name may be anything.
 */
export function basicSecret(header: string): string | null {
  const encoded = /^basic +([A-Za-z0-9+/]{1,2048}={0,2})$/i.exec(header)?.[1]
  if (encoded === undefined) return null
  const decoded = Buffer.from(encoded, 'base64').toString('latin1')
  const colon = decoded.indexOf(':')
  const password = colon < 0 ? '' : decoded.slice(colon + 1)
  return /^[\x21-\x7e]{1,512}$/.test(password) ? password : null
}
