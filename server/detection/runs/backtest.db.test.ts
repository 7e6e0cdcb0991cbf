// Compares the preview with the detector itself: telemetry arrives minute by minute and the detector runs
// on its schedule with an injected clock. Afterwards a preview of the same range must raise the same
// anomalies from the same bands.

import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { formatInstant } from '../../../contract/values/instant.ts'
import { tokenNamed } from '../../core/actor-fixture.ts'
import { InvalidInput } from '../../core/app-error.ts'
import { ManualClock } from '../../core/manual-clock.ts'
import { readActiveHolds } from '../../deletion/governance/active-holds.ts'
import type { TelemetryEngine, TenantPlace } from '../../telemetry/engine.ts'
import { TelemetryGate } from '../../telemetry/gate.ts'
import { type FixtureRow, insertFixture } from '../../telemetry/row-fixture.ts'
import { type TableName, tables } from '../../telemetry/schema/tables.ts'
import { raw } from '../../telemetry/sql.ts'
import { TenantReader } from '../../telemetry/tenant-reader.ts'
import {
  acme,
  alarmAtOnce,
  atNs,
  definitionOf,
  errorsDraft,
  globex,
  noonMs,
  openControlAndEngine,
  removeDetectors,
  type StoresFixture,
} from '../detection-fixture.ts'
import type { DetectorDefinition } from '../detectors/detector.ts'
import { DetectionStore } from '../detectors/store.ts'
import { seededNormal } from '../scoring/seeded-noise.ts'
import { type BacktestResult, backtest } from './backtest.ts'
import { EvaluationPool } from './evaluation-pool.ts'
import { ingestLagMs, nextRunMs } from './run-plan.ts'
import { DetectorRunner } from './runner.ts'

const minuteMs = 60_000
/** Not a divisor of the hour, so that windows begin at every minute of it. */
const scheduleMinutes = 17
const evaluations = new EvaluationPool()
let fixture: StoresFixture
let engine: TelemetryEngine
let gate: TelemetryGate
let clock: ManualClock
let store: DetectionStore
const logger = { warn: (facts: unknown) => assert.fail(JSON.stringify(facts)) }

before(async () => {
  fixture = await openControlAndEngine()
  engine = fixture.engine
})
after(async () => {
  await evaluations.close()
  await fixture.close()
})
beforeEach(async () => {
  for (const { name } of tables) await engine.command(raw(`TRUNCATE TABLE ${name}`))
  await removeDetectors(fixture)
  gate = new TelemetryGate()
})

interface Row {
  readonly table: TableName
  readonly atNs: bigint
  readonly row: FixtureRow
}

const [from, until] = [-90, 210]
const normal = seededNormal(11)
const jitter = seededNormal(12)

/**
 * Five hours of a shop: an outage, a slow service, one that starts late, one that stops sending, and metrics.
 */
