// What a retention rule erases: whole days counted back from a UTC midnight, signals with the same limit
// together, and never held rows.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { nsPerMs } from '../../../contract/values/instant.ts'
import { type TimeRange, without } from '../../core/time-range.ts'
import type { HeldPart } from '../../telemetry/held-part.ts'
import type { Signal } from '../../telemetry/schema/tables.ts'
import { cutOffMs, type RetentionRule, retentionDrafts, retentionKey } from './retention.ts'
import { SettledTime } from './settled-time.ts'

const noon = Date.parse('2026-03-10T12:34:56.789Z')
const ns = (text: string) => BigInt(Date.parse(text)) * nsPerMs
const rule = (...days: [Signal, number][]) => new Map(days)

function draftsOf(given: RetentionRule, held: readonly HeldPart[], nowMs: number) {
  const settled = new SettledTime()
  for (const part of held) settled.add(part)
  return [...retentionDrafts(given, settled, nowMs)]
}

test('a day is kept completely: the cut is the UTC midnight that number of days before the current day', () => {
  assert.equal(cutOffMs(noon, 1), Date.parse('2026-03-09T00:00:00Z'))
  assert.equal(cutOffMs(Date.parse('2026-03-10T00:00:00Z'), 7), Date.parse('2026-03-03T00:00:00Z'))
  assert.equal(cutOffMs(Date.parse('2026-03-09T23:59:59.999Z'), 7), Date.parse('2026-03-02T00:00:00Z'))
})

test('signals with the same limit are erased together, and one without a limit is kept', () => {
  const drafts = draftsOf(rule(['logs', 7], ['metrics', 7]), [], noon)
  assert.deepEqual(
    drafts.map(({ range, scope, signals }) => [scope, signals, range]),
    [['range', ['metrics', 'logs'], { startNs: null, endNs: ns('2026-03-03T00:00:00Z') }]],
  )
  assert.deepEqual(draftsOf(rule(), [], noon), [])
})

test('held time is left out for the signals of the hold, so that a hold of years does not stop the rest', () => {
  const held = {
    signals: ['logs' as const],
    range: { startNs: ns('2026-02-01T00:00:00Z'), endNs: ns('2026-02-02T00:00:00Z') },
  }
  const drafts = draftsOf(rule(['logs', 7], ['traces', 7]), [held], noon)
  const end = ns('2026-03-03T00:00:00Z')
  assert.deepEqual(
    drafts.map(({ range, signals }) => [signals, range.startNs, range.endNs]),
    [
      [['logs'], null, held.range.startNs],
      [['traces'], null, end],
      [['logs'], held.range.endNs, end],
    ],
  )
  const wholeHold = { signals: ['logs' as const], range: { startNs: null, endNs: null } }
  assert.deepEqual(draftsOf(rule(['logs', 7]), [wholeHold], noon), [])
})

test('a rule uses one idempotency key for a day, and another one the next day or with another limit', () => {
  const keyAt = (nowMs: number, days: number) => {
    const [draft] = draftsOf(rule(['logs', days]), [], nowMs)
    assert.ok(draft)
    return retentionKey(draft, nowMs)
  }
  assert.equal(keyAt(noon, 7), keyAt(noon + 3_600_000, 7))
  assert.notEqual(keyAt(noon, 7), keyAt(noon + 86_400_000, 7))
  assert.notEqual(keyAt(noon, 7), keyAt(noon, 8))
})

test('what is settled has the gaps of its union, in whatever order and however often it was added', () => {
  const bound = fc.option(fc.bigInt({ min: 0n, max: 30n }), { freq: 6 })
  const range = fc
    .tuple(bound, bound)
    .map(([startNs, endNs]): TimeRange => ({ startNs, endNs }))
    .filter(({ endNs, startNs }) => startNs === null || endNs === null || startNs < endNs)
  fc.assert(
    fc.property(fc.array(range, { maxLength: 12 }), (ranges) => {
      const settled = new SettledTime()
      for (const one of ranges) settled.add({ signals: ['logs'], range: one })
      const old = { startNs: null, endNs: 20n }
      assert.deepEqual([...settled.gaps('logs', 20n)], without(old, ranges))
      assert.deepEqual([...settled.gaps('traces', 20n)], [old])
    }),
  )
})

test('when everything was handled, one range is left, whatever holds are released afterwards', () => {
  const settled = new SettledTime()
  for (let i = 0n; i < 2_000n; i++)
    settled.add({ signals: ['logs'], range: { startNs: 2n * i, endNs: 2n * i + 1n } })
  const week = rule(['logs', 7])
  const left = [...retentionDrafts(week, settled, noon)]
  assert.equal(left.length, 2_001)
  for (const draft of left) settled.add(draft)
  assert.deepEqual([...retentionDrafts(week, settled, noon)], [])
  const shorter = [...retentionDrafts(rule(['logs', 6]), settled, noon)]
  assert.deepEqual(
    shorter.map(({ range }) => range),
    [{ startNs: ns('2026-03-03T00:00:00Z'), endNs: ns('2026-03-04T00:00:00Z') }],
  )
})
