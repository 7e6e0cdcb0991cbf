// Reading RowBinary: what the writer of it wrote comes back, and bytes that end too early are refused.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { RowBinary } from './row-binary.ts'
import { halvesOf, RowBinaryReader } from './row-binary-reader.ts'

test('what was written is read', () => {
  const anyRow = fc.record({
    text: fc.string({ unit: 'grapheme', maxLength: 300 }),
    float: fc.double(),
    small: fc.integer({ min: 0, max: 255 }),
    signed: fc.integer(),
    big: fc.maxSafeNat(),
    list: fc.array(fc.double(), { maxLength: 200 }),
  })
  fc.assert(
    fc.property(fc.array(anyRow, { maxLength: 5 }), (rows) => {
      const out = new RowBinary()
      for (const { text, float, small, signed, big, list } of rows) {
        out.text(text)
        out.float64(float)
        out.uint8(small)
        out.uint32(signed >>> 0)
        out.uint64(Math.floor(big / 2 ** 32), big % 2 ** 32)
        out.text(text)
        out.varint(list.length)
        for (const one of list) out.float64(one)
      }
      const read = new RowBinaryReader(out.toBuffer())
      for (const row of rows) {
        assert.equal(read.text(), row.text)
        assert.ok(Object.is(read.float64(), row.float))
        assert.equal(read.uint8(), row.small)
        assert.equal(read.int32(), row.signed)
        assert.equal(read.uint64(), row.big)
        read.skipText()
        assert.deepEqual(read.float64s(), row.list)
      }
      assert.ok(read.isDone)
    }),
  )
})

test('a difference of instants is exact to the nanosecond, also across the halves of a number', () => {
  const origin = 1_763_712_000_000_000_000n
  for (const difference of [0n, 1n, -1n, 4_294_967_296n, -4_294_967_297n, 8_640_000_000_000_001n]) {
    const written = Buffer.alloc(8)
    written.writeBigInt64LE(origin + difference)
    assert.equal(new RowBinaryReader(written).int64From(halvesOf(origin)), Number(difference))
  }
  const epoch = new RowBinaryReader(Buffer.alloc(8)).int64From(halvesOf(origin))
  assert.ok(Math.abs(epoch + Number(origin)) < 1000, 'a start long ago is rounded')
})

test('bytes that end too early are refused, and so is a list that claims to be longer than they are', () => {
  for (const read of [
    () => new RowBinaryReader(Buffer.from([5, 65])).text(),
    () => new RowBinaryReader(Buffer.alloc(7)).float64(),
    () => new RowBinaryReader(Buffer.from([255, 255, 255, 255, 15])).float64s(),
    () => new RowBinaryReader(Buffer.from([128])).text(),
    () => new RowBinaryReader(Buffer.alloc(0)).uint8(),
  ])
    assert.throws(read, RangeError)
})
