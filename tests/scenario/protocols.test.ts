// The other two protocols in detail: the responses of OTLP/gRPC and Prometheus remote write to real clients
// and to input that real clients never send. Both use the same path as OTLP/HTTP, so a fence, a range that
// refuses late telemetry and a size limit apply to them too.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { errorCatalogue } from '../../contract/errors.ts'
import { StorageUsage } from '../../contract/organisation/usage.ts'
import { SeriesAnswer } from '../../contract/telemetry/queries.ts'
import { formatInstant } from '../../contract/values/instant.ts'
import { encodeProto } from '../otlp/otlp-messages.ts'
import {
  compress,
  contentTypes,
  encodeRequest,
  type TestSeries,
  type Version,
  versions,
} from '../prometheus/remote-write-messages.ts'
import { GrpcClient } from './grpc-client.ts'
import {
  type Answer,
  eraseCompletely,
  type Sent,
  type Service,
  startService,
  type Who,
  waitUntilCompleted,
} from './service.ts'
import { minuteNs, mondayNs, readSample, sampleExport } from './telemetry.ts'

const bodyLimitBytes = 1 << 20
const mondayMs = Number(mondayNs / 1_000_000n)

let service: Service
let grpc: GrpcClient
/** Pauses the next erasure before it begins to erase, until it is opened. */
let door: { readonly reached: Promise<void>; readonly open: () => void } | null = null
let reach = () => {}
let opened: Promise<void> = Promise.resolve()

function closeDoor() {
  let open = () => {}
  opened = new Promise((resolve) => {
    open = resolve
  })
  const reached = new Promise<void>((resolve) => {
    reach = resolve
  })
  door = { reached, open }
  return door
}

before(async () => {
  service = await startService({
    settings: { LETHE_INGEST_BODY_MB: '1' },
    async failpoint(name) {
      if (door === null || name !== 'fenced') return
      reach()
      await opened
    },
  })
  grpc = new GrpcClient(service.app.grpcAddress() ?? assert.fail('no gRPC'))
})
after(async () => {
  grpc.close()
  await service.stop()
})

const sample = (minutes: readonly number[]) =>
  encodeProto(
    'metrics',
    sampleExport(
      'metrics',
      minutes.map((minute) => mondayNs + BigInt(minute) * minuteNs),
    ),
  )

const series = (minutes: readonly number[], more: Partial<TestSeries> = {}): TestSeries => ({
  labels: { __name__: 'queue.length', job: 'shop' },
  samples: minutes.map((minute) => ({ value: 7, timestamp: mondayMs + minute * 60_000 })),
  ...more,
})

function write(version: Version, all: readonly TestSeries[], sent: Sent = {}): Promise<Answer> {
  return writeBytes(version, compress(encodeRequest(version, all)), sent)
}

function writeBytes(version: Version, body: Uint8Array, sent: Sent = {}): Promise<Answer> {
  const headers = { 'content-type': contentTypes[version], 'content-encoding': 'snappy', ...sent.headers }
  return service.send('POST', '/api/v1/write', { as: 'acme/ingest', body, ...sent, headers })
}

/** Samples, histograms and exemplars that the response reports as stored. */
function writtenOf({ headers }: Answer): (string | null)[] {
  return ['samples', 'histograms', 'exemplars'].map((kind) =>
    headers.get(`x-prometheus-remote-write-${kind}-written`),
  )
}

async function storedRows(as: Who = 'acme/owner'): Promise<number> {
  return (await service.read('/usage/storage', StorageUsage, as)).rows
}

