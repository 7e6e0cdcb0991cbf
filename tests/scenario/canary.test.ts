// Every text, id and number of an organisation's telemetry is unique and is searched for in every file of the
// data folder, including the control database and its log: found before the erasure, in none of them
// afterwards. The telemetry is also used before: it is read, searched, watched by a detector that finds an
// anomaly, previewed. A neighbour in the same partitions keeps all of its own.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Anomaly, Detector } from '../../contract/detection/detectors.ts'
import { Incident, IncidentWithMembers } from '../../contract/detection/incidents.ts'
import { pageOf } from '../../contract/values/fields.ts'
import { formatInstant } from '../../contract/values/instant.ts'
import { systemClock } from '../../server/core/clock.ts'
import { waitFor } from '../wait-for.ts'
import { Canaries, canaryExports, filesWithCanaries } from './canaries.ts'
import { eraseCompletely, type Service, startService, type Who } from './service.ts'

const hourNs = 3_600_000_000_000n

/** A full hour, three hours ago. */
const recentNs = (systemClock.nowNs() / hourNs) * hourNs - 3n * hourNs
/**
 * In one week with the telemetry two hours before and after it: weeks are partitions, and begin on Mondays.
 */
const plantedNs =
  weekOf(recentNs - 2n * hourNs) === weekOf(recentNs + 2n * hourNs) ? recentNs : recentNs - 4n * hourNs

function weekOf(ns: bigint): bigint {
  // 1970-01-01 was a Thursday.
  return (ns + 72n * hourNs) / (168n * hourNs)
}

let service: Service
before(async () => {
  service = await startService()
})
after(() => service.stop())

async function send(as: Who, bodies: Record<string, object>): Promise<void> {
  for (const [signal, json] of Object.entries(bodies)) {
    const answer = await service.send('POST', `/v1/${signal}`, { as, json })
    assert.deepEqual([answer.status, answer.text], [200, '{}'], signal)
  }
}

/**
 * A gauge with one high value that a detector reports, grouped by an attribute that only this telemetry has.
 */
async function plantAnomaly(as: Who, canaries: Canaries, timeNs: bigint): Promise<void> {
  const attributes = [{ key: 'shelf', value: { stringValue: canaries.text('anomaly group') } }]
  const dataPoints = Array.from({ length: 30 }, (_, minute) => ({
    timeUnixNano: String(timeNs + BigInt(minute) * 60_000_000_000n),
    attributes,
    asDouble: minute === 20 ? canaries.number('anomaly value') : 1,
  }))
  const metrics = [{ name: 'shelf.load', gauge: { dataPoints } }]
  await send(as, { metrics: { resourceMetrics: [{ scopeMetrics: [{ metrics }] }] } })
  const detector = {
    name: 'Shelf',
    metric_key: 'shelf.load',
    method_key: 'threshold',
    params: { upper: 100, violate_n: 1 },
    scope: { group_by: 'shelf' },
    window_minutes: 600,
    schedule_minutes: 10_080,
  }
  const created = await service.send('POST', '/anomalies/detectors', { as, json: detector })
  assert.equal(created.status, 201, created.text)
  const { id } = Detector.parse(JSON.parse(created.text))
  // It is due at once, so the loop may be running it; then this run is refused.
  const ran = await waitFor(
    () => service.send('POST', `/anomalies/detectors/${id}/run`, { as }),
    ({ status }) => status !== 409,
  )
  assert.equal(ran.status, 200, ran.text)
  const found = await service.read(`/anomalies?detector_id=${id}`, pageOf(Anomaly), as)
  assert.ok(found.items.length > 0, 'the anomaly to erase exists')
  const { items } = await service.read('/incidents', pageOf(Incident), as)
  assert.ok(items.length > 0, 'the incident to erase exists')
  for (const incident of items) await service.read(`/incidents/${incident.id}`, IncidentWithMembers, as)
}

/** Reads the canaries in every way a person can, so that anything that stores queries stores these. */
async function ask(as: Who, canaries: Canaries): Promise<void> {
  const range = `start=${formatInstant(plantedNs - hourNs)}&end=${formatInstant(plantedNs + hourNs)}`
  for (const { bytes, name } of canaries.all) {
    if (!/body|name|trace id$/.test(name)) continue
    const word = encodeURIComponent(bytes.toString())
    for (const path of [
      `/telemetry/logs?${range}&search=${word}`,
      `/telemetry/spans?${range}&service=${word}`,
      `/telemetry/series?${range}&metric=${word}`,
      `/telemetry/traces/${word}`,
    ]) {
      await service.send('GET', path, { as })
    }
  }
  for (const path of ['/telemetry/services', '/telemetry/metrics', '/anomalies/metrics', '/usage/storage']) {
    await service.send('GET', `${path}?${range}`, { as })
  }
  const preview = { scope: 'range', range_end: formatInstant(plantedNs + hourNs) }
  await service.send('POST', '/usage/storage/deletions/preview', { as, json: preview })
}

/** Stores canaries, reads them, and returns those that were found. */
async function plant(as: Who, timeNs: bigint): Promise<Canaries> {
  const canaries = new Canaries()
  await send(as, canaryExports(canaries, timeNs))
  await plantAnomaly(as, canaries, timeNs)
  await ask(as, canaries)
  return canaries
}

function assertPlanted(canaries: Canaries): void {
  for (const [name, files] of filesWithCanaries(service.folder, canaries.all)) {
    assert.ok(files.length > 0, `the search can’t find the ${name}, so it would prove nothing`)
  }
}

function assertGone(canaries: Canaries): void {
  for (const [name, files] of filesWithCanaries(service.folder, canaries.all)) {
    assert.deepEqual(files, [], `the ${name} is still there`)
  }
}

test('after the erasure of a range no file has a byte of it, and other telemetry and the neighbour’s are complete', async () => {
  const [erased, kept, neighbour] = [new Canaries(), new Canaries(), new Canaries()]
  await send('acme/owner', canaryExports(kept, plantedNs - 2n * hourNs))
  await send('globex/owner', canaryExports(neighbour, plantedNs))
  erased.all.push(...(await plant('acme/owner', plantedNs)).all)
  for (const canaries of [erased, kept, neighbour]) assertPlanted(canaries)
  const done = await eraseCompletely(service, {
    scope: 'range',
    confirm: 'acme',
    range_start: formatInstant(plantedNs - hourNs),
    range_end: formatInstant(plantedNs + hourNs),
  })
  assert.ok(Number(done.detail.partitions_rewritten) > 0, 'other rows shared its partitions')
  assertGone(erased)
  assertPlanted(kept)
  assertPlanted(neighbour)
})

test('after a full erasure no file has a byte of it, and the neighbour’s telemetry is complete', async () => {
  // After the range above, because detectors report nothing about erased time.
  const laterNs = plantedNs + hourNs + hourNs / 2n
  const neighbour = await plant('globex/owner', laterNs)
  const erased = await plant('acme/owner', laterNs)
  assertPlanted(erased)
  await eraseCompletely(service, { scope: 'all', confirm: 'acme' })
  assertGone(erased)
  assertPlanted(neighbour)
})
