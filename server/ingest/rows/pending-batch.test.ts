// How the rows of a request are divided: every row once, in the order in which it came.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { FairShares } from '../../core/turns/fair-shares.ts'
import { markLength, type TableRows } from '../../telemetry/rows.ts'
import { PendingBatch, pieceBytes } from './pending-batch.ts'

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

test('a batch that fits into a piece is not copied and not divided', () => {
  const rows = rowsOf('otel_logs', [pieceBytes / 2, pieceBytes / 2])
  const { pieces } = batchOf([rows])
  assert.deepEqual(
    pieces.map(({ bytes, rows: count }) => [bytes, count]),
    [[pieceBytes, 2]],
  )
  assert.equal(pieces[0]?.encoded[0]?.[1], rows.bytes)
})

test('pieces are about equal, so that no small one costs an insert of its own', () => {
  const sizes = Array.from({ length: 90 }, () => 100_000)
  const { pieces } = batchOf([rowsOf('otel_logs', sizes)])
  assert.deepEqual(
    pieces.map(({ rows }) => rows),
    [45, 45],
  )
})

test('pieces have every row once and in order, and are small or have one row', () => {
  const sizes = fc.array(fc.oneof(fc.integer({ min: 1, max: 100_000 }), fc.constant(3_000_000)), {
    maxLength: 12,
  })
  const large = sizes.map((some) => [...some, 9_000_000])
  fc.assert(
    fc.property(sizes, large, (logs, traces) => {
      const rows = [rowsOf('otel_logs', logs), rowsOf('otel_traces', traces)]
      const batch = batchOf(rows)
      for (const { table, bytes } of rows) {
        const inPieces = batch.pieces.flatMap(({ encoded }) =>
          encoded.flatMap(([name, part]) => (name === table ? [part] : [])),
        )
        assert.ok(Buffer.concat(inPieces).equals(bytes))
      }
      const sum = (of: (piece: (typeof batch.pieces)[number]) => number) =>
        batch.pieces.reduce((total, piece) => total + of(piece), 0)
      assert.equal(
        sum((piece) => piece.rows),
        logs.length + traces.length,
      )
      assert.equal(
        sum((piece) => piece.bytes),
        batch.bytes,
      )
      for (const { bytes, encoded, rows: count } of batch.pieces) {
        assert.equal(
          encoded.reduce((total, [, part]) => total + part.length, 0),
          bytes,
        )
        assert.ok(bytes <= pieceBytes || count === 1, `${count} rows of ${bytes} bytes`)
      }
    }),
    { numRuns: 15 },
  )
})
