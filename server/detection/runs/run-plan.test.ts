// Which buckets a run reads and when the next run is due: whole, aligned and complete
// buckets, and a limited number.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { nsPerMinute } from '../../../contract/values/instant.ts'
import { ingestLagMs, narrowestStep, nextRunMs, planRun, stepsMinutes } from './run-plan.ts'

const noon = Date.UTC(2026, 8, 11, 12)
const windows = fc.integer({ min: 1, max: 129_600 })
const schedules = fc.integer({ min: 1, max: 10_080 })

const planned = (more: object = {}) => ({
  metric_key: 'queue.depth',
  scope: {},
  window_minutes: 60,
  schedule_minutes: 1,
  params: {},
  ...more,
})

test('buckets are as narrow as 2,160 of them allow', () => {
  assert.equal(narrowestStep(60), 1)
  assert.equal(narrowestStep(2160), 1)
  assert.equal(narrowestStep(2161), 5)
  assert.equal(narrowestStep(7 * 1440), 5)
  assert.equal(narrowestStep(14 * 1440), 15)
  assert.equal(narrowestStep(90 * 1440), 60)
})

test('a bucket that may still receive telemetry is left out', () => {
  const endOf = (ms: number) => planRun(planned(), 1, ms).endNs / 1_000_000n
  assert.equal(endOf(noon), BigInt(noon - 60_000))
  assert.equal(endOf(noon + ingestLagMs - 1), BigInt(noon - 60_000))
  assert.equal(endOf(noon + ingestLagMs), BigInt(noon))
})

test('a method without a budget looks at its window alone, others at no less than they need', () => {
  const exact = planRun(planned(), 1, noon + ingestLagMs)
  assert.equal(exact.endNs - exact.startNs, 60n * nsPerMinute)
  assert.equal(exact.windowStartNs, exact.startNs)
  const params = { alarm_budget_per_week: 100, warmup_points: 64, window_points: 20_000 }
  const plan = planRun(planned({ params }), 1, noon + ingestLagMs)
  assert(plan.windowStartNs - plan.startNs >= 20_000n * nsPerMinute)
})

const weekNs = 10_080n * nsPerMinute

test('the past is as long as a budget needs, and begins at the same time for four weeks', () => {
  for (const [budget, weeks] of [
    [0.1, 4n],
    [1, 4n],
    [2, 2n],
    [7, 1n],
  ] as const) {
    const timing = planned({ params: { alarm_budget_per_week: budget } })
    const starts = new Set<bigint>()
    for (let hour = 0; hour < 8 * 168; hour++) {
      const plan = planRun(timing, 1, noon + hour * 3_600_000)
      const past = plan.windowStartNs - plan.startNs
      assert(past >= weeks * weekNs && past < (weeks + 4n) * weekNs, `budget ${budget}`)
      starts.add(plan.startNs)
    }
    assert(starts.size <= 3, `${starts.size} starts in eight weeks`)
  }
})

test('detectors of other metrics start from the beginning at other times', () => {
  const starts = Array.from({ length: 50 }, (_, i) => {
    const timing = planned({ metric_key: `metric.${i}`, params: { alarm_budget_per_week: 1 } })
    return planRun(timing, 1, noon).startNs
  })
  assert(new Set(starts).size > 40)
})

test('every run has whole aligned buckets that cover its window, and an hour that is not settled', () => {
  const steps = fc.constantFrom(...stepsMinutes)
  fc.assert(
    fc.property(
      windows,
      steps,
      fc.integer({ min: 0, max: 20_000 }),
      fc.boolean(),
      (window, step, points, isBudgeted) => {
        const params = { window_points: points, ...(isBudgeted ? { alarm_budget_per_week: 1 } : {}) }
        const plan = planRun(planned({ window_minutes: window, params }), step, noon)
        const stepNs = BigInt(step) * nsPerMinute
        for (const instant of [plan.startNs, plan.windowStartNs, plan.settledNs, plan.endNs]) {
          assert.equal(instant % stepNs, 0n)
        }
        assert(plan.endNs - plan.windowStartNs >= BigInt(window) * nsPerMinute)
        assert(plan.startNs <= plan.windowStartNs && plan.startNs <= plan.settledNs)
        assert(plan.settledNs === plan.startNs || plan.endNs - plan.settledNs >= 60n * nsPerMinute)
      },
    ),
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
