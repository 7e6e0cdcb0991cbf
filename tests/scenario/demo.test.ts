// The promises of the demo, with the code that it runs: two weeks of the shop are sent over OTLP, the
// detectors run over them once, and each of the three incidents has an anomaly of its time that names the
// others of the same incident. In runs on schedule each is reported within a quarter of an hour. The time
// outside incidents has no anomaly.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { ListedAnomaly } from '../../contract/detection/context.ts'
import { AnomalyWithContext } from '../../contract/detection/context.ts'
import { Detector } from '../../contract/detection/detectors.ts'
import { DetectorPreview } from '../../contract/detection/preview.ts'
import { pageOf } from '../../contract/values/fields.ts'
import { type Clock, systemClock } from '../../server/core/clock.ts'
import { pauseDetectors, runOverHistory } from '../../server/demo/detectors.ts'
import { foundIn, incidentFacts, renderGuide } from '../../server/demo/guide.ts'
import { loadHistory } from '../../server/demo/load.ts'
import { type IncidentKey, openShop, type Shop } from '../../server/demo/shop.ts'
import { type Service, startService } from './service.ts'

/** The seed of the demo. */
const seed = 7
/** A Sunday evening. Draws depend on the minute, so the shop of another day is different. */
const anchorMs = Date.UTC(2026, 10, 22, 21, 29)
const aheadMs = anchorMs + 10_000 - systemClock.nowMs()
const clock: Clock = {
  nowMs: () => systemClock.nowMs() + aheadMs,
  nowNs: () => systemClock.nowNs() + BigInt(aheadMs) * 1_000_000n,
  steady: () => systemClock.steady(),
  elapsedMs: () => systemClock.elapsedMs(),
  sleep: (ms, signal) => systemClock.sleep(ms, signal),
}
/** From the start of an incident to the end of the run that reports it first. */
const reportedWithinMinutes = 15

let service: Service
let shop: Shop
let found: readonly ListedAnomaly[]
before(async () => {
  service = await startService({ clock })
  const api = { endpoint: service.address, token: service.secretOf('acme/owner') }
  const paused = await pauseDetectors(api)
  const nowNs = BigInt(anchorMs) * 1_000_000n
  shop = openShop({ seed, anchorNs: nowNs })
  const token = service.secretOf('acme/ingest')
  await loadHistory({ endpoint: service.address, token, seed, nowNs, clock })
  found = await runOverHistory(api, paused)
})
after(() => service.stop())

function incidentOf(key: IncidentKey) {
  return shop.incidents.find((incident) => incident.key === key) ?? assert.fail(key)
}

function anomaliesOf(key: IncidentKey): ListedAnomaly[] {
  return foundIn(incidentOf(key), found)
}

const servicesOf = (anomalies: readonly ListedAnomaly[]) => anomalies.map(({ group }) => group.service)

test('the leak is reported while it lasts, from the memory of the leaking service', () => {
  const [leak] = anomaliesOf('inventory_memory_leak').filter(({ metric_key }) =>
    metric_key.startsWith('system.memory'),
  )
  assert.deepEqual(leak?.group, { service: 'inventory' })
  const { endMinute } = incidentOf('inventory_memory_leak')
  const begunMinute = Date.parse(leak.started_at) / 60_000
  assert.ok(begunMinute < endMinute - 15, 'long before the process is killed')
})

const firstToldBy: Readonly<Record<string, string>> = {
  inventory_memory_leak: 'Memory by service',
  storefront_traffic_drop: 'Visitors of storefront',
  payments_slow_and_failing: 'Error logs by service',
}

for (const [key, name] of Object.entries(firstToldBy)) {
  test(`run by run, ${name} reports ${key} within a quarter of an hour of its start, and nothing before`, async () => {
    const { items } = await service.read('/anomalies/detectors?limit=100', pageOf(Detector))
    const detector = items.find((one) => one.name === name) ?? assert.fail(name)
    const { startMinute } = incidentOf(key as IncidentKey)
    const { metric_key, method_key, params, schedule_minutes, scope, window_minutes } = detector
    const answer = await service.send('POST', '/anomalies/detectors/preview', {
      json: {
        ...{ metric_key, method_key, params, schedule_minutes, scope, window_minutes },
        range_start: new Date((startMinute - 120) * 60_000).toISOString(),
        range_end: new Date((startMinute + 20) * 60_000).toISOString(),
      },
    })
    assert.equal(answer.status, 200, answer.text)
    const { anomalies } = DetectorPreview.parse(JSON.parse(answer.text))
    const [first] = anomalies.filter(
      ({ seen_until }) => Date.parse(seen_until) > (startMinute - 120) * 60_000,
    )
    const minutes = Date.parse(first?.raised_at ?? '') / 60_000 - startMinute
    assert.ok(minutes > 0 && minutes <= reportedWithinMinutes, `${minutes} minutes: ${first?.reason}`)
  })
}

test('the loss of three of four visitors is reported, as a drop below the usual value of the hour', () => {
  const anomalies = anomaliesOf('storefront_traffic_drop')
  assert.ok(anomalies.length > 0)
  for (const { expected, metric_key, reason, value } of anomalies) {
    assert.match(metric_key, /^(?:spans\.rate|http\.server\.request\.count)$/)
    assert.ok((value ?? Number.NaN) < (expected ?? Number.NaN) / 2, reason)
  }
})

test('slow and failing payments are reported for the service and for those that call it', () => {
  const services = servicesOf(anomaliesOf('payments_slow_and_failing'))
  assert.ok(services.includes('payments'), `${services}`)
  assert.ok(services.includes('storefront') || services.includes('gateway'), `${services}`)
})

test('anomalies of one incident name each other and none of another', async () => {
  const keys: IncidentKey[] = [
    'inventory_memory_leak',
    'storefront_traffic_drop',
    'payments_slow_and_failing',
  ]
  for (const key of keys) {
    const ids = anomaliesOf(key).map(({ id }) => id)
    for (const anomaly of anomaliesOf(key)) {
      const others = ids.filter((id) => id !== anomaly.id)
      assert.deepEqual(anomaly.related_ids.toSorted(), others.toSorted(), `${key}: ${anomaly.reason}`)
    }
  }
  const [first] = anomaliesOf('payments_slow_and_failing')
  const { context, related_ids } = await service.read(`/anomalies/${first?.id}`, AnomalyWithContext)
  assert.deepEqual(related_ids.toSorted(), first?.related_ids.toSorted())
  assert.equal(context.related.count, related_ids.length)
  assert.ok(context.related.anomalies.every(({ because }) => because.includes('began_together')))
})

test('outside the incidents of two weeks no anomaly is reported', () => {
  const about = new Set(shop.incidents.flatMap((incident) => foundIn(incident, found).map(({ id }) => id)))
  const others = found.filter(({ id }) => !about.has(id)).map(({ reason }) => reason)
  assert.deepEqual(others, [])
})

test('the guide has the anomalies of each incident', () => {
  const address = service.address
  const facts = {
    ...{ baseUrl: address, consoleLink: `${address}/console/sign-in#code=c` },
    ...{ tenantId: 'acme', ownerToken: 'o', ingestToken: 'i' },
  }
  const incidents = incidentFacts(shop, anchorMs, found)
  const guide = renderGuide({ ...facts, eraseBefore: '2026-01-01T00:00:00Z', ...incidents })
  assert.doesNotMatch(guide, /no detector reported/)
  assert.match(guide, /- system\.memory\.utilization of inventory/)
  assert.match(guide, /related_ids/)
})
