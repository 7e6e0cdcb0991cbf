// The sentences in alarms, word for word.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Episode } from '../alarms/episode.ts'
import type { Comparison } from '../scoring/comparison.ts'
import type { Series } from '../scoring/series.ts'
import { formatMinutes, formatNumber, formatQuantity } from './format.ts'
import { describeMetric, reasonFor } from './reason.ts'

const series: Series = {
  startNs: BigInt(Date.UTC(2026, 8, 11, 14, 0)) * 1_000_000n,
  stepMinutes: 1,
  values: new Float64Array(0),
  unknown: new Uint8Array(0),
  volumes: null,
}

const episode: Episode = {
  kind: 'low',
  startIndex: 3,
  openedIndex: 4,
  lastIndex: 9,
  endIndex: null,
  peakIndex: 6,
  peakValue: 12,
  expected: 365,
  lower: 310,
  upper: 420,
  score: 6.4,
}

const checkout = { metricName: 'requests/s', unit: '', scope: 'checkout' }

test('an open episode says what, where, how far and since when', () => {
  assert.equal(
    reasonFor(episode, checkout, series),
    'requests/s of checkout 12.0, expected 310 to 420; 7 minutes low since 14:03 UTC',
  )
})

test('a long scope is shortened', () => {
  const reason = reasonFor(episode, { ...checkout, scope: 'x'.repeat(4000) }, series)
  assert.match(reason, /^requests\/s of x{200}… \(3800 more characters\) 12\.0, expected/)
})

test('the reason of a series compared with peers gives their values in the same bucket', () => {
  const hosts = (values: readonly number[]) =>
    values.map((value) => ({ ...series, values: new Float64Array(10).fill(value) }))
  const slow = { ...episode, kind: 'high' as const, peakValue: 1900, lower: 200, upper: 420 }
  const subject = { metricName: 'p95 latency', unit: 'ms', scope: 'checkout host=7' }
  const usual = [340, 280, 300, 310, 310, 320, 330, 290, 300, 305, 300]
  const reason = (peers: readonly number[], other: Episode = slow) =>
    reasonFor(other, { ...subject, peers: hosts(peers) }, series)
  assert.equal(
    reason(usual),
    'p95 latency of checkout host=7 1,900 ms; its 11 peers 280 ms to 340 ms; 7 minutes high since 14:03 UTC',
  )
  assert.match(reason([...usual, 1800]), /1,900 ms; 11 of its 12 peers 280 ms to 340 ms; 7 minutes high/)
  assert.match(reason(usual.fill(300)), /; its 11 peers 300 ms; /)
  const silent = { ...slow, kind: 'silent' as const, peakValue: null }
  assert.equal(
    reason([300, 310], silent),
    'p95 latency of checkout host=7: no data for 7 minutes since 14:03 UTC; its 2 peers 300 ms to 310 ms',
  )
  assert.match(
    reason([]),
    /1,900 ms, expected 200 ms to 420 ms; 7 minutes high/,
    'without peers it gives the band',
  )
})

test('a closed episode says until when', () => {
  assert.equal(
    reasonFor({ ...episode, endIndex: 9 }, { ...checkout, scope: '' }, series),
    'requests/s 12.0, expected 310 to 420; 7 minutes low from 14:03 to 14:10 UTC',
  )
})

test('an episode that crosses midnight gives its days', () => {
  const long = { ...episode, lastIndex: 662, endIndex: 662 }
  assert.match(
    reasonFor(long, checkout, series),
    /11 hours low from 2026-09-11 14:03 to 2026-09-12 01:03 UTC$/,
  )
})

test('one limit reads as a limit', () => {
  const high = { ...episode, kind: 'high' as const, peakValue: 5.5, expected: null, lower: null, upper: 4 }
  const subject = { metricName: 'errors', unit: '%', scope: '' }
  assert.equal(
    reasonFor(high, subject, series),
    'errors 5.50 %, expected at most 4.00 %; 7 minutes high since 14:03 UTC',
  )
  assert.match(reasonFor({ ...episode, upper: null }, checkout, series), /12\.0, expected at least 310;/)
})

test('a band without width is one number', () => {
  assert.match(reasonFor({ ...episode, lower: 310, upper: 310 }, checkout, series), /, expected 310;/)
})

