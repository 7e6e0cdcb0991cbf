// A token as the password of Basic authentication (RFC 7617), for senders that have a field for a password
// and none for a bearer. Only the operations that take telemetry accept it: what reads and erases stays
// with the bearer, so that no browser can be made to send a password that it remembers along with a request
// that its user did not make.

/**
 * The password, which may hold what a bearer may; null where there is none. The user name may be anything.
 */
export function basicSecret(header: string): string | null {
  const encoded = /^basic +([A-Za-z0-9+/]{1,2048}={0,2})$/i.exec(header)?.[1]
  if (encoded === undefined) return null
  const decoded = Buffer.from(encoded, 'base64').toString('latin1')
  const colon = decoded.indexOf(':')
  const password = colon < 0 ? '' : decoded.slice(colon + 1)
  return /^[\x21-\x7e]{1,512}$/.test(password) ? password : null
}
