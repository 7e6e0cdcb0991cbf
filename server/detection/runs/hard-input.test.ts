// Difficult telemetry that has ordinary causes, through every method and the alarm layer. Each input must end
// with a given status, and none may alarm, because its unusual features are there from the first value on.
// The budget is a tenth of an alarm a week, so that chance alarms do not matter.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  comparesPeers,
  type MethodKey,
  methodKeys,
  methodParams,
} from '../../../contract/detection/methods.ts'
import type { MethodChoice } from '../methods/catalogue.ts'
import { seededNormal } from '../scoring/seeded-noise.ts'
import { seededUniform } from '../scoring/seeded-random.ts'
import { buildSeries, type Series } from '../scoring/series.ts'
import { evaluateSeries } from './evaluate.ts'

const minuteNs = 60_000_000_000n
const startNs = BigInt(Date.UTC(2026, 8, 7)) * 1_000_000n
const length = 1500

function seriesOf(values: readonly number[]): Series {
  const points = values.map((value, i) => ({ timeNs: startNs + BigInt(i) * 5n * minuteNs, value }))
  return buildSeries({ startNs, stepMinutes: 5, length: values.length }, points)
}

const fill = (valueAt: (i: number) => number) => Array.from({ length }, (_, i) => valueAt(i))

function withNoise(valueAt: (i: number, noise: number) => number, seed = 3): number[] {
  const normal = seededNormal(seed)
  return fill((i) => valueAt(i, normal()))
}

/** The same values, delivered twice and in random order, with a few values before and after the window. */
function shuffled(): Series {
  const uniform = seededUniform(5)
  const readings = withNoise((_, noise) => 100 + noise).map((value, i) => ({
    timeNs: startNs + BigInt(i) * 5n * minuteNs,
    value,
  }))
  const stray = [-600n, -5n, 5n * BigInt(length), 9n * BigInt(length)].map((minutes) => ({
    timeNs: startNs + minutes * minuteNs,
    value: 1e9,
  }))
  const points = [...stray, ...readings, ...readings]
    .map((point) => ({ point, order: uniform() }))
    .sort((a, b) => a.order - b.order)
  return buildSeries(
    { startNs, stepMinutes: 5, length },
    points.map(({ point }) => point),
  )
}

/**
 * The sender's clock is set back by an hour and later forward again: first values
 * overlap, then there is a gap.
 */
function clockSteps(): Series {
  const points = withNoise((_, noise) => 100 + noise).map((value, i) => {
    const stepped = i < 500 ? i : i < 1000 ? i - 12 : i
    return { timeNs: startNs + BigInt(stepped) * 5n * minuteNs, value }
  })
  return buildSeries({ startNs, stepMinutes: 5, length }, points)
}

/** Hourly traffic in Berlin's local time, over five weeks around a clock change. */
function overClockChange(month: number, day: number): Series {
  const beginNs = BigInt(Date.UTC(2026, month, day - 28)) * 1_000_000n
  const hour = new Intl.DateTimeFormat('en-GB', {
    timeZone: 'Europe/Berlin',
    hour: '2-digit',
    hourCycle: 'h23',
  })
  const normal = seededNormal(9)
  const points = Array.from({ length: 24 * 35 }, (_, i) => {
    const timeNs = beginNs + BigInt(i) * 60n * minuteNs
    const local = Number(hour.format(Number(timeNs / 1_000_000n)))
    return { timeNs, value: 1000 + (local >= 8 && local < 18 ? 500 : 0) + 40 * normal() }
  })
  return buildSeries({ startNs: beginNs, stepMinutes: 60, length: points.length }, points)
}

