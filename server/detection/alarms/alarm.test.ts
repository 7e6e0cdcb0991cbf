// The alarm layer on hand-made scores: the band is 90 to 110 around 100 in every bucket, so that
// each rule is tested alone.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type AlarmPolicy, type Evaluation, raiseAlarms } from './alarm.ts'
import { bucketKind } from './evidence.ts'

const exact: AlarmPolicy = {
  direction: 'both',
  minAbsDev: 0,
  minRelDev: 0,
  violateN: 2,
  windowM: 3,
  clearN: 3,
  cooldownBuckets: 0,
  silenceAlarms: false,
  warmupPoints: 0,
  waitsForScores: false,
  budgetPerBucket: null,
  leastThreshold: 1,
  mostThreshold: Number.POSITIVE_INFINITY,
}

/** A budget so large that it widens nothing: only the least deviations apply. */
const banded: AlarmPolicy = { ...exact, budgetPerBucket: 1 }

const kindOf = { _: bucketKind.missing, '?': bucketKind.unknown, t: bucketKind.thin }

/** Values on a band of 90 to 110, with `_` for missing, `?` for erased and `t` for thin buckets. */
function evaluationOf(
  buckets: readonly (number | '_' | '?' | 't')[],
  policy: Partial<AlarmPolicy>,
): Evaluation {
  const values = Float64Array.from(buckets, (bucket) => (typeof bucket === 'number' ? bucket : Number.NaN))
  const kinds = Uint8Array.from(buckets, (bucket) =>
    typeof bucket === 'number' ? bucketKind.value : kindOf[bucket],
  )
  const unknown = kinds.map((kind) => (kind === bucketKind.unknown ? 1 : 0))
  const fill = (value: number) => new Float64Array(values.length).fill(value)
  const scores = {
    score: values.map((value) => Math.abs(value - 100) / 10),
    expected: fill(100),
    lower: fill(90),
    upper: fill(110),
  }
  const series = { startNs: 0n, stepMinutes: 1, values, unknown, volumes: null }
  return raiseAlarms({ series, kinds }, scores, { ...exact, ...policy })
}

const spans = (evaluation: Evaluation) => evaluation.episodes.map((each) => [each.startIndex, each.lastIndex])
const statusAfter = (buckets: readonly (number | '_' | '?' | 't')[], policy: Partial<AlarmPolicy> = {}) =>
  evaluationOf(buckets, policy).state.status

test('an episode that ends before 16 buckets were judged is not reported, and one that lasts is reported then', () => {
  const waiting = { ...banded, waitsForScores: true, clearN: 2 }
  const after = (buckets: readonly (number | '_')[], policy: Partial<AlarmPolicy> = waiting) => {
    const { episodes, state } = evaluationOf(buckets, policy)
    return { reported: episodes.map((each) => [each.startIndex, each.openedIndex]), state }
  }
  const calm = (count: number) => Array<number>(count).fill(100)
  const high = (count: number) => Array<number>(count).fill(130)
  assert.deepEqual(after([...calm(2), ...high(6), ...calm(20)]), { reported: [], state: { status: 'ok' } })
  assert.deepEqual(after([...calm(2), ...high(6)]), {
    reported: [],
    state: { status: 'learning', pointsNeeded: 8 },
  })
  assert.deepEqual(after([...calm(2), ...high(14)]), { reported: [[2, 15]], state: { status: 'anomalous' } })
  assert.deepEqual(after([...calm(2), '_', ...high(13)]).reported, [], 'a bucket without data is not judged')
  assert.deepEqual(after([...calm(14), ...high(6)]).reported, [[14, 15]])
  assert.deepEqual(after([...calm(14), ...high(1), ...calm(1)], { ...waiting, violateN: 1 }), {
    reported: [],
    state: { status: 'ok' },
  })
  assert.deepEqual(
    after([...calm(14), ...high(1), ...calm(1), ...high(1)], { ...waiting, violateN: 1 }).reported,
    [[14, 16]],
    'one that pauses is reported at its next violation, with that bucket as its opening',
  )
  assert.deepEqual(after([...calm(20), ...high(6)]).reported, [[20, 21]])
  assert.deepEqual(
    after([...calm(2), ...high(6), ...calm(20)], banded).reported,
    [[2, 3]],
    'without the waiting policy it is reported at once',
  )
  const silence = { ...waiting, silenceAlarms: true }
  assert.deepEqual(
    after([...calm(2), '_', '_', ...calm(20)], silence).reported,
    [[2, 3]],
    'silence is reported at once',
  )
})

