// Rows against the ranges that are refused for good: exact to the nanosecond, per signal, and nothing else lost.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { batchOf, encodeRows } from '../../tests/fixtures.ts'
import { here } from '../../tests/otlp/decode-here.ts'
import { assertBatchFits, namedRows } from '../../tests/otlp/named-cells.ts'
import { rowCount } from '../telemetry/rows.ts'
import { type LateSelection, withoutLate } from './late-rows.ts'

const second = 1_000_000_000n
const erased: LateSelection = {
  id: 'del_1',
  signals: ['logs', 'traces'],
  range: { startNs: 10n * second, endNs: 20n * second },
}
const around = [10n * second - 1n, 10n * second, 20n * second - 1n, 20n * second]

test('rows inside the range are left out to the nanosecond, and the extent shrinks to what is left', () => {
  const { batch, late } = withoutLate(encodeRows(here, [batchOf('otel_logs', around)]), [erased])
  assert.deepEqual([...late], [['del_1', 2]])
  assert.deepEqual(batch.map(rowCount), [2])
  assert.deepEqual(
    namedRows(batch, 'otel_logs'),
    namedRows(encodeRows(here, [batchOf('otel_logs', [10n * second - 1n, 20n * second])]), 'otel_logs'),
  )
  assertBatchFits(batch)
  assert.deepEqual([batch[0]?.minTimeNs, batch[0]?.maxTimeNs], [around[0], around[3]])
  const edges = withoutLate(encodeRows(here, [batchOf('otel_logs', around.slice(1))]), [erased]).batch
  assert.deepEqual([edges[0]?.minTimeNs, edges[0]?.maxTimeNs], [around[3], around[3]])
})

test('another signal of the same time is in time, and so is everything where nothing is refused', () => {
  const metrics = encodeRows(here, [batchOf('otel_metrics_sum', around)])
  assert.equal(withoutLate(metrics, [erased]).batch, metrics)
  const logs = encodeRows(here, [batchOf('otel_logs', around)])
  assert.equal(withoutLate(logs, []).batch, logs)
})

test('a batch that is late as a whole is empty, and each row counts once, for the first that refuses it', () => {
  const everything: LateSelection = { id: 'del_2', signals: ['logs'], range: { startNs: null, endNs: null } }
  const { batch, late } = withoutLate(encodeRows(here, [batchOf('otel_logs', around)]), [erased, everything])
  assert.deepEqual(batch, [])
  assert.deepEqual(
    [...late],
    [
      ['del_2', 2],
      ['del_1', 2],
    ],
  )
})