const inputs: Record<string, { series: Series; status: string }> = {
  empty: { series: seriesOf([]), status: 'no_data' },
  'all without data': { series: seriesOf(fill(() => Number.NaN)), status: 'no_data' },
  'a single point': { series: seriesOf(fill((i) => (i < length - 1 ? Number.NaN : 5))), status: 'learning' },
  'two points': { series: seriesOf(fill((i) => (i < length - 2 ? Number.NaN : i))), status: 'learning' },
  constant: { series: seriesOf(fill(() => 42)), status: 'ok' },
  'constantly zero': { series: seriesOf(fill(() => 0)), status: 'ok' },
  sparse: {
    series: seriesOf(withNoise((i, noise) => (i % 10 === 9 ? 100 + noise : Number.NaN))),
    status: 'ok',
  },
  'too sparse to judge': {
    series: seriesOf(withNoise((i, noise) => (i % 100 === 99 ? 100 + noise : Number.NaN))),
    status: 'insufficient_data',
  },
  bursty: { series: seriesOf(withNoise((i, noise) => (i % 20 < 2 ? 1000 + noise : 0))), status: 'ok' },
  'a counter that resets': { series: seriesOf(fill((i) => (i % 60) * 1000)), status: 'ok' },
  negative: { series: seriesOf(withNoise((_, noise) => -1e6 + noise)), status: 'ok' },
  huge: { series: seriesOf(fill((i) => (i % 3 === 0 ? 1e300 : -1e300))), status: 'ok' },
  tiny: { series: seriesOf(fill((i) => (i % 2) * 1e-300)), status: 'ok' },
  'infinite at times': {
    series: seriesOf(fill((i) => (i % 5 === 0 ? Number.POSITIVE_INFINITY : 1e300))),
    status: 'ok',
  },
  'duplicated and unordered': { series: shuffled(), status: 'ok' },
  'from a sender whose clock was set': { series: clockSteps(), status: 'ok' },
  'at the beginning of summer time': { series: overClockChange(2, 29), status: 'ok' },
  'at the end of summer time': { series: overClockChange(9, 25), status: 'ok' },
  'younger than the window': {
    series: seriesOf(withNoise((i, noise) => (i < 1300 ? Number.NaN : 100 + noise))),
    status: 'ok',
  },
  'younger than the warm-up': {
    series: seriesOf(withNoise((i, noise) => (i < length - 30 ? Number.NaN : 100 + noise))),
    status: 'learning',
  },
}

function choiceOf(key: MethodKey): MethodChoice {
  const zoned = 'timezone' in methodParams[key].shape ? { timezone: 'Europe/Berlin' } : {}
  const own =
    key === 'threshold' ? { upper: 1e300, lower: -1e300 } : key === 'absence' ? { missing: 'skip' } : {}
  const budget = 'alarm_budget_per_week' in methodParams[key].shape ? { alarm_budget_per_week: 0.1 } : {}
  // The schema of this key produced the parameters, which the type of a lookup by key cannot express.
  return { method_key: key, params: methodParams[key].parse({ ...zoned, ...own, ...budget }) } as MethodChoice
}

/** A rhythm is unusual at first and known later: up to three alarms are allowed before this many values. */
const learnt = 200
const mostWhileLearning = 3

// A method that compares peers cannot judge a single series; peers.test.ts tests it with
// the same kinds of input.
for (const key of methodKeys.filter((each) => !comparesPeers(each))) {
  for (const [name, { series, status }] of Object.entries(inputs)) {
    const choice = choiceOf(key)
    // Counts of 1e300 vary by about 1e150 in any distribution of counts, so this input is unusual for
    // rate_test.
    if (key === 'rate_test' && name === 'huge') continue
    if (name.includes('summer time') && !('timezone' in methodParams[key].shape)) continue
    test(`${key} on input that is ${name} has the right status (${status}) and does not alarm`, () => {
      const evaluation = evaluateSeries(series, choice)
      const seen = evaluation.episodes.map(({ openedIndex }) => {
        return series.values.subarray(0, openedIndex).filter((value) => !Number.isNaN(value)).length
      })
      assert.ok(
        seen.every((count) => count < learnt) && seen.length <= mostWhileLearning,
        `alarms at ${seen}`,
      )
      // Less than two days of values have no season yet.
      const hasNoSeason = key === 'seasonal_band' && (name === 'sparse' || name === 'younger than the window')
      const isExact = !('warmup_points' in choice.params)
      const needsNoData = isExact && (status === 'learning' || status === 'insufficient_data')
      assert.equal(evaluation.state.status, needsNoData ? 'ok' : hasNoSeason ? 'learning' : status)
    })
  }
}