test('n of m violations open an episode, at the bucket that completes them', () => {
  const evaluation = evaluationOf([100, 120, 100, 130, 100], {})
  assert.equal(evaluation.episodes.length, 1)
  assert.deepEqual(evaluation.episodes[0], {
    kind: 'high',
    startIndex: 1,
    openedIndex: 3,
    lastIndex: 3,
    endIndex: null,
    peakIndex: 3,
    peakValue: 130,
    expected: 100,
    lower: 90,
    upper: 110,
    score: 3,
  })
})

test('fewer violations, or violations too far apart, open none', () => {
  assert.deepEqual(spans(evaluationOf([100, 120, 100, 100, 100], {})), [])
  assert.deepEqual(spans(evaluationOf([120, 100, 100, 120, 100, 100, 120], {})), [])
})

test('a value on the edge does not violate', () => {
  assert.deepEqual(spans(evaluationOf([110, 110, 90, 90], {})), [])
})

test('an episode continues until clear_n calm buckets in a row, and is one episode with one peak', () => {
  const evaluation = evaluationOf([120, 120, 100, 100, 150, 130, 100, 100, 100, 100], {})
  assert.deepEqual(spans(evaluation), [[0, 5]])
  assert.equal(evaluation.episodes[0]?.endIndex, 5)
  assert.equal(evaluation.episodes[0]?.peakValue, 150)
  assert.equal(evaluation.episodes[0]?.peakIndex, 4)
})

test('violations from before an episode closed do not open the next one', () => {
  const policy = { violateN: 2, windowM: 6, clearN: 1 }
  assert.deepEqual(spans(evaluationOf([120, 120, 100, 120, 100, 100], policy)), [[0, 1]])
})

test('only the chosen direction alarms', () => {
  const buckets = [120, 120, 100, 100, 100, 70, 70]
  assert.deepEqual(spans(evaluationOf(buckets, { direction: 'up' })), [[0, 1]])
  assert.deepEqual(spans(evaluationOf(buckets, { direction: 'down' })), [[5, 6]])
  assert.equal(evaluationOf(buckets, { direction: 'down' }).episodes[0]?.kind, 'low')
  assert.equal(evaluationOf(buckets, { direction: 'both' }).episodes.length, 2)
})

test('the least deviations move the edges out, and the score counts from there', () => {
  const absolute = evaluationOf([140, 140, 141, 141], { ...banded, minAbsDev: 40 })
  assert.deepEqual(spans(absolute), [[2, 3]])
  assert.equal(absolute.scores.upper[0], 140)
  assert.equal(absolute.scores.score[0], 1)
  const relative = evaluationOf([40, 40, 30, 30], { ...banded, minRelDev: 0.65 })
  assert.deepEqual(spans(relative), [[2, 3]])
  assert.equal(relative.scores.lower[0], 35)
})

test('feedback widens each side by its own factor, after everything else has', () => {
  const policy = {
    budgetPerBucket: 0.001,
    minAbsDev: 20,
    violateN: 1,
    windowM: 1,
    widening: { above: 2, below: 1 },
  }
  const first = [100, 100, 100, 100, 100]
  const evaluation = evaluationOf([...first, 139, 100, 79], { ...policy, windowM: 1 })
  assert.deepEqual([evaluation.scores.upper[5], evaluation.scores.lower[5]], [140, 80])
  assert.equal(evaluation.scores.score[5], 39 / 40)
  assert.deepEqual(
    spans(evaluationOf([...first, 100, 79], policy)),
    [[6, 6]],
    'only the side without feedback',
  )
  assert.deepEqual(spans(evaluationOf([...first, 141], policy)), [[5, 5]], 'values far outside still alarm')
})

