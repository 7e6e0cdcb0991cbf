// Methods and alarm layer together, on realistic telemetry. All noise is seeded.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { methodKeys, methodParams } from '../../../contract/detection/methods.ts'
import type { MethodChoice } from '../methods/catalogue.ts'
import { localClock } from '../scoring/local-clock.ts'
import { noises, seededNormal } from '../scoring/seeded-noise.ts'
import { seededUniform } from '../scoring/seeded-random.ts'
import { at, type Series } from '../scoring/series.ts'
import { alarmPolicy } from './alarm-policy.ts'
import { evaluateSeries } from './evaluate.ts'

const minutesPerWeek = 7 * 24 * 60

function seriesOf(values: ArrayLike<number>, erased: readonly [number, number] = [0, 0]): Series {
  const unknown = new Uint8Array(values.length).fill(1, ...erased)
  const kept = Float64Array.from(values).fill(Number.NaN, ...erased)
  return { startNs: 0n, stepMinutes: 1, values: kept, unknown, volumes: null }
}

const band = (params: object = {}): MethodChoice => ({
  method_key: 'robust_band',
  params: methodParams.robust_band.parse(params),
})
const limits = (params: object): MethodChoice => ({
  method_key: 'threshold',
  params: methodParams.threshold.parse(params),
})

const noisy = (level: number, sigma: number, count: number, seed = 1) => {
  const next = seededNormal(seed)
  return Array.from({ length: count }, () => level + sigma * next())
}

test('a flat series with tiny noise raises nothing, and alarms when it jumps', () => {
  const flat = noisy(100, 1e-9, 2000)
  assert.deepEqual(evaluateSeries(seriesOf(flat), band()).episodes, [])
  const { episodes, state } = evaluateSeries(seriesOf([...flat, 150, 150]), band())
  assert.deepEqual(
    episodes.map((each) => [each.startIndex, each.openedIndex, each.kind]),
    [[2000, 2001, 'high']],
  )
  assert.equal(state.status, 'anomalous')
})

test('a constant series raises nothing, and alarms when it jumps', () => {
  const constant = Array<number>(500).fill(7)
  assert.deepEqual(evaluateSeries(seriesOf(constant), band()).episodes, [])
  assert.equal(evaluateSeries(seriesOf([...constant, 9, 9]), band()).episodes.length, 1)
})

test('an outage is one episode with its beginning, its worst value and its end', () => {
  const values = [...noisy(350, 15, 1000), ...noisy(12, 2, 40, 2), ...noisy(350, 15, 500, 3)]
  const { episodes, state } = evaluateSeries(seriesOf(values), band())
  assert.equal(episodes.length, 1)
  const [outage] = episodes
  assert.deepEqual([outage?.startIndex, outage?.endIndex, outage?.kind], [1000, 1039, 'low'])
  assert.ok((outage?.peakValue ?? 99) < 12 && (outage?.lower ?? 0) > 200)
  assert.equal(state.status, 'ok')
})

test('an episode does not hide a similar one after it', () => {
  const outage = (seed: number) => noisy(500, 5, 60, seed)
  const values = [...noisy(100, 5, 600), ...outage(2), ...noisy(100, 5, 300, 3), ...outage(4)]
  const { episodes } = evaluateSeries(seriesOf(values), band())
  assert.deepEqual(
    episodes.map((each) => [each.startIndex, each.openedIndex]),
    [
      [600, 601],
      [960, 961],
    ],
  )
})

test('a limit is exact: the first value beyond it counts, however close it is', () => {
  const choice = limits({ upper: 100, violate_n: 1, window_m: 1 })
  assert.deepEqual(evaluateSeries(seriesOf([100, 100]), choice).episodes, [])
  assert.equal(evaluateSeries(seriesOf([100, 100 + 1e-12]), choice).episodes.length, 1)
})

test('only a method that compares peers reports episodes before sixteen buckets were judged', () => {
  for (const key of methodKeys) {
    const params = methodParams[key].parse(key === 'threshold' ? { upper: 1 } : {})
    const waits = 'alarm_budget_per_week' in params && key !== 'peer_outlier'
    assert.equal(alarmPolicy(params, 5).waitsForScores, waits, key)
  }
})

