// The context of an anomaly, over real telemetry: what its events have in common, similar and related
// anomalies, and nothing of erased telemetry or of another organisation.

import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import type { AnomalyContext } from '../../contract/detection/context.ts'
import type { Anomaly } from '../../contract/detection/detectors.ts'
import { tokenNamed } from '../core/actor-fixture.ts'
import { ManualClock } from '../core/manual-clock.ts'
import { readActiveHolds } from '../deletion/governance/active-holds.ts'
import type { TelemetryEngine, TenantPlace } from '../telemetry/engine.ts'
import { TelemetryGate } from '../telemetry/gate.ts'
import { type FixtureRow, insertFixture } from '../telemetry/row-fixture.ts'
import { raw } from '../telemetry/sql.ts'
import { TenantReader } from '../telemetry/tenant-reader.ts'
import { deploysWith, previewWithDeploys } from './anomaly-deploys.ts'
import { contextOf } from './context.ts'
import {
  acme,
  atNs,
  createErrorsDetector,
  errorsDraft,
  globex,
  noonMs,
  openControlAndEngine,
  removeDetectors,
  type StoresFixture,
} from './detection-fixture.ts'
import { type DetectorDefinition, readDraft } from './detectors/detector.ts'
import { DetectionStore } from './detectors/store.ts'
import { relatedIdsOf } from './related.ts'
import { backtest } from './runs/backtest.ts'
import { DetectorRunner } from './runs/runner.ts'

let fixture: StoresFixture
let engine: TelemetryEngine
let gate: TelemetryGate
let store: DetectionStore

before(async () => {
  fixture = await openControlAndEngine()
  engine = fixture.engine
})
after(async () => {
  await fixture.close()
})
beforeEach(async () => {
  for (const table of ['otel_traces', 'otel_logs']) await engine.command(raw(`TRUNCATE TABLE ${table}`))
  await removeDetectors(fixture)
  gate = new TelemetryGate()
  store = new DetectionStore(fixture.control, new ManualClock(noonMs), gate, readActiveHolds)
})

const regions = ['eu', 'us', 'asia', 'africa']

/** Twelve spans a minute in four regions. In an incident those of `eu` fail and are slow. */
function spans(from: number, to: number, isIncident = false, secret = 'plain', version = ''): FixtureRow[] {
  return Array.from({ length: to - from }, (_, i) => from + i).flatMap((minute) =>
    Array.from({ length: 12 }, (_, n) => {
      const region = regions[n % 4] ?? ''
      const isBad = isIncident && region === 'eu'
      return {
        Timestamp: atNs(minute, n * 4000),
        TraceId: `${minute}-${n}`,
        ServiceName: 'checkout',
        SpanName: 'POST /pay',
        SpanKind: 'Server',
        StatusCode: isBad ? 'Error' : 'Unset',
        Duration: (isBad ? 900 : 20) * 1_000_000,
        SpanAttributes: { region, secret, id: `${minute}-${n}` },
        ResourceAttributes: { host: 'a1', ...(version !== '' && { 'service.version': version }) },
      }
    }),
  )
}

async function insert(rows: readonly FixtureRow[], place: TenantPlace = acme): Promise<void> {
  await insertFixture(engine, place, 'otel_traces', rows)
}

/** Runs a detector at a minute. Returns its newest anomaly. */
async function find(minute: number, more: Record<string, unknown> = {}): Promise<Anomaly> {
  const { id } = await createErrorsDetector(store, acme, {
    params: { ...errorsDraft.params, violate_n: 1 },
    window_minutes: 240,
    ...more,
  })
  const clock = new ManualClock(noonMs + minute * 60_000 + 30_000)
  const runner = new DetectorRunner({ store, engine, gate, clock, logger: { warn: assert.fail } })
  await runner.run(acme, id)
  const [found] = await store.listAnomalies('acme', { limit: 1, filter: { detector_id: id }, before: null })
  assert(found !== undefined)
  return found
}

const contextAt = (anomaly: Anomaly, place = acme): Promise<AnomalyContext> =>
  contextOf(store, new TenantReader(engine, place, gate), anomaly)

test('contributors are attributes that failed requests have in common and that were rarer before', async () => {
  await insert([...spans(-120, 0), ...spans(0, 5, true)])
  await insert([...spans(-120, 0), ...spans(0, 5, true, 'foreign')], globex)
  const { contributors } = await contextAt(await find(5))
  assert.equal(contributors?.summary, '15 of 60 requests failed')
  assert.deepEqual(contributors?.values, [{ key: 'region', value: 'eu', share: 1, share_before: 0.25 }])
  assert.equal(contributors?.is_partial, false)
})

test('slow requests are those above the band', async () => {
  await insert([...spans(-120, 0), ...spans(0, 5, true)])
  const anomaly = await find(5, {
    metric_key: 'spans.latency_p95',
    params: { warmup_points: 30, min_abs_dev: 100 },
  })
  const { contributors } = await contextAt(anomaly)
  assert.equal(contributors?.summary, '15 of 60 requests took longer than 120 ms')
  assert.deepEqual(
    contributors?.values.map(({ value }) => value),
    ['eu'],
  )
})