test('each side of an asymmetric band has its own scale', () => {
  const values = Float64Array.of(130, 70)
  const fill = (value: number) => new Float64Array(2).fill(value)
  const series = { startNs: 0n, stepMinutes: 1, values, unknown: new Uint8Array(2), volumes: null }
  const scores = { score: Float64Array.of(1.5, 0.5), expected: fill(100), lower: fill(40), upper: fill(120) }
  const evaluation = raiseAlarms({ series, kinds: new Uint8Array(2) }, scores, banded)
  assert.deepEqual([...evaluation.scores.score], [1.5, 0.5])
})

test('an exact method keeps its edges whatever the least deviations are', () => {
  assert.deepEqual(spans(evaluationOf([111, 111], { minAbsDev: 40 })), [[0, 1]])
})

test('missing, thin and erased buckets count neither for nor against an episode', () => {
  for (const gap of ['_', 't', '?'] as const) {
    assert.deepEqual(spans(evaluationOf([120, gap, gap, gap, 120], {})), [[0, 4]], `opens across ${gap}`)
    const closing = evaluationOf([120, 120, gap, gap, gap, gap, 100], {})
    assert.equal(closing.episodes[0]?.endIndex, null, `does not close across ${gap}`)
  }
})

test('silence opens an episode under the policy "alert", after the first value only', () => {
  const evaluation = evaluationOf(['_', '_', '_', 100, '_', '_', '_'], { silenceAlarms: true })
  assert.deepEqual(spans(evaluation), [[4, 6]])
  const { kind, peakValue, score } = evaluation.episodes[0] ?? {}
  assert.deepEqual({ kind, peakValue, score }, { kind: 'silent', peakValue: null, score: 1 })
})

test('erased buckets are not silence', () => {
  assert.deepEqual(spans(evaluationOf([100, '?', '?', '?', '?', '?'], { silenceAlarms: true })), [])
})

test('erased buckets have no band', () => {
  const { scores } = evaluationOf([100, '?', 't'], {})
  assert.ok(Number.isNaN(scores.upper[1]))
  assert.equal(scores.upper[2], 110)
})

test('within the cool-down only a clearly higher score opens an episode; the rest is muted', () => {
  const first = [130, 130, 100, 100, 100]
  const policy = { cooldownBuckets: 10 }
  assert.deepEqual(spans(evaluationOf([...first, 140, 140], policy)), [[0, 1]])
  assert.equal(statusAfter([...first, 140, 140], policy), 'muted')
  assert.equal(statusAfter([...first, 140, 140, 100, 100], policy), 'ok')
  assert.deepEqual(spans(evaluationOf([...first, 145, 145], policy)), [
    [0, 1],
    [5, 6],
  ])
})

test('violations that last longer than the cool-down open an episode', () => {
  const policy = { cooldownBuckets: 3 }
  assert.deepEqual(spans(evaluationOf([130, 130, 100, 100, 100, 130, 130, 130, 130], policy)), [
    [0, 1],
    [6, 8],
  ])
})

test('the state follows the episode', () => {
  assert.equal(statusAfter([100]), 'ok')
  assert.equal(statusAfter([100, 120]), 'ok')
  assert.equal(statusAfter([100, 120, 120]), 'anomalous')
  assert.equal(statusAfter([120, 120, 100, 100]), 'recovering')
  assert.equal(statusAfter([120, 120, 100, 120]), 'anomalous')
  assert.equal(statusAfter([120, 120, 100, 100, 100]), 'ok')
})