test('missing data is skipped, zero or an alarm, as the policy says', () => {
  const values = [...noisy(100, 1, 200), ...Array<number>(5).fill(Number.NaN)]
  const kinds = (missing: string) =>
    evaluateSeries(seriesOf(values), band({ missing })).episodes.map((each) => each.kind)
  assert.deepEqual(kinds('skip'), [])
  assert.deepEqual(kinds('zero'), ['low'])
  assert.deepEqual(kinds('alert'), ['silent'])
})

test('values of too few events are not judged', () => {
  const series = seriesOf([...noisy(100, 1, 200), 900, 900, 900])
  const volumes = new Float64Array(203).fill(1000).fill(2, 200)
  assert.equal(evaluateSeries({ ...series, volumes }, band({ min_volume: 5 })).episodes.length, 0)
  assert.equal(evaluateSeries({ ...series, volumes }, band({ min_volume: 2 })).episodes.length, 1)
})

const choices = fc.constantFrom(
  band({ warmup_points: 16, window_points: 16, violate_n: 1, window_m: 1 }),
  band({ warmup_points: 16, window_points: 32, missing: 'zero', k: 2 }),
  band({ warmup_points: 16, window_points: 32, missing: 'alert' }),
  limits({ lower: 0, upper: 9, missing: 'alert' }),
  limits({ lower: 1, missing: 'zero', violate_n: 1, window_m: 2 }),
)
const readings = fc.array(
  fc.oneof(
    { weight: 12, arbitrary: fc.integer({ min: 1, max: 9 }) },
    { weight: 2, arbitrary: fc.constantFrom(50, -50) },
    { weight: 2, arbitrary: fc.constant(Number.NaN) },
  ),
  { minLength: 30, maxLength: 120 },
)
const cut = fc.tuple(fc.nat(120), fc.nat(40)).map(([from, length]): [number, number] => [from, from + length])

test('no episode opens, peaks or ends in erased time', () => {
  fc.assert(
    fc.property(readings, cut, choices, (values, [from, to], choice) => {
      const { episodes, scores } = evaluateSeries(seriesOf(values, [from, to]), choice)
      for (const each of episodes) {
        for (const index of [each.startIndex, each.openedIndex, each.lastIndex, each.peakIndex]) {
          assert.ok(index < from || index >= to, `bucket ${index} of the erased ${from} to ${to}`)
        }
      }
      for (const row of scores.upper.slice(from, to)) assert.ok(Number.isNaN(row))
    }),
  )
})

test('erasing time from a calm series never alarms, whatever the policy', () => {
  fc.assert(
    fc.property(cut, choices, ([from, to], choice) => {
      const { episodes } = evaluateSeries(seriesOf(Array(200).fill(5), [from, to]), choice)
      assert.deepEqual(episodes, [])
    }),
  )
})

test('episodes and edges so far do not depend on later values', () => {
  fc.assert(
    fc.property(readings, readings, choices, (past, future, choice) => {
      const then = evaluateSeries(seriesOf(past), choice)
      const later = evaluateSeries(seriesOf([...past, ...future]), choice)
      const openings = (episodes: typeof then.episodes) =>
        episodes
          .map((each) => [each.startIndex, each.openedIndex])
          .filter(([, opened]) => (opened ?? 0) < past.length)
      assert.deepEqual(openings(later.episodes), openings(then.episodes))
      assert.deepEqual(later.scores.upper.slice(0, past.length), then.scores.upper)
    }),
  )
})

test('calibration is causal too, on a history long enough to calibrate', () => {
  const past = noisy(0, 1, 1200)
  const choice = band({ k: 1.5, min_rel_dev: 0 })
  const then = evaluateSeries(seriesOf(past), choice)
  const later = evaluateSeries(seriesOf([...past, ...Array(400).fill(1e6)]), choice)
  assert.deepEqual(later.scores.lower.slice(0, 1200), then.scores.lower)
})

for (const [name, noise] of Object.entries(noises)) {
  for (const [violate_n, window_m] of [
    [1, 1],
    [2, 3],
  ]) {
    test(`alarms meet the budget on ${name} noise with ${violate_n} of ${window_m}, and use most of it`, () => {
      const budget = 7
      const weeks = 2
      const seeds = [1, 2, 3]
      const alarms = seeds.map((seed) => {
        const next = noise(seed)
        const values = Float64Array.from({ length: (weeks + 1) * minutesPerWeek }, () => 1000 + next())
        const params = { k: 1.5, min_rel_dev: 0, alarm_budget_per_week: budget, violate_n, window_m }
        const { episodes } = evaluateSeries(seriesOf(values), band(params))
        return episodes.filter((each) => each.openedIndex >= minutesPerWeek).length
      })
      const ratio = alarms.reduce((sum, each) => sum + each, 0) / (seeds.length * weeks * budget)
      assert.ok(ratio > 0.5 && ratio < 1.6, `${ratio} of the budget after a week of history`)
    })
  }
}

