// What a run reports is bounded, whatever its series do, and other work of the event loop runs meanwhile.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { weekdays } from '../../../contract/detection/feedback.ts'
import { RobustBandParams, ThresholdParams } from '../../../contract/detection/methods.ts'
import { nsPerMinute } from '../../../contract/values/instant.ts'
import { withTurns } from '../../../tests/with-turns.ts'
import { reportedMax } from '../alarms/newest-episodes.ts'
import type { Tuning } from '../anomalies/feedback.ts'
import type { MuteRule } from '../anomalies/mute.ts'
import { alarmAtOnce, atNs, definitionOf } from '../detection-fixture.ts'
import { buildSeries } from '../scoring/series.ts'
import type { JudgedRun } from './detector-course.ts'
import { evaluateSeries } from './evaluate.ts'
import { evaluateRun, type Run } from './evaluate-run.ts'

const params = ThresholdParams.parse({ upper: 10, ...alarmAtOnce })
const definition = definitionOf({
  name: 'Queue',
  metric_key: 'queue',
  method_key: 'threshold',
  params,
  scope: { group_by: 'host' },
  window_minutes: 2160,
  schedule_minutes: 5,
})

/** A run at noon. */
function runWith(mutes: readonly MuteRule[]): Run {
  const tuning: Tuning = { widenings: new Map(), confirmed: new Map(), mutes, isOutdated: () => false }
  const detector = {
    ...{ id: 'det_1', tenantId: 'acme', definition, isSystem: false, revision: 1, tuningRevision: 0 },
    ...{ lastRunAtMs: null, lastStatus: null, lastNote: null, nextRunAtMs: 0, createdAtMs: 0 },
  }
  return { detector, choice: { method_key: 'threshold', params }, tuning, isUnknown: () => false }
}

/** The minutes up to noon of each host: the value at a minute, counted back from noon; `erased` for all. */
function judgedOf(
  hosts: Readonly<Record<string, (back: number) => number>>,
  minutes: number,
  erased: readonly number[] = [],
): JudgedRun {
  const span = { startNs: atNs(-minutes), stepMinutes: 1, length: minutes }
  const groups = Object.entries(hosts).map(([group, valueAt]) => {
    const backs = Array.from({ length: minutes }, (_, i) => minutes - i)
    const points = backs.map((back) => ({ timeNs: atNs(-back), value: valueAt(back) }))
    const holes = erased.map((back) => ({ startNs: atNs(-back), endNs: atNs(-back) + nsPerMinute }))
    const series = buildSeries(span, points, holes)
    const evaluation = evaluateSeries(series, { method_key: 'threshold', params })
    return { group, groupKey: JSON.stringify({ host: group }), series, evaluation }
  })
  const startNs = atNs(-minutes)
  return {
    plan: { stepMinutes: 1, startNs, windowStartNs: startNs, settledNs: atNs(-60), endNs: atNs(0) },
    groups,
    set: { signals: ['metrics'], unit: '', truncatedGroups: 0, longGroups: 0 },
    learntFrom: [],
  }
}

const alternating = (back: number) => (back % 2 === 0 ? 20 : 1)
const mute = (more: Partial<MuteRule>): MuteRule => ({
  ...{ id: 'mut_1', group: null, fromNs: atNs(-5000), untilNs: null, weekly: null },
  ...more,
})