describe('OTLP/gRPC', () => {
  const secret = () => service.secretOf('acme/ingest')

  test('an empty request is a success with an empty response', async () => {
    for (const signal of ['metrics', 'logs', 'traces'] as const) {
      assert.deepEqual(await grpc.export(signal, Buffer.alloc(0), secret()), {
        code: 0,
        message: '',
        retrySeconds: null,
        reason: null,
        partial: null,
      })
    }
  })

  test('records that cannot be stored are counted in partial_success, and the rest is stored', async () => {
    const before = await storedRows()
    const dataPoints = [{ timeUnixNano: String(mondayNs), asInt: '1' }, { asInt: '2' }]
    const body = encodeProto('metrics', {
      resourceMetrics: [{ scopeMetrics: [{ metrics: [{ name: 'x', gauge: { dataPoints } }] }] }],
    })
    const answer = await grpc.export('metrics', body, secret())
    assert.deepEqual([answer.code, answer.partial], [0, { rejected: 1, message: '1 point: time is 0' }])
    assert.equal(await storedRows(), before + 1)
  })

  test('refusals have the codes of the specification, and only those for a retry have a time', async () => {
    const before = await storedRows()
    const cases = [
      ['no token', 16, () => grpc.export('logs', Buffer.alloc(0), null)],
      ['an unknown token', 16, () => grpc.export('logs', Buffer.alloc(0), 'nobody')],
      ['a viewer', 7, () => grpc.export('logs', Buffer.alloc(0), service.secretOf('acme/viewer'))],
      ['no protobuf', 3, () => grpc.export('logs', Buffer.from([0xff, 0xff]), secret())],
      ['a cut message', 3, () => grpc.export('metrics', sample([1, 2]).subarray(0, 20), secret())],
      ['too large', 8, () => grpc.export('logs', Buffer.alloc(bodyLimitBytes + 1), secret())],
      ['no message', 3, () => grpc.exportMany('logs', [], secret())],
      ['two messages', 3, () => grpc.exportMany('metrics', [sample([1]), sample([1])], secret())],
      [
        'another method',
        12,
        () => grpc.export('logs', Buffer.alloc(0), secret(), '/grpc.health.v1.Health/Check'),
      ],
    ] as const
    for (const [name, code, send] of cases) {
      const answer = await send()
      assert.deepEqual([answer.code, answer.retrySeconds], [code, null], `${name}: ${answer.message}`)
    }
    assert.equal(await storedRows(), before)
  })

  test('a message as large as allowed is read completely', async () => {
    const body = 'x'.repeat(bodyLimitBytes - 200)
    const logRecords = [{ timeUnixNano: String(mondayNs), body: { stringValue: body } }]
    const bytes = encodeProto('logs', { resourceLogs: [{ scopeLogs: [{ logRecords }] }] })
    assert.ok(bytes.length > bodyLimitBytes - 200 && bytes.length <= bodyLimitBytes)
    const answer = await grpc.export('logs', bytes, secret())
    assert.equal(answer.code, 0, answer.message)
  })

  test('a small compressed message is read, and one that decompresses beyond the limit is not', async () => {
    const zipped = new GrpcClient(service.app.grpcAddress() ?? '', { isCompressed: true })
    assert.equal((await zipped.export('metrics', sample([1]), secret())).code, 0)
    const bomb = await zipped.export('logs', Buffer.alloc(bodyLimitBytes * 20), secret())
    zipped.close()
    assert.deepEqual([bomb.code, bomb.retrySeconds], [8, null], bomb.message)
  })

  test('a token that was revoked stops working with the next call on the same connection', async () => {
    const as = { as: 'acme/owner', json: { name: 'short', role: 'ingest' } } as const
    const { id, token } = JSON.parse((await service.send('POST', '/tokens', as)).text)
    assert.equal((await grpc.export('logs', Buffer.alloc(0), token)).code, 0)
    assert.equal((await service.send('DELETE', `/tokens/${id}`)).status, 200)
    const { code, message, reason } = await grpc.export('logs', Buffer.alloc(0), token)
    assert.deepEqual([code, reason], [16, 'TOKEN_REVOKED'])
    assert.equal(message, errorCatalogue.token_revoked.sentence)
  })

  test('an authentication error says which one it is: no token, an unreadable token, an unknown token', async () => {
    const reasonOf = async (sent: Parameters<GrpcClient['export']>[2]) =>
      (await grpc.export('logs', Buffer.alloc(0), sent)).reason
    assert.equal(await reasonOf(null), 'UNAUTHENTICATED')
    assert.equal(await reasonOf({ authorization: 'Bearer' }), 'TOKEN_MALFORMED')
    assert.equal(await reasonOf('nobody'), 'TOKEN_UNKNOWN')
    assert.equal(await reasonOf(service.secretOf('acme/viewer')), 'ROLE_NOT_PERMITTED')
  })
})

