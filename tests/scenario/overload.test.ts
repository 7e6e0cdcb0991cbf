// Ten times more load at once than the writer can buffer, over all three protocols: buffers stay within their
// limit, every response is success or a refusal with a time for a retry, and acknowledged rows exist once. A
// client that retries after the given time succeeds.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { IngestUsage, StorageUsage } from '../../contract/organisation/usage.ts'
import { systemClock } from '../../server/core/clock.ts'
import { sql } from '../../server/telemetry/sql.ts'
import { encodeProto } from '../otlp/otlp-messages.ts'
import { compress, contentTypes, encodeRequest } from '../prometheus/remote-write-messages.ts'
import { GrpcClient } from './grpc-client.ts'
import { type Service, startService } from './service.ts'
import { mondayNs } from './telemetry.ts'

const boundBytes = 1 << 20
const clientCount = 48
/**
 * Rows of one request; about 190 KB of them in the writer, so that five fit, and the clients send ten times
 * as much.
 */
const rowsEach = 500
/** Number of requests for which each client must get a success. */
const requestsEach = 3
const note = 'x'.repeat(150)

let service: Service
let grpc: GrpcClient
before(async () => {
  service = await startService({ settings: { LETHE_INGEST_BUFFER_MB: '1', LETHE_COMMIT_DELAY_MS: '20' } })
  grpc = new GrpcClient(service.app.grpcAddress() ?? assert.fail('no gRPC'))
})
after(async () => {
  grpc.close()
  await service.stop()
})

interface Try {
  readonly isStored: boolean
  /** Null where the response has no time for a retry. */
  readonly retrySeconds: number | null
  readonly what: string
}

type Sender = (name: string) => Promise<Try>

const times = Array.from({ length: rowsEach }, (_, i) => mondayNs + BigInt(i) * 1_000_000n)

function otlp(name: string): Buffer {
  const dataPoints = times.map((time) => ({
    timeUnixNano: String(time),
    asInt: '7',
    attributes: [{ key: 'note', value: { stringValue: note } }],
  }))
  return encodeProto('metrics', {
    resourceMetrics: [{ scopeMetrics: [{ metrics: [{ name, gauge: { dataPoints } }] }] }],
  })
}

async function httpTry(
  path: string,
  body: Uint8Array,
  headers: Record<string, string>,
  stored: number,
): Promise<Try> {
  const { status, headers: answered } = await service.send('POST', path, { as: 'acme/ingest', body, headers })
  const retry = answered.get('retry-after')
  const isStored = status === stored
  assert.ok(isStored || status === 503 || status === 429, String(status))
  return { isStored, retrySeconds: retry === null ? null : Number(retry), what: `${path} ${status}` }
}

const senders: readonly Sender[] = [
  (name) => httpTry('/v1/metrics', otlp(name), { 'content-type': 'application/x-protobuf' }, 200),
  (name) => {
    const samples = times.map((time) => ({ value: 7, timestamp: Number(time / 1_000_000n) }))
    const body = compress(encodeRequest('2.0', [{ labels: { __name__: name, note }, samples }]))
    const headers = { 'content-type': contentTypes['2.0'], 'content-encoding': 'snappy' }
    return httpTry('/api/v1/write', body, headers, 204)
  },
  async (name) => {
    const answer = await grpc.export('metrics', otlp(name), service.secretOf('acme/ingest'))
    assert.ok([0, 8, 14].includes(answer.code), answer.message)
    return { isStored: answer.code === 0, retrySeconds: answer.retrySeconds, what: `gRPC ${answer.code}` }
  },
]

async function gauge(name: string): Promise<number> {
  const { text } = await service.send('GET', '/metrics')
  return Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1] ?? assert.fail(`no ${name}`))
}

test('with ten times the limit at once, buffers stay limited, refusals have a retry time, and no acknowledged row is lost', async () => {
  const tries: Try[] = []
  let isOver = false
  const client = async (index: number) => {
    const send = senders[index % senders.length] ?? assert.fail()
    for (let request = 0; request < requestsEach; request++) {
      for (;;) {
        const one = await send(`client_${index}_${request}`)
        tries.push(one)
        if (one.isStored) break
        assert.equal(one.retrySeconds, 1, one.what)
        // Far earlier than Retry-After, as a bad client would.
        await systemClock.sleep(30)
      }
    }
  }
  const peaks = { lethe_ingest_buffered_bytes: 0, lethe_ingest_body_bytes: 0 }
  const watch = async () => {
    while (!isOver) {
      for (const name of Object.keys(peaks) as (keyof typeof peaks)[]) {
        peaks[name] = Math.max(peaks[name], await gauge(name))
      }
      await systemClock.sleep(2)
    }
  }
  const watching = watch()
  await Promise.all(Array.from({ length: clientCount }, (_, index) => client(index)))
  isOver = true
  await watching

  const refused = tries.filter(({ isStored }) => !isStored)
  assert.ok(refused.length > clientCount, `only ${refused.length} of ${tries.length} tries were refused`)
  for (const way of ['/v1/metrics 503', '/api/v1/write 503', 'gRPC 8']) {
    assert.ok(
      refused.some(({ what }) => what === way),
      `${way} was never seen`,
    )
  }
  for (const [name, peak] of Object.entries(peaks)) assert.ok(peak <= boundBytes, `${name} reached ${peak}`)
  assert.ok(peaks.lethe_ingest_buffered_bytes > boundBytes / 2, 'the limit was never approached')

  const place = (await service.app.tenancy.findOrganisation('acme')) ?? assert.fail()
  const rows = await service.app
    .readerOf(place)
    .rows<{ name: string; n: string }>(
      (from) =>
        sql`SELECT MetricName AS name, count() AS n FROM ${from('otel_metrics_gauge')} GROUP BY MetricName`,
    )
  const stored = Object.fromEntries(rows.map(({ name, n }) => [name, Number(n)]))
  const names = Array.from(
    { length: clientCount * requestsEach },
    (_, i) => `client_${i % clientCount}_${Math.floor(i / clientCount)}`,
  )
  assert.deepEqual(stored, Object.fromEntries(names.map((name) => [name, rowsEach])))
  const { today } = await service.read('/usage/ingest', IngestUsage)
  assert.equal(today.rows_accepted, clientCount * requestsEach * rowsEach)
  assert.equal(await gauge('lethe_ingest_buffered_bytes'), 0)
  assert.equal(await gauge('lethe_ingest_body_bytes'), 0)
})

test('a request larger than the limit succeeds when it is alone', async () => {
  const names = Array.from({ length: 14 }, (_, i) => `large_${i}`)
  const metrics = names.map((name) => ({
    name,
    gauge: {
      dataPoints: times.map((time) => ({
        timeUnixNano: String(time),
        asInt: '7',
        attributes: [{ key: 'note', value: { stringValue: note } }],
      })),
    },
  }))
  const body = encodeProto('metrics', { resourceMetrics: [{ scopeMetrics: [{ metrics }] }] })
  assert.ok(body.length > boundBytes)
  const headers = { 'content-type': 'application/x-protobuf' }
  const answer = await service.send('POST', '/v1/metrics', { as: 'globex/ingest', body, headers })
  assert.equal(answer.status, 200, answer.text)
  const { rows } = await service.read('/usage/storage', StorageUsage, 'globex/owner')
  assert.equal(rows, names.length * rowsEach)
})
