// The preview of a deletion over HTTP, on real stores. Two organisations have the same rows.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { openStores, type Stores, silent, WatchedGate } from '../../../tests/fixtures.ts'
import { tokenNamed } from '../../core/actor-fixture.ts'
import type { Clock } from '../../core/clock.ts'
import { ManualClock } from '../../core/manual-clock.ts'
import { byAccessToken } from '../../http/authentication.ts'
import { createHttp } from '../../http/server.ts'
import type { TenantPlace } from '../../telemetry/engine.ts'
import { insertFixture } from '../../telemetry/row-fixture.ts'
import { weighRows } from '../../telemetry/row-weights.ts'
import { monday } from '../deletion-fixture.ts'
import { governedSceneOf, minuteMs } from '../governed-fixture.ts'
import { addDeletionRoutes } from '../routes.ts'
import { Previews } from './preview.ts'
import { addPreviewRoute } from './routes.ts'

const places = [
  { tenantId: 'own', placement: 60 },
  { tenantId: 'neighbour', placement: 60 },
]

let stores: Stores

before(async () => {
  stores = await openStores()
})
after(() => stores.close())

/** Previews, and an HTTP server without routes whose callers are owners: their secret is their tenant_id. */
function serving(clock: Clock, places: readonly TenantPlace[]) {
  const { control, engine } = stores
  const gate = new WatchedGate()
  const previews = new Previews({
    ...{ engine, control, gate, clock, derivedStores: [] },
    weighRows: ({ place }) => weighRows(engine, place, true),
    activeHolds: async () => [],
    knownBackups: async () => [],
    approvalCause: async () => null,
  })
  const http = createHttp({
    ...{ clock, logger: silent, isReady: () => true },
    authenticate: byAccessToken(async (secret) => {
      const place = places.find(({ tenantId }) => tenantId === secret)
      if (place === undefined) return null
      return { ...place, organisationName: secret, role: 'owner', requester: tokenNamed(secret) }
    }),
  })
  return { gate, http, previews }
}

test('a preview is not sent where what it names is hidden after its reads, while it is written', async () => {
  const { engine } = stores
  const { gate, http, previews } = serving(new ManualClock(Date.UTC(2026, 1, 1)), places)
  addPreviewRoute(http, previews)
  await http.ready()
  for (const place of places) {
    const row = { Timestamp: monday, ServiceName: `shop of ${place.tenantId}` }
    await insertFixture(engine, place, 'otel_logs', [row])
  }
  const preview = (as: string) =>
    http.inject({
      method: 'POST',
      url: '/usage/storage/deletions/preview',
      headers: { authorization: `Bearer ${as}` },
      payload: { scope: 'range', range_start: '2026-01-01T00:00:00Z', range_end: '2026-01-30T00:00:00Z' },
    })
  assert.match((await preview('own')).body, /shop of own/)
  gate.afterReads = () =>
    gate.hide('own', { id: 'del_1', signals: ['logs'], range: { startNs: null, endNs: null } })
  const during = await preview('own')
  assert.deepEqual([during.statusCode, during.json().code], [503, 'erasing'], during.body)
  assert.match((await preview('neighbour')).body, /shop of neighbour/)
  gate.afterReads = null
  const again = await preview('own')
  assert.equal(again.statusCode, 200)
  assert.doesNotMatch(again.body, /shop/)
  await http.close()
})

test('nor is the preview in a refusal of a stale one', async () => {
  const scene = await governedSceneOf(stores)
  const { clock, decisions, neighbour, own, requestStore, requests } = scene
  const { gate, http, previews } = serving(clock, [own, neighbour])
  const checkPreview = previews.check.bind(previews)
  addDeletionRoutes(http, { requestStore, requests, decisions, clock, checkPreview, nudge: () => {} })
  await http.ready()
  for (const place of [own, neighbour]) {
    const row = { Timestamp: monday, ServiceName: `shop of ${place.tenantId}` }
    await insertFixture(stores.engine, place, 'otel_logs', [row])
  }
  const { body: shown } = await previews.answer(
    { ...own, requester: tokenNamed('owner') },
    { scope: 'all', signals: ['logs'], range: { startNs: null, endNs: null } },
  )
  const erase = ({ tenantId }: { tenantId: string }) =>
    http.inject({
      method: 'POST',
      url: '/usage/storage/deletions',
      headers: { authorization: `Bearer ${tenantId}` },
      payload: { scope: 'all', signals: ['logs'], confirm: tenantId, preview_id: shown.id },
    })
  clock.advance(15 * minuteMs)
  const hide = () =>
    gate.hide(own.tenantId, { id: 'del_1', signals: ['logs'], range: { startNs: null, endNs: null } })
  const before = await erase(own)
  assert.equal(before.statusCode, 412)
  assert.match(before.body, new RegExp(`shop of ${own.tenantId}`))
  gate.afterReads = hide
  const during = await erase(own)
  assert.deepEqual([during.statusCode, during.json().code], [503, 'erasing'], during.body)
  assert.doesNotMatch(during.body, /shop/)
  assert.equal(during.headers['retry-after'], '1')
  assert.match((await erase(neighbour)).body, new RegExp(`shop of ${neighbour.tenantId}`))
  gate.afterReads = null
  const again = await erase(own)
  assert.equal(again.statusCode, 412)
  assert.doesNotMatch(again.body, /shop/)
  await http.close()
})
