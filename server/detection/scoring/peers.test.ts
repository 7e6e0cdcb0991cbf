// Peers in a bucket: which series count as peers, how they are summarised, and the state of a
// series that has too few.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { methodParams } from '../../../contract/detection/methods.ts'
import { evaluateSeries, peersOf } from '../runs/evaluate.ts'
import { peerValuesAt, summarisePeers } from './peers.ts'
import { seededNormal } from './seeded-noise.ts'
import { eraseFrom, type Series } from './series.ts'

const startNs = 1_800_000_000_000_000_000n
const choice = { method_key: 'peer_outlier', params: methodParams.peer_outlier.parse({}) } as const

function seriesOf(values: readonly number[]): Series {
  const unknown = new Uint8Array(values.length)
  return { startNs, stepMinutes: 1, values: Float64Array.from(values), unknown, volumes: null }
}

const buckets = 300
const busy = (i: number) => 300 + 100 * Math.sin(i / 40)
/**
 * Hosts whose latency follows the same load, each with its own noise. `change` makes some of them different.
 */
function hosts(
  count: number,
  change: (host: number, i: number, usual: number) => number = (_, __, v) => v,
): Series[] {
  return Array.from({ length: count }, (_, host) => {
    const noise = seededNormal(host + 1)
    return seriesOf(Array.from({ length: buckets }, (_, i) => change(host, i, busy(i) + 10 * noise())))
  })
}

/** The evaluation of each host. */
function judge(group: readonly Series[], params: object = {}) {
  const own = { ...choice, params: methodParams.peer_outlier.parse(params) }
  const peers = peersOf(group, own)
  return group.map((series, i) => evaluateSeries(series, own, undefined, peers[i]))
}
const alarmsOf = (group: readonly Series[], params: object = {}) =>
  judge(group, params).map(({ episodes }) => episodes.length)

test('the one slow host is found, and no other', () => {
  const group = hosts(12, (host, i, usual) => (host === 7 && i >= 250 && i < 260 ? 1900 : usual))
  const evaluations = judge(group)
  assert.deepEqual(
    evaluations.map(({ episodes }) => episodes.length),
    [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0],
  )
  const [episode] = evaluations[7]?.episodes ?? []
  assert.equal(episode?.startIndex, 250)
  assert.equal(episode?.kind, 'high')
  assert.ok(Math.abs((episode?.expected ?? 0) - busy(250)) < 20)
})

test('a change that all hosts share raises nothing, however large it is', () => {
  const exploding = hosts(8, (_, i, usual) => (i >= 250 ? usual * 1e6 : usual))
  assert.deepEqual(alarmsOf(exploding), Array(8).fill(0))
  const resetting = hosts(8, (_, i, usual) => (i % 60) * 1000 + usual)
  assert.deepEqual(alarmsOf(resetting), Array(8).fill(0))
})

test('a group that is divided into two halves has no outliers', () => {
  const rollout = hosts(12, (host, i, usual) => (i >= 200 && host < 6 ? usual * 3 : usual))
  assert.deepEqual(alarmsOf(rollout), Array(12).fill(0))
})

test('of five hosts one may be an outlier without hiding another', () => {
  const group = hosts(6, (host, i, usual) => (host === 0 || (host === 1 && i >= 250) ? 3000 : usual))
  assert.deepEqual(alarmsOf(group), [1, 1, 0, 0, 0, 0])
})

test('a host that joins late is judged from its first buckets', () => {
  const group = hosts(6, (host, i, usual) => (host < 5 ? usual : i < 290 ? Number.NaN : 3000))
  const evaluation = judge(group)[5]
  assert.equal(evaluation?.episodes[0]?.startIndex, 290)
  assert.equal(evaluation?.state.status, 'anomalous')
  const usual = judge(hosts(6, (host, i, value) => (host === 5 && i < 290 ? Number.NaN : value)))[5]
  assert.equal(usual?.state.status, 'ok')
})

test('among counts that are nearly always zero, one error raises nothing and many do', () => {
  const noise = seededNormal(99)
  const group = (last: number) =>
    hosts(10, (host, i) => (host === 3 && i >= 290 ? last : noise() > 1.5 ? 1 : 0))
  assert.equal(alarmsOf(group(1))[3], 0)
  assert.equal(alarmsOf(group(20))[3], 1)
})

test('where peers never differ, a small difference raises nothing and a large one does', () => {
  const same = (odd: number) => hosts(6, (host, i) => (host === 2 && i >= 290 ? odd : 100))
  assert.deepEqual(alarmsOf(same(100)), Array(6).fill(0))
  assert.equal(alarmsOf(same(105))[2], 0, 'within min_rel_dev')
  assert.equal(alarmsOf(same(150))[2], 1)
})

