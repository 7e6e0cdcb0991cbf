// A key that makes a repeated HTTP request the same request. From random bytes, because randomUUID exists
// only over TLS and on loopback.

export function newKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))]
    .map((byte) => byte.toString(16).padStart(2, '0'))
    .join('')
}