test('no data is a state once a whole window_m of buckets is missing, unless silence alarms', () => {
  assert.equal(statusAfter([]), 'no_data')
  assert.equal(statusAfter(['_', '_', '?']), 'no_data')
  assert.equal(statusAfter([100, '_', '_']), 'ok')
  assert.equal(statusAfter([100, '_', '_', '_']), 'no_data')
  assert.equal(statusAfter([100, '_', '_', '_'], { silenceAlarms: true }), 'anomalous')
})

test('erased time says nothing about whether data still arrives', () => {
  assert.equal(statusAfter([100, '?', '?', '?', '?']), 'ok')
  assert.equal(statusAfter([100, '_', '?', '_', '?', '_', '?']), 'no_data')
})

test('before warm-up the state says how many values are still needed', () => {
  const policy = { ...banded, warmupPoints: 3 }
  assert.deepEqual(evaluationOf([100, 100], { ...policy, warmupPoints: 2 }).state, { status: 'ok' })
  assert.deepEqual(evaluationOf(['_', '_', 100, 100], policy).state, { status: 'learning', pointsNeeded: 1 })
})

test('data too sparse for the window is distinguished from data that only needs time', () => {
  const sparse = evaluationOf([100, '_', '_', 100, '_', '_', 100], { ...banded, warmupPoints: 4 })
  assert.deepEqual(sparse.state, { status: 'insufficient_data', pointsNeeded: 1 })
  const thin = evaluationOf(['t', 't', 't'], { ...banded, warmupPoints: 2 })
  assert.deepEqual(thin.state, { status: 'insufficient_data', pointsNeeded: 2 })
  const erased = evaluationOf([100, '?', '?', 100, '?', '?', 100], { ...banded, warmupPoints: 4 })
  assert.deepEqual(erased.state, { status: 'learning', pointsNeeded: 1 })
})

test('without a band an unreported score opens, the score keeps open, and the side comes from the expected value', () => {
  const values = Float64Array.of(5, 5, 9, 9, 9, 5, 5, 5, 1)
  const none = () => new Float64Array(values.length).fill(Number.NaN)
  const scores = {
    score: Float64Array.of(0, 1, 3, 3, 2, 0, 0, 0, 2),
    unreported: Float64Array.of(0, 1, 3, 0, 0, 0, 0, 0, 2),
    expected: new Float64Array(values.length).fill(5),
    lower: none(),
    upper: none(),
  }
  const series = {
    startNs: 0n,
    stepMinutes: 1,
    values,
    unknown: new Uint8Array(values.length),
    volumes: null,
  }
  const policy = { ...banded, violateN: 1, windowM: 1 }
  const { episodes } = raiseAlarms({ series, kinds: new Uint8Array(values.length) }, scores, policy)
  assert.deepEqual(
    episodes.map((each) => [each.startIndex, each.lastIndex, each.kind, each.expected, each.upper]),
    [
      [2, 4, 'high', 5, null],
      [8, 8, 'low', 5, null],
    ],
  )
  const old = { ...scores, unreported: new Float64Array(values.length) }
  assert.deepEqual(raiseAlarms({ series, kinds: new Uint8Array(values.length) }, old, policy).episodes, [])
})

test('a violation without an expected value is odd, not high', () => {
  const values = Float64Array.of(5, 5)
  const none = new Float64Array(2).fill(Number.NaN)
  const scores = { score: Float64Array.of(2, 2), expected: none, lower: none, upper: none }
  const series = { startNs: 0n, stepMinutes: 1, values, unknown: new Uint8Array(2), volumes: null }
  const kinds = (more: Partial<typeof scores>) =>
    raiseAlarms({ series, kinds: new Uint8Array(2) }, { ...scores, ...more }, exact).episodes[0]?.kind
  assert.equal(kinds({}), 'odd')
  assert.equal(kinds({ expected: Float64Array.of(5, 5) }), 'odd')
  assert.equal(kinds({ expected: Float64Array.of(9, 9) }), 'low')
})