test('a group with too few peers is not judged, and its state says how many are missing', () => {
  for (const count of [1, 2, 4]) {
    const group = hosts(count, (host, _, usual) => (host === 0 ? 1e6 : usual))
    for (const { episodes, state } of judge(group)) {
      assert.deepEqual(episodes, [])
      assert.deepEqual(state, { status: 'insufficient_data', peersNeeded: 5 - count })
    }
  }
  assert.equal(judge(hosts(5))[0]?.state.status, 'ok')
})

test('the state is learning until the peers have a history', () => {
  const stateAfter = (length: number) =>
    judge(hosts(5).map((series) => seriesOf([...series.values.subarray(0, length)])))[0]?.state
  assert.deepEqual(stateAfter(1), { status: 'learning', pointsNeeded: 16 })
  assert.deepEqual(stateAfter(16), { status: 'learning', pointsNeeded: 1 })
  assert.deepEqual(stateAfter(17), { status: 'ok' })
})

test('a series without data is no_data among its peers, and an empty group raises nothing', () => {
  const group = hosts(6, (host, _, usual) => (host === 1 ? Number.NaN : usual))
  assert.equal(judge(group)[1]?.state.status, 'no_data')
  assert.deepEqual(judge([]), [])
  assert.equal(judge(Array.from({ length: 6 }, () => seriesOf([])))[0]?.state.status, 'no_data')
})

test('difficult groups keep scores finite and edges in order', () => {
  const groups: Record<string, Series[]> = {
    'two points': Array.from({ length: 6 }, (_, host) => seriesOf([host, -host])),
    'all without data': hosts(6, () => Number.NaN),
    sparse: hosts(8, (host, i, usual) => ((i + host) % 3 === 0 ? usual : Number.NaN)),
    huge: hosts(8, (host, i) => ((host + i) % 2 === 0 ? 1e300 : -1e300)),
    negative: hosts(8, (_, __, usual) => -usual),
    'one at the end of the scale': hosts(8, (host, _, usual) => (host === 0 ? 1e300 : usual)),
  }
  for (const [name, group] of Object.entries(groups)) {
    for (const { scores } of judge(group, { warmup_points: 16 })) {
      for (const [i, score] of scores.score.entries()) {
        assert.ok(Number.isNaN(score) || (score >= 0 && score <= 1e9), `${name}: ${score} at ${i}`)
        assert.ok(!((scores.lower[i] ?? 0) > (scores.upper[i] ?? 0)), `${name}: edges crossed at ${i}`)
        for (const edge of [scores.lower[i], scores.upper[i], scores.expected[i]]) {
          assert.ok(Number.isNaN(edge) || Number.isFinite(edge), `${name}: edge ${edge} at ${i}`)
        }
      }
    }
  }
})

test('erased time is unknown for the whole group, and no trace of its values remains', () => {
  const range = { startNs: startNs + 100n * 60_000_000_000n, endNs: startNs + 120n * 60_000_000_000n }
  const erased = (factor: number) =>
    judge(
      hosts(6, (host, i, usual) => (host === 0 && i >= 100 && i < 120 ? usual * factor : usual)).map((each) =>
        eraseFrom(each, [range]),
      ),
    )
  assert.deepEqual(erased(50), erased(1))
})

test('series with too little volume are no peers', () => {
  const group = hosts(6).map((series, host) => ({
    ...series,
    volumes: new Float64Array(buckets).fill(host < 3 ? 100 : 1),
  }))
  assert.deepEqual(judge(group, { min_volume: 10 })[0]?.state, {
    status: 'insufficient_data',
    peersNeeded: 2,
  })
  assert.equal(judge(group, { min_volume: 1 })[0]?.state.status, 'ok')
})

test('values of peers are sorted, and series without a value are left out', () => {
  const peers = [3, Number.NaN, -1, 2].map((value) => seriesOf([value]))
  const into = new Float64Array(4)
  assert.equal(peerValuesAt(peers, 0, into), 3)
  assert.deepEqual([...into.subarray(0, 3)], [-1, 2, 3])
})

test('peers are described by the range of those within the band', () => {
  const peers = [300, 280, 340, 1950].map((value) => seriesOf([value]))
  assert.deepEqual(summarisePeers(peers, 0, { lower: 200, upper: 420 }), {
    count: 4,
    within: 3,
    lowest: 280,
    highest: 340,
  })
  assert.equal(summarisePeers(peers, 0, { lower: null, upper: null }).within, 4)
  assert.equal(summarisePeers(peers, 0, { lower: 0, upper: 1 }).highest, 1950)
})
