// Compares single values with Node's own encoders, around the lengths where the way of writing changes.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { RowBinary } from './row-binary.ts'

function written(write: (out: RowBinary) => void): Buffer {
  const out = new RowBinary()
  write(out)
  return out.toBuffer()
}

function leb128(value: number): number[] {
  return value < 128 ? [value] : [(value & 127) | 128, ...leb128(value >>> 7)]
}

const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 60 }),
  fc.string({ unit: 'binary-ascii', minLength: 30, maxLength: 300 }),
)

test('a text is its length and its UTF-8, from a string and from bytes', () => {
  fc.assert(
    fc.property(text, fc.nat(3), (value, before) => {
      const bytes = Buffer.from(value)
      const expected = Buffer.from([...leb128(bytes.length), ...bytes])
      assert.deepEqual(
        written((out) => out.text(value)),
        expected,
      )
      const around = Buffer.concat([Buffer.alloc(before, 'x'), bytes, Buffer.from('y')])
      assert.deepEqual(
        written((out) => out.utf8(around, before, before + bytes.length)),
        expected,
      )
    }),
  )
})

test('a bare text is its UTF-8 alone, after what was written before and before what follows', () => {
  fc.assert(
    fc.property(text, fc.nat(3), (value, before) => {
      const bytes = Buffer.from(value)
      const expected = Buffer.concat([Buffer.of(0xfe), bytes, Buffer.of(0xff)])
      const between = (write: (out: RowBinary) => void) =>
        written((out) => {
          out.uint8(0xfe)
          write(out)
          out.uint8(0xff)
        })
      const around = Buffer.concat([Buffer.alloc(before, 'x'), bytes, Buffer.from('y')])
      assert.deepEqual(
        between((out) => out.bareText(value)),
        expected,
      )
      assert.deepEqual(
        between((out) => out.bareUtf8(around, before, before + bytes.length)),
        expected,
      )
    }),
  )
})

test('bytes that are not UTF-8 become what decoding them returns', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 80 }), (given) => {
      const bytes = Buffer.from(given)
      const expected = Buffer.from(bytes.toString('utf8'))
      assert.deepEqual(
        written((out) => out.utf8(bytes, 0, bytes.length)),
        Buffer.from([...leb128(expected.length), ...expected]),
      )
      assert.deepEqual(
        written((out) => out.bareUtf8(bytes, 0, bytes.length)),
        expected,
      )
    }),
  )
})

test('lone surrogates become U+FFFD, so that no byte of a text is 254 or 255', () => {
  const halves = ['\ud800', '\udfff', 'a\ud800b', '\udc00\ud800', '\u00fe\u00ff', `${'x'.repeat(50)}\ud800`]
  for (const value of halves) {
    const bare = written((out) => out.bareText(value))
    assert.deepEqual(bare, Buffer.from(value))
    assert.ok(!bare.includes(0xfe) && !bare.includes(0xff))
  }
})

test('lengths up to 32 bits are LEB128', () => {
  for (const value of [0, 127, 128, 16_383, 16_384, 2 ** 31, 2 ** 32 - 1]) {
    assert.deepEqual([...written((out) => out.varint(value))], leb128(value))
  }
})

test('numbers are little-endian, and every NaN is the same', () => {
  const numbers = written((out) => {
    out.uint16(0x0102)
    out.uint32(-2)
    out.uint64(1, 0xffff_fffe)
    out.float64(-0)
    out.float64(Number.NaN)
  })
  const hex = '0201feffffff' + 'feffffff01000000' + '0000000000000080' + '000000000000f87f'
  assert.equal(numbers.toString('hex'), hex)
})

test('wiping writes zeros and keeps the memory', () => {
  const out = new RowBinary()
  out.text('a secret of some length')
  const { bytes } = out
  out.wipe()
  assert.equal(out.length, 0)
  assert.ok(!bytes.subarray(0, 40).toString('latin1').includes('secret'))
  out.text('b')
  assert.equal(out.bytes, bytes)
})