describe('remote write', () => {
  for (const version of versions) {
    test(`${version}: a completely stored request is 204, with counts and no body`, async () => {
      const before = await storedRows('globex/owner')
      const histograms = [{ countInt: 1, sum: 1, schema: 0, timestamp: mondayMs, zeroCountInt: 1 }]
      const exemplars = [{ labels: { trace_id: 'a' }, value: 1, timestamp: mondayMs }]
      const all = [series([1, 2], { exemplars }), { labels: { __name__: 'h' }, histograms }]
      const answer = await write(version, all, { as: 'globex/ingest' })
      assert.deepEqual([answer.status, answer.text], [204, ''])
      assert.deepEqual(writtenOf(answer), ['2', '1', '1'])
      assert.equal(await storedRows('globex/owner'), before + 4)
    })

    test(`${version}: a request with unstorable records is 400 with the reasons, and the rest is stored`, async () => {
      const before = await storedRows()
      const answer = await write(version, [series([1]), series([2], { labels: { job: 'shop' } })])
      assert.equal(answer.status, 400)
      assert.deepEqual(JSON.parse(answer.text), {
        code: 'partial_write',
        detail:
          'Left out: 1 sample: metric name is empty. The rest (1) is stored; do not repeat the request.',
      })
      assert.deepEqual(writtenOf(answer), ['1', '0', '0'])
      assert.equal(answer.headers.get('retry-after'), null)
      assert.equal(await storedRows(), before + 1)
    })

    test(`${version}: a request that cannot be parsed is 400, and nothing of it is stored`, async () => {
      const before = await storedRows()
      const whole = encodeRequest(version, [series([1])])
      const bodies = {
        'no Snappy': Buffer.from('hello'),
        'no protobuf': compress(Buffer.from([0xff, 0xff, 0xff])),
        'a cut message': compress(whole.subarray(0, whole.length - 1)),
        'nothing at all': Buffer.alloc(0),
      }
      for (const [name, body] of Object.entries(bodies)) {
        const answer = await writeBytes(version, body)
        assert.equal(answer.status, 400, name)
        assert.equal(JSON.parse(answer.text).code, 'bad_request')
      }
      assert.equal(await storedRows(), before)
    })

    test(`${version}: a small body that declares more than the limit is refused before decompression`, async () => {
      const answer = await writeBytes(version, compress(Buffer.alloc(bodyLimitBytes + 1)))
      assert.equal(answer.status, 413)
      assert.ok(compress(Buffer.alloc(bodyLimitBytes + 1)).length < bodyLimitBytes / 10)
      const big = await writeBytes(version, Buffer.alloc(bodyLimitBytes + 1))
      assert.equal(big.status, 413)
    })
  }

  test('another type, proto or encoding is 415', async () => {
    const body = compress(encodeRequest('1.0', [series([1])]))
    for (const headers of [
      { 'content-type': 'application/x-protobuf;proto=io.prometheus.write.v3.Request' },
      { 'content-type': 'application/x-protobuf;proto=constructor' },
      { 'content-type': 'application/json' },
      { 'content-type': null },
      { 'content-encoding': 'gzip' },
      { 'content-encoding': 'zstd' },
      { 'content-encoding': 'identity' },
    ]) {
      const answer = await writeBytes('1.0', body, { headers })
      assert.equal(answer.status, 415, JSON.stringify(headers))
    }
  })

  test('a body without a Content-Encoding is read as Snappy, the only one of the protocol', async () => {
    for (const version of versions) {
      const body = compress(encodeRequest(version, [series([1])]))
      const answer = await writeBytes(version, body, { headers: { 'content-encoding': null } })
      assert.deepEqual([answer.status, writtenOf(answer)[0]], [204, '1'], answer.text)
      const plain = encodeRequest(version, [series([1])])
      const refused = await writeBytes(version, plain, { headers: { 'content-encoding': null } })
      assert.deepEqual([refused.status, JSON.parse(refused.text).code], [400, 'bad_request'])
    }
  })

  test('samples are read by the labels that Prometheus gave them', async () => {
    const of = (instance: string, value: number): TestSeries => ({
      labels: { __name__: 'go_goroutines', instance, job: 'prod/api' },
      samples: [{ value, timestamp: mondayMs }],
    })
    assert.equal((await write('1.0', [of('h1:80', 3), of('h2:80', 5)])).status, 204)
    const range = `range_start=${formatInstant(mondayNs)}&range_end=${formatInstant(mondayNs + minuteNs)}`
    const ask = async (query: string) => {
      const path = `/telemetry/series?metric_key=go_goroutines&${range}&${query}`
      const { series, warnings } = await service.read(path, SeriesAnswer, 'acme/viewer')
      return [warnings, ...series.map(({ group, points }) => [group, points[0]?.value])]
    }
    assert.deepEqual(await ask('attribute=job%3Dprod/api&group_by=instance'), [
      [],
      ['h1:80', 3],
      ['h2:80', 5],
    ])
    assert.deepEqual(await ask('group_by=job'), [[], ['prod/api', 4]])
    assert.deepEqual(await ask('attribute=instance%3Dh2:80'), [[], [null, 5]])
    assert.deepEqual(await ask('attribute=job%3Dapi'), [[]])
    assert.deepEqual(await ask('attribute=jbo%3Dapi'), [
      ['Nothing of "go_goroutines" in this range has an attribute "jbo".'],
    ])
  })

  test('all common spellings of the content type are accepted', async () => {
    const cases = [
      ['1.0', 'application/x-protobuf;proto=prometheus.WriteRequest'],
      ['1.0', 'Application/X-Protobuf; proto="prometheus.WriteRequest"; charset=utf-8'],
      ['2.0', 'application/x-protobuf; proto=io.prometheus.write.v2.Request'],
    ] as const
    for (const [version, type] of cases) {
      const body = compress(encodeRequest(version, [series([1])]))
      const answer = await writeBytes(version, body, { headers: { 'content-type': type } })
      assert.deepEqual([answer.status, writtenOf(answer)[0]], [204, '1'], type)
    }
  })
})

