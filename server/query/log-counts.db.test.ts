// Counts of log records on a real engine: by severity and step, with the filters of the list, without hidden
// rows and those of a neighbour in the same placement.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { pino } from 'pino'
import { LogCounts } from '../../contract/telemetry/queries.ts'
import { engineOfFile, WatchedGate } from '../../tests/fixtures.ts'
import { tokenNamed } from '../core/actor-fixture.ts'
import { ManualClock } from '../core/manual-clock.ts'
import { byAccessToken } from '../http/authentication.ts'
import { createHttp } from '../http/server.ts'
import { type FixtureRow, insertFixture } from '../telemetry/row-fixture.ts'
import { TenantReader } from '../telemetry/tenant-reader.ts'
import { addQueryRoutes } from './routes.ts'

const engine = engineOfFile()
const gate = new WatchedGate()
const nowMs = Date.parse('2026-11-21T10:00:00Z')
const clock = new ManualClock(nowMs)
const http = createHttp({
  clock,
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
addQueryRoutes(http, (caller) => new TenantReader(engine, caller, gate), clock)
after(() => http.close())

const at = (text: string) => BigInt(Date.parse(`2026-11-21T${text}Z`)) * 1_000_000n

const rows: readonly FixtureRow[] = [
  { Timestamp: at('09:00:00'), SeverityNumber: 9, ServiceName: 'cart', Body: 'added' },
  { Timestamp: at('09:00:59'), SeverityNumber: 12, ServiceName: 'cart', Body: 'Paid' },
  { Timestamp: at('09:01:00'), SeverityNumber: 17, ServiceName: 'cart', Body: 'declined' },
  { Timestamp: at('09:03:10'), SeverityNumber: 24, ServiceName: 'pay', Body: 'declined' },
  { Timestamp: at('09:03:20'), SeverityNumber: 0, ServiceName: 'pay', LogAttributes: { region: 'eu' } },
  { Timestamp: at('09:04:00'), SeverityNumber: 13, ServiceName: 'pay', Body: 'out of the range' },
]

before(async () => {
  for (const tenantId of ['acme', 'globex']) {
    await insertFixture(engine, { tenantId, placement: 7 }, 'otel_logs', rows)
  }
})

const range = { range_start: '2026-11-21T09:00:00Z', range_end: '2026-11-21T09:04:00Z' }

async function ask(query: Record<string, string>, tenantId = 'acme') {
  const headers = { authorization: `Bearer ${tenantId}` }
  const answer = await http.inject({ url: '/telemetry/logs/counts', query, headers })
  return { status: answer.statusCode, json: answer.json() }
}

async function countsOf(query: Record<string, string>, tenantId?: string) {
  const { json, status } = await ask(query, tenantId)
  assert.equal(status, 200, JSON.stringify(json))
  return LogCounts.parse(json)
}

/** The counts that are not zero. */
const found = (counts: Record<string, number>) =>
  Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0))

test('records are counted by severity and step, and every step of the range is there', async () => {
  const { range_end, range_start, step_seconds, steps, totals } = await countsOf({
    ...range,
    step_seconds: '60',
  })
  assert.deepEqual([range_start, range_end, step_seconds], [range.range_start, range.range_end, 60])
  assert.deepEqual(found(totals), { info: 2, error: 1, fatal: 1, unspecified: 1 })
  assert.deepEqual(
    steps.map(({ counts, time }) => [time.slice(11, 19), found(counts)]),
    [
      ['09:00:00', { info: 2 }],
      ['09:01:00', { error: 1 }],
      ['09:02:00', {}],
      ['09:03:00', { unspecified: 1, fatal: 1 }],
    ],
  )
})

