// The 64-bit arithmetic that avoids bigint, compared with bigint.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Uint64 } from './uint64.ts'

const anyUint64 = fc.oneof(
  fc.bigInt(0n, 2n ** 64n - 1n),
  fc.bigInt(0n, 2n ** 33n),
  fc.constantFrom(0n, 2n ** 32n - 1n, 2n ** 32n, 2n ** 53n, 2n ** 64n - 1n),
)

function cell(value: bigint): Uint64 {
  const made = new Uint64()
  made.setBigInt(value)
  return made
}

test('decimal text is read and written exactly', () => {
  fc.assert(
    fc.property(anyUint64, (value) => {
      const read = new Uint64()
      assert.equal(read.setDecimal(String(value)), true)
      assert.equal(read.toBigInt(), value)
      assert.equal(read.toString(), String(value))
    }),
  )
})

test('text that is not an unsigned 64-bit integer is refused and changes nothing', () => {
  const kept = cell(7n)
  for (const text of ['', '-1', '1.0', '1e3', ' 1', '0x10', '18446744073709551616', '9'.repeat(21)]) {
    assert.equal(kept.setDecimal(text), false, text)
    assert.equal(kept.toString(), '7')
  }
})

test('comparison and difference agree with bigint arithmetic', () => {
  fc.assert(
    fc.property(anyUint64, anyUint64, (a, b) => {
      assert.equal(cell(a).isBelow(cell(b)), a < b)
      const difference = new Uint64()
      difference.setDifference(cell(a), cell(b))
      assert.equal(difference.toBigInt(), a > b ? a - b : 0n)
    }),
  )
})
