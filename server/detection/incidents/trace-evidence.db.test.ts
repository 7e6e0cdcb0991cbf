// What spans show, over a real engine: where failures begin, own time, calls that get no answer, messages,
// and only the spans of one organisation in the window.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, beforeEach, test } from 'node:test'
import { openChdb } from '../../telemetry/chdb.ts'
import type { TelemetryEngine, TenantPlace } from '../../telemetry/engine.ts'
import { TelemetryGate } from '../../telemetry/gate.ts'
import { type FixtureRow, insertFixture } from '../../telemetry/row-fixture.ts'
import { raw } from '../../telemetry/sql.ts'
import { TenantReader } from '../../telemetry/tenant-reader.ts'
import { acme, type ControlFixture, globex, openControl } from '../detection-fixture.ts'
import { cluesOf, graphOf } from './trace-clues.ts'
import { readTraceEvidence, type TraceEvidence, windowAround } from './trace-evidence.ts'

const noonMs = Date.UTC(2026, 8, 11, 12)
const atNs = (minute: number, ms = 0) => BigInt(noonMs + minute * 60_000 + ms) * 1_000_000n
const window = windowAround(atNs(0), atNs(0), atNs(30))

let fixture: ControlFixture
let engine: TelemetryEngine
let gate: TelemetryGate

before(async () => {
  fixture = await openControl()
  engine = await openChdb({ folder: join(fixture.folder, 'telemetry'), maxMemoryBytes: 2 ** 30 })
})
after(async () => {
  await engine.close()
  await fixture.close()
})
beforeEach(async () => {
  await engine.command(raw('TRUNCATE TABLE otel_traces'))
  gate = new TelemetryGate()
})

interface SpanGiven {
  readonly service: string
  readonly kind: 'Server' | 'Client' | 'Internal' | 'Producer' | 'Consumer'
  readonly ms: number
  readonly isFailed?: boolean
  readonly peer?: string
  readonly calls?: readonly SpanGiven[]
  /** Work that the span's message causes, a trace of its own. */
  readonly causes?: SpanGiven
}

/** The spans of one request. */
function spansOf(root: SpanGiven, trace: string, startNs: bigint): FixtureRow[] {
  const rows: FixtureRow[] = []
  const add = (given: SpanGiven, parent: string, ownTrace: string, link: readonly string[]): void => {
    const id = `${ownTrace}-${rows.length}`
    rows.push({
      ...{ Timestamp: startNs, TraceId: ownTrace, SpanId: id, ParentSpanId: parent },
      ...{ ServiceName: given.service, SpanName: 'work', SpanKind: given.kind },
      Duration: given.ms * 1_000_000,
      StatusCode: given.isFailed === true ? 'Error' : 'Unset',
      SpanAttributes: given.peer === undefined ? {} : { 'server.address': given.peer },
      'Links.TraceId': link.slice(0, 1),
      'Links.SpanId': link.slice(1),
      'Links.TraceState': link.slice(1).map(() => ''),
      'Links.Attributes': link.slice(1).map(() => ({})),
    })
    for (const call of given.calls ?? []) add(call, id, ownTrace, [])
    if (given.causes !== undefined) add(given.causes, '', `${ownTrace}-caused`, [ownTrace, id])
  }
  add(root, '', trace, [])
  return rows
}

/** So many requests a minute, alike, between two minutes. */
async function insert(root: SpanGiven, from: number, to: number, place: TenantPlace = acme): Promise<void> {
  const rows = Array.from({ length: (to - from) * 4 }, (_, i) =>
    spansOf(root, `${place.tenantId}${from}-${i}`, atNs(from, i * 15_000)),
  )
  await insertFixture(engine, place, 'otel_traces', rows.flat())
}

async function evidence(place = acme): Promise<TraceEvidence> {
  const found = await readTraceEvidence(new TenantReader(engine, place, gate), window)
  assert.ok(found !== null)
  return found
}

const client = (service: string, callee: SpanGiven, more: Partial<SpanGiven> = {}): SpanGiven => ({
  ...{ service, kind: 'Client', ms: callee.ms + 2, peer: `${callee.service}.internal`, calls: [callee] },
  ...more,
})

const server = (service: string, ms: number, more: Partial<SpanGiven> = {}): SpanGiven => ({
  ...{ service, kind: 'Server', ms },
  ...more,
})

const shop = (isFailed = false, paymentsMs = 20): SpanGiven => {
  const payments = server('payments', paymentsMs, { isFailed })
  const checkout = server('checkout', paymentsMs + 10, {
    calls: [client('checkout', payments, { isFailed })],
    isFailed,
  })
  return checkout
}

test('a failure begins where nothing below failed, and own time leaves out what callees took', async () => {
  await insert(shop(), -40, -5)
  await insert(shop(true, 100), 0, 20)
  const { calls, services } = await evidence()
  const found = Object.fromEntries(services.map(({ during, service }) => [service, during]))
  assert.deepEqual(
    [found.payments?.count, found.payments?.failed, found.payments?.ownFailed, found.payments?.ownMs],
    [80, 80, 80, 100],
  )
  assert.deepEqual([found.checkout?.failed, found.checkout?.ownFailed, found.checkout?.ownMs], [80, 0, 8])
  const [call] = calls
  assert.deepEqual([calls.length, call?.caller, call?.callee], [1, 'checkout', 'payments'])
  assert.deepEqual([call?.before.count, call?.during.failed, call?.during.ownMs], [120, 80, 2])
})

