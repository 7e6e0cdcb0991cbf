// What a retention rule erases: whole days counted back from a UTC midnight, signals with the same limit
// together, and never held rows.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nsPerMs } from '../../../contract/values/instant.ts'
import type { Signal } from '../../telemetry/schema/tables.ts'
import { cutOffMs, retentionDrafts, retentionKey } from './retention.ts'

const noon = Date.parse('2026-03-10T12:34:56.789Z')
const ns = (text: string) => BigInt(Date.parse(text)) * nsPerMs
const rule = (...days: [Signal, number][]) => new Map(days)

test('a day is kept completely: the cut is the UTC midnight that number of days before the current day', () => {
  assert.equal(cutOffMs(noon, 1), Date.parse('2026-03-09T00:00:00Z'))
  assert.equal(cutOffMs(Date.parse('2026-03-10T00:00:00Z'), 7), Date.parse('2026-03-03T00:00:00Z'))
  assert.equal(cutOffMs(Date.parse('2026-03-09T23:59:59.999Z'), 7), Date.parse('2026-03-02T00:00:00Z'))
})

test('signals with the same limit are erased together, and one without a limit is kept', () => {
  const drafts = retentionDrafts(rule(['logs', 7], ['metrics', 7]), [], noon)
  assert.deepEqual(
    drafts.map(({ range, scope, signals }) => [scope, signals, range]),
    [['range', ['metrics', 'logs'], { startNs: null, endNs: ns('2026-03-03T00:00:00Z') }]],
  )
  assert.deepEqual(retentionDrafts(rule(), [], noon), [])
})

test('held time is left out for the signals of the hold, so that a hold of years does not stop the rest', () => {
  const held = {
    signals: ['logs' as const],
    range: { startNs: ns('2026-02-01T00:00:00Z'), endNs: ns('2026-02-02T00:00:00Z') },
  }
  const drafts = retentionDrafts(rule(['logs', 7], ['traces', 7]), [held], noon)
  const end = ns('2026-03-03T00:00:00Z')
  assert.deepEqual(
    drafts.map(({ range, signals }) => [signals, range.startNs, range.endNs]),
    [
      [['logs'], null, held.range.startNs],
      [['logs'], held.range.endNs, end],
      [['traces'], null, end],
    ],
  )
  const wholeHold = { signals: ['logs' as const], range: { startNs: null, endNs: null } }
  assert.deepEqual(retentionDrafts(rule(['logs', 7]), [wholeHold], noon), [])
})

test('a rule uses one idempotency key for a day, and another one the next day or with another limit', () => {
  const keyAt = (nowMs: number, days: number) => {
    const [draft] = retentionDrafts(rule(['logs', days]), [], nowMs)
    assert.ok(draft)
    return retentionKey(draft, nowMs)
  }
  assert.equal(keyAt(noon, 7), keyAt(noon + 3_600_000, 7))
  assert.notEqual(keyAt(noon, 7), keyAt(noon + 86_400_000, 7))
  assert.notEqual(keyAt(noon, 7), keyAt(noon, 8))
})
