// Reads results of the engine in the Native format, over several blocks.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { engineOfFile } from '../../tests/fixtures.ts'
import { halvesOf, NativeReader } from './native-reader.ts'
import { raw } from './sql.ts'

const engine = engineOfFile()

test('every supported type is read with the values of the engine, over several blocks', async () => {
  const count = 70_000
  const native = new NativeReader(
    await engine.bytes(
      raw(`SELECT number * 4294967297 AS long, fromUnixTimestamp64Nano(toInt64(1763712000000000000 + number), 'UTC') AS time,
  if(number = 7, nan, number / 4) AS float, toInt32(-number) AS int, number % 2 = 1 AS flag, toString(number % 300) AS text,
  CAST(toLowCardinality(repeat('é', number % 130)), 'String') AS word, '' AS nothing,
  arrayMap(i -> number * i, range(number % 4)) AS counts, arrayMap(i -> i / 2, range(number % 3)) AS bounds
FROM numbers(${count}) ORDER BY number`),
    ),
  )
  const origin = halvesOf(1_763_712_000_000_000_000n)
  let [n, blocks] = [0, 0]
  for (; !native.isDone; blocks++) {
    const rows = native.block()
    const [longs, times, floats, ints] = [native.longs(), native.longs(), native.float64s(), native.int32s()]
    const [flags, texts, words, nothing] = [native.uint8s(), native.texts(), native.texts(), native.texts()]
    const [counts, bounds] = [native.uint64Lists(), native.float64Lists()]
    for (let row = 0; row < rows; row++, n++) {
      const read = [longs.at(row), times.from(origin, row), floats[row], ints[row], flags[row], texts.at(row)]
      assert.deepEqual(
        [...read, words.at(row), nothing.at(row), [...counts.at(row)], [...bounds.at(row)]],
        [n * 4_294_967_297, n, n === 7 ? Number.NaN : n / 4, 0 - n, n % 2, String(n % 300)].concat([
          'é'.repeat(n % 130),
          '',
          Array.from({ length: n % 4 }, (_, i) => n * i),
          Array.from({ length: n % 3 }, (_, i) => i / 2),
        ] as never[]),
      )
    }
  }
  assert.equal(n, count)
  assert.ok(blocks > 1, 'it came in several blocks')
})

test('a result without rows has none', async () => {
  const native = new NativeReader(await engine.bytes(raw('SELECT toUInt64(1) AS one WHERE 0')))
  let rows = 0
  while (!native.isDone) {
    rows += native.block()
    native.longs()
  }
  assert.equal(rows, 0)
})
