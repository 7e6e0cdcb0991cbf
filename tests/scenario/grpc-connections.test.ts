// Attacks with HTTP/2 frames: calls that are cancelled at once, endless headers, PING and SETTINGS without a
// call. Each ends its own connection, and a neighbour's exports are accepted meanwhile.

import assert from 'node:assert/strict'
import { after, afterEach, before, test } from 'node:test'
import { frame, headerBlock } from '../../bench/neighbours/attacks/http2-frames.ts'
import { encodeProto } from '../otlp/otlp-messages.ts'
import { GrpcClient } from './grpc-client.ts'
import { cancel, flags, RawHttp2 } from './http2-frames.ts'
import { type Service, startService } from './service.ts'
import { mondayNs, sampleExport } from './telemetry.ts'

let service: Service
let neighbour: GrpcClient
let attacker: RawHttp2
before(async () => {
  service = await startService()
  neighbour = new GrpcClient(addressOf())
})
afterEach(() => attacker.destroy())
after(async () => {
  neighbour.close()
  await service.stop()
})

function addressOf(): string {
  return service.app.grpcAddress() ?? assert.fail('no gRPC')
}

async function neighbourExports(): Promise<void> {
  const body = encodeProto('logs', sampleExport('logs', [mondayNs]))
  const answer = await neighbour.export('logs', body, service.secretOf('globex/ingest'))
  assert.equal(answer.code, 0, answer.message)
}

function callHeaders(): Buffer {
  return headerBlock(
    Object.entries({
      ':method': 'POST',
      ':scheme': 'http',
      ':path': '/opentelemetry.proto.collector.logs.v1.LogsService/Export',
      ':authority': 'x',
      'content-type': 'application/grpc',
      authorization: `Bearer ${service.secretOf('acme/ingest')}`,
    }),
  )
}

/** Calls that are cancelled at once, numbered from the first one of the connection. */
function takenBack(from: number, count: number): Buffer[] {
  return Array.from({ length: count }, (_, i) => 2 * (from + i) + 1).flatMap((id) => [
    frame('headers', flags.endHeaders, id, callHeaders()),
    frame('reset', flags.none, id, cancel),
  ])
}

test('calls that all time out at once are not an attack; calls that are cancelled again and again end the connection', async () => {
  attacker = new RawHttp2(addressOf())
  await attacker.send(takenBack(0, 150))
  await neighbourExports()
  assert.equal(attacker.isClosed, false)
  await attacker.send(takenBack(150, 300))
  await attacker.closed()
  await neighbourExports()
})

test('an address that opens connections only to cancel calls can soon open none, and its neighbour can', async () => {
  const from = '127.0.0.3'
  for (let connection = 0; connection < 25; connection++) {
    attacker = new RawHttp2(addressOf(), from)
    await attacker.send(takenBack(0, 250))
    await attacker.closed()
  }
  attacker = new RawHttp2(addressOf(), from)
  await attacker.closed()
  const other = new RawHttp2(addressOf())
  await neighbourExports()
  assert.equal(other.isClosed, false)
  other.destroy()
})

test('endless headers end the connection', async () => {
  attacker = new RawHttp2(addressOf())
  const more = Array.from({ length: 100 }, () =>
    frame('continuation', flags.none, 1, headerBlock([['x-more', 'more']])),
  )
  await attacker.send([frame('headers', flags.none, 1, callHeaders()), ...more])
  await attacker.closed()
  await neighbourExports()
})

test('headers above their limit are refused, and block nothing', async () => {
  attacker = new RawHttp2(addressOf())
  const many = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`x-${i}`, 'x'.repeat(100)]))
  const block = Buffer.concat([callHeaders(), headerBlock(Object.entries(many))])
  for (let call = 0; call < 50; call++) {
    await attacker.send([frame('headers', flags.endHeaders, 2 * call + 1, block)])
  }
  await neighbourExports()
})

for (const [what, flood] of [
  ['PING', frame('ping', flags.none, 0, Buffer.alloc(8))],
  ['SETTINGS', frame('settings', flags.none, 0, Buffer.from([0, 4, 0, 0, 0xff, 0xff]))],
] as const) {
  test(`${what} frames without a call end the connection`, async () => {
    attacker = new RawHttp2(addressOf())
    await attacker.send(Array.from({ length: 900 }, () => flood))
    await neighbourExports()
    assert.equal(attacker.isClosed, false)
    await attacker.send(Array.from({ length: 200 }, () => flood))
    await attacker.closed()
    await neighbourExports()
  })
}

test('the connection of a client without HTTP/2 is closed', async () => {
  attacker = new RawHttp2(addressOf())
  await attacker.send([Buffer.from('GET / HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(10))])
  await attacker.closed()
  await neighbourExports()
})
