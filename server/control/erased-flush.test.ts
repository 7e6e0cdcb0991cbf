// When a flush runs for callers that come at once, one after the other, or after a failure.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { workFor, workOwner } from '../core/work-owner.ts'
import { ErasedBytesKept, ErasedFlush } from './erased-flush.ts'

/** A flush whose runs end when the test says so. */
function flushByHand() {
  const runs: { tables: readonly string[]; end: PromiseWithResolvers<void> }[] = []
  const flush = new ErasedFlush((tables) => {
    const end = Promise.withResolvers<void>()
    runs.push({ tables, end })
    return end.promise
  })
  return { flush, runs }
}

const settled = () => new Promise<void>((resolve) => setImmediate(resolve))

test('callers that come while a flush is running share one that begins after it', async () => {
  const { flush, runs } = flushByHand()
  const first = flush.flush(['anomalies'])
  await settled()
  const ended: string[] = []
  const later = ['anomalies', 'detectors'].map((table) => flush.flush([table]).then(() => ended.push(table)))
  await settled()
  assert.equal(runs.length, 1)
  runs[0]?.end.resolve()
  await first
  await settled()
  assert.deepEqual(ended, [], 'the first flush may have passed their rows')
  assert.deepEqual(runs[1]?.tables, ['anomalies', 'detectors'])
  runs[1]?.end.resolve()
  await Promise.all(later)
  assert.equal(runs.length, 2)
})

test('a failed flush is an error to all who share it, and its tables are in the next one', async () => {
  const { flush, runs } = flushByHand()
  const shared = [flush.flush(['organisations']), flush.flush(['anomalies'])]
  await settled()
  runs[0]?.end.reject(new ErasedBytesKept('Somebody reads.'))
  for (const one of shared) await assert.rejects(one, ErasedBytesKept)
  const next = flush.flush(['anomalies'])
  await settled()
  assert.deepEqual(runs[1]?.tables.toSorted(), ['anomalies', 'organisations'])
  runs[1]?.end.resolve()
  await next
  void flush.flush(['detectors']).catch(() => {})
  await settled()
  assert.deepEqual(runs[2]?.tables, ['detectors'], 'what was flushed is due no more')
  runs[2]?.end.resolve()
})

test('a flush is work of nobody, because callers of other organisations share it', async () => {
  const owners: (string | null)[] = []
  const flush = new ErasedFlush(async () => {
    owners.push(workOwner())
  })
  await workFor('acme', () => flush.flush(['anomalies']))
  assert.deepEqual(owners, [null])
})