test('hidden telemetry is on neither side of the comparison, and the context says that it is partial', async () => {
  await insert([...spans(-120, -40, false, 'erased'), ...spans(-40, 0), ...spans(0, 5, true, 'erased')])
  const anomaly = await find(5)
  const withSecret = await contextAt(anomaly)
  assert(
    withSecret.contributors?.values.some(({ value }) => value === 'erased'),
    'it is there before it is hidden',
  )
  const range = { startNs: atNs(3), endNs: null }
  gate.hide('acme', { id: 'del_1', signals: ['traces'], range })
  gate.hide('acme', { id: 'del_2', signals: ['traces'], range: { startNs: null, endNs: atNs(-30) } })
  const { contributors } = await contextAt(anomaly)
  assert.equal(contributors?.is_partial, true)
  assert.equal(contributors?.summary, '9 of 36 requests failed')
})

test('earlier anomalies of the same series are counted, and links lead to the series and its spans', async () => {
  await insert([...spans(-200, -60), ...spans(-60, -55, true), ...spans(-55, 0), ...spans(0, 5, true)])
  const anomaly = await find(5)
  const { links, similar } = await contextAt(anomaly)
  assert.equal(similar.count, 1)
  assert.equal(similar.latest[0]?.started_at, '2026-09-11T11:00:00Z')
  const series = new URL(links.series, 'http://lethe')
  assert.equal(series.pathname, '/telemetry/series')
  assert.deepEqual(Object.fromEntries(series.searchParams), {
    service: 'checkout',
    metric_key: 'spans.error_ratio',
    range_start: '2026-09-11T11:00:00Z',
    range_end: '2026-09-11T13:05:00Z',
    step_seconds: '60',
  })
  assert.match(links.events ?? '', /^\/telemetry\/spans\?service=checkout&range_start=.*&status=error$/)
  gate.hide('acme', { id: 'del_1', signals: ['traces'], range: { startNs: null, endNs: atNs(-50) } })
  assert.equal((await contextAt(anomaly)).similar.count, 0, 'hidden anomalies are not counted')
})

test('a metric without events, and silence, have no contributors', async () => {
  await insertFixture(
    engine,
    acme,
    'otel_metrics_gauge',
    Array.from({ length: 100 }, (_, i) => ({
      MetricName: 'queue',
      TimeUnix: atNs(i - 100),
      Value: i > 95 ? 500 : i % 3,
    })),
  )
  const { contributors, links } = await contextAt(await find(0, { metric_key: 'queue', scope: {} }))
  assert.deepEqual([contributors, links.events], [null, null])
})

test('anomalies of one incident are related and say why, and hidden anomalies are not listed', async () => {
  await insert([...spans(-220, -150), ...spans(-150, -145, true), ...spans(-145, 0), ...spans(0, 5, true)])
  const failing = await find(5)
  const slow = await find(5, {
    metric_key: 'spans.latency_p95',
    params: { warmup_points: 30, min_abs_dev: 100 },
  })
  const rate = { metric_key: 'spans.rate', scope: { service: 'checkout' } }
  const { value: definition } = readDraft({
    ...rate,
    name: 'Scoped',
    method_key: 'threshold',
    params: { upper: 0.1, violate_n: 1 },
  }) as { value: DetectorDefinition }
  const scoped = await store.createDetector('acme', definition, tokenNamed('me'))
  const clock = new ManualClock(noonMs + 5 * 60_000 + 30_000)
  await new DetectorRunner({ store, engine, gate, clock, logger: { warn: assert.fail } }).run(acme, scoped.id)

  const { related } = await contextAt(failing)
  assert.equal(related.count, 2)
  const named = related.anomalies.find(({ id }) => id === slow.id)
  assert.deepEqual(named?.because, ['same_service', 'began_together'])
  assert.equal(named.reason, slow.reason)
  const other = related.anomalies.find(({ id }) => id !== slow.id)
  assert.deepEqual([other?.metric_key, other?.group], ['spans.rate', {}])
  assert.deepEqual(other?.because, ['same_service'], 'the service may come from the scope or from the group')

  const all = await store.listAnomalies('acme', { limit: 50, filter: {}, before: null })
  const ids = await relatedIdsOf(store, 'acme', all)
  assert.deepEqual(ids.get(slow.id)?.toSorted(), [failing.id, other?.id].toSorted())
  const earlier = all.find(({ detector_id, id }) => detector_id === failing.detector_id && id !== failing.id)
  assert(earlier, 'there is one of the same series, two hours before')
  assert(!ids.get(failing.id)?.includes(earlier.id))
  assert.deepEqual(
    (await contextAt(failing, globex)).related.anomalies,
    [],
    'another organisation has none of them',
  )

  gate.hide('acme', { id: 'del_1', signals: ['traces'], range: { startNs: atNs(-10), endNs: null } })
  assert.deepEqual((await contextAt(failing)).related, { count: 0, anomalies: [] })
})

const readerAt = (place = acme) => new TenantReader(engine, place, gate)
const shown = async (anomaly: Anomaly, place = acme) =>
  (await deploysWith(store, readerAt(place), [anomaly])).get(anomaly.id)

