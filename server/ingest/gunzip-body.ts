// Uncompresses a request body on its way to the parser. A few kilobytes of gzip can contain gigabytes, and
// the reader stops listening to the stream after it has refused it. So this stream itself stops uncompressing
// at the limit, and ignores errors after the refusal.

import { pipeline, type Readable, Transform } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { AppError } from '../core/app-error.ts'

/**
 * Returns the uncompressed bytes of `payload`. Fails with `body_too_large` above `limitBytes`, and with an
 * error whose code begins with `Z_` where the bytes are not gzip. `payload` itself is never destroyed,
 * because the response uses its connection.
 */
export function gunzipBody(payload: Readable, limitBytes: number): Readable {
  let produced = 0
  const gunzip = createGunzip()
  const limited = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      produced += chunk.length
      if (produced > limitBytes) done(new AppError('body_too_large'))
      else done(null, chunk)
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
