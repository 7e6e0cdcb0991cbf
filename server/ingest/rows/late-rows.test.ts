// Rows and the ranges that are refused for ever: exact to the nanosecond, by signal, and nothing else is
// lost.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { batchOf, encodeRows } from '../../../tests/fixtures.ts'
import { here } from '../../../tests/otlp/decode-here.ts'
import { assertBatchFits, namedRows } from '../../../tests/otlp/named-cells.ts'
import { touches } from '../../core/time-range.ts'
import { seededUniform } from '../../detection/scoring/seeded-random.ts'
import { rowCount } from '../../telemetry/rows.ts'
import { type LateSelection, withoutLate } from './late-rows.ts'

const second = 1_000_000_000n
const erased: LateSelection = {
  id: 'del_1',
  signals: ['logs', 'traces'],
  range: { startNs: 10n * second, endNs: 20n * second },
}
const around = [10n * second - 1n, 10n * second, 20n * second - 1n, 20n * second]

test('rows inside the range are left out to the nanosecond, and the time range shrinks to the rest', () => {
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

test('another signal of the same time is not late, and neither is anything where nothing is refused', () => {
  const metrics = encodeRows(here, [batchOf('otel_metrics_sum', around)])
  assert.equal(withoutLate(metrics, [erased]).batch, metrics)
  const logs = encodeRows(here, [batchOf('otel_logs', around)])
  assert.equal(withoutLate(logs, []).batch, logs)
})

test('a batch that is completely late is empty, and each row counts once, for the first that refuses it', () => {
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

test('among many overlapping refusals each row counts for the first that covers it', () => {
  for (let seed = 1; seed <= 20; seed++) {
    const random = seededUniform(seed)
    const at = () => BigInt(Math.floor(random() * 300)) * (second / 10n)
    const refusals = Array.from({ length: 1 + Math.floor(random() * 60) }, (_, i): LateSelection => {
      const [a = 0n, b = 0n] = [at(), at()].sort((x, y) => Number(x - y))
      const openness = random()
      const startNs = openness < 0.03 ? null : a
      const endNs = openness > 0.97 ? null : b + 1n
      const signals = random() < 0.5 ? (['logs'] as const) : (['logs', 'traces'] as const)
      return { id: `del_${i}`, signals, range: { startNs, endNs } }
    })
    const times = Array.from({ length: 200 }, at)
    const expected = new Map<string, number>()
    for (const ns of times) {
      const first = refusals.find(({ range }) => touches(range, ns, ns))
      if (first !== undefined) expected.set(first.id, (expected.get(first.id) ?? 0) + 1)
    }
    const { batch, late } = withoutLate(encodeRows(here, [batchOf('otel_logs', times)]), refusals)
    assert.deepEqual(new Map([...late].sort()), new Map([...expected].sort()), `seed ${seed}`)
    const left = batch.reduce((sum, part) => sum + rowCount(part), 0)
    assert.equal(left, times.length - [...expected.values()].reduce((sum, n) => sum + n, 0), `seed ${seed}`)
  }
})

test('ten thousand refusals are searched and not read one by one', () => {
  let looked = 0
  const counting = (ns: bigint) => ({
    get startNs() {
      looked++
      return ns
    },
    endNs: ns + second,
  })
  const refusals = Array.from(
    { length: 10_000 },
    (_, i): LateSelection => ({ id: `del_${i}`, signals: ['logs'], range: counting(BigInt(2 * i) * second) }),
  )
  const times = Array.from({ length: 2000 }, (_, i) => BigInt(i * 7) * second)
  for (let batch = 0; batch < 5; batch++) {
    const { late } = withoutLate(encodeRows(here, [batchOf('otel_logs', times)]), refusals)
    assert.equal(late.size, 1000)
  }
  assert.equal(looked, 10_000, 'each is looked at once, when it is prepared')
})
