// Which buckets a run reads and when the next run is due: whole, aligned and complete
// buckets, and a limited number.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { nsPerMinute } from '../../../contract/instant.ts'
import { ingestLagMs, nextRunMs, planRun, stepMinutesFor } from './run-plan.ts'

const noon = Date.UTC(2026, 8, 11, 12)
const windows = fc.integer({ min: 1, max: 129_600 })
const schedules = fc.integer({ min: 1, max: 10_080 })

test('buckets are as narrow as 2,160 of them allow', () => {
  assert.equal(stepMinutesFor(60, 1), 1)
  assert.equal(stepMinutesFor(2160, 1), 1)
  assert.equal(stepMinutesFor(2161, 1), 5)
  assert.equal(stepMinutesFor(7 * 1440, 1), 5)
  assert.equal(stepMinutesFor(14 * 1440, 5), 15)
  assert.equal(stepMinutesFor(90 * 1440, 5), 60)
})

test('a detector that runs rarely gets wider buckets while the window keeps 288', () => {
  assert.equal(stepMinutesFor(4 * 1440, 5), 5)
  assert.equal(stepMinutesFor(7 * 1440, 60), 15)
  assert.equal(stepMinutesFor(14 * 1440, 1440), 60)
  assert.equal(stepMinutesFor(60, 60), 1)
})

test('a bucket that may still receive telemetry is left out', () => {
  const timing = { window_minutes: 60, schedule_minutes: 1, params: {} }
  const endOf = (ms: number) => planRun(timing, ms).endNs / 1_000_000n
  assert.equal(endOf(noon), BigInt(noon - 60_000))
  assert.equal(endOf(noon + ingestLagMs - 1), BigInt(noon - 60_000))
  assert.equal(endOf(noon + ingestLagMs), BigInt(noon))
})

test('a method learns from buckets before the window', () => {
  const plan = planRun(
    { window_minutes: 60, schedule_minutes: 1, params: { warmup_points: 64, window_points: 288 } },
    noon + ingestLagMs,
  )
  assert.equal(plan.endNs - plan.windowStartNs, 60n * nsPerMinute)
  assert.equal(plan.windowStartNs - plan.startNs, 288n * nsPerMinute)
})

test('every run has whole aligned buckets that cover its window, within the limit', () => {
  fc.assert(
    fc.property(windows, schedules, fc.integer({ min: 0, max: 20_000 }), (window, schedule, points) => {
      const timing = { window_minutes: window, schedule_minutes: schedule, params: { window_points: points } }
      const plan = planRun(timing, noon)
      const stepNs = BigInt(plan.stepMinutes) * nsPerMinute
      for (const instant of [plan.startNs, plan.windowStartNs, plan.endNs]) assert.equal(instant % stepNs, 0n)
      assert(plan.endNs - plan.windowStartNs >= BigInt(window) * nsPerMinute)
      assert((plan.endNs - plan.startNs) / stepNs <= 2160n + 4320n)
    }),
  )
})

test('the next run is when the last bucket of the schedule is complete, and never now', () => {
  assert.equal(nextRunMs(5, noon), noon + ingestLagMs)
  assert.equal(nextRunMs(5, noon + ingestLagMs), noon + 5 * 60_000 + ingestLagMs)
  fc.assert(
    fc.property(schedules, fc.integer({ min: 0, max: 1e9 }), (schedule, sinceNoonMs) => {
      const nowMs = noon + sinceNoonMs
      const next = nextRunMs(schedule, nowMs)
      assert(next > nowMs && next <= nowMs + schedule * 60_000)
    }),
  )
})
