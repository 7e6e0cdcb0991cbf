// Rows against the ranges that are refused for good: exact to the nanosecond, per signal, and nothing else lost.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { batchOf } from '../../tests/fixtures.ts'
import { type LateSelection, withoutLate } from './late-rows.ts'

const second = 1_000_000_000n
const erased: LateSelection = {
  id: 'del_1',
  signals: ['logs', 'traces'],
  range: { startNs: 10n * second, endNs: 20n * second },
}
const around = [10n * second - 1n, 10n * second, 20n * second - 1n, 20n * second]

test('rows inside the range are left out to the nanosecond, and the extent shrinks to what is left', () => {
  const { batch, late } = withoutLate([batchOf('otel_logs', around)], [erased])
  assert.deepEqual([...late], [['del_1', 2]])
  assert.equal(batch[0]?.rows.length, 2)
  assert.deepEqual([batch[0]?.minTimeNs, batch[0]?.maxTimeNs], [around[0], around[3]])
  const edges = withoutLate([batchOf('otel_logs', around.slice(1))], [erased]).batch
  assert.deepEqual([edges[0]?.minTimeNs, edges[0]?.maxTimeNs], [around[3], around[3]])
})

test('another signal of the same time is in time, and so is everything where nothing is refused', () => {
  const metrics = [batchOf('otel_metrics_sum', around)]
  assert.equal(withoutLate(metrics, [erased]).batch, metrics)
  const logs = [batchOf('otel_logs', around)]
  assert.equal(withoutLate(logs, []).batch, logs)
})

test('a batch that is late as a whole is empty, and each row counts once, for the first that refuses it', () => {
  const everything: LateSelection = { id: 'del_2', signals: ['logs'], range: { startNs: null, endNs: null } }
  const { batch, late } = withoutLate([batchOf('otel_logs', around)], [erased, everything])
  assert.deepEqual(batch, [])
  assert.deepEqual(
    [...late],
    [
      ['del_2', 2],
      ['del_1', 2],
    ],
  )
})