test('calls to a service that is gone are attributed to the service that answered them before', async () => {
  await insert(shop(), -40, -5)
  const lost: SpanGiven = {
    service: 'checkout',
    kind: 'Client',
    ms: 900,
    isFailed: true,
    peer: 'payments.internal',
  }
  await insert(server('checkout', 910, { isFailed: true, calls: [lost] }), 0, 20)
  const found = await evidence()
  assert.ok(found.calls.some(({ callee, during }) => callee === null && during.failed === 80))
  const clues = cluesOf(found)
  const pointing = clues.filter(({ service }) => service === 'payments')
  assert.ok(pointing.some(({ kind }) => kind === 'unanswered'))
  assert.equal(
    clues.find(({ kind, service }) => kind === 'failures' && service === 'checkout'),
    undefined,
  )
})

test('a call to a wrong address is a failure of the caller', async () => {
  await insert(shop(), -40, -5)
  const lost: SpanGiven = { service: 'checkout', kind: 'Client', ms: 1, isFailed: true, peer: 'nowhere' }
  await insert(server('checkout', 2, { isFailed: true, calls: [lost] }), 0, 20)
  const clues = cluesOf(await evidence())
  const failures = clues.filter(({ kind }) => kind === 'failures' || kind === 'unanswered')
  assert.deepEqual(
    failures.map(({ service }) => service),
    ['checkout'],
  )
})

test('a call that fails though its callee did not points to both ends, to the callee more', async () => {
  await insert(shop(), -40, -5)
  const lost = client('checkout', server('payments', 20), { isFailed: true })
  await insert(server('checkout', 30, { isFailed: true, calls: [lost] }), 0, 20)
  const failures = cluesOf(await evidence()).filter(({ metricKey }) => metricKey === 'spans.error_ratio')
  assert.deepEqual(
    failures.map(({ service }) => service),
    ['payments', 'checkout'],
  )
})

test('spans of no stated kind are requests too, one for each trace and service', async () => {
  const unstated = (isFailed: boolean): SpanGiven => ({
    ...{ service: 'checkout', kind: 'Internal', ms: 30, isFailed },
    calls: [{ service: 'payments', kind: 'Internal', ms: 20, isFailed }],
  })
  await insert(unstated(false), -40, -5)
  await insert(unstated(true), 0, 20)
  const found = await evidence()
  assert.ok(graphOf(found).isCall('checkout', 'payments'))
  assert.deepEqual(
    cluesOf(found).map(({ kind, service }) => [kind, service]),
    [['failures', 'payments']],
  )
})

test('work that a message causes is a call, and takes no time of the sender', async () => {
  const settle: SpanGiven = { service: 'inventory', kind: 'Consumer', ms: 500 }
  const send: SpanGiven = { service: 'checkout', kind: 'Producer', ms: 3, peer: 'orders', causes: settle }
  await insert(server('checkout', 10, { calls: [send] }), 0, 10)
  const found = await evidence()
  assert.ok(graphOf(found).isCall('checkout', 'inventory'))
  const own = found.services.find(({ service }) => service === 'checkout')
  assert.equal(own?.during.ownMs, 7, 'the time until the message is taken belongs to no service')
  await engine.command(raw('TRUNCATE TABLE otel_traces'))
  await insert(server('checkout', 10, { causes: settle }), 0, 10)
  assert.equal((await evidence()).services.find(({ service }) => service === 'checkout')?.during.ownMs, 10)
})

test('services that answer through a proxy without client spans are called by it', async () => {
  await insert(server('gateway', 30, { calls: [server('search', 25)] }), -40, -5)
  await insert(server('gateway', 5, { isFailed: true }), 0, 20)
  const found = await evidence()
  assert.ok(graphOf(found).isCall('gateway', 'search'))
  const clues = cluesOf(found).filter(({ kind }) => kind === 'failures' || kind === 'unanswered')
  assert.deepEqual(
    clues.map(({ service }) => service),
    ['search'],
    'its requests stopped when those of its caller began to fail',
  )
})

test('a proxy that calls none of its callees any more is what fails itself', async () => {
  const callees = [server('search', 10), server('cart', 10)]
  await insert(server('gateway', 30, { calls: callees }), -40, -5)
  await insert(server('gateway', 5, { isFailed: true }), 0, 20)
  const clues = cluesOf(await evidence()).filter(({ kind }) => kind === 'failures' || kind === 'unanswered')
  assert.deepEqual(
    clues.map(({ service }) => service),
    ['gateway'],
  )
})

test('a service with a name that no query may name is not shown, and its callers are', async () => {
  const calling = (name: string) => server('checkout', 30, { calls: [client('checkout', server(name, 20))] })
  await insert(calling('n'.repeat(1024)), 0, 20)
  await insert(calling('u'.repeat(1025)), 1, 19)
  const { calls, services } = await evidence()
  assert.deepEqual(services.map(({ service }) => service).sort(), ['checkout', 'n'.repeat(1024)])
  assert.deepEqual(
    calls.map(({ callee, caller }) => [caller, callee]),
    [
      ['checkout', 'n'.repeat(1024)],
      ['checkout', null],
    ],
  )
})

test('unchanged traffic gives no clue, and time outside the window is not read', async () => {
  await insert(shop(), -40, 40)
  await insert(shop(true), -200, -100)
  await insert(shop(true), -5, 0)
  assert.deepEqual(cluesOf(await evidence()), [])
})

test('hidden spans and those of another organisation show nothing', async () => {
  await insert(shop(), -40, 30)
  await insert(server('foreign', 10, { isFailed: true }), 0, 30, globex)
  assert.deepEqual(
    (await evidence()).services.map(({ service }) => service),
    ['checkout', 'payments'],
  )
  gate.hide('acme', { id: 'del_1', signals: ['traces'], range: { startNs: null, endNs: null } })
  assert.equal(await readTraceEvidence(new TenantReader(engine, acme, gate), window), null)
  assert.equal((await evidence(globex)).services.length, 1)
})
