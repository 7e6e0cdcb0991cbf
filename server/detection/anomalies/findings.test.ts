// Episodes become findings, which never include erased time. The last property test checks
// this for arbitrary erasures.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  AbsenceParams,
  type MethodParams,
  methodParams,
  RobustBandParams,
  SeasonalBandParams,
  ThresholdParams,
} from '../../../contract/detection/methods.ts'
import { nsPerMinute } from '../../../contract/values/instant.ts'
import { union } from '../../core/time-range.ts'
import { alarmAtOnce } from '../detection-fixture.ts'
import { evaluateSeries } from '../runs/evaluate.ts'
import { SeriesCourse } from '../runs/series-course.ts'
import { seededNormal } from '../scoring/seeded-noise.ts'
import { buildSeries } from '../scoring/series.ts'
import { type Finding, findingsOf } from './findings.ts'

const startNs = BigInt(Date.UTC(2026, 8, 11, 14)) * 1_000_000n
const minuteNs = (i: number) => startNs + BigInt(i) * nsPerMinute
const above10 = ThresholdParams.parse({ upper: 10, clear_n: 2 })

/** The findings for one value per minute; null is missing. `erased` lists minutes. */
function findings(
  values: readonly (number | null)[],
  erased: readonly number[] = [],
  params: MethodParams<'threshold'> = above10,
): Finding[] {
  const points = values.flatMap((value, i) => (value === null ? [] : [{ timeNs: minuteNs(i), value }]))
  const holes = erased.map((i) => ({ startNs: minuteNs(i), endNs: minuteNs(i) + 1n }))
  const series = buildSeries({ startNs, stepMinutes: 1, length: values.length }, points, holes)
  const evaluation = evaluateSeries(series, { method_key: 'threshold', params })
  const subject = { metricName: 'queue', unit: '', scope: '' }
  return findingsOf({ series, evaluation, params, groupKey: '{}', subject })
}

const spanOf = ({ startedNs, seenUntilNs, isOpen }: Finding) =>
  `${(startedNs - startNs) / nsPerMinute}-${(seenUntilNs - startNs) / nsPerMinute}${isOpen ? ' open' : ''}`

test('a finding spans from the start of the first violating bucket to the end of the last', () => {
  const [only, ...rest] = findings([1, 1, 12, 15, 13, 1, 1])
  assert.deepEqual(rest, [])
  assert(only !== undefined)
  assert.equal(spanOf(only), '2-5')
  assert.equal(only.peakNs, minuteNs(3))
  assert.equal(only.raisedNs, minuteNs(4))
  assert.equal(only.value, 15)
  assert.equal(only.upper, 10)
  assert.equal(only.lower, null)
  assert.match(only.reason, /^queue 15/)
})

test('a finding is also derived from what confirmed anomalies before it were, and not from later ones', () => {
  const values = [1, 12, 12, 1, 1, 1, 30, 30, 1, 1]
  const points = values.map((value, i) => ({ timeNs: minuteNs(i), value }))
  const series = buildSeries({ startNs, stepMinutes: 1, length: values.length }, points)
  const evaluation = evaluateSeries(series, { method_key: 'threshold', params: above10 })
  const read = [{ startNs: 1n, endNs: 2n }]
  const confirmed = [{ startedNs: minuteNs(1), read }]
  const subject = { metricName: 'queue', unit: '', scope: '' }
  const found = findingsOf({ series, evaluation, params: above10, groupKey: '{}', subject, confirmed })
  assert.deepEqual(
    found.map(({ alsoRead }) => alsoRead),
    [[], read],
  )
})

test('findings have the union of what their feedback read, and share it where it is the same', () => {
  const values = Array.from({ length: 200 }, (_, i) => (i % 4 === 2 ? 20 : 1))
  const points = values.map((value, i) => ({ timeNs: minuteNs(i), value }))
  const series = buildSeries({ startNs, stepMinutes: 1, length: values.length }, points)
  const params = ThresholdParams.parse({ upper: 10, ...alarmAtOnce })
  const evaluation = evaluateSeries(series, { method_key: 'threshold', params })
  const subject = { metricName: 'queue', unit: '', scope: '' }
  const range = (from: number, to: number) => ({ startNs: BigInt(from), endNs: BigInt(to) })
  const confirmed = Array.from({ length: 20 }, (_, i) => ({
    startedNs: minuteNs(9 * i),
    read: [range(10 * (i % 7), 10 * (i % 7) + 3 * (i % 3)), range(100 + i, 104 + i)],
  }))
  const widening = { above: 1, below: 1, learntFrom: [range(0, 5), range(50, 60)] }
  const found = findingsOf({ series, evaluation, params, groupKey: '{}', subject, confirmed, widening })
  assert.equal(found.length, 50)
  for (const { alsoRead, startedNs } of found) {
    const before = confirmed.filter((one) => one.startedNs < startedNs)
    assert.deepEqual(alsoRead, union([...widening.learntFrom, ...before.flatMap(({ read }) => read)]))
  }
  const distinct = new Set(found.map(({ alsoRead }) => alsoRead))
  assert(distinct.size <= confirmed.length + 1, `${distinct.size} arrays`)
})