test('a run reports the newest thousand findings of its series and every open one, and says how many it left out', async () => {
  const judged = judgedOf({ a: alternating, b: alternating, open: (back) => (back > 2000 ? 1 : 20) }, 2160)
  const { found, summary } = await evaluateRun(runWith([]), judged)
  const ended = found.findings.filter(({ isOpen }) => !isOpen)
  assert.equal(ended.length, reportedMax)
  assert(ended.every(({ startedNs }) => startedNs >= atNs(-1000)))
  const open = found.findings.filter(({ isOpen }) => isOpen)
  assert.deepEqual(
    open.map(({ groupKey, startedNs }) => [groupKey, startedNs]),
    [['{"host":"open"}', atNs(-2000)]],
  )
  assert.match(
    summary.note ?? '',
    /^It found more anomalies than are kept: the oldest 1160 of its window are/,
  )
  const [before] = judged.groups
  assert(before !== undefined)
  const cut = { ...before, evaluation: { ...before.evaluation, leftOut: 7 } }
  const { summary: more } = await evaluateRun(runWith([]), {
    ...judged,
    groups: [cut, ...judged.groups.slice(1)],
  })
  assert.match(more.note ?? '', /the oldest 1167 of/, 'with those that the evaluation left out')
})

test('a run says that its anomalies have no reason where its past is erased in too many places', async () => {
  const pieces = (count: number) =>
    Array.from({ length: count }, (_, i) => ({
      startNs: atNs(-2 * (count - i)),
      endNs: atNs(-2 * (count - i) + 1),
    }))
  const noteOf = async (run: Run, count: number) =>
    (await evaluateRun(run, { ...judgedOf({ a: () => 1 }, 60), learntFrom: pieces(count) })).summary.note
  const configured = runWith([])
  const learning: Run = {
    ...configured,
    choice: { method_key: 'robust_band', params: RobustBandParams.parse({}) },
  }
  assert.match((await noteOf(learning, 101)) ?? '', /^Its past was erased in too many places/)
  assert.equal(await noteOf(learning, 100), null)
  assert.equal(await noteOf(configured, 101), null, 'its band is configured')
})

test('a run with no more than a thousand findings has all of them and no note', async () => {
  const { found, summary } = await evaluateRun(runWith([]), judgedOf({ a: alternating }, 2000))
  assert.equal(found.findings.length, reportedMax)
  assert.equal(summary.note, null)
})

test('the parts of an episode across erased time count one by one', async () => {
  const erased = Array.from({ length: 1079 }, (_, i) => 2 * i + 2)
  const { found, summary } = await evaluateRun(runWith([]), judgedOf({ a: () => 20 }, 2160, erased))
  assert.equal(found.findings.length, reportedMax + 1)
  assert.match(summary.note ?? '', /the oldest 79 of/)
})

test('each series is muted by its own mutes, at the time of its findings and at the end of the run', async () => {
  const mutes = [
    mute({ id: 'mut_a', group: { host: 'a' }, untilNs: atNs(-10) }),
    mute({ id: 'mut_other', group: { host: 'c' } }),
    mute({ id: 'mut_b', group: { host: 'b' }, fromNs: atNs(-10) }),
  ]
  const once = (back: number) => (back === 20 || back === 5 ? 20 : 1)
  const { found, summary } = await evaluateRun(runWith(mutes), judgedOf({ a: once, b: once }, 60))
  assert.deepEqual(
    found.findings.map(({ groupKey, isMuted, startedNs }) => [groupKey, startedNs === atNs(-20), isMuted]),
    [
      ['{"host":"a"}', true, true],
      ['{"host":"a"}', false, false],
      ['{"host":"b"}', true, false],
      ['{"host":"b"}', false, true],
    ],
  )
  assert.equal(summary.note, 'Muted by mut_b. Series: 1 muted, 1 ok.')
})

test('other work of the event loop runs while two hundred mutes are compared with a thousand findings', async () => {
  const mutes = Intl.supportedValuesOf('timeZone')
    .slice(0, 200)
    .map((name, i) => {
      // No other test in this process has asked for this spelling.
      const time_zone = name.toUpperCase()
      const weekly = { days: [...weekdays], from: '00:00', until: '00:00', time_zone }
      return mute({ id: `mut_${i}`, weekly })
    })
  const judged = judgedOf({ a: alternating, b: alternating }, 2160)
  const { result, turns } = await withTurns(() => evaluateRun(runWith(mutes), judged))
  assert(result.found.findings.every(({ isMuted }) => isMuted))
  assert(turns > 3, `${turns} turns`)
})
