// What a person says between two runs of a detector changes the second one: an anomaly that is confirmed does
// not spend the alarm budget, so later incidents are reported that would otherwise be within the edge. The
// runner stays in memory between runs, and must not continue from what it had judged without the verdict.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { callerNamed, tokenNamed } from '../../core/actor-fixture.ts'
import { ManualClock } from '../../core/manual-clock.ts'
import { readActiveHolds } from '../../deletion/governance/active-holds.ts'
import type { TenantPlace } from '../../telemetry/engine.ts'
import { TelemetryGate } from '../../telemetry/gate.ts'
import { insertFixture } from '../../telemetry/row-fixture.ts'
import {
  acme,
  definitionOf,
  globex,
  noonMs,
  openControlAndEngine,
  type StoresFixture,
} from '../detection-fixture.ts'
import { DetectionStore } from '../detectors/store.ts'
import { seededNormal } from '../scoring/seeded-noise.ts'
import { DetectorRunner } from './runner.ts'

const stepMs = 300_000
const perDay = 288
const days = 28
const firstIncidentDay = 5
/** Incidents are a little more than a day apart, so that they come at all times of the day. */
const between = 301

let fixture: StoresFixture

before(async () => {
  fixture = await openControlAndEngine()
})
after(async () => {
  await fixture.close()
})

const startMs = noonMs - days * perDay * stepMs
const incidentStarts = Array.from(
  { length: days - firstIncidentDay - 1 },
  (_, i) => between * (i + firstIncidentDay) - 100,
)

/**
 * A flat queue with an incident of a quarter of an hour every day, each a little larger than the one before.
 */
function queueLengths(): number[] {
  const next = seededNormal(4)
  const values = Array.from({ length: days * perDay }, () => 100 + next())
  for (const [i, start] of incidentStarts.entries()) {
    for (const [k, share] of [0.6, 0.8, 1].entries()) {
      values[start + k] = (values[start + k] ?? 0) + 10 * (1 + 0.03 * i) * share
    }
  }
  return values
}

async function insertQueue(place: TenantPlace): Promise<void> {
  const rows = queueLengths().map((Value, i) => ({
    MetricName: 'queue.length',
    TimeUnix: BigInt(startMs + i * stepMs) * 1_000_000n,
    Value,
  }))
  await insertFixture(fixture.engine, place, 'otel_metrics_gauge', rows)
}

test('incidents after confirmed ones alarm in the next run, and do not where nobody confirmed any', async () => {
  const gate = new TelemetryGate()
  const middleMs = startMs + 16 * perDay * stepMs
  const clock = new ManualClock(middleMs + 60_000)
  const store = new DetectionStore(fixture.control, clock, gate, readActiveHolds)
  const logger = { warn: assert.fail, error: assert.fail }
  const runner = new DetectorRunner({ store, engine: fixture.engine, gate, clock, logger })
  const definition = definitionOf({
    ...{ name: 'Queue', metric_key: 'queue.length', method_key: 'robust_band', params: {} },
    ...{ window_minutes: 7200, schedule_minutes: 60 },
  })
  const told = async ({ tenantId }: TenantPlace, sinceMs: number) => {
    const anomalies = await store.listAnomalies(tenantId, { limit: 50, filter: {}, before: null })
    return anomalies.filter(({ started_at }) => Date.parse(started_at) >= sinceMs)
  }
  const detectors = new Map<TenantPlace, string>()
  for (const place of [acme, globex]) {
    await insertQueue(place)
    const { id } = await store.createDetector(place.tenantId, definition, tokenNamed('me'))
    detectors.set(place, id)
    await runner.run(place, id)
  }
  const [mine, theirs] = [await told(acme, startMs), await told(globex, startMs)]
  assert.ok(mine.length > 0)
  assert.deepEqual(
    mine.map(({ started_at }) => started_at),
    theirs.map(({ started_at }) => started_at),
  )
  for (const { id } of mine) {
    await store.feedback.giveFeedback('acme', id, { verdict: 'real' }, callerNamed('me'))
  }
  await clock.advance(noonMs - middleMs)
  for (const [place, id] of detectors) await runner.run(place, id)
  const [more, fewer] = [await told(acme, middleMs), await told(globex, middleMs)]
  assert.ok(more.length > fewer.length, `${more.length} beside ${fewer.length}`)
})
