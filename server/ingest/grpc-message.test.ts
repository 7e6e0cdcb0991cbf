// Extracts a gRPC message from its frame, whatever pieces the frame comes in.

import assert from 'node:assert/strict'
import { buffer } from 'node:stream/consumers'
import { test } from 'node:test'
import { deflateSync, gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { AppError } from '../core/app-error.ts'
import { type GrpcEncoding, GrpcMessage } from './grpc-message.ts'
import { uncompress } from './uncompress.ts'

function framed(bytes: Uint8Array, isCompressed = false, declared = bytes.length): Buffer {
  const prefix = Buffer.alloc(5)
  prefix[0] = isCompressed ? 1 : 0
  prefix.writeUInt32BE(declared, 1)
  return Buffer.concat([prefix, bytes])
}

/** Returns the message where the frame comes in pieces that end at `cuts`. */
async function read(
  frame: Buffer,
  {
    encoding = 'identity',
    cuts = [],
    limitBytes = 1 << 20,
  }: {
    encoding?: GrpcEncoding
    cuts?: readonly number[]
    limitBytes?: number
  } = {},
): Promise<Buffer> {
  const message = new GrpcMessage(encoding, limitBytes)
  message.on('error', () => {})
  const whole = buffer(message)
  let from = 0
  for (const cut of [...cuts, frame.length].toSorted((a, b) => a - b)) {
    if (cut <= frame.length) message.write(frame.subarray(from, cut))
    from = Math.min(cut, frame.length)
  }
  message.end()
  const sent = await whole
  return uncompress(message.coding, sent, limitBytes) ?? assert.fail('it has more than the limit')
}

const isRefusedAs = (code: string, sentence: RegExp) => (error: unknown) =>
  error instanceof AppError && error.code === code && sentence.test(error.message)

const pack = { identity: (bytes: Uint8Array) => bytes, gzip: gzipSync, deflate: deflateSync }

test('a message is unchanged, compressed or not, whatever the pieces of its frame', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.uint8Array({ maxLength: 2000 }),
      fc.constantFrom<GrpcEncoding>('identity', 'gzip', 'deflate'),
      fc.array(fc.nat(2000), { maxLength: 6 }),
      async (bytes, encoding, cuts) => {
        const frame = framed(pack[encoding](bytes), encoding !== 'identity')
        assert.ok((await read(frame, { encoding, cuts })).equals(bytes))
        // A sender may leave single messages uncompressed.
        assert.ok((await read(framed(bytes), { encoding, cuts })).equals(bytes))
      },
    ),
  )
})

test('an incomplete or invalid message is refused with the reason', async () => {
  const bytes = Buffer.from('some bytes')
  const bad = 'bad_request'
  for (const [frame, encoding, sentence] of [
    [Buffer.alloc(0), 'identity', /has no message/],
    [framed(bytes).subarray(0, 3), 'identity', /before its message was whole/],
    [framed(bytes).subarray(0, 9), 'identity', /before its message was whole/],
    [Buffer.concat([framed(bytes), framed(bytes)]), 'identity', /one message/],
    [framed(bytes, true), 'identity', /name its compression/],
  ] as const) {
    await assert.rejects(read(frame, { encoding, cuts: [2, 7] }), isRefusedAs(bad, sentence))
  }
})

test('a message above the limit is refused by its declared length', async () => {
  const zeros = Buffer.alloc(1_000_000)
  assert.equal((await read(framed(zeros), { limitBytes: 1_000_000 })).length, 1_000_000)
  const declared = framed(Buffer.alloc(10), false, 1_000_001)
  await assert.rejects(read(declared, { limitBytes: 1_000_000 }), isRefusedAs('body_too_large', /larger/))
})
