// Names and values of attributes on a real engine, as a field with completion requests them: of one signal
// and one organisation, without hidden rows.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { pino } from 'pino'
import { AttributeNames } from '../../contract/telemetry/queries.ts'
import { engineOfFile } from '../../tests/fixtures.ts'
import { tokenNamed } from '../core/actor-fixture.ts'
import { ManualClock } from '../core/manual-clock.ts'
import { byAccessToken } from '../http/authentication.ts'
import { createHttp } from '../http/server.ts'
import { TelemetryGate } from '../telemetry/gate.ts'
import { insertFixture } from '../telemetry/row-fixture.ts'
import { TenantReader } from '../telemetry/tenant-reader.ts'
import { addQueryRoutes } from './routes.ts'

const engine = engineOfFile()
const gate = new TelemetryGate()
const nowMs = Date.parse('2026-11-21T10:00:00Z')
const http = createHttp({
  clock: new ManualClock(nowMs),
  logger: pino({ level: 'silent' }),
  authenticate: byAccessToken(async (tenantId) => ({
    tenantId,
    placement: 7,
    organisationName: tenantId,
    role: 'viewer' as const,
    requester: tokenNamed('x'),
  })),
  isReady: () => true,
})
addQueryRoutes(http, (caller) => new TenantReader(engine, caller, gate), new ManualClock(nowMs))
after(() => http.close())

const at = (secondsAgo: number) => BigInt(nowMs - secondsAgo * 1000) * 1_000_000n
const resource = { 'service.name': 'cart', 'host.name': 'node-1' }
const strange = "it's ; -- \\\\ 👋"

before(async () => {
  const own = { tenantId: 'acme', placement: 7 }
  await insertFixture(engine, own, 'otel_logs', [
    {
      Timestamp: at(60),
      ServiceName: 'cart',
      LogAttributes: { region: 'eu', tier: '1' },
      ResourceAttributes: resource,
    },
    { Timestamp: at(50), ServiceName: 'cart', LogAttributes: { region: 'us' }, ResourceAttributes: resource },
    { Timestamp: at(40), ServiceName: 'pay', LogAttributes: { region: 'eu', [strange]: strange } },
    { Timestamp: at(30), ServiceName: 'pay', LogAttributes: { long: 'x'.repeat(201) } },
    { Timestamp: at(7200), ServiceName: 'pay', LogAttributes: { old: '1' } },
  ])
  await insertFixture(engine, own, 'otel_metrics_gauge', [
    { TimeUnix: at(60), Attributes: { queue: 'mail' } },
  ])
  await insertFixture(engine, own, 'otel_metrics_sum', [
    { TimeUnix: at(60), Attributes: { queue: 'orders' } },
  ])
  await insertFixture(engine, { tenantId: 'globex', placement: 7 }, 'otel_logs', [
    { Timestamp: at(60), ServiceName: 'cart', LogAttributes: { foreign: 'secret' } },
  ])
})

async function listOf(query: Record<string, string>, tenantId = 'acme') {
  const headers = { authorization: `Bearer ${tenantId}` }
  const answer = await http.inject({ url: '/telemetry/attributes', query, headers })
  assert.equal(answer.statusCode, 200, answer.body)
  const { items, rows_read } = AttributeNames.parse(answer.json())
  return { texts: items.map(({ rows, text }) => [text, rows]), rows_read }
}

test('names of records and resources are listed, the most frequent first', async () => {
  const { rows_read, texts } = await listOf({ signal: 'logs' })
  assert.equal(rows_read, 4)
  assert.deepEqual(texts, [
    ['region', 3],
    ['host.name', 2],
    ['service.name', 2],
    [strange, 1],
    ['long', 1],
    ['tier', 1],
  ])
})

test('values of a name are listed by service and prefix, without those that are too long', async () => {
  assert.deepEqual((await listOf({ signal: 'logs', key: 'region' })).texts, [
    ['eu', 2],
    ['us', 1],
  ])
  assert.deepEqual((await listOf({ signal: 'logs', key: 'region', service: 'pay' })).texts, [['eu', 1]])
  assert.deepEqual((await listOf({ signal: 'logs', key: 'region', prefix: 'u' })).texts, [['us', 1]])
  assert.deepEqual((await listOf({ signal: 'logs', key: 'long' })).texts, [])
  assert.deepEqual((await listOf({ signal: 'logs', key: strange })).texts, [[strange, 1]])
  assert.deepEqual((await listOf({ signal: 'logs', prefix: 'h' })).texts, [['host.name', 2]])
})

test('all tables of metrics count, and the range is that of the query', async () => {
  assert.deepEqual((await listOf({ signal: 'metrics', key: 'queue' })).texts, [
    ['mail', 1],
    ['orders', 1],
  ])
  assert.deepEqual((await listOf({ signal: 'logs', range_start: '-3h', prefix: 'old' })).texts, [['old', 1]])
  assert.deepEqual(await listOf({ signal: 'traces' }), { texts: [], rows_read: 0 })
})

test('nothing of a neighbour, and nothing hidden, is listed', async () => {
  assert.deepEqual((await listOf({ signal: 'logs' }, 'globex')).texts, [['foreign', 1]])
  gate.hide('acme', { id: 'del_1', signals: ['logs'], range: { startNs: at(45), endNs: null } })
  const { texts } = await listOf({ signal: 'logs' })
  assert.ok(!texts.some(([text]) => text === strange || text === 'long'))
  gate.unhide('acme', 'del_1')
})