describe('Basic authentication', () => {
  const basic = (user: string, password: string) =>
    `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`

  test('every ingest protocol accepts a token as the password of any user, by the same rules as a bearer', async () => {
    const sender = service.secretOf('acme/ingest')
    const body = compress(encodeRequest('1.0', [series([1])]))
    const remoteWrite = async (authorization: string) =>
      (await writeBytes('1.0', body, { headers: { authorization } })).status
    const otlp = async (authorization: string) => {
      const headers = { authorization, 'content-type': 'application/x-protobuf' }
      return (await service.send('POST', '/v1/metrics', { body: sample([1]), headers })).status
    }
    const overGrpc = async (authorization: string) =>
      (await grpc.export('metrics', sample([1]), { authorization })).code
    for (const user of ['', 'prometheus', 'acme', 'ünicode']) {
      const authorization = basic(user, sender)
      assert.deepEqual([await remoteWrite(authorization), await otlp(authorization)], [204, 200], user)
      assert.equal(await overGrpc(authorization), 0, user)
    }
    for (const authorization of [
      basic('acme', `${sender}x`),
      basic('acme', ''),
      basic(sender, ''),
      basic('acme', `:${sender}`),
      `Basic ${Buffer.from(sender).toString('base64')}`,
      `Basic ${sender}`,
      'Basic',
      `Basic ${basic('acme', sender)}`,
      `Basic ${Buffer.from(`${'x'.repeat(5000)}:${sender}`).toString('base64')}`,
    ]) {
      assert.deepEqual([await remoteWrite(authorization), await otlp(authorization)], [401, 401])
      assert.equal(await overGrpc(authorization), 16)
    }
    const viewer = basic('acme', service.secretOf('acme/viewer'))
    assert.deepEqual([await remoteWrite(viewer), await otlp(viewer), await overGrpc(viewer)], [403, 403, 7])
  })

  test('no other operation accepts it: reading and erasing require a bearer', async () => {
    const headers = { authorization: basic('acme', service.secretOf('acme/owner')) }
    for (const [method, path] of [
      ['GET', '/me'],
      ['GET', '/telemetry/logs'],
      ['POST', '/usage/storage/deletions'],
    ] as const) {
      const answer = await service.send(method, path, { headers, ...(method === 'POST' && { json: {} }) })
      assert.equal(answer.status, 401, path)
      assert.match(
        answer.headers.get('www-authenticate') ?? '',
        /^Bearer realm="lethe", error="invalid_request"/,
      )
    }
  })
})

