// Replays that are in progress at the same time share the threads that evaluate, and nothing that is learnt.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nsPerMinute, nsPerMs } from '../../../contract/values/instant.ts'
import { definitionOf } from '../detection-fixture.ts'
import { seededNormal } from '../scoring/seeded-noise.ts'
import { type Evaluations, EvaluationsHere } from './evaluation-pool.ts'
import { FilePoints } from './file-replay.ts'
import { ReplayedRuns } from './replayed-runs.ts'
import { nextRunMs } from './run-plan.ts'

const startNs = 1_789_000_200_000_000_000n
const createdAtMs = Number(startNs / nsPerMs) + 24 * 3_600_000
const runCount = 40

const definition = definitionOf({
  name: 'level',
  metric_key: 'value',
  method_key: 'robust_band',
  params: {},
  scope: {},
  window_minutes: 240,
  schedule_minutes: 5,
})

/** Two days of minutes about a level, with a spike a day and a half after the start. */
function pointsAbout(level: number): FilePoints {
  const noise = seededNormal(level)
  return new FilePoints(
    Array.from({ length: 2 * 1440 }, (_, minute) => ({
      timeNs: startNs + BigInt(minute) * nsPerMinute,
      value: level + noise() + (minute >= 1500 && minute < 1510 ? level : 0),
    })),
  )
}

/** A replay of one organisation, a run at a time. */
function replayOf(tenantId: string, points: FilePoints, evaluations: Evaluations) {
  const bands: unknown[] = []
  const runs = new ReplayedRuns({
    definition,
    createdAtMs,
    sourceAt: () => points.source(),
    evaluations,
    share: { tenantId, kind: 'asked' },
    isUnknown: () => false,
    onJudged: ({ evaluation, series }) => bands.push(structuredClone([series.values, evaluation.scores])),
  })
  let ms = nextRunMs(definition.schedule_minutes, createdAtMs)
  const next = async () => {
    await runs.run(ms)
    ms = nextRunMs(definition.schedule_minutes, ms)
  }
  const result = () => ({ bands, anomalies: runs.anomalies.map(({ finding }) => finding) })
  return { next, result, end: () => runs.end() }
}

async function alone(points: FilePoints) {
  const replay = replayOf('alone', points, new EvaluationsHere())
  for (let run = 0; run < runCount; run++) await replay.next()
  return replay.result()
}

for (const [whose, tenants] of [
  ['two organisations', ['acme', 'globex']],
  ['one organisation', ['acme', 'acme']],
] as const) {
  test(`two replays of ${whose} at the same time are as each alone`, async () => {
    const levels = [100, 9000] as const
    const expected = await Promise.all(levels.map((level) => alone(pointsAbout(level))))
    assert.ok(expected.every(({ anomalies }) => anomalies.length > 0))
    const evaluations = new EvaluationsHere()
    const [first, second] = tenants.map((tenantId, i) =>
      replayOf(tenantId, pointsAbout(levels[i] ?? 0), evaluations),
    )
    assert.ok(first !== undefined && second !== undefined)
    for (let run = 0; run < runCount; run++) {
      await first.next()
      await second.next()
    }
    assert.deepEqual([first.result(), second.result()], expected)
    first.end()
    assert.equal(evaluations.size, 1, 'the end of one leaves the other')
    second.end()
    assert.equal(evaluations.size, 0)
  })
}
