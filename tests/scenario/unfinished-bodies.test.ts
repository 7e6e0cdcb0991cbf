// One organisation sends bodies that it never finishes, over HTTP and over gRPC, until the budget for bodies
// is full. What it can reserve is limited, only it is refused, and its neighbour's exports are accepted
// meanwhile, over each of the three protocols.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type ClientHttp2Session, type ClientHttp2Stream, connect as connectHttp2 } from 'node:http2'
import { connect, type Socket } from 'node:net'
import { after, afterEach, before, test } from 'node:test'
import { encodeProto } from '../otlp/otlp-messages.ts'
import { compress, contentTypes, encodeRequest } from '../prometheus/remote-write-messages.ts'
import { waitFor } from '../wait-for.ts'
import { GrpcClient } from './grpc-client.ts'
import { type Service, startService, type Tenant } from './service.ts'
import { mondayNs } from './telemetry.ts'

const budgetBytes = 4 * 1024 * 1024
const pieceBytes = 100_000
/** More than the unfinished bodies leave of the budget. */
const note = 'x'.repeat(200_000)
const pathOfLogs = '/opentelemetry.proto.collector.logs.v1.LogsService/Export'

let service: Service
let grpc: GrpcClient
const sockets: Socket[] = []
const sessions: ClientHttp2Session[] = []
before(async () => {
  service = await startService({ settings: { LETHE_INGEST_BUFFER_MB: '4' } })
  grpc = new GrpcClient(service.app.grpcAddress() ?? assert.fail('no gRPC'))
})
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy()
  for (const session of sessions.splice(0)) session.destroy()
  await waitFor(bodyBytes, (bytes) => bytes === 0)
})
after(async () => {
  grpc.close()
  await service.stop()
})

async function bodyBytes(): Promise<number> {
  const { text } = await service.send('GET', '/metrics')
  return Number(/^lethe_ingest_body_bytes (\d+)$/m.exec(text)?.[1] ?? assert.fail('no gauge'))
}

/** A request of acme's that is sent only in part. Its response, if there is one, is added to `answers`. */
function unfinished(answers: string[]): void {
  const { hostname, port } = new URL(service.address)
  const socket = connect(Number(port), hostname)
  socket.on('error', () => {})
  socket.on('data', (bytes) => answers.push(bytes.toString('latin1')))
  socket.write(
    `POST /v1/logs HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${service.secretOf('acme/ingest')}\r\n` +
      `content-type: application/x-protobuf\r\ncontent-length: ${pieceBytes * 2}\r\n\r\n`,
  )
  socket.write(Buffer.alloc(pieceBytes))
  sockets.push(socket)
}

function openSession(): ClientHttp2Session {
  // Node reads no responses on a connection whose waiting writes exceed its limit, 10 MB.
  const session = connectHttp2(`http://${service.app.grpcAddress()}`, { maxSessionMemory: 100 })
  session.on('error', () => {})
  sessions.push(session)
  return session
}

/** A call of acme's whose message is announced larger than what is sent of it. */
function unfinishedCall(session: ClientHttp2Session, sentBytes: number): ClientHttp2Stream {
  const stream = session.request({
    ':method': 'POST',
    ':path': pathOfLogs,
    'content-type': 'application/grpc',
    te: 'trailers',
    authorization: `Bearer ${service.secretOf('acme/ingest')}`,
  })
  stream.on('error', () => {})
  const piece = Buffer.alloc(5 + sentBytes)
  piece.writeUInt32BE(sentBytes + 1000, 1)
  stream.write(piece)
  return stream
}

/** The neighbour's exports over the three protocols, each of which must be accepted. */
async function exportsOf(tenant: Tenant): Promise<void> {
  const secret = service.secretOf(`${tenant}/ingest`)
  const logRecords = [{ timeUnixNano: String(mondayNs), body: { stringValue: note } }]
  const body = encodeProto('logs', { resourceLogs: [{ scopeLogs: [{ logRecords }] }] })
  const headers = { 'content-type': 'application/x-protobuf' }
  const otlp = await service.send('POST', '/v1/logs', { as: `${tenant}/ingest`, body, headers })
  assert.equal(otlp.status, 200, otlp.text)
  const written = await service.send('POST', '/api/v1/write', {
    as: `${tenant}/ingest`,
    body: compress(
      encodeRequest('2.0', [{ labels: { __name__: 'up' }, samples: [{ value: 1, timestamp: 1 }] }]),
    ),
    headers: { 'content-type': contentTypes['2.0'], 'content-encoding': 'snappy' },
  })
  assert.equal(written.status, 204, written.text)
  assert.equal((await grpc.export('logs', body, secret)).code, 0)
}

test('unfinished HTTP bodies that fill the budget leave room for the neighbour', async () => {
  const answers: string[] = []
  for (let i = 0; i < 60; i++) unfinished(answers)
  await waitFor(
    async () => answers.length,
    (count) => count > 0,
  )
  assert.ok((await bodyBytes()) > budgetBytes - 2 * pieceBytes, 'the budget was never full')
  for (let round = 0; round < 5; round++) await exportsOf('globex')
  assert.ok((await bodyBytes()) <= budgetBytes)
  for (const answer of answers) assert.match(answer, /^HTTP\/1\.1 (?:503|429) /)
  for (const answer of answers) assert.match(answer, /\r\nretry-after: 1\r\n/i)
})

test('unfinished gRPC messages count as they arrive, and leave room for the neighbour', async () => {
  let refused = 0
  const session = openSession()
  for (let i = 0; i < 30; i++) {
    unfinishedCall(session, 900_000).on('response', (headers) => {
      assert.equal(headers['grpc-status'], '8')
      refused++
    })
  }
  // Four fit into the budget, and others that are cut at 900,000 bytes.
  await waitFor(
    async () => refused,
    (count) => count >= 20,
  )
  assert.ok((await bodyBytes()) <= budgetBytes)
  for (let round = 0; round < 5; round++) await exportsOf('globex')
})

test('the rest of an organisation’s budget goes to the next request, and is released with its connection', async () => {
  const session = openSession()
  for (let i = 0; i < 3; i++) unfinishedCall(session, 200_000)
  await waitFor(bodyBytes, (bytes) => bytes > 600_000)
  session.destroy()
  await once(session, 'close')
  await waitFor(bodyBytes, (bytes) => bytes === 0)
})