function shopTelemetry(): Row[] {
  const rows: Row[] = []
  let sent = 0
  for (let minute = from; minute < until; minute++) {
    const isOutage = minute >= 60 && minute < 72
    const span = (service: string, n: number, isError: boolean, ms: number) =>
      rows.push({
        table: 'otel_traces',
        atNs: atNs(minute, n * 5000 + 7),
        row: {
          Timestamp: atNs(minute, n * 5000 + 7),
          ServiceName: service,
          SpanKind: 'Server',
          StatusCode: isError ? 'Error' : 'Unset',
          Duration: Math.round(ms * 1e6),
        },
      })
    for (let n = 0; n < 8; n++) span('checkout', n, isOutage && n < 5, 20 + Math.abs(normal()))
    if (minute >= 20) for (let n = 0; n < 4; n++) span('late', n, false, minute >= 140 ? 400 : 10)
    if (minute < 120) span('early', 3, minute === 90 || minute === 91 || minute === 92, 5)
  }
  // Every 50 s, so that reports and buckets shift against each other.
  for (let seconds = from * 60; seconds < until * 60; seconds += 50) {
    const isOutage = seconds >= 3600 && seconds < 4320
    sent += (isOutage ? 5 : 60) + Math.round(Math.abs(normal()) * 3)
    const reportNs = atNs(0, seconds * 1000)
    const metric = { MetricName: '', ServiceName: 'checkout', TimeUnix: reportNs }
    rows.push({
      table: 'otel_metrics_gauge',
      atNs: reportNs,
      row: { ...metric, MetricName: 'queue', Value: (isOutage ? 90 : 10) + normal() },
    })
    for (let host = 0; host < 6; host++) {
      const Value = (host === 4 && isOutage ? 95 : 40) + Math.sin(seconds / 900) * 10 + jitter()
      const heat = { ...metric, MetricName: 'heat', Attributes: { host: `h${host}` }, Value }
      rows.push({ table: 'otel_metrics_gauge', atNs: reportNs, row: heat })
    }
    rows.push({
      table: 'otel_metrics_sum',
      atNs: reportNs,
      row: { ...metric, MetricName: 'sent', Value: sent, IsMonotonic: true, AggregationTemporality: 2 },
    })
  }
  return rows.sort((a, b) => (a.atNs < b.atNs ? -1 : 1))
}

async function insert(rows: readonly Row[], place: TenantPlace = acme): Promise<void> {
  for (const [table, of] of Map.groupBy(rows, (one) => one.table)) {
    await insertFixture(
      engine,
      place,
      table,
      of.map(({ row }) => row),
    )
  }
}

const tried = (more: Record<string, unknown>) =>
  definitionOf({
    ...errorsDraft,
    params: { warmup_points: 20, window_points: 40, min_abs_dev: 0.05, cooldown_minutes: 5, k: 5 },
    scope: {},
    window_minutes: 60,
    schedule_minutes: scheduleMinutes,
    ...more,
  })

const grouped = { scope: { group_by: 'service' } }
const definitions: Record<string, DetectorDefinition> = {
  'error ratio by service': tried(grouped),
  'rate by service': tried({ ...grouped, metric_key: 'spans.rate' }),
  'rate of all': tried({ metric_key: 'spans.rate' }),
  'latency by service': tried({ ...grouped, metric_key: 'spans.latency_p95' }),
  'a service that starts late': tried({ metric_key: 'spans.rate', scope: { service: 'late' } }),
  'silence of a service': tried({
    scope: { service: 'early' },
    method_key: 'threshold',
    params: { upper: 0.5, missing: 'alert' },
  }),
  'a gauge': tried({ metric_key: 'queue' }),
  'the rate of a counter': tried({ metric_key: 'sent' }),
  'hosts compared with each other': tried({
    metric_key: 'heat',
    method_key: 'peer_outlier',
    params: {},
    scope: { group_by: 'host' },
  }),
}

const end = until - 3
let runs = 0

/**
 * Runs all detectors on schedule while telemetry arrives. Returns the recorded anomalies of each detector.
 */
async function runOnSchedule(): Promise<Map<string, object[]>> {
  clock = new ManualClock(noonMs)
  store = new DetectionStore(fixture.control, clock, gate, readActiveHolds)
  const runner = new DetectorRunner({ store, engine, gate, clock, logger })
  const rows = shopTelemetry()
  const ids = new Map<string, string>()
  runs = 0
  for (let ms = noonMs; ms <= noonMs + end * minuteMs + ingestLagMs; ms = nextRunMs(scheduleMinutes, ms)) {
    runs++
    clock = new ManualClock(ms)
    const known = rows.findIndex((row) => row.atNs >= BigInt(ms) * 1_000_000n)
    await insert(rows.splice(0, known < 0 ? rows.length : known))
    const stepRunner = new DetectorRunner({ store, engine, gate, clock, logger })
    for (const [name, definition] of Object.entries(definitions)) {
      const id = ids.get(name) ?? (await store.createDetector('acme', definition, tokenNamed('me'))).id
      ids.set(name, id)
      await (ms === noonMs ? runner : stepRunner).run(acme, id)
    }
  }
  await insert(rows)
  const found = new Map<string, object[]>()
  for (const [name, detector_id] of ids) {
    const filter = { detector_id, range_start: atNs(0) }
    const page = await store.listAnomalies('acme', { limit: 500, filter, before: null })
    found.set(
      name,
      page.map(({ id, detector_id: _, metric_key, created_at, updated_at, muted, feedback, ...rest }) => ({
        ...rest,
        raised_at: created_at,
      })),
    )
  }
  return found
}

