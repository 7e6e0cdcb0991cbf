// Previews of several organisations at the same time, over a real engine whose reads wait until the test
// lets them go.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { FastifyInstance } from 'fastify'
import { silent, watchedEngine } from '../../tests/fixtures.ts'
import { tokenNamed } from '../core/actor-fixture.ts'
import type { Caller } from '../core/caller.ts'
import { ManualClock } from '../core/manual-clock.ts'
import { byAccessToken } from '../http/authentication.ts'
import { createHttp } from '../http/server.ts'
import { TelemetryGate } from '../telemetry/gate.ts'
import { TenantReader } from '../telemetry/tenant-reader.ts'
import { noonMs, openControlAndEngine, type StoresFixture } from './detection-fixture.ts'
import { addDetectorPreviewRoutes } from './preview-routes.ts'
import { EvaluationsHere } from './runs/evaluation-pool.ts'

let fixture: StoresFixture
let http: FastifyInstance
/** By organisation: its reads wait for it. */
const released = new Map<string, PromiseWithResolvers<void>>()
/** By organisation: resolves when it has begun to read. */
const began = new Map<string, PromiseWithResolvers<void>>()
/** Organisations that have begun to read, in order. */
const reading: string[] = []
let isReady = true

for (const tenantId of ['acme', 'globex', 'initech', 'hooli']) {
  released.set(tenantId, Promise.withResolvers())
  began.set(tenantId, Promise.withResolvers())
}

before(async () => {
  fixture = await openControlAndEngine()
  const clock = new ManualClock(noonMs)
  const gate = new TelemetryGate()
  http = createHttp({
    clock,
    logger: silent,
    authenticate: byAccessToken(async (secret): Promise<Caller> => {
      const place = { tenantId: secret, placement: 0, organisationName: secret }
      return { ...place, role: 'member', requester: tokenNamed(secret) }
    }),
    isReady: () => true,
  })
  const heldUp = async (tenantId: string | undefined) => {
    if (tenantId !== undefined && !reading.includes(tenantId)) reading.push(tenantId)
    began.get(tenantId ?? '')?.resolve()
    await released.get(tenantId ?? '')?.promise
  }
  const held = watchedEngine(fixture.engine, (_, share) => heldUp(share?.tenantId))
  const readerOf = (caller: Caller) => new TenantReader(held, caller, gate)
  addDetectorPreviewRoutes(http, {
    ...{ readerOf, clock },
    evaluations: new EvaluationsHere(),
    isReady: () => isReady,
    atOnce: 2,
  })
  await http.ready()
})
after(async () => {
  await http.close()
  await fixture.close()
})

const preview = (tenantId: string) =>
  http.inject({
    method: 'POST',
    url: '/anomalies/detectors/preview',
    headers: { authorization: `Bearer ${tenantId}` },
    payload: {
      name: 'Queue',
      metric_key: 'queue.length',
      method_key: 'robust_band',
      params: {},
      window_minutes: 60,
      schedule_minutes: 15,
      range_start: new Date(noonMs - 7_200_000).toISOString(),
      range_end: new Date(noonMs).toISOString(),
    },
  })

test('organisations wait for each other’s previews in turns, and nobody is refused for them', async () => {
  const first = ['acme', 'globex'].map(preview)
  await Promise.all(['acme', 'globex'].map((tenantId) => began.get(tenantId)?.promise))
  const others = ['initech', 'hooli'].map(preview)
  const second = await preview('acme')
  assert.equal(second.statusCode, 429)
  assert.match(second.body, /of your organisation/)
  for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate)
  assert.deepEqual(reading, ['acme', 'globex'], 'two at once')
  released.get('acme')?.resolve()
  await began.get('initech')?.promise
  assert.deepEqual(reading, ['acme', 'globex', 'initech'])
  for (const { resolve } of released.values()) resolve()
  const answers = await Promise.all([...first, ...others])
  assert.deepEqual(
    answers.map(({ statusCode }) => statusCode),
    [200, 200, 200, 200],
  )
  assert.equal((await preview('acme')).statusCode, 200, 'none of its own is under way any more')
})

test('a preview whose turn comes while the service stops is refused', async () => {
  isReady = false
  const answer = await preview('acme')
  isReady = true
  assert.deepEqual([answer.statusCode, answer.json().code], [503, 'not_ready'])
})