test('a standstill is described as one, and is neither high nor low', () => {
  const moving = Array.from({ length: 40 }, (_, i) => (i * 7) % 11)
  const values = Float64Array.from([...moving, ...Array(10).fill(4.5)])
  const unbanded = { ...episode, kind: 'odd' as const, expected: null, lower: null, upper: null }
  const stuck = { ...unbanded, startIndex: 47, openedIndex: 48, lastIndex: 49, peakIndex: 49, peakValue: 4.5 }
  assert.equal(
    reasonFor(stuck, checkout, { ...series, values }),
    'requests/s of checkout stopped changing at 4.50; 3 minutes unusual since 14:47 UTC',
  )
  const moved = { ...stuck, startIndex: 20, openedIndex: 21, peakIndex: 21, peakValue: 4 }
  assert.match(
    reasonFor(moved, checkout, { ...series, values }),
    /^requests\/s of checkout 4.00; .* unusual since/,
  )
  const banded = { ...stuck, kind: 'low' as const, lower: 5, upper: 9 }
  assert.match(
    reasonFor(banded, checkout, { ...series, values }),
    /4.50, expected 5.00 to 9.00; 3 minutes low/,
  )
})

test('silence has no value', () => {
  const silent = { ...episode, kind: 'silent' as const, peakValue: null }
  assert.equal(
    reasonFor(silent, checkout, series),
    'requests/s of checkout: no data for 7 minutes since 14:03 UTC, expected 310 to 420',
  )
})

const withVolumes = { ...series, volumes: new Float64Array(12).fill(43) }

test('a built-in metric has a readable name, and the number of events behind its value', () => {
  const ratio = { ...describeMetric('spans.error_ratio'), unit: '1', scope: 'checkout' }
  const share = { ...episode, peakValue: 0.6, kind: 'high' as const, lower: 0, upper: 0.1 }
  assert.equal(
    reasonFor(share, ratio, withVolumes),
    'error ratio of checkout 0.600 (26 of 43 requests failed), expected 0 to 0.100; 7 minutes high since 14:03 UTC',
  )
  const latency = { ...describeMetric('spans.latency_p95'), unit: 'ms', scope: 'checkout' }
  assert.match(
    reasonFor(episode, latency, withVolumes),
    /^p95 latency of checkout 12.0 ms over 43 requests, expected/,
  )
  assert.match(reasonFor(episode, latency, series), /^p95 latency of checkout 12.0 ms, expected/)
  assert.deepEqual(describeMetric('queue.length'), { metricName: 'queue.length' })
})

test('a seasonal expectation says for which time, and an edge that feedback moved says so', () => {
  assert.match(
    reasonFor(episode, { ...checkout, isSeasonal: true }, series),
    /expected 310 to 420 for a Friday 14:06; 7 minutes low/,
  )
  assert.match(
    reasonFor(episode, { ...checkout, isSeasonal: true, isHoliday: true }, series),
    /expected 310 to 420 for a holiday, Friday 14:06; 7 minutes low/,
  )
  assert.match(
    reasonFor(episode, { ...checkout, edgeFactor: 2.2 }, series),
    /UTC; beyond an edge that feedback made 2.2 times wider$/,
  )
})

