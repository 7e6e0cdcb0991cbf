// Reads the Native format from bytes that the tests write; native-reader.db.test.ts reads those of the
// engine.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { halvesOf, NativeReader } from './native-reader.ts'
import { RowBinary } from './row-binary.ts'

/** A block of one column. */
function block(rows: number, type: string, write: (out: RowBinary) => void): Buffer {
  const out = new RowBinary()
  out.varint(1)
  out.varint(rows)
  out.text('c')
  out.text(type)
  write(out)
  return out.toBuffer()
}

test('a difference of instants is exact to the nanosecond, also across the two halves of a number', () => {
  const origin = 1_763_712_000_000_000_000n
  const differences = [0n, 1n, -1n, 4_294_967_296n, -4_294_967_297n, 8_640_000_000_000_001n]
  const bytes = block(differences.length + 1, "DateTime64(9, 'UTC')", (out) => {
    for (const instant of [...differences.map((difference) => origin + difference), 0n])
      out.uint64(Number(instant >> 32n), Number(instant & 0xffff_ffffn))
  })
  const native = new NativeReader(bytes)
  assert.equal(native.block(), differences.length + 1)
  const times = native.longs()
  for (const [row, difference] of differences.entries())
    assert.equal(times.from(halvesOf(origin), row), Number(difference))
  const epoch = times.from(halvesOf(origin), differences.length)
  assert.ok(Math.abs(epoch + Number(origin)) < 1000, 'a start long ago is rounded')
  assert.ok(native.isDone)
})

test('bytes that end too early are refused, and so are lists that claim more items than they have', () => {
  const none = () => undefined
  const lists = block(1, 'Array(Float64)', (out) => out.uint64(0, 2 ** 31))
  const reads: readonly [Buffer, (native: NativeReader) => unknown][] = [
    [Buffer.alloc(0), () => undefined],
    [Buffer.from([1]), () => undefined],
    [Buffer.from([1, 128]), () => undefined],
    [block(1, 'Float64', none), (native) => native.float64s()],
    [block(2, 'String', (out) => out.text('a')), (native) => native.texts()],
    [block(1, 'String', (out) => out.varint(1)), (native) => native.texts()],
    [block(1, 'UInt64', (out) => out.uint8(1)), (native) => native.longs()],
    [lists, (native) => native.float64Lists()],
  ]
  for (const [bytes, read] of reads) {
    const all = () => {
      const native = new NativeReader(bytes)
      native.block()
      read(native)
    }
    assert.throws(all, RangeError)
  }
})

test('a column of an unexpected type is refused by its name', () => {
  const bytes = block(1, 'LowCardinality(String)', (out) => out.uint64(0, 0))
  const native = new NativeReader(bytes)
  native.block()
  assert.throws(() => native.texts(), /column c is of the type LowCardinality\(String\)/)
})