for (const name of ['laplace', 'sluggish'] as const) {
  test(`alarms nearly meet the budget on ${name} noise when each run evaluates only a day of history`, () => {
    const [budget, weeks, window, hop] = [7, 2, 1440, 240]
    const seeds = [1, 2, 3]
    const choice = band({ k: 2, min_rel_dev: 0, alarm_budget_per_week: budget })
    let alarms = 0
    for (const seed of seeds) {
      const next = noises[name](seed)
      const values = Float64Array.from({ length: window + weeks * minutesPerWeek }, () => 1000 + next())
      for (let end = window + hop; end <= values.length; end += hop) {
        const { episodes } = evaluateSeries(seriesOf(values.subarray(end - window, end)), choice)
        alarms += episodes.filter((each) => each.openedIndex >= window - hop).length
      }
    }
    const ratio = alarms / (seeds.length * weeks * budget)
    assert.ok(ratio > 0.3 && ratio < 2.5, `${ratio} of the budget`)
  })
}

for (const [name, noise] of Object.entries(noises)) {
  test(`auto raises at most 1.5 times its alarm budget on ${name} noise`, () => {
    const [budget, weeks, perWeek] = [7, 2, minutesPerWeek / 5]
    const seeds = [1, 2]
    const choice: MethodChoice = {
      method_key: 'auto',
      params: methodParams.auto.parse({ alarm_budget_per_week: budget }),
    }
    const alarms = seeds.map((seed) => {
      const next = noise(seed)
      const values = Float64Array.from({ length: (weeks + 1) * perWeek }, () => 1000 + next())
      const { episodes } = evaluateSeries({ ...seriesOf(values), stepMinutes: 5 }, choice)
      return episodes.filter((each) => each.openedIndex >= perWeek).length
    })
    const ratio = alarms.reduce((sum, each) => sum + each, 0) / (seeds.length * weeks * budget)
    assert.ok(ratio < 1.5, `${ratio} of the budget`)
  })
}

/** Alarms, as a multiple of the budget, in the first four days of series with buckets of five minutes. */
function alarmRatioOfNewSeries(
  choice: MethodChoice,
  valueAt: (i: number, uniform: () => number) => number,
): number {
  const seeds = Array.from({ length: 30 }, (_, i) => i + 1)
  const alarms = seeds.map((seed) => {
    const uniform = seededUniform(seed)
    const values = Array.from({ length: 1152 }, (_, i) => valueAt(i, uniform))
    return evaluateSeries({ ...seriesOf(values), stepMinutes: 5 }, choice).episodes.length
  })
  const expected = (seeds.length * (1152 - 64)) / 2016
  return alarms.reduce((sum, each) => sum + each, 0) / expected
}

/** Counts with mean 0.4. */
function fewEvents(_: number, uniform: () => number): number {
  let count = 0
  for (let product = uniform(); product > Math.exp(-0.4); product *= uniform()) count++
  return count
}

const records: MethodChoice = {
  method_key: 'record_range',
  params: methodParams.record_range.parse({ min_rel_dev: 0 }),
}

test('new series of few events keep to one alarm a week, although their scores come in steps', () => {
  for (const choice of [band({ min_rel_dev: 0 }), records]) {
    const ratio = alarmRatioOfNewSeries(choice, fewEvents)
    assert.ok(ratio < 1.5, `${choice.method_key}: ${ratio} of the budget`)
  }
})

test('new skewed series keep to one alarm a week, although all large distances come from small values', () => {
  const skewed = (_: number, uniform: () => number) => {
    const normal = Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform())
    return 50 * Math.exp(0.8 * normal)
  }
  const ratio = alarmRatioOfNewSeries(records, skewed)
  assert.ok(ratio < 1.5, `${ratio} of the budget`)
})