test('the first step begins where the range begins, also inside a multiple of the width', async () => {
  const query = { range_start: '2026-11-21T09:00:30Z', range_end: '2026-11-21T09:01:30Z', step_seconds: '60' }
  const { steps } = await countsOf(query)
  assert.deepEqual(
    steps.map(({ counts, time }) => [time, found(counts)]),
    [
      ['2026-11-21T09:00:30Z', { info: 1 }],
      ['2026-11-21T09:01:00Z', { error: 1 }],
    ],
  )
})

test('filters are those of the list', async () => {
  const totals = async (query: Record<string, string>) =>
    found((await countsOf({ ...range, ...query })).totals)
  assert.deepEqual(await totals({ service: 'pay' }), { unspecified: 1, fatal: 1 })
  assert.deepEqual(await totals({ severity: 'error' }), { error: 1, fatal: 1 })
  assert.deepEqual(await totals({ text: 'paid' }), { info: 1 })
  assert.deepEqual(await totals({ attribute: 'region=eu' }), { unspecified: 1 })
})

test('without a step a width is chosen, and without a range the last hour', async () => {
  const { steps, step_seconds } = await countsOf({})
  assert.deepEqual([step_seconds, steps.length], [60, 60])
  const month = await countsOf({ range_start: '-30d', range_end: 'now' })
  assert.ok(month.steps.length > 50 && month.steps.length <= 101, String(month.steps.length))
})

test('hidden rows are not counted, and steps with hidden or erased time are marked', async () => {
  gate.hide('acme', {
    id: 'del_1',
    signals: ['logs'],
    range: { startNs: at('09:01:00'), endNs: at('09:02:00') },
  })
  gate.markErased('acme', { id: 'del_2', signals: ['logs'], range: { startNs: null, endNs: at('09:00:01') } })
  gate.markErased('acme', {
    id: 'del_3',
    signals: ['traces'],
    range: { startNs: null, endNs: at('09:05:00') },
  })
  const { steps, totals } = await countsOf({ ...range, step_seconds: '60' })
  assert.deepEqual(found(totals), { info: 2, fatal: 1, unspecified: 1 })
  assert.deepEqual(
    steps.map(({ erased }) => erased),
    [true, true, undefined, undefined],
  )
  assert.deepEqual(found((await countsOf(range, 'globex')).totals), {
    info: 2,
    error: 1,
    fatal: 1,
    unspecified: 1,
  })
  gate.unhide('acme', 'del_1')
})

test('too many steps, an invalid width and an empty range are refused', async () => {
  const refused = async (query: Record<string, string>) => {
    const { json, status } = await ask(query)
    assert.equal(status, 422, JSON.stringify(json))
    const [{ ctx, loc }] = json.detail
    return [loc[1], ctx.ge]
  }
  assert.deepEqual(await refused({ range_start: '-1d', range_end: 'now', step_seconds: '1' }), [
    'step_seconds',
    87,
  ])
  assert.deepEqual((await refused({ step_seconds: '0' }))[0], 'step_seconds')
  assert.deepEqual((await refused({ step_seconds: '1.5' }))[0], 'step_seconds')
  assert.deepEqual((await refused({ range_start: 'now', range_end: '-1h' }))[0], 'range_end')
})

test('what is hidden after the reads is not counted in the response', async () => {
  const ofLastMinute = { range_start: '2026-11-21T09:03:00Z', range_end: '2026-11-21T09:04:00Z' }
  assert.deepEqual(found((await countsOf(ofLastMinute)).totals), { fatal: 1, unspecified: 1 })
  let reads = 0
  gate.afterReads = () => {
    if (++reads > 1) return
    gate.hide('acme', { id: 'del_4', signals: ['logs'], range: { startNs: at('09:03:15'), endNs: null } })
  }
  assert.deepEqual(found((await countsOf(ofLastMinute)).totals), { fatal: 1 })
  assert.equal(reads, 2, 'it was read again')
  assert.deepEqual(found((await countsOf(ofLastMinute, 'globex')).totals), { fatal: 1, unspecified: 1 })
  gate.afterReads = null
})
