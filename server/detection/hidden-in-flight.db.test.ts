// Answers of detection during which something is hidden: it is in none of them. Every read is of a real
// control plane and engine. Two organisations have the same spans and anomalies.

import assert from 'node:assert/strict'
import { after, afterEach, before, beforeEach, test } from 'node:test'
import type { FastifyInstance } from 'fastify'
import { silent, WatchedGate, watchedEngine } from '../../tests/fixtures.ts'
import { operatorActor } from '../core/actor.ts'
import { callerNamed, tokenNamed } from '../core/actor-fixture.ts'
import type { Caller } from '../core/caller.ts'
import { ManualClock } from '../core/manual-clock.ts'
import { readActiveHolds } from '../deletion/governance/active-holds.ts'
import { LegalHolds } from '../deletion/governance/holds.ts'
import { byAccessToken } from '../http/authentication.ts'
import { createHttp } from '../http/server.ts'
import { insertFixture } from '../telemetry/row-fixture.ts'
import { raw } from '../telemetry/sql.ts'
import { TenantReader } from '../telemetry/tenant-reader.ts'
import { findRelated } from '../tenancy/lineage.ts'
import { forgetReleasedVersions } from './anomalies/held-anomalies.ts'
import {
  acme,
  atNs,
  createErrorsDetector,
  errorsDraft,
  findingOf,
  globex,
  insertSpans,
  noonMs,
  openControlAndEngine,
  removeDetectors,
  runRecordOf,
  type StoresFixture,
  traffic,
} from './detection-fixture.ts'
import { DetectionStore } from './detectors/store.ts'
import { addFeedbackRoutes } from './feedback-routes.ts'
import { Incidents } from './incidents/incidents.ts'
import { SurroundingsReader } from './incidents/surroundings.ts'
import { readMetricNames } from './metric-names.ts'
import { addDetectorPreviewRoutes } from './preview-routes.ts'
import { addDetectionRoutes } from './routes.ts'
import { EvaluationsHere } from './runs/evaluation-pool.ts'
import { DetectorRunner } from './runs/runner.ts'

const nowMs = noonMs + 10 * 60_000
const everything = {
  id: 'del_1',
  signals: ['metrics', 'traces'],
  range: { startNs: null, endNs: null },
} as const

/** A clock that a test can let do something each time it is asked. */
class WatchedClock extends ManualClock {
  onAsked: (() => void) | null = null

  override nowMs(): number {
    this.onAsked?.()
    return super.nowMs()
  }
}

let fixture: StoresFixture
let http: FastifyInstance
let gate: WatchedGate
let store: DetectionStore
let clock: WatchedClock
let onRead: ((statement: string) => void) | null = null
const [anomalies, detectors] = [new Map<string, string>(), new Map<string, string>()]

before(async () => {
  fixture = await openControlAndEngine()
})
after(() => fixture.close())
afterEach(() => http.close())
beforeEach(async () => {
  await fixture.engine.command(raw('TRUNCATE TABLE otel_traces'))
  await removeDetectors(fixture)
  onRead = null
  gate = new WatchedGate()
  clock = new WatchedClock(nowMs)
  store = new DetectionStore(fixture.control, clock, gate, readActiveHolds)
  const engine = watchedEngine(fixture.engine, (statement) => onRead?.(statement))
  http = createHttp({
    clock,
    logger: silent,
    authenticate: byAccessToken(async (secret): Promise<Caller | null> => {
      const place = [acme, globex].find(({ tenantId }) => tenantId === secret)
      if (place === undefined) return null
      return { ...place, organisationName: secret, role: 'member', requester: tokenNamed(secret) }
    }),
    isReady: () => true,
  })
  const readerOf = (caller: Caller) => new TenantReader(engine, caller, gate)
  addDetectionRoutes(http, {
    store,
    runner: new DetectorRunner({ store, engine, gate, clock, logger: silent }),
    incidents: new Incidents(store, new SurroundingsReader(gate)),
    metricKeysOf: (caller) => readMetricNames(readerOf(caller), atNs(-60)),
    readerOf,
    clock,
  })
  addFeedbackRoutes(http, store, readerOf)
  const evaluations = new EvaluationsHere()
  addDetectorPreviewRoutes(http, { readerOf, clock, evaluations, isReady: () => true })
  await http.ready()
  for (const place of [acme, globex]) {
    await insertSpans(fixture.engine, place, [...traffic(-120, 0), ...traffic(0, 5, 6)])
    const detector = await createErrorsDetector(store, place)
    detectors.set(place.tenantId, detector.id)
    await store.recordRun(runRecordOf(detector, nowMs, [findingOf(atNs(0), atNs(5))]))
    const page = { limit: 1, filter: {}, before: null }
    const [recorded] = await store.listAnomalies(place.tenantId, page)
    anomalies.set(place.tenantId, recorded?.id ?? '')
  }
})

const get = (url: string, as = 'acme') => http.inject({ url, headers: { authorization: `Bearer ${as}` } })

const preview = (as = 'acme') =>
  http.inject({
    method: 'POST',
    url: '/anomalies/detectors/preview',
    headers: { authorization: `Bearer ${as}` },
    payload: {
      ...errorsDraft,
      range_start: new Date(noonMs - 60 * 60_000).toISOString(),
      range_end: new Date(noonMs + 5 * 60_000).toISOString(),
    },
  })

/** Hides all spans of `acme` when deploys are read, which is after everything that they are told with. */
function hideWhenDeploysAreRead(): void {
  onRead = (statement) => {
    if (!statement.includes('deployment.environment')) return
    onRead = null
    gate.hide('acme', everything)
  }
}

