// One episode, one anomaly: compares the findings of a run with the recorded anomalies.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Finding } from './findings.ts'
import { type RecordedAnomaly, type RunWindow, reconcile } from './reconcile.ts'

const hour = 3_600_000_000_000n

const finding = (from: number, to: number, more: Partial<Finding> = {}): Finding => ({
  groupKey: '{}',
  startedNs: BigInt(from),
  seenUntilNs: BigInt(to),
  raisedNs: BigInt(to),
  isOpen: false,
  peakNs: BigInt(from),
  value: 1,
  expected: null,
  lower: null,
  upper: 0,
  score: 2,
  reason: 'high',
  isMuted: false,
  edgeFactor: 1,
  alsoRead: [],
  ...more,
})

const recorded = (
  id: string,
  from: number,
  to: number,
  more: Partial<RecordedAnomaly> = {},
): RecordedAnomaly => ({
  id,
  groupKey: '{}',
  startedNs: BigInt(from),
  seenUntilNs: BigInt(to),
  isOpen: false,
  ...more,
})

const first: RunWindow = { startNs: 0n, windowStartNs: 0n, judgedUntilNs: null, isTruncated: false }

test('a new finding creates an anomaly, and finding it again changes nothing', () => {
  const found = [finding(10, 20), finding(30, 40, { isOpen: true })]
  assert.deepEqual(reconcile([], found, first), { create: found, update: [], close: [] })
  const again = [recorded('a', 10, 20), recorded('b', 30, 40, { isOpen: true })]
  assert.deepEqual(reconcile(again, found, first), {
    create: [],
    update: [{ id: 'b', finding: found[1] }],
    close: [],
  })
})

test('an anomaly is recognised although its start has moved', () => {
  const moved = finding(12, 25, { isOpen: true })
  assert.deepEqual(reconcile([recorded('a', 10, 20, { isOpen: true })], [moved], first), {
    create: [],
    update: [{ id: 'a', finding: moved }],
    close: [],
  })
})

test('the same time in another group is another anomaly', () => {
  const other = finding(10, 20, { groupKey: '{"service":"b"}' })
  assert.deepEqual(reconcile([recorded('a', 10, 20)], [other], first).create, [other])
})

test('neighbours that only touch are two anomalies', () => {
  assert.equal(reconcile([recorded('a', 10, 20)], [finding(20, 30)], first).create.length, 1)
})

test('an ended anomaly is not rewritten unless its episode continues', () => {
  const ended = [recorded('a', 10, 20)]
  assert.deepEqual(reconcile(ended, [finding(11, 19)], first).update, [])
  assert.deepEqual(
    reconcile(ended, [finding(10, 24)], first).update.map(({ id }) => id),
    ['a'],
  )
  assert.deepEqual(
    reconcile(ended, [finding(10, 20, { isOpen: true })], first).update.map(({ id }) => id),
    ['a'],
  )
})

test('an open anomaly that is not found any more is closed, unless its series was left out', () => {
  const open = [recorded('a', 10, 20, { isOpen: true }), recorded('b', 10, 20)]
  assert.deepEqual(reconcile(open, [], first).close, ['a'])
  assert.deepEqual(reconcile(open, [], { ...first, isTruncated: true }).close, [])
  assert.deepEqual(reconcile(open, [], { ...first, startNs: 20n, isTruncated: true }).close, ['a'])
})

test('of two open anomalies that turn out to be one, the other is closed', () => {
  const open = [recorded('a', 10, 20, { isOpen: true }), recorded('b', 25, 30, { isOpen: true })]
  const changes = reconcile(open, [finding(10, 40, { isOpen: true })], first)
  assert.deepEqual(
    changes.update.map(({ id }) => id),
    ['a'],
  )
  assert.deepEqual(changes.close, ['b'])
})

test('an episode far in the past that was not reported then is not reported later', () => {
  const run = { ...first, judgedUntilNs: 10n * hour }
  const at = (hours: number, isOpen = false) => {
    const raisedNs = BigInt(Math.round(hours * 100)) * (hour / 100n)
    return finding(0, 1, { startedNs: raisedNs - 1n, seenUntilNs: raisedNs, raisedNs, isOpen })
  }
  assert.equal(reconcile([], [at(8)], run).create.length, 0)
  assert.equal(reconcile([], [at(9.5)], run).create.length, 1, 'late by half an hour')
  assert.equal(reconcile([], [at(11)], run).create.length, 1)
  assert.equal(reconcile([], [at(8, true)], run).create.length, 1, 'it is still open')
})