test('an anomaly that began with a deploy names its version, and one that lasts is described as a new level', async () => {
  await insert([...spans(-120, -4, false, 'plain', '2.3.0'), ...spans(-4, 0, false, 'plain', '2.3.1')])
  await insert(spans(0, 90, true, 'plain', '2.3.1'))
  const anomaly = await find(5)
  const begun = await shown(anomaly)
  assert.equal(begun?.reason, `${anomaly.reason}; since version 2.3.1, deployed 11:56 UTC`)
  assert.deepEqual(begun?.deploy, {
    ...{ service: 'checkout', environment: null, version: '2.3.1', previous_version: '2.3.0' },
    ...{ at: '2026-09-11T11:56:00Z', told_by: 'version' },
  })
  assert.deepEqual((await contextAt(anomaly)).deploys, [begun?.deploy])
  const lasting = { ...anomaly, seen_until: '2026-09-11T13:10:00Z' }
  assert.match(
    (await shown(lasting))?.reason ?? '',
    /; a new level since version 2\.3\.1, deployed 11:56 UTC$/,
  )
})

test('a deploy long before an anomaly, of another service, or of a neighbour is not named', async () => {
  await insert([...spans(-120, -60, false, 'plain', '2.3.0'), ...spans(-60, 0, false, 'plain', '2.3.1')])
  await insert(spans(0, 5, true, 'plain', '2.3.1'))
  const other = (version: string) => (row: FixtureRow) => ({
    ...row,
    ServiceName: 'cart',
    ResourceAttributes: { 'service.version': version },
  })
  await insert([...spans(-120, -2).map(other('1.0')), ...spans(-2, 5).map(other('1.1'))])
  await insert([...spans(-120, -2, false, '', '2.2.0'), ...spans(-2, 5, false, '', '2.2.1')], globex)
  const anomaly = await find(5)
  assert.equal(await shown(anomaly), undefined)
  assert.deepEqual(
    (await contextAt(anomaly)).deploys.map(({ service, version }) => `${service} ${version}`),
    ['checkout 2.3.1', 'cart 1.1'],
    'the context has them all, because what a service calls may be the cause',
  )
})

test('of hidden telemetry neither reason nor context names a version', async () => {
  await insert([...spans(-120, -4, false, 'plain', '2.3.0'), ...spans(-4, 0, false, 'plain', '2.3.1')])
  await insert(spans(0, 5, true, 'plain', '2.3.1'))
  const anomaly = await find(5)
  assert.match((await shown(anomaly))?.reason ?? '', /2\.3\.1/, 'it is there before')
  gate.hide('acme', { id: 'del_1', signals: ['traces'], range: { startNs: null, endNs: atNs(-3) } })
  assert.equal(await shown(anomaly), undefined)
  assert.deepEqual((await contextAt(anomaly)).deploys, [])
})

test('a preview has the deploys with which its anomalies would be reported', async () => {
  await insert([...spans(-120, -4, false, 'plain', '2.3.0'), ...spans(-4, 0, false, 'plain', '2.3.1')])
  await insert(spans(0, 5, true, 'plain', '2.3.1'))
  const begun = await shown(await find(5))
  const draft = await readDraft(errorsDraft)
  assert('value' in draft)
  const range = { startNs: atNs(-30), endNs: atNs(5) }
  const clock = new ManualClock(noonMs + 5 * 60_000 + 30_000)
  const previewed = async () =>
    previewWithDeploys(readerAt(), draft.value, await backtest(readerAt(), draft.value, range, { clock }))
  const { anomalies, deploys } = await previewed()
  assert.deepEqual(
    anomalies.map(({ deploy, reason }) => ({ deploy, reason: reason.split('; ').at(-1) })),
    [{ deploy: begun?.deploy, reason: begun?.reason.split('; ').at(-1) }],
  )
  assert.deepEqual(deploys, [begun?.deploy])
  gate.hide('acme', { id: 'del_1', signals: ['traces'], range: { startNs: null, endNs: atNs(-3) } })
  const hidden = await previewed()
  assert.deepEqual(hidden.deploys, [])
  assert.ok(hidden.anomalies.every(({ deploy, reason }) => deploy === null && !reason.includes('2.3.1')))
})

test('anomalies of many times are listed in one response, each with its own deploy', async () => {
  const rows: FixtureRow[] = []
  for (let i = 0; i < 10; i++) rows.push(...spans(i * 400 - 4000, i * 400 - 3600, false, '', `1.${i}`))
  await insert(rows)
  await insert(spans(0, 5, true))
  const one = await find(5)
  const many = Array.from({ length: 10 }, (_, i) => ({
    ...one,
    id: `ano_${i}`,
    started_at: new Date(noonMs + (i * 400 - 3998) * 60_000).toISOString(),
  }))
  const all = await deploysWith(store, readerAt(), many)
  assert.deepEqual(
    many.map(({ id }) => all.get(id)?.deploy.version),
    [undefined, '1.1', '1.2', '1.3', '1.4', '1.5', '1.6', '1.7', '1.8', '1.9'],
  )
})