const preview = (definition: DetectorDefinition, startMinute = 0, endMinute = end, place = acme) =>
  backtest(
    new TenantReader(engine, place, gate),
    definition,
    { startNs: atNs(startMinute), endNs: atNs(endMinute) },
    { clock: new ManualClock(noonMs + (until + 60) * minuteMs), evaluations },
  )

const byStart = (a: { started_at: string; group: object }, b: { started_at: string; group: object }) =>
  a.started_at.localeCompare(b.started_at) || JSON.stringify(a.group).localeCompare(JSON.stringify(b.group))

const sorted = <T extends object>(anomalies: readonly T[]) => anomalies.toSorted(byStart as never)

/** Numbers of twelve digits: the rate of a counter depends in the last one on where the read began. */
const rounded = (found: object) =>
  JSON.parse(
    JSON.stringify(found, (_, each) => (typeof each === 'number' ? Number(each.toPrecision(12)) : each)),
  )

test('a preview raises exactly the anomalies that scheduled runs raised', async () => {
  const ran = await runOnSchedule()
  let total = 0
  for (const [name, definition] of Object.entries(definitions)) {
    const seen = await preview(definition)
    assert.deepEqual(rounded(sorted(seen.anomalies)), rounded(sorted(ran.get(name) ?? [])), name)
    assert.equal(seen.alarms, seen.anomalies.length)
    total += seen.alarms
    assert.equal(seen.runs, runs, name)
    assert(seen.cost.rows_read > 0)
  }
  for (const name of ['error ratio by service', 'rate of all', 'a gauge', 'the rate of a counter']) {
    assert.notDeepEqual(ran.get(name), [], `${name} has anomalies`)
  }
  const hosts = ran.get('hosts compared with each other') as { group: object; reason: string }[]
  assert.deepEqual(
    hosts.map(({ group }) => group),
    [{ host: 'h4' }],
  )
  assert.match(
    hosts[0]?.reason ?? '',
    /^heat of host=h4 \d\d\.\d; its 5 peers \d\d\.\d to \d\d\.\d; 12 minutes high from 13:00 to 13:12 UTC$/,
  )
  assert(total >= 6)
  assert.equal(
    (await store.listDetectors('acme', { limit: 50, beforeId: null })).length,
    9,
    'a preview stores nothing',
  )
})

test('each bucket is shown once, with the edges of the first run that judged it', async () => {
  await insert(shopTelemetry())
  const seen = await preview(definitions['error ratio by service'] as DetectorDefinition)
  assert.deepEqual(seen.series.map(({ group }) => group.service).sort(), ['checkout', 'early', 'late'])
  const points = seen.series.find(({ group }) => group.service === 'checkout')?.points ?? []
  const times = points.map(({ time }) => time)
  assert.deepEqual(times, [...new Set(times)].sort())
  assert.equal(times[0], formatInstant(atNs(0)))
  assert.equal(points.find(({ time }) => time === formatInstant(atNs(65)))?.value, 5 / 8)
  const outage = seen.anomalies.find(({ group }) => group.service === 'checkout')
  const peak = points.find(({ time }) => time === outage?.peak_at)
  assert.deepEqual([peak?.value, peak?.upper], [outage?.value, outage?.upper])
  assert.equal(seen.end, formatInstant(atNs(203)))
  assert(Math.abs(seen.alarms_per_week - seen.alarms * (10_080 / 203)) < 0.01)
})

