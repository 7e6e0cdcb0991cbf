// Suggestions from telemetry of known density and rhythm. Each is a body that creating a detector accepts.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MetricKey } from '../../contract/detection/detectors.ts'
import { engineOfFile } from '../../tests/fixtures.ts'
import { ManualClock } from '../core/manual-clock.ts'
import { TelemetryGate } from '../telemetry/gate.ts'
import { insertFixture } from '../telemetry/row-fixture.ts'
import { TenantReader } from '../telemetry/tenant-reader.ts'
import { acme, globex } from './detection-fixture.ts'
import { readDraft } from './detectors/detector.ts'
import { narrowestStep } from './runs/run-plan.ts'
import { seededNormal } from './scoring/seeded-noise.ts'
import { suggest } from './suggest.ts'

const engine = engineOfFile()

const clock = new ManualClock(Date.UTC(2026, 8, 11, 12))
const nowNs = clock.nowNs()
const gate = new TelemetryGate()
const ask = (metric_key: string, place = acme) =>
  suggest(new TenantReader(engine, place, gate), { metric_key: MetricKey.parse(metric_key) }, { clock })

/** Inserts a gauge with one point per `everyMinutes` over the last `days`. */
async function send(name: string, everyMinutes: number, days: number, value: (minute: number) => number) {
  const rows = []
  for (let ago = days * 1440; ago > 0; ago -= everyMinutes) {
    rows.push({ MetricName: name, TimeUnix: nowNs - BigInt(ago) * 60_000_000_000n, Value: value(ago) })
  }
  await insertFixture(engine, acme, 'otel_metrics_gauge', rows)
}

test('the bucket is the narrowest with data in nearly all buckets, and the suggested body is accepted', async () => {
  await send('every.minute', 1, 1, (minute) => minute % 7)
  await send('every.four', 4, 2, (minute) => minute % 7)
  await send('every.hour', 60, 7, (minute) => minute % 7)
  for (const [metric, step] of [
    ['every.minute', 1],
    ['every.four', 5],
    ['every.hour', 60],
    ['never', 60],
  ] as const) {
    const { detector, step_minutes } = await ask(metric)
    assert.equal(step_minutes, step, metric)
    assert.equal(narrowestStep(detector.window_minutes), step, metric)
    assert('value' in readDraft(detector))
  }
  assert.deepEqual((await ask('never')).reasons, ['There was no data in the last seven days.'])
  assert.deepEqual((await ask('every.minute', globex)).reasons, (await ask('never')).reasons)
})

test('a daily rhythm is found, and noise is none', async () => {
  await send('daily', 15, 7, (minute) => Math.sin((minute / 1440) * 2 * Math.PI))
  await send('steady', 15, 7, seededNormal(3))
  assert((await ask('daily')).daily_rhythm === 1)
  assert(Math.abs((await ask('steady')).daily_rhythm ?? 1) < 0.4)
  assert.equal((await ask('every.minute')).daily_rhythm, null, 'too short to tell')
})

test('minutes with a daily rhythm get a method whose trial judged them and kept to its budget', async () => {
  const noise = seededNormal(5)
  await send(
    'daily.minutes',
    1,
    7,
    (minute) => 100 + 50 * Math.sin((minute / 1440) * 2 * Math.PI) + 5 * noise(),
  )
  const { detector, reasons, step_minutes } = await ask('daily.minutes')
  assert.equal(step_minutes, 1)
  assert.match(
    reasons.join('\n'),
    new RegExp(`${detector.method_key} would have judged \\d+ buckets.*as its budget allows`),
  )
})

test('with too little data to try anything, the reasons say that nothing is shown to work', async () => {
  await send('young', 1, 1 / 96, (minute) => minute % 7)
  assert.match(
    (await ask('young')).reasons.join('\n'),
    /judged nothing.*\n.*None of them is shown to work yet/s,
  )
})
