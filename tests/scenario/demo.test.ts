// What the demo promises, by the code that it runs: two weeks of the shop come in over OTLP, the detectors go
// over them once, and each of the three incidents is told by an anomaly of its time that names the others of
// the same incident. Of the quiet rest hardly anything is told.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { ListedAnomaly } from '../../contract/detection-context.ts'
import { AnomalyWithContext } from '../../contract/detection-context.ts'
import { type Clock, systemClock } from '../../server/core/clock.ts'
import { pauseDetectors, runOverHistory } from '../../server/demo/detectors.ts'
import { foundIn, renderGuide, storyOf } from '../../server/demo/guide.ts'
import { loadHistory } from '../../server/demo/load.ts'
import { type IncidentKey, openShop, type Shop } from '../../server/demo/shop.ts'
import { type Service, startService } from './service.ts'

/** The demo's own. */
const seed = 7
/** A Sunday evening. Chance goes by the minute, so a shop of another day is another one. */
const anchorMs = Date.UTC(2026, 10, 22, 21, 29)
const aheadMs = anchorMs + 10_000 - systemClock.nowMs()
const clock: Clock = {
  nowMs: () => systemClock.nowMs() + aheadMs,
  nowNs: () => systemClock.nowNs() + BigInt(aheadMs) * 1_000_000n,
  steady: () => systemClock.steady(),
  sleep: (ms, signal) => systemClock.sleep(ms, signal),
}
/**
 * Of two weeks of eight services, watched by six detectors: a budget of the reader's patience, not of theirs.
 */
const falseAlarmsMax = 2

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

function toldOf(key: IncidentKey): ListedAnomaly[] {
  return foundIn(incidentOf(key), found)
}

const servicesOf = (told: readonly ListedAnomaly[]) => told.map(({ group }) => group.service)

test('the leak is told while it lasts, by the memory of the service that leaks', () => {
  const [leak] = toldOf('inventory_memory_leak').filter(({ metric_key }) =>
    metric_key.startsWith('system.memory'),
  )
  assert.deepEqual(leak?.group, { service: 'inventory' })
  const { endMinute } = incidentOf('inventory_memory_leak')
  const begunMinute = Date.parse(leak.started_at) / 60_000
  assert.ok(begunMinute < endMinute - 3 * 60, 'hours before the process is killed')
})

test('the loss of three visitors of four is told, as a drop below what is usual at this hour', () => {
  const told = toldOf('storefront_traffic_drop')
  assert.ok(told.length > 0)
  for (const { expected, metric_key, reason, value } of told) {
    assert.match(metric_key, /^(?:spans\.rate|http\.server\.request\.count)$/)
    assert.ok((value ?? Number.NaN) < (expected ?? Number.NaN) / 2, reason)
  }
})

test('slow and failing payments are told, by the service and by those that call it', () => {
  const told = servicesOf(toldOf('payments_slow_and_failing'))
  assert.ok(told.includes('payments'), `${told}`)
  assert.ok(told.includes('storefront') || told.includes('gateway'), `${told}`)
})

test('anomalies of one incident name each other and none of another', async () => {
  const keys: IncidentKey[] = [
    'inventory_memory_leak',
    'storefront_traffic_drop',
    'payments_slow_and_failing',
  ]
  for (const key of keys) {
    const ids = toldOf(key).map(({ id }) => id)
    for (const anomaly of toldOf(key)) {
      const others = ids.filter((id) => id !== anomaly.id)
      assert.deepEqual(anomaly.related_ids.toSorted(), others.toSorted(), `${key}: ${anomaly.reason}`)
    }
  }
  const [first] = toldOf('payments_slow_and_failing')
  const { context, related_ids } = await service.read(`/anomalies/${first?.id}`, AnomalyWithContext)
  assert.deepEqual(related_ids.toSorted(), first?.related_ids.toSorted())
  assert.equal(context.related.count, related_ids.length)
  assert.ok(context.related.anomalies.every(({ because }) => because.includes('began_together')))
})

test('of the quiet rest of two weeks hardly anything is told', () => {
  const about = new Set(shop.incidents.flatMap((incident) => foundIn(incident, found).map(({ id }) => id)))
  const others = found.filter(({ id }) => !about.has(id)).map(({ reason }) => reason)
  assert.ok(others.length <= falseAlarmsMax, others.join('\n'))
})

test('the guide says of each incident what the detectors say', () => {
  const facts = { baseUrl: service.address, tenantId: 'acme', ownerToken: 'o', ingestToken: 'i' }
  const story = storyOf(shop, anchorMs, found)
  const guide = renderGuide({ ...facts, eraseBefore: '2026-01-01T00:00:00Z', ...story })
  assert.doesNotMatch(guide, /no detector has told/)
  assert.match(guide, /- system\.memory\.utilization of inventory/)
  assert.match(guide, /related_ids/)
})
