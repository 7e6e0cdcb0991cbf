// Uncompresses complete bodies: exact within the limit, null above it, and a refusal where the bytes are not
// what their coding says.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deflateSync, gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { type Coding, claimedBytes, uncompress } from './uncompress.ts'

const megabyte = 1024 * 1024
const pack: Readonly<Record<Coding, (bytes: Uint8Array) => Buffer>> = {
  identity: Buffer.from,
  gzip: gzipSync,
  deflate: deflateSync,
}
const codings = Object.keys(pack) as Coding[]

test('a body within the limit is unchanged, and one byte more is too much, whatever its coding', () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...codings),
      fc.uint8Array({ minLength: 2, maxLength: 5000 }),
      fc.nat(40),
      (coding, bytes, repeats) => {
        const plain = Buffer.concat(Array(repeats + 1).fill(bytes))
        const body = pack[coding](plain)
        assert.deepEqual(uncompress(coding, body, plain.length), plain)
        assert.equal(uncompress(coding, body, plain.length - 1), null)
      },
    ),
  )
})

test('several members of gzip are one body, which claims its own length at least', () => {
  const member = gzipSync(Buffer.alloc(megabyte, 'x'))
  const body = Buffer.concat([member, member, gzipSync(Buffer.from('end'))])
  assert.equal(claimedBytes('gzip', body, 16 * megabyte), body.length)
  assert.equal(uncompress('gzip', body, 3 * megabyte)?.length, 2 * megabyte + 3)
  assert.equal(uncompress('gzip', body, 2 * megabyte), null)
})

test('blocks without content claim their own length, because they cost time', () => {
  const emptyBlock = Buffer.from([0, 0, 0, 0xff, 0xff])
  const [header, lastBlock, trailer] = [
    gzipSync('').subarray(0, 10),
    Buffer.from([1, 0, 0, 0xff, 0xff]),
    Buffer.alloc(8),
  ]
  const body = Buffer.concat([header, ...Array(100_000).fill(emptyBlock), lastBlock, trailer])
  assert.equal(uncompress('gzip', body, megabyte)?.length, 0)
  assert.equal(claimedBytes('gzip', body, 16 * megabyte), body.length)
  assert.equal(claimedBytes('gzip', body, 1000), 1000)
})

test('a bomb claims no more than the limit, and nothing beyond the limit is produced', () => {
  const bomb = gzipSync(Buffer.alloc(64 * megabyte))
  assert.equal(claimedBytes('gzip', bomb, 16 * megabyte), 16 * megabyte)
  const before = process.memoryUsage().arrayBuffers
  assert.equal(uncompress('gzip', bomb, megabyte), null)
  assert.ok(process.memoryUsage().arrayBuffers - before < 8 * megabyte)
})

test('a few bytes that claim gigabytes reserve memory for what they can contain', () => {
  const liar = gzipSync(Buffer.from('short'))
  liar.writeUInt32LE(0xffff_ffff, liar.length - 4)
  const before = process.memoryUsage().arrayBuffers
  assert.throws(() => uncompress('gzip', liar, 2 ** 30), { code: 'bad_request' })
  assert.ok(process.memoryUsage().arrayBuffers - before < megabyte)
})

test('a body that is not valid in its coding, or ends too early, is refused with the name of the coding', () => {
  for (const coding of ['gzip', 'deflate'] as const) {
    for (const bytes of [
      Buffer.from('not compressed at all'),
      pack[coding](Buffer.alloc(99)).subarray(0, 9),
    ]) {
      assert.throws(() => uncompress(coding, bytes, megabyte), {
        code: 'bad_request',
        message: `The body is not valid ${coding}.`,
      })
    }
  }
})