test("a finding says for which time its band was expected, and whether that was a holiday in the detector's time zone", () => {
  const hours = Array.from({ length: 14 * 24 }, (_, i) => 100 + (i % 24) + (i % 3))
  const timeNs = (i: number) => startNs + BigInt(i) * 60n * nsPerMinute
  const points = hours.map((value, i) => ({ timeNs: timeNs(i), value: i >= 324 && i < 330 ? 900 : value }))
  const series = buildSeries({ startNs, stepMinutes: 60, length: hours.length }, points)
  const reasonWith = (more: object) => {
    const params = SeasonalBandParams.parse(more)
    const evaluation = evaluateSeries(series, { method_key: 'seasonal_band', params })
    const subject = { metricName: 'orders', unit: '', scope: '' }
    return findingsOf({ series, evaluation, params, groupKey: '{}', subject }).at(-1)?.reason ?? ''
  }
  assert.match(reasonWith({}), /^orders 900, expected [^;]* for a Friday 02:00; 6 hours high/)
  assert.match(reasonWith({ holidays: ['09-25'] }), / for a holiday, Friday 02:00; 6 hours high/)
  const inNewYork = { timezone: 'America/New_York' }
  assert.match(reasonWith({ ...inNewYork, holidays: ['09-25'] }), / for a Friday 02:00;/)
  assert.match(reasonWith({ ...inNewYork, holidays: ['09-24'] }), / for a holiday, Friday 02:00;/)
})

/** Two weeks of quarters of an hour with a rhythm and an outage at the end, of which hours are erased. */
function autoFindings(erasedHours: readonly number[] = []): Finding[] {
  const perDay = 96
  const noise = seededNormal(5)
  const length = 14 * perDay
  const quarterNs = (i: number) => startNs + BigInt(i) * 15n * nsPerMinute
  const points = Array.from({ length }, (_, i) => ({
    timeNs: quarterNs(i),
    value: i < length - 40 ? 300 + 100 * Math.sin((2 * Math.PI * i) / perDay) + 5 * noise() : 20,
  }))
  const holes = erasedHours.map((hour) => ({
    startNs: quarterNs(length - 40 + 4 * hour),
    endNs: quarterNs(length - 36 + 4 * hour),
  }))
  const series = buildSeries({ startNs, stepMinutes: 15, length }, points, holes)
  const params = methodParams.auto.parse({})
  const evaluation = evaluateSeries(series, { method_key: 'auto', params })
  const subject = { metricName: 'requests/s', unit: '', scope: 'checkout' }
  return findingsOf({ series, evaluation, params, groupKey: '{}', subject })
}

test('auto says what it compared with, also of each part of an episode across erased time', () => {
  const past = /, expected about \d.* from |(?:above|below) this time of the last 7 days, expected at most \d/
  const [whole, ...others] = autoFindings()
  assert.deepEqual(others, [])
  assert.match(whole?.reason ?? '', /^requests\/s of checkout 20.0, expected about \d+ \(\d+ to \d+\) from /)
  assert.match(whole?.reason ?? '', past)
  const parts = autoFindings([2])
  assert.equal(parts.length, 2)
  for (const { reason } of parts) assert.match(reason, past)
  const [before, after] = parts.map(({ reason }) => /expected.*/.exec(reason.replace(/;.*/, ''))?.[0])
  assert.notEqual(before, after, 'each has the figures of its own peak')
})

test('an episode that has not closed is open', () => {
  assert.deepEqual(findings([1, 12, 13]).map(spanOf), ['1-3 open'])
})

test('an episode across erased time becomes one finding before and one after, each with its own peak', () => {
  const found = findings([1, 12, 13, 99, 99, 14, 18, 17], [3, 4])
  assert.deepEqual(found.map(spanOf), ['1-3', '5-8 open'])
  assert.deepEqual(
    found.map(({ value }) => value),
    [13, 18],
  )
  assert.deepEqual(
    found.map(({ peakNs }) => peakNs),
    [minuteNs(2), minuteNs(6)],
  )
  for (const { reason } of found) assert.doesNotMatch(reason, /99/)
})

test('after erased time a finding begins at the next violation, not where data begins', () => {
  assert.deepEqual(findings([1, 12, 13, 0, 1, 14, 15], [3]).map(spanOf), ['1-3', '5-7 open'])
})

test('an episode without violations after the erased time ends before it', () => {
  assert.deepEqual(findings([1, 12, 13, 0, 0], [3, 4]).map(spanOf), ['1-3 open'])
})

