// How the rows of a request are divided: every row once, in the order in which it came.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { FairShares } from '../../core/turns/fair-shares.ts'
import { markLength, type TableRows } from '../../telemetry/rows.ts'
import { PendingBatch, sliceBytes } from './pending-batch.ts'

const place = { tenantId: 'acme', placement: 1 }

/** Rows of these sizes, each with a byte of its own. */
function rowsOf(table: TableRows['table'], sizes: readonly number[]): TableRows {
  const marks = new Uint32Array(sizes.length * markLength)
  let end = 0
  for (const [at, size] of sizes.entries()) {
    end += size
    marks[at * markLength] = end
  }
  const bytes = Buffer.concat(sizes.map((size, at) => Buffer.alloc(size, at + 1)))
  return { table, place, bytes, marks, minTimeNs: 0n, maxTimeNs: 0n }
}

const batchOf = (rows: readonly TableRows[]) =>
  new PendingBatch(place, rows, () => new FairShares(2 ** 30).open('acme', () => {}))

test('a batch that fits into a slice is not copied and not divided', () => {
  const rows = rowsOf('otel_logs', [sliceBytes / 2, sliceBytes / 2])
  const { slices } = batchOf([rows])
  assert.deepEqual(
    slices.map(({ bytes, rows: count }) => [bytes, count]),
    [[sliceBytes, 2]],
  )
  assert.equal(slices[0]?.encoded[0]?.[1], rows.bytes)
})

test('slices are about equal, so that no small one costs an insert of its own', () => {
  const sizes = Array.from({ length: 90 }, () => 100_000)
  const { slices } = batchOf([rowsOf('otel_logs', sizes)])
  assert.deepEqual(
    slices.map(({ rows }) => rows),
    [45, 45],
  )
})

test('slices have every row once and in order, and are small or have one row', () => {
  const sizes = fc.array(fc.oneof(fc.integer({ min: 1, max: 100_000 }), fc.constant(3_000_000)), {
    maxLength: 12,
  })
  const large = sizes.map((some) => [...some, 9_000_000])
  fc.assert(
    fc.property(sizes, large, (logs, traces) => {
      const rows = [rowsOf('otel_logs', logs), rowsOf('otel_traces', traces)]
      const batch = batchOf(rows)
      for (const { table, bytes } of rows) {
        const inSlices = batch.slices.flatMap(({ encoded }) =>
          encoded.flatMap(([name, part]) => (name === table ? [part] : [])),
        )
        assert.ok(Buffer.concat(inSlices).equals(bytes))
      }
      const sum = (of: (slice: (typeof batch.slices)[number]) => number) =>
        batch.slices.reduce((total, slice) => total + of(slice), 0)
      assert.equal(
        sum((slice) => slice.rows),
        logs.length + traces.length,
      )
      assert.equal(
        sum((slice) => slice.bytes),
        batch.bytes,
      )
      for (const { bytes, encoded, rows: count } of batch.slices) {
        assert.equal(
          encoded.reduce((total, [, part]) => total + part.length, 0),
          bytes,
        )
        assert.ok(bytes <= sliceBytes || count === 1, `${count} rows of ${bytes} bytes`)
      }
    }),
    { numRuns: 15 },
  )
})