test('a preview does not depend on anything after its end', async () => {
  await insert(shopTelemetry())
  const definition = definitions['the rate of a counter'] as DetectorDefinition
  const [short, long] = [await preview(definition, 0, 56), await preview(definition, 0, 140)]
  const points = (seen: BacktestResult) => seen.series[0]?.points ?? []
  assert(points(short).length > 40)
  assert.deepEqual(points(long).slice(0, points(short).length), points(short))
})

test('erased time is unknown in a preview, and another organisation’s telemetry has no effect', async () => {
  await insert(shopTelemetry())
  await insert(shopTelemetry(), globex)
  const definition = definitions['error ratio by service'] as DetectorDefinition
  const whole = await preview(definition)
  assert(whole.anomalies.some(({ started_at }) => started_at === formatInstant(atNs(60))))
  const hole = { id: 'del_1', signals: ['traces'] as const, range: { startNs: atNs(55), endNs: atNs(80) } }
  gate.hide('acme', hole)
  const holed = await preview(definition)
  const inside = holed.series.flatMap(({ points }) =>
    points.filter(({ time }) => time >= formatInstant(atNs(55)) && time < formatInstant(atNs(80))),
  )
  assert(inside.length > 0)
  for (const point of inside) assert.deepEqual([point.value, point.erased], [null, true])
  assert(!holed.anomalies.some(({ group }) => group.service === 'checkout'))
  assert(holed.warnings.some(({ code }) => code === 'erased_time'))
  assert.deepEqual(
    await preview(definition, 0, end, globex).then(({ anomalies }) => anomalies),
    whole.anomalies,
  )
})

test('a range that cannot be previewed is refused, and a preview with limits has warnings', async () => {
  await insert(shopTelemetry())
  const definition = definitions['rate of all'] as DetectorDefinition
  await assert.rejects(preview(definition, 10, 10), InvalidInput)
  await assert.rejects(preview(definition, 0, until + 61), /past/)
  await assert.rejects(preview(definition, -60 * 24 * 60, 0), /days at most/)
  const codes = async (more: Record<string, unknown>, startMinute = 0) =>
    (await preview(tried(more), startMinute)).warnings.map(({ code }) => code)
  assert.deepEqual(await codes({ metric_key: 'nobody.sends.this' }), ['no_data'])
  const queue = { metric_key: 'queue', method_key: 'robust_band' }
  assert.deepEqual(await codes({ ...queue, params: { warmup_points: 5000 } }), ['learning'])
  assert.deepEqual(await codes({ schedule_minutes: 10_080 }), [])
})

test('a preview counts all anomalies and returns the newest thousand', async () => {
  const minutes = 121
  const rows = Array.from({ length: 20 * minutes }, (_, i): Row => {
    const minute = Math.floor(i / 20)
    const metric = { MetricName: 'swing', ServiceName: 'checkout', TimeUnix: atNs(minute) }
    const row = { ...metric, Attributes: { host: `h${i % 20}` }, Value: minute % 2 === 0 ? 1 : 20 }
    return { table: 'otel_metrics_gauge', atNs: atNs(minute), row }
  })
  await insert(rows)
  const params = { upper: 10, ...alarmAtOnce }
  const swing = { metric_key: 'swing', method_key: 'threshold', params, scope: { group_by: 'host' } }
  const seen = await preview(tried(swing), 0, minutes)
  assert.deepEqual([seen.alarms, seen.anomalies.length], [20 * 59, 1000])
  const starts = seen.anomalies.map(({ started_at }) => started_at).sort()
  assert.equal(starts[0], formatInstant(atNs(19)), 'without the oldest 180')
  assert.deepEqual(
    seen.warnings.map(({ code }) => code),
    ['anomalies_cut'],
  )
})
