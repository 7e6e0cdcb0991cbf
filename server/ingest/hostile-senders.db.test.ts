// Senders on real sockets that stop in the middle of a body, with a manual clock: each is refused as its
// protocol says, and the memory of its body is freed.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect as connectHttp2, type IncomingHttpHeaders } from 'node:http2'
import { connect } from 'node:net'
import { after, before, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import { openStores, type Stores, silent } from '../../tests/fixtures.ts'
import { tokenNamed } from '../core/actor-fixture.ts'
import type { Caller } from '../core/caller.ts'
import { elapsedMs } from '../core/clock.ts'
import { ManualClock } from '../core/manual-clock.ts'
import { LoopTurns } from '../core/turns/loop-turns.ts'
import { ThreadTurns } from '../core/turns/thread-turns.ts'
import { byAccessToken } from '../http/authentication.ts'
import { ClientLimits } from '../http/client-limits.ts'
import { ClientAddresses } from '../http/limits/client-address.ts'
import { createHttp } from '../http/server.ts'
import { TelemetryGate } from '../telemetry/gate.ts'
import { MemoryPlacementLocks } from '../telemetry/placement-locks.ts'
import { BodyBudget } from './body-budget.ts'
import { Decoder } from './decoder.ts'
import { GrpcIngest } from './grpc.ts'
import { Intake } from './intake.ts'
import { addRemoteWriteRoute } from './prometheus-routes.ts'
import { ReadTurns } from './read-turns.ts'
import { addIngestRoutes } from './routes.ts'
import { IngestWriter } from './rows/writer.ts'

const clock = new ManualClock(1_767_600_000_000)
const budget = new BodyBudget(64 * 1024 * 1024, clock)
const caller: Caller = {
  tenantId: 'acme',
  placement: 1,
  organisationName: 'Acme',
  role: 'ingest',
  requester: tokenNamed('test'),
}

const turns = new LoopTurns({ nowMs: elapsedMs })
let stores: Stores
let http: FastifyInstance
let grpc: GrpcIngest
const ports = { http: 0, grpc: 0 }

before(async () => {
  stores = await openStores()
  const writer = new IngestWriter({
    engine: stores.engine,
    sync: () => stores.files.sync(),
    gate: new TelemetryGate(),
    locks: new MemoryPlacementLocks(),
    clock,
    logger: silent,
    commitDelayMs: 1,
    bufferBytes: 2 ** 24,
  })
  const intake = new Intake({
    writer,
    turns,
    decoder: new Decoder({ loop: turns, thread: new ThreadTurns({ nowMs: elapsedMs }), nowMs: elapsedMs }),
    quota: { admit: () => assert.fail('a body that was never whole was admitted') },
    lateSelections: () => [],
    onLate: () => {},
    requireRoom: () => {},
    onExport: () => {},
  })
  const front = {
    clock,
    logger: silent,
    authenticate: byAccessToken(async () => caller),
    isReady: () => true,
  }
  const shared = { intake, clock, budget, reads: new ReadTurns(turns), bodyLimitBytes: 16 * 1024 * 1024 }
  http = createHttp(front)
  await addIngestRoutes(http, shared)
  await addRemoteWriteRoute(http, shared)
  ports.http = Number(new URL(await http.listen({ host: '127.0.0.1', port: 0 })).port)
  const addresses = new ClientAddresses([], 'x-forwarded-for')
  const clients = new ClientLimits({ clock, authenticate: front.authenticate, addresses })
  grpc = new GrpcIngest({
    ...shared,
    clients,
    turns,
    logger: silent,
    isReady: front.isReady,
    onRefusal: () => {},
  })
  ports.grpc = await grpc.listen('127.0.0.1', 0)
})
after(async () => {
  await http.close()
  await grpc.close()
  await budget.close()
  await stores.close()
})

/** Advances the clock, after most of what was sent has arrived, until none of it is in memory. */
async function waitInVain(sentBytes: number): Promise<void> {
  while (budget.reservedBytes < sentBytes) await turn()
  while (budget.reservedBytes > 0) {
    await clock.advance(5000)
    await turn()
  }
}

for (const [path, contentType] of [
  ['/v1/logs', 'application/x-protobuf'],
  ['/api/v1/write', 'application/x-protobuf'],
] as const) {
  test(`${path}: a body that stops is refused with 408, its connection ends and its memory is freed`, async () => {
    const socket = connect(ports.http, '127.0.0.1')
    let answer = ''
    socket.on('data', (bytes) => {
      answer += bytes.toString('latin1')
    })
    socket.write(
      `POST ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer x\r\ncontent-type: ${contentType}\r\n` +
        `content-length: 5000000\r\n\r\n`,
    )
    socket.write(Buffer.alloc(3_000_000))
    const closed = once(socket, 'close')
    await waitInVain(3_000_000)
    await closed
    assert.match(answer, /^HTTP\/1\.1 408 /)
    assert.match(answer, /\r\nconnection: close\r\n/i)
    assert.equal(budget.reservedBytes, 0)
  })
}

test('gRPC: a message that stops is refused with DEADLINE_EXCEEDED, and its memory is freed', async () => {
  const session = connectHttp2(`http://127.0.0.1:${ports.grpc}`)
  const stream = session.request({
    ':method': 'POST',
    ':path': '/opentelemetry.proto.collector.logs.v1.LogsService/Export',
    'content-type': 'application/grpc',
    authorization: 'Bearer x',
  })
  stream.on('error', () => {})
  const answered = new Promise<IncomingHttpHeaders>((resolve) => stream.once('response', resolve))
  const piece = Buffer.alloc(3_000_005)
  piece.writeUInt32BE(5_000_000, 1)
  stream.write(piece)
  await waitInVain(3_000_000)
  const headers = await answered
  assert.equal(headers['grpc-status'], '4')
  assert.equal(budget.reservedBytes, 0)
  session.destroy()
})
