// Senders on real sockets, with a manual clock. One that stops in the middle of a body is refused as its
// protocol says, and the memory of its body is freed. One that repeats refused calls at once gets further
// refusals later. One behind a proxy does not end the connection that it shares with others.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import {
  type ClientHttp2Session,
  connect as connectHttp2,
  constants,
  type IncomingHttpHeaders,
} from 'node:http2'
import { connect } from 'node:net'
import { after, afterEach, before, beforeEach, describe, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import { openStores, type Stores, silent } from '../../tests/fixtures.ts'
import { GrpcClient } from '../../tests/scenario/grpc-client.ts'
import { waitFor } from '../../tests/wait-for.ts'
import { tokenNamed } from '../core/actor-fixture.ts'
import { AppError } from '../core/app-error.ts'
import type { Caller } from '../core/caller.ts'
import { elapsedMs } from '../core/clock.ts'
import { ManualClock } from '../core/manual-clock.ts'
import { LoopTurns } from '../core/turns/loop-turns.ts'
import { ThreadTurns } from '../core/turns/thread-turns.ts'
import { byAccessToken } from '../http/authentication.ts'
import { ClientLimits } from '../http/client-limits.ts'
import { ClientAddresses } from '../http/limits/client-address.ts'
import { RefusalPace } from '../http/limits/refusal-pace.ts'
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
import { DistantWeeks } from './rows/distant-weeks.ts'
import { IngestWriter } from './rows/writer.ts'

const clock = new ManualClock(1_767_600_000_000)
const budget = new BodyBudget(64 * 1024 * 1024, clock)
const caller: Omit<Caller, 'tenantId'> = {
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
const proxyAddress = '127.0.0.2'

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
    weeks: new DistantWeeks({ engine: stores.engine, clock }),
    turns,
    decoder: new Decoder({ loop: turns, thread: new ThreadTurns({ nowMs: elapsedMs }), nowMs: elapsedMs }),
    quota: {
      admit(tenantId) {
        assert.match(tenantId, /^over-quota/, 'a body that was never whole was admitted')
        throw new AppError('quota_exceeded', { retryAfterSeconds: 60 })
      },
    },
    lateSelections: () => [],
    onLate: () => {},
    requireRoom: () => {},
    onExport: () => {},
  })
  const refusalPace = new RefusalPace(clock)
  const front = {
    clock,
    logger: silent,
    // A secret is the organisation.
    authenticate: byAccessToken(async (tenantId): Promise<Caller> => ({ ...caller, tenantId })),
    refusalPace,
    isReady: () => true,
  }
  const shared = { intake, clock, budget, reads: new ReadTurns(turns), bodyLimitBytes: 16 * 1024 * 1024 }
  http = createHttp(front)
  await addIngestRoutes(http, shared)
  await addRemoteWriteRoute(http, shared)
  ports.http = Number(new URL(await http.listen({ host: '127.0.0.1', port: 0 })).port)
  const addresses = new ClientAddresses([proxyAddress], 'x-forwarded-for')
  const clients = new ClientLimits({ clock, authenticate: front.authenticate, addresses })
  grpc = new GrpcIngest({
    ...shared,
    clients,
    turns,
    refusalPace,
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

const exportOf = (secret: string) => ({
  ':method': 'POST',
  ':path': '/opentelemetry.proto.collector.logs.v1.LogsService/Export',
  'content-type': 'application/grpc',
  authorization: `Bearer ${secret}`,
})

test('gRPC: a message that stops is refused with DEADLINE_EXCEEDED, and its memory is freed', async () => {
  const session = connectHttp2(`http://127.0.0.1:${ports.grpc}`)
  const stream = session.request(exportOf('x'))
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

describe('after fifty refusals of an organisation over HTTP and gRPC together', () => {
  let client: GrpcClient
  before(() => {
    client = new GrpcClient(`127.0.0.1:${ports.grpc}`)
  })
  after(() => client.close())
  const overGrpc = async (tenantId: string) =>
    (await client.export('logs', new Uint8Array(), tenantId)).reason
  const overHttp = async (tenantId: string) => {
    const headers = { authorization: `Bearer ${tenantId}`, 'content-type': 'application/x-protobuf' }
    const url = `http://127.0.0.1:${ports.http}/v1/logs`
    return (await fetch(url, { method: 'POST', headers, body: new Uint8Array() })).status
  }
  const untilWaiting = (wanted: number) =>
    waitFor(
      async () => clock.waiting,
      (waiting) => waiting === wanted,
    )
  const refuseFifty = async (tenantId: string) => {
    for (let i = 0; i < 25; i++) {
      assert.equal(await overGrpc(tenantId), 'QUOTA_EXCEEDED')
      assert.equal(await overHttp(tenantId), 429)
    }
  }

  test('its next call over gRPC is refused a second later, and nobody else waits', async () => {
    await refuseFifty('over-quota')
    const waitingBefore = clock.waiting
    let isAnswered = false
    const delayed = overGrpc('over-quota').finally(() => {
      isAnswered = true
    })
    await untilWaiting(waitingBefore + 1)
    await refuseFifty('over-quota-too')
    await clock.advance(999)
    assert.equal(await overGrpc('over-quota-too'), 'QUOTA_EXCEEDED')
    assert.equal(isAnswered, false)
    await clock.advance(1)
    assert.equal(await delayed, 'QUOTA_EXCEEDED')
  })

  test('a delayed refusal ends when its client disconnects', async () => {
    await refuseFifty('over-quota-and-gone')
    const waitingBefore = clock.waiting
    const session = connectHttp2(`http://127.0.0.1:${ports.grpc}`)
    const stream = session.request(exportOf('over-quota-and-gone'))
    stream.on('error', () => {})
    stream.end(Buffer.alloc(5))
    await untilWaiting(waitingBefore + 1)
    session.destroy()
    await untilWaiting(waitingBefore)
  })
})

describe('behind a proxy whose connection many clients share', () => {
  let proxy: ClientHttp2Session
  beforeEach(() => {
    const createConnection = () =>
      connect({ port: ports.grpc, host: '127.0.0.1', localAddress: proxyAddress })
    proxy = connectHttp2(`http://127.0.0.1:${ports.grpc}`, { createConnection })
    proxy.on('error', () => {})
  })
  afterEach(() => proxy.destroy())

  const call = (client: string, headers: Readonly<Record<string, string>> = {}) => {
    const all = { ...exportOf('acme'), 'x-forwarded-for': client, ...headers }
    const stream = proxy.request(all, { endStream: true })
    stream.on('error', () => {})
    stream.resume()
    return stream
  }
  /** The response of a call with a valid token; null where the call ended without one. */
  const responseTo = (...args: Parameters<typeof call>) =>
    new Promise<IncomingHttpHeaders | null>((resolve) => {
      const stream = call(...args)
      stream.once('response', resolve)
      stream.once('close', () => resolve(null))
    })
  const neighbourIsServed = async () => {
    // Its token was accepted, and its message is read.
    const response = await responseTo('192.0.2.7')
    assert.match(decodeURI(String(response?.['grpc-message'])), /no message/)
  }

  for (const [what, client, headers] of [
    ['methods', '192.0.2.10', { ':path': '/unknown' }],
    ['compressions', '192.0.2.11', { 'grpc-encoding': 'unknown' }],
    ['media types', '192.0.2.12', { 'content-type': 'text/plain' }],
  ] as const) {
    test(`calls of unknown ${what} are limited by the address of their client, and end no connection`, async () => {
      let [waiting, refused] = [1_100, 0]
      for (let sent = waiting; sent > 0; sent--) {
        void responseTo(client, { ...headers, authorization: '' }).then((response) => {
          waiting -= 1
          if (response?.['grpc-status'] === '8') refused += 1
        })
      }
      while (waiting > 0) {
        await clock.advance(10)
        await turn()
      }
      assert.ok(refused > 500, `${refused} refused`)
      await neighbourIsServed()
    })
  }

  test('calls that a client cancels again and again are refused to it, and end no connection', async () => {
    for (let sent = 0; sent < 450; sent++) {
      const stream = call('192.0.2.13')
      stream.close(constants.NGHTTP2_CANCEL)
      await once(stream, 'close')
    }
    const response = await responseTo('192.0.2.13')
    assert.match(decodeURI(String(response?.['grpc-message'])), /cancelled/)
    await neighbourIsServed()
  })
})
