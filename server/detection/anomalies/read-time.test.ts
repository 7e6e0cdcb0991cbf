// The time that anomalies say they learnt from is exact, or nothing learnt is recorded.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type BoundedRange, without } from '../../core/time-range.ts'
import { atNs, findingOf } from '../detection-fixture.ts'
import type { RunFound } from './anomaly-rows.ts'
import type { Finding } from './findings.ts'
import { ReadTime } from './read-time.ts'

function foundOf(findings: readonly Finding[], read: readonly BoundedRange[], isLearnt = true): RunFound {
  const window = { startNs: 0n, windowStartNs: 0n, judgedUntilNs: null, isTruncated: false }
  return { findings, window, signals: ['traces'], read, isLearnt, isUnknown: () => false }
}

/** What each finding says, computed on its own from everything that it was computed from. */
function plainColumns({ alsoRead, seenUntilNs, startedNs }: Finding, read: readonly BoundedRange[]) {
  const all = [...read, ...alsoRead]
  const starts = [startedNs, ...all.map((one) => one.startNs)].toSorted((a, b) => Number(a - b))
  const startNs = starts[0] ?? startedNs
  const holes = without({ startNs, endNs: seenUntilNs }, all)
  return {
    read_from_ns: String(startNs),
    unread_ns: JSON.stringify(holes.map((hole) => [String(hole.startNs), String(hole.endNs)])),
  }
}

const rangeAt = fc
  .tuple(fc.integer({ min: 0, max: 60 }), fc.integer({ min: 1, max: 9 }))
  .map(([from, length]) => ({ startNs: BigInt(from), endNs: BigInt(from + length) }))

test('a finding says that it read the window and what its feedback read, up to its end', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(rangeAt, { maxLength: 8 }),
      fc.array(fc.array(rangeAt, { maxLength: 5 }), { minLength: 1, maxLength: 3 }),
      fc.array(fc.tuple(rangeAt, fc.nat(2)), { maxLength: 6 }),
      async (read, feedback, owns) => {
        const findings = owns.map(([own, nth]) =>
          findingOf(own.startNs, own.endNs, { alsoRead: feedback[nth % feedback.length] ?? [] }),
        )
        const time = await ReadTime.of(foundOf(findings, read))
        assert.deepEqual(
          findings.map((finding) => time.columnsOf(finding)),
          findings.map((finding) => plainColumns(finding, read)),
        )
      },
    ),
  )
})

const stretches = (count: number) =>
  Array.from({ length: count }, (_, i) => ({ startNs: atNs(-2 * i - 2), endNs: atNs(-2 * i - 1) }))

test('a hundred stretches are recorded exactly, and with more nothing is said to be read', async () => {
  const finding = findingOf(atNs(-1.5), atNs(-1))
  const [most, tooMany] = [stretches(100), stretches(101)]
  const exact = (await ReadTime.of(foundOf([finding], most))).columnsOf(finding)
  assert.deepEqual(exact, plainColumns(finding, most))
  assert.equal(JSON.parse(exact?.unread_ns ?? '').length, 99)
  assert.equal((await ReadTime.of(foundOf([finding], tooMany))).columnsOf(finding), null)
  const widened = { ...finding, alsoRead: [{ startNs: atNs(-1000), endNs: atNs(-999) }] }
  const both = await ReadTime.of(foundOf([finding, widened], most))
  assert.deepEqual(both.columnsOf(finding), exact)
  assert.equal(both.columnsOf(widened), null, 'with what feedback read')
})

test('a configured band is read from the time of the finding, however much of the past is erased', async () => {
  const finding = findingOf(atNs(-2), atNs(-1))
  const time = await ReadTime.of(foundOf([finding], stretches(101), false))
  assert.deepEqual(time.columnsOf(finding), { read_from_ns: String(atNs(-2)), unread_ns: '[]' })
})