/** Four weeks of a nightly job in local time, and a day and a half after the clock change at 01:00 UTC. */
function nightlyJob(changeAt: string, seed: number): Series {
  const [stepMinutes, before, after] = [5, 28 * 288, 432]
  const startNs = BigInt(Date.parse(changeAt) - before * stepMinutes * 60_000) * 1_000_000n
  const next = seededNormal(seed)
  const clock = localClock({ startNs, stepMinutes }, 'Europe/Berlin')
  const values = Float64Array.from({ length: before + after }, (_, i) => {
    const { minuteOfDay } = clock(i)
    const job = minuteOfDay >= 120 && minuteOfDay < 240 ? 300 : 0
    return 100 + job + 50 * Math.sin((2 * Math.PI * minuteOfDay) / 1440) + 5 * next()
  })
  return { startNs, stepMinutes, values, unknown: new Uint8Array(values.length), volumes: null }
}

for (const changeAt of ['2026-03-29T01:00:00Z', '2026-10-25T01:00:00Z']) {
  test(`auto with the time zone raises nothing for the clock change on ${changeAt}, and finds an episode on that day`, () => {
    const choice: MethodChoice = {
      method_key: 'auto',
      params: methodParams.auto.parse({ timezone: 'Europe/Berlin' }),
    }
    const change = 28 * 288
    const twoHours = 24
    for (const seed of [1, 2]) {
      const calm = nightlyJob(changeAt, seed)
      const openedIn = (series: Series): number[] =>
        evaluateSeries(series, choice)
          .episodes.map(({ openedIndex }) => openedIndex - change)
          .filter((opened) => opened >= -12)
      assert.deepEqual(
        openedIn(calm).filter((opened) => opened < twoHours),
        [],
        `seed ${seed}`,
      )
      for (const from of [12, 144]) {
        const broken = calm.values.map((value, i) =>
          i >= change + from && i < change + from + 12 ? value - 120 : value,
        )
        const opened = openedIn({ ...calm, values: broken })
        assert.ok(
          opened.some((bucket) => bucket >= from && bucket < from + 12),
          `seed ${seed}: ${opened} for ${from}`,
        )
      }
    }
  })
}

test('an edge with a configured width never moves in; an edge of surprises does for a larger budget', () => {
  const least = (key: 'shape_discord' | 'robust_band' | 'level_shift', alarm_budget_per_week: number) =>
    alarmPolicy(methodParams[key].parse({ alarm_budget_per_week }), 5).leastThreshold
  assert.deepEqual([least('robust_band', 100), least('level_shift', 100)], [1, 1])
  assert.deepEqual(
    [least('shape_discord', 0.01), least('shape_discord', 1), least('shape_discord', 10)],
    [1, 1, 0.5],
  )
})

test('the alarm layer leaves the edge of a method that learns its own', () => {
  for (const alarm_budget_per_week of [0.1, 1, 10]) {
    const policy = alarmPolicy(methodParams.auto.parse({ alarm_budget_per_week }), 5)
    assert.deepEqual([policy.leastThreshold, policy.mostThreshold], [1, 1])
  }
})

test('confirmed anomalies do not use the alarm budget: later incidents alarm as well', () => {
  const [perDay, days] = [288, 28]
  const incidents = Array.from({ length: days - 5 }, (_, i) => 301 * (i + 5) - 100)
  for (const [method_key, size] of [['auto', 7] as const, ['robust_band', 10] as const]) {
    const values = Float64Array.from(noisy(100, 1, perDay * days, 4))
    for (const [i, start] of incidents.entries()) {
      for (const [k, share] of [0.6, 0.8, 1].entries())
        values[start + k] = at(values, start + k) + size * (1 + 0.03 * i) * share
    }
    const series = { ...seriesOf(values), stepMinutes: 5 }
    const choice = { method_key, params: methodParams[method_key].parse({}) } as MethodChoice
    const found = (confirmed: readonly number[]) => {
      const { episodes } = evaluateSeries(series, choice, { confirmed })
      const isFound = (start: number) =>
        episodes.some(({ startIndex }) => startIndex >= start && startIndex < start + 3)
      return incidents.filter(isFound).length
    }
    const minutes = incidents.map((start) => 5 * start)
    assert.ok(found(minutes) > found([]), `${method_key}: ${found(minutes)} beside ${found([])}`)
    assert.equal(found(minutes.map((minute) => minute + 240)), found([]), 'other times confirm nothing')
  }
})
