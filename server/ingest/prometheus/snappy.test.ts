// Snappy blocks: what another library compressed is uncompressed exactly, and anything else ends quickly in
// an error or in exactly the declared length.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { compress } from '../../../tests/prometheus/remote-write-messages.ts'
import { AppError } from '../../core/app-error.ts'
import { snappyLength, uncompressSnappy } from './snappy.ts'

const limit = 1 << 20

function codeOf(compressed: Buffer, limitBytes = limit): string {
  try {
    uncompressSnappy(compressed, limitBytes)
  } catch (error) {
    assert.ok(error instanceof AppError, String(error))
    return error.code
  }
  return 'read'
}

test('what another library compressed is uncompressed byte for byte', () => {
  const repetitive = fc
    .tuple(fc.uint8Array({ minLength: 1, maxLength: 90 }), fc.integer({ min: 1, max: 3000 }))
    .map(([part, times]) => Buffer.concat(Array.from({ length: times }, () => part)))
  fc.assert(
    fc.property(fc.oneof(fc.uint8Array({ maxLength: 5000 }), repetitive), (bytes) => {
      const compressed = compress(bytes)
      assert.equal(snappyLength(compressed, limit), bytes.length)
      assert.ok(uncompressSnappy(compressed, limit).equals(bytes))
    }),
    { numRuns: 200 },
  )
})

describe('every element of the format is read', () => {
  const cases: readonly (readonly [string, readonly number[], string])[] = [
    ['nothing at all', [0], ''],
    ['a short literal', [3, 2 << 2, 97, 98, 99], 'abc'],
    ['a literal with one byte of length', [3, 60 << 2, 2, 97, 98, 99], 'abc'],
    ['a literal with four bytes of length', [3, 63 << 2, 2, 0, 0, 0, 97, 98, 99], 'abc'],
    ['a copy that overlaps what it writes', [7, 2 << 2, 97, 98, 99, (0 << 2) | 1, 3], 'abcabca'],
    ['a copy with two bytes of offset', [6, 2 << 2, 97, 98, 99, (2 << 2) | 2, 3, 0], 'abcabc'],
    ['a copy with four bytes of offset', [6, 2 << 2, 97, 98, 99, (2 << 2) | 3, 3, 0, 0, 0], 'abcabc'],
  ]
  for (const [name, bytes, text] of cases) {
    test(name, () => assert.equal(uncompressSnappy(Buffer.from(bytes), limit).toString(), text))
  }
})

describe('what is not Snappy is refused', () => {
  const cases: readonly (readonly [string, readonly number[]])[] = [
    ['an empty body', []],
    ['a length that never ends', [0x80, 0x80, 0x80, 0x80, 0x80, 0x80]],
    ['less than was declared, which would show what was in memory before', [100, 2 << 2, 97, 98, 99]],
    ['more than was declared', [2, 2 << 2, 97, 98, 99]],
    ['a literal past the end of the body', [9, 8 << 2, 97, 98, 99]],
    ['a literal whose length is cut off', [9, 61 << 2, 1]],
    // Read as a signed number the length is -5, and reading would never end.
    ['a literal of almost 4 GiB', [10, 63 << 2, 0xfa, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0]],
    ['a copy from before the beginning', [7, 2 << 2, 97, 98, 99, (0 << 2) | 1, 4]],
    ['a copy of nothing before', [7, 2 << 2, 97, 98, 99, (0 << 2) | 1, 0]],
    ['a copy past the declared length', [5, 2 << 2, 97, 98, 99, (0 << 2) | 1, 3]],
    ['a copy with a cut-off offset', [9, 2 << 2, 97, 98, 99, (2 << 2) | 3, 3, 0]],
    ['a copy from 4 GiB before', [9, 2 << 2, 97, 98, 99, (2 << 2) | 3, 0xff, 0xff, 0xff, 0xff]],
  ]
  for (const [name, bytes] of cases) test(name, () => assert.equal(codeOf(Buffer.from(bytes)), 'bad_request'))

  test('any bytes end in an error or in the declared length', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        const body = Buffer.from(bytes)
        const code = codeOf(body, 4096)
        if (code === 'read') assert.equal(uncompressSnappy(body, 4096).length, snappyLength(body, 4096))
        else assert.ok(['bad_request', 'body_too_large'].includes(code))
      }),
      { numRuns: 2000 },
    )
  })
})

test('a few bytes that declare more than the limit are refused before memory is allocated', () => {
  const fourGiB = Buffer.from([0xff, 0xff, 0xff, 0xff, 0x0f, 0, 97])
  assert.equal(codeOf(fourGiB), 'body_too_large')
  assert.equal(codeOf(compress(Buffer.alloc(limit)), limit), 'read')
  assert.equal(codeOf(compress(Buffer.alloc(limit + 1)), limit), 'body_too_large')
})
