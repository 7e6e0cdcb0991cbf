// Uncompresses a request body on its way to the parser. A few kilobytes of gzip can hold gigabytes, and
// whoever reads the stream stops listening once it has refused it, so this stream keeps two promises by
// itself: it stops uncompressing at the limit, and what goes wrong after the refusal reaches nobody.

import { pipeline, type Readable, Transform } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { AppError } from '../core/app-error.ts'

/**
 * The uncompressed bytes of `payload`. Fails with `body_too_large` beyond `limitBytes`, and with an
 * error whose code begins with `Z_` where the bytes aren't gzip. `payload` itself is never destroyed:
 * the answer goes out on it.
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
  // Fastify holds this against Content-Length.
  Object.defineProperty(limited, 'receivedEncodedLength', { get: () => gunzip.bytesWritten })
  payload.on('error', (error) => gunzip.destroy(error))
  // Ends both streams when one of them fails; the failure itself is for the reader of the second.
  pipeline(gunzip, limited, () => {})
  limited.on('error', () => {})
  payload.pipe(gunzip)
  return limited
}