test('a list has no anomaly whose telemetry is hidden while deploys are read', async () => {
  const list = async (as?: string) => (await get('/anomalies', as)).json().items
  assert.deepEqual(
    (await list()).map(({ id }: { id: string }) => id),
    [anomalies.get('acme')],
  )
  hideWhenDeploysAreRead()
  assert.deepEqual(await list(), [])
  assert.equal(onRead, null, 'it was hidden meanwhile')
  assert.equal((await list('globex')).length, 1)
})

test('an anomaly whose telemetry is hidden while its context is read is not found', async () => {
  const url = (as: string) => `/anomalies/${anomalies.get(as)}`
  assert.match((await get(url('acme'))).body, /spans.error_ratio of checkout 0.600/)
  hideWhenDeploysAreRead()
  const during = await get(url('acme'))
  assert.deepEqual([during.statusCode, onRead], [404, null])
  assert.doesNotMatch(during.body, /checkout/)
  assert.equal((await get(url('globex'), 'globex')).statusCode, 200)
})

test('the store returns no anomaly that is hidden while it is read', async () => {
  const [mine, theirs] = [anomalies.get('acme') ?? '', anomalies.get('globex') ?? '']
  const page = { limit: 9, filter: {}, before: null }
  assert.equal((await store.findAnomaly('acme', mine))?.id, mine)
  const found = store.findAnomaly('acme', mine)
  const [listed, neighbours] = [store.listAnomalies('acme', page), store.findAnomaly('globex', theirs)]
  gate.hide('acme', everything)
  assert.deepEqual([await found, await listed], [null, []])
  assert.equal((await neighbours)?.id, theirs)
})

test('a preview is refused where what it shows is hidden while deploys are read', async () => {
  assert.match((await preview()).body, /"value":0.6/)
  hideWhenDeploysAreRead()
  const during = await preview()
  assert.deepEqual([during.statusCode, onRead], [503, null])
  assert.deepEqual([during.json().code, during.headers['retry-after']], ['erasing', '1'])
  const again = await preview()
  assert.equal(again.statusCode, 200)
  assert.doesNotMatch(again.body, /"value":0/)
  assert.match((await preview('globex')).body, /"value":0.6/)
})

test('a suggestion is refused where what it was made from is hidden between two of its steps', async () => {
  const suggested = (as?: string) => get('/anomalies/suggest?metric_key=spans.rate', as)
  const before = await suggested()
  assert.ok(before.json().filled[0].share > 0.9, before.body)
  onRead = () => {
    onRead = null
    // The next one to ask is the trial of a method, before it reads.
    clock.onAsked = () => {
      clock.onAsked = null
      gate.hide('acme', everything)
    }
  }
  const during = await suggested()
  assert.deepEqual([during.statusCode, clock.onAsked], [503, null], during.body)
  assert.deepEqual([during.json().code, during.headers['retry-after']], ['erasing', '1'])
  assert.deepEqual((await suggested()).json().reasons, ['There was no data in the last seven days.'])
  assert.deepEqual((await suggested('globex')).json().filled, before.json().filled)
})

test('no response is sent of which something is hidden after its reads, while it is written', async () => {
  const holds = new LegalHolds(fixture.control, clock, findRelated, forgetReleasedVersions)
  for (const place of [acme, globex]) {
    const { tenantId } = place
    const point = { TimeUnix: atNs(0), MetricName: 'queue.size' }
    await insertFixture(fixture.engine, place, 'otel_metrics_gauge', [point])
    await holds.place(tenantId, { case_ref: 'case' }, operatorActor('legal'))
    const id = anomalies.get(tenantId) ?? ''
    await store.feedback.giveFeedback(tenantId, id, { verdict: 'real' }, callerNamed('me'))
  }
  const urlsOf = (as: string) => [
    '/anomalies',
    `/anomalies/${anomalies.get(as)}`,
    `/anomalies/${anomalies.get(as)}/versions`,
    '/anomalies/metrics',
    '/anomalies/detectors',
    `/anomalies/detectors/${detectors.get(as)}`,
  ]
  const shown = (url: string) =>
    url === '/anomalies/metrics' ? /queue.size/ : url.includes('detectors') ? /anomalous/ : /checkout/
  for (const url of urlsOf('acme')) {
    const before = await get(url)
    assert.match(before.body, shown(url))
    gate.afterReads = () => gate.hide('acme', everything)
    const during = await get(url)
    gate.afterReads = null
    gate.unhide('acme', everything.id)
    assert.deepEqual([during.statusCode, during.json().code], [503, 'erasing'], url)
  }
  const give = (as: string) =>
    http.inject({
      method: 'POST',
      url: `/anomalies/${anomalies.get(as)}/feedback`,
      headers: { authorization: `Bearer ${as}` },
      payload: { verdict: 'real' },
    })
  assert.match((await give('acme')).body, /checkout/)
  let reads = 0
  // The first read is before the verdict is stored.
  gate.afterReads = () => (++reads === 2 ? gate.hide('acme', everything) : undefined)
  const during = await give('acme')
  gate.afterReads = null
  gate.unhide('acme', everything.id)
  assert.deepEqual([during.statusCode, during.json().code, reads], [503, 'erasing', 2])
  for (const url of urlsOf('globex')) {
    gate.afterReads = () => gate.hide('acme', everything)
    const { body, statusCode } = await get(url, 'globex')
    assert.equal(statusCode, 200)
    assert.match(body, shown(url))
  }
  await fixture.control.deleteFrom('legal_holds').execute()
})