test('an episode that began before the window is divided at erased time too', () => {
  for (const missing of ['skip', 'alert'] as const) {
    const params = ThresholdParams.parse({ upper: 10, missing })
    const choice = { method_key: 'threshold' as const, params }
    const points = Array.from({ length: 100 }, (_, i) => ({ timeNs: minuteNs(i), value: i < 45 ? 1 : 20 }))
    const hole = { startNs: minuteNs(70), endNs: minuteNs(71) }
    const series = buildSeries({ startNs, stepMinutes: 1, length: 100 }, points, [hole])
    const course = new SeriesCourse({ choice, stepMinutes: 1, feedback: undefined, keptBuckets: 50 })
    course.advance(series)
    const window = course.newestBuckets(50, 100)
    const subject = { metricName: 'queue', unit: '', scope: '' }
    const found = findingsOf({ ...window, params, groupKey: '{}', subject })
    assert.deepEqual(found.map(spanOf), ['50-70', '71-100 open'])
  }
})

test('silence that counts as a violation is a finding without a value', () => {
  const params = ThresholdParams.parse({ upper: 10, missing: 'alert' })
  const [only] = findings([1, null, null, null], [], params)
  assert(only !== undefined)
  assert.equal(spanOf(only), '1-4 open')
  assert.equal(only.value, null)
  assert.match(only.reason, /no data for 3 minutes/)
})

test('nothing in a finding depends on later time', () => {
  const params = RobustBandParams.parse({
    warmup_points: 16,
    window_points: 16,
    min_abs_dev: 0,
    violate_n: 1,
    window_m: 1,
  })
  const calm = Array.from({ length: 40 }, (_, i) => i % 3)
  const found = (later: number[]) => {
    const values = [...calm, 90, ...calm, ...later]
    const points = values.map((value, i) => ({ timeNs: minuteNs(i), value }))
    const series = buildSeries({ startNs, stepMinutes: 1, length: values.length }, points)
    const evaluation = evaluateSeries(series, { method_key: 'robust_band', params })
    const subject = { metricName: 'queue', unit: '', scope: '' }
    return findingsOf({ series, evaluation, params, groupKey: '{}', subject }).find(
      ({ value }) => value === 90,
    )
  }
  assert.equal(found([])?.lower, 0, 'a series that was never negative has no negative band')
  assert.deepEqual(found([-1]), found([1]))
})

test('a configured limit is shown as it is, also below zero', () => {
  const params = ThresholdParams.parse({ upper: 10, lower: -5 })
  assert.equal(findings([1, 12, 13], [], params)[0]?.lower, -5)
})

test('whatever is erased, no finding touches it or another finding, and each begins and peaks at a violation', () => {
  const values = fc.array(fc.oneof(fc.constantFrom(1, 12, 20, null), fc.integer({ min: 0, max: 30 })), {
    minLength: 1,
    maxLength: 40,
  })
  fc.assert(
    fc.property(values, fc.array(fc.nat(39)), (series, erased) => {
      const found = findings(series, erased)
      let endNs = startNs
      for (const finding of found) {
        assert(finding.startedNs >= endNs && finding.seenUntilNs > finding.startedNs)
        endNs = finding.seenUntilNs
        const minutes = series
          .map((_, i) => i)
          .filter((i) => minuteNs(i) >= finding.startedNs && minuteNs(i) < endNs)
        assert(minutes.every((i) => !erased.includes(i)))
        for (const ns of [finding.startedNs, finding.peakNs, finding.seenUntilNs - nsPerMinute]) {
          assert(Number(series[Number((ns - startNs) / nsPerMinute)]) > 10)
        }
        const { value } = finding
        assert(value !== null && minutes.every((i) => Number(series[i] ?? 0) <= value))
      }
    }),
  )
})

test('a standstill across erased time is one finding before and one after, both with the reason of a standstill', () => {
  const params = AbsenceParams.parse({ flatline_points: 10, violate_n: 1, window_m: 1 })
  const values = [...Array.from({ length: 30 }, (_, i) => (i * 7) % 11), ...Array(40).fill(4.5)]
  const points = values.map((value, i) => ({ timeNs: minuteNs(i), value }))
  const hole = { startNs: minuteNs(55), endNs: minuteNs(57) }
  const series = buildSeries({ startNs, stepMinutes: 1, length: values.length }, points, [hole])
  const evaluation = evaluateSeries(series, { method_key: 'absence', params })
  const subject = { metricName: 'queue', unit: '', scope: '' }
  const found = findingsOf({ series, evaluation, params, groupKey: '{}', subject })
  assert.deepEqual(found.map(spanOf), ['40-55', '57-70 open'])
  for (const { reason } of found) assert.match(reason, /^queue stopped changing at 4.50; \d+ minutes unusual/)
})
