// When a flush runs for callers that come at once, one after the other, or after a failure.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { workFor, workOwner } from '../core/work-owner.ts'
import { ErasedBytesKept, ErasedFlush } from './erased-flush.ts'

interface Run {
  readonly tables: readonly string[]
  readonly tenantIds: ReadonlySet<string> | null
  readonly end: PromiseWithResolvers<void>
}

/** A flush whose runs end when the test says so. The database has nothing of organisations in `clean`. */
function flushByHand() {
  const [clean, runs]: [Set<string>, Run[]] = [new Set(), []]
  const flush = new ErasedFlush({
    flush(tables, tenantIds) {
      const end = Promise.withResolvers<void>()
      runs.push({ tables, tenantIds, end })
      return end.promise
    },
    isClean: (_, tenantId) => clean.has(tenantId),
  })
  return { clean, flush, runs }
}

const settled = () => new Promise<void>((resolve) => setImmediate(resolve))

test('callers that come while a flush is running share one that begins after it', async () => {
  const { flush, runs } = flushByHand()
  const first = flush.flush(['anomalies'], 'acme')
  await settled()
  const ended: string[] = []
  const later = ['anomalies', 'detectors'].map((table) =>
    flush.flush([table], 'acme').then(() => ended.push(table)),
  )
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
  const shared = [flush.flush(['organisations'], 'acme'), flush.flush(['anomalies'], 'acme')]
  await settled()
  runs[0]?.end.reject(new ErasedBytesKept('Somebody reads.'))
  for (const one of shared) await assert.rejects(one, ErasedBytesKept)
  const next = flush.flush(['anomalies'], 'acme')
  await settled()
  assert.deepEqual(runs[1]?.tables.toSorted(), ['anomalies', 'organisations'])
  runs[1]?.end.resolve()
  await next
  void flush.flush(['detectors'], 'acme').catch(() => {})
  await settled()
  assert.deepEqual(runs[2]?.tables, ['detectors'], 'what was flushed is due no more')
  runs[2]?.end.resolve()
})

test('an organisation of which the disk has nothing waits for no flush of another', async () => {
  const { clean, flush, runs } = flushByHand()
  clean.add('globex')
  const acme = flush.flush(['anomalies'], 'acme')
  await settled()
  await flush.flush(['anomalies'], 'globex')
  assert.equal(runs.length, 1)
  runs[0]?.end.resolve()
  await acme
  await settled()
  assert.equal(runs.length, 1)
})

test('what a failed flush has left is flushed with the next caller, who does not wait for it where his rows are gone', async () => {
  const { clean, flush, runs } = flushByHand()
  clean.add('globex')
  const acme = flush.flush(['organisations'], 'acme')
  await settled()
  runs[0]?.end.reject(new ErasedBytesKept('Somebody reads.'))
  await assert.rejects(acme, ErasedBytesKept)
  for (const at of [1, 2]) {
    await flush.flush(['anomalies'], 'globex')
    await settled()
    assert.deepEqual(runs[at]?.tables, ['organisations'])
    if (at === 1) runs[at]?.end.reject(new ErasedBytesKept('Somebody still reads.'))
    else runs[at]?.end.resolve()
    await settled()
  }
  await flush.flush(['anomalies'], 'globex')
  await settled()
  assert.equal(runs.length, 3)
})

test('a flush is told whose rows are due, of callers that share it and of flushes that failed', async () => {
  const { flush, runs } = flushByHand()
  const tenantIds = () => runs.map((run) => run.tenantIds && [...run.tenantIds])
  const first = [flush.flush(['anomalies'], 'acme'), flush.flush(['anomalies'], 'globex')]
  await settled()
  assert.deepEqual(tenantIds(), [['acme', 'globex']])
  runs[0]?.end.reject(new ErasedBytesKept('Somebody reads.'))
  for (const one of first) await assert.rejects(one, ErasedBytesKept)
  const second = flush.flush(['anomalies'], 'initech')
  await settled()
  assert.deepEqual(tenantIds()[1]?.toSorted(), ['acme', 'globex', 'initech'])
  runs[1]?.end.resolve()
  await second
  const all = [flush.flush(['anomalies'], 'acme'), flush.flush(['anomalies'], null)]
  await settled()
  assert.deepEqual(tenantIds()[2], null)
  runs[2]?.end.resolve()
  await Promise.all(all)
})

test('a flush is work of nobody, because callers of other organisations share it', async () => {
  const owners: (string | null)[] = []
  const flush = new ErasedFlush({
    flush: async () => {
      owners.push(workOwner())
    },
    isClean: () => false,
  })
  await workFor('acme', () => flush.flush(['anomalies'], 'acme'))
  assert.deepEqual(owners, [null])
})
