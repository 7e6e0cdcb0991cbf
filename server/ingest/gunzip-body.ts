// Uncompresses a request body on its way to the parser. A few kilobytes of gzip can contain gigabytes, and
// the reader stops listening to the stream after it has refused the body. So this stream itself stops
// uncompressing at the limit, and ignores errors after the refusal. Each uncompressed block waits for the
// organisation's turn on the event loop: uncompressing runs in other threads, but every block comes back
// through the loop, and the blocks of four bodies of 16 MB kept it busy for a second.

import { pipeline, type Readable, Transform } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { AppError } from '../core/app-error.ts'

/** Uncompressed bytes between two turns. Most bodies of exporters are smaller. */
const blockBytes = 64 * 1024

interface GunzipLimits {
  /** Largest body, uncompressed, bytes. */
  readonly limitBytes: number
  /** Resolves when the organisation may use the event loop again. */
  readonly turn: () => Promise<void>
}

/**
 * Returns the uncompressed bytes of `payload`. Fails with `body_too_large` above `limitBytes`, and with an
 * error whose code begins with `Z_` where the bytes are not gzip. `payload` itself is never destroyed,
 * because the response uses its connection.
 */
export function gunzipBody(payload: Readable, { limitBytes, turn }: GunzipLimits): Readable {
  let produced = 0
  let sinceTurn = 0
  const gunzip = createGunzip()
  const limited = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      produced += chunk.length
      sinceTurn += chunk.length
      if (produced > limitBytes) {
        done(new AppError('body_too_large'))
      } else if (sinceTurn < blockBytes) {
        done(null, chunk)
      } else {
        sinceTurn = 0
        turn().then(() => done(null, chunk), done)
      }
    },
  })
  // Fastify compares this with Content-Length.
  Object.defineProperty(limited, 'receivedEncodedLength', { get: () => gunzip.bytesWritten })
  payload.on('error', (error) => gunzip.destroy(error))
  // Ends both streams when one of them fails; the reader of the second handles the error.
  pipeline(gunzip, limited, () => {})
  limited.on('error', () => {})
  payload.pipe(gunzip)
  return limited
}