const unbanded = { ...episode, expected: null, lower: null, upper: null }
const around = { expected: 420, measured: 12, low: 340, high: 500 }
const comparisons: readonly [Comparison, string][] = [
  [
    { with: 'days', count: 7, ...around },
    '12.0, expected about 420 (340 to 500) from this time of the last 7 days; 7 minutes low',
  ],
  [
    { with: 'weeks', count: 4, ...around },
    '12.0, expected about 420 (340 to 500) from this time and weekday of the last 4 weeks; 7 minutes low',
  ],
  [
    { with: 'weeks', count: 1, ...around, measured: 600 },
    '12.0, expected about 420 (340 to 500) from this time and weekday of the last week; 7 minutes high',
  ],
  [
    { with: 'daysAtThisLevel', count: 6, ...around },
    '12.0, expected about 420 (340 to 500) from this time of the last 6 days at the level of the last hour; 7 minutes low',
  ],
  [
    { with: 'lastValues', count: 9, ...around, together: 3 },
    '12.0, expected about 420 (340 to 500) from the last 9 minutes, together with the 3 values before it; 7 minutes low',
  ],
  [
    { with: 'forecast', count: 5, ...around },
    '12.0, expected about 420 (340 to 500) from the last 5 minutes and this time of earlier days; 7 minutes low',
  ],
  [
    { with: 'nearest', count: 4032, measured: 12, low: 40, high: 40 },
    '12.0, expected near 40.0, the third nearest of the last 4,032 values; 7 minutes low',
  ],
  [
    { with: 'range', of: { kind: 'value', over: 1 }, count: 4032, measured: 12, low: 40, high: 500 },
    '12.0, expected 40.0 to 500 as in all 4,032 values before; 7 minutes low',
  ],
  [
    { with: 'range', of: { kind: 'mean', over: 72 }, count: 4032, measured: 30, low: 40, high: 500 },
    '12.0, mean of 1 hour 12 minutes 30.0, expected 40.0 to 500 as in all 4,032 values before; 7 minutes low',
  ],
  [
    { with: 'range', of: { kind: 'step', over: 6 }, count: 4032, measured: 300, low: -50, high: 60 },
    '12.0, step of 300 within 6 minutes, expected -50.0 to 60.0 as in all 4,032 values before; 7 minutes unusual',
  ],
  [
    { with: 'range', of: { kind: 'spread', over: 36 }, count: 4032, measured: 30, low: 2, high: 9 },
    '12.0, standard deviation 30.0 over 36 minutes, expected 2.00 to 9.00 as in all 4,032 values before; 7 minutes unusual',
  ],
  [
    { with: 'spreads', over: 36, count: 2048, measured: 30, low: 2, high: 9 },
    '12.0, standard deviation 30.0 over 36 minutes, expected 2.00 to 9.00 from the last 2,048 values; 7 minutes unusual',
  ],
  [
    { with: 'distances', over: 60, count: 7, measured: -45, low: -12, high: 20 },
    '12.0, on average of 1 hour 45.0 below this time of the last 7 days, expected at most 12.0; 7 minutes low',
  ],
  [
    { with: 'changes', over: 24, count: 1, measured: 0.2, low: 2, high: 8 },
    '12.0, changes by 0.200 over 24 minutes, expected 2.00 to 8.00 from the hours before; 7 minutes unusual',
  ],
  [
    { with: 'changes', means: 12, over: 48, count: 7, measured: 9, low: 2, high: 8 },
    '12.0, means of 12 minutes change by 9.00 over 48 minutes, expected 2.00 to 8.00 from the last 7 days; 7 minutes unusual',
  ],
]

test('without a band the reason says with which past the peak was compared', () => {
  for (const [compared, text] of comparisons) {
    assert.equal(
      reasonFor({ ...unbanded, compared }, { ...checkout, scope: '' }, series),
      `requests/s ${text} since 14:03 UTC`,
    )
  }
})

test('numbers are formatted for people', () => {
  const cases: [number, string][] = [
    [0, '0'],
    [12, '12.0'],
    [310, '310'],
    [0.012345, '0.0123'],
    [-2.3456, '-2.35'],
    [999.7, '1,000'],
    [1240.4, '1,240'],
    [9_876_543, '9,876,543'],
    [1e300, '1.00e300'],
    [0.00001, '1.00e-5'],
  ]
  for (const [value, text] of cases) assert.equal(formatNumber(value), text)
})

test('units are formatted for people', () => {
  assert.equal(formatQuantity(1240, 'ms'), '1,240 ms')
  assert.equal(formatQuantity(1.5 * 1024 ** 3, 'By'), '1.50 GiB')
  assert.equal(formatQuantity(0, 'By'), '0 B')
  assert.equal(formatQuantity(12, '{request}/s'), '12.0')
  assert.equal(formatQuantity(12, '1'), '12.0')
})

test('durations name their two largest parts', () => {
  assert.equal(formatMinutes(1), '1 minute')
  assert.equal(formatMinutes(125), '2 hours 5 minutes')
  assert.equal(formatMinutes(1440), '1 day')
  assert.equal(formatMinutes(3 * 1440 + 4 * 60 + 9), '3 days 4 hours')
})