test('an episode that was raised before the window, during warm-up, is not recorded', () => {
  const run = { ...first, windowStartNs: 50n }
  assert.equal(reconcile([], [finding(10, 50)], run).create.length, 0)
  assert.equal(reconcile([], [finding(10, 51)], run).create.length, 1)
})

test('whatever was found, finding it again changes only what is open', () => {
  const cuts = fc.uniqueArray(fc.integer({ min: 1, max: 1000 }), { minLength: 2, maxLength: 20 })
  fc.assert(
    fc.property(cuts, fc.boolean(), (unsorted, lastIsOpen) => {
      const sorted = unsorted.toSorted((a, b) => a - b)
      const found = sorted
        .slice(0, sorted.length - (sorted.length % 2))
        .flatMap((from, i, all) => (i % 2 === 0 ? [finding(from, all[i + 1] ?? from + 1)] : []))
        .map((each, i, all) => ({ ...each, isOpen: lastIsOpen && i === all.length - 1 }))
      const { create } = reconcile([], found, first)
      assert.equal(create.length, found.length)
      const asRecorded = create.map((each, i) =>
        recorded(String(i), Number(each.startedNs), Number(each.seenUntilNs), { isOpen: each.isOpen }),
      )
      const again = reconcile(asRecorded, found, first)
      assert.deepEqual(again.create, [])
      assert.deepEqual(again.close, [])
      assert.equal(again.update.length, lastIsOpen ? 1 : 0)
    }),
  )
})

/** The recorded anomaly of a finding by comparing it with each. */
function sameByComparingAll(all: readonly RecordedAnomaly[], { groupKey, seenUntilNs, startedNs }: Finding) {
  const same = all
    .toSorted((a, b) => Number(a.startedNs - b.startedNs))
    .filter((one) => one.groupKey === groupKey && one.startedNs < seenUntilNs && startedNs < one.seenUntilNs)
  return same.find(({ isOpen }) => isOpen) ?? same.at(-1)
}

test('whatever is recorded, a finding is the first open anomaly that shares its time, or else the last one', () => {
  const span = fc.record({
    from: fc.integer({ min: 0, max: 60 }),
    length: fc.oneof(fc.integer({ min: 1, max: 5 }), fc.integer({ min: 1, max: 60 })),
    isOpen: fc.oneof(fc.constant(false), fc.constant(false), fc.boolean()),
    groupKey: fc.constantFrom('a', 'b'),
  })
  const spans = fc.array(span, { maxLength: 30 })
  const run = { ...first, isTruncated: false, judgedUntilNs: 0n }
  fc.assert(
    fc.property(spans, span, (all, { from, length, ...more }) => {
      const before = all.map(({ from, length, ...rest }, i) => recorded(String(i), from, from + length, rest))
      const found = finding(from, from + length, more)
      const target = sameByComparingAll(before, found)
      const { close, create, update } = reconcile(before, [found], run)
      const continues = more.isOpen || found.seenUntilNs > (target?.seenUntilNs ?? 0n)
      const isUpdated = target !== undefined && (target.isOpen || continues)
      assert.deepEqual(update, isUpdated ? [{ id: target.id, finding: found }] : [])
      if (target !== undefined) assert.deepEqual(create, [])
      const openIds = before.filter(({ id, isOpen }) => isOpen && id !== target?.id).map(({ id }) => id)
      assert.deepEqual(close, openIds)
    }),
    { numRuns: 500 },
  )
})

test('a thousand findings are not each compared with every recorded anomaly', () => {
  let reads = 0
  const counted = (id: string, from: number, to: number, more: Partial<RecordedAnomaly>) => {
    const anomaly = recorded(id, from, to, more)
    return new Proxy(anomaly, {
      get(target, name, receiver) {
        reads++
        return Reflect.get(target, name, receiver)
      },
    })
  }
  const count = 1000
  const starts = Array.from({ length: count }, (_, i) => 10 * i + 100)
  for (const isOpen of [false, true]) {
    reads = 0
    const before = [
      counted('other', 0, 50, { isOpen: false }),
      ...starts.map((start, i) => counted(String(i), start, start + 5, { isOpen })),
    ]
    const found = starts.map((start) => finding(start, start + 5))
    const { update } = reconcile(before, found, first)
    assert.equal(update.length, isOpen ? count : 0)
    assert(reads < 100 * count, `${reads} reads`)
  }
})