describe('an erasure', () => {
  const range = { scope: 'range', confirm: 'acme', range_end: formatInstant(mondayNs + 30n * minuteNs) }

  test('makes every protocol refuse its range for a retry while it is in progress, and no other organisation’s', async () => {
    const closed = closeDoor()
    const answer = await service.send('POST', '/usage/storage/deletions', { json: range })
    assert.equal(answer.status, 202, answer.text)
    await closed.reached
    const secret = service.secretOf('acme/ingest')
    const refused = await grpc.export('metrics', sample([1]), secret)
    assert.deepEqual([refused.code, refused.retrySeconds], [14, 1], refused.message)
    for (const version of versions) {
      const kept = await write(version, [series([1])])
      assert.deepEqual(
        [kept.status, JSON.parse(kept.text).code, kept.headers.get('retry-after')],
        [503, 'erasing', '1'],
      )
    }
    assert.equal((await grpc.export('metrics', sample([1]), service.secretOf('globex/ingest'))).code, 0)
    door = null
    closed.open()
    const { request_id } = JSON.parse(answer.text)
    await waitUntilCompleted(service, request_id, 'acme/owner')
    assert.equal((await grpc.export('metrics', sample([1]), secret)).code, 0)
  })

  test('with refuse_late makes every protocol reject late telemetry with the reason, and accept the rest', async () => {
    const secret = service.secretOf('acme/ingest')
    await eraseCompletely(service, { ...range, refuse_late: true })
    assert.deepEqual((await readSample(service, 'acme/owner')).readings, [])
    const late = '1 for a time that your organisation has erased and refuses'
    const answer = await grpc.export('metrics', sample([1, 40]), secret)
    assert.deepEqual([answer.code, answer.partial], [0, { rejected: 1, message: late }])
    for (const [i, version] of versions.entries()) {
      const kept = await write(version, [series([2, 41 + i])])
      assert.equal(kept.status, 400)
      assert.ok(JSON.parse(kept.text).detail.includes(late), kept.text)
      assert.deepEqual(writtenOf(kept), ['1', '0', '0'])
    }
    const { readings } = await readSample(service, 'acme/owner')
    assert.deepEqual(
      readings.map(({ time }) => time),
      [40, 41, 42].map((minute) => formatInstant(mondayNs + BigInt(minute) * minuteNs)),
    )
    assert.equal((await grpc.export('metrics', sample([1]), service.secretOf('globex/ingest'))).partial, null)
  })
})
