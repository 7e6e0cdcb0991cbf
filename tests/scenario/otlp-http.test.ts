// OTLP over HTTP from broken, hostile or unlucky clients: cut, altered and oversized bodies, compression
// bombs, unsupported types and encodings, connections that end early, erasures in progress. Every refusal has
// the status body of the specification in the encoding of the request, the service keeps running, and at the
// end it stores exactly the records that it acknowledged.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { after, before, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { z } from 'zod'
import { DeletionRequest } from '../../contract/deletion/requests.ts'
import { StorageUsage } from '../../contract/organisation/usage.ts'
import type { OtlpEncoding } from '../../server/ingest/otlp/decode-export.ts'
import { type Signal, signals } from '../../server/telemetry/schema/tables.ts'
import { arbitraryExport } from '../otlp/arbitrary-export.ts'
import { decodeProto, encodeProto } from '../otlp/otlp-messages.ts'
import { type Answer, type Service, startService, waitUntilCompleted } from './service.ts'
import { minuteNs, mondayNs, sampleExport } from './telemetry.ts'

const limitBytes = 1024 * 1024
const mediaTypes = { protobuf: 'application/x-protobuf', json: 'application/json' } as const
const encodings = ['protobuf', 'json'] as const
const times = [0n, 1n, 2n].map((minute) => mondayNs + minute * minuteNs)

let service: Service
/** While set, an erasure reports that its range is fenced, and waits. */
let pause: { readonly fenced: () => void; readonly until: Promise<void> } | null = null
/** Instants of as many records as every signal has at least, whatever the random messages contain. */
const fifty = Array.from({ length: 50 }, (_, i) => mondayNs + BigInt(i))
/** Records of globex that were accepted. */
let foreignRecords = 0
/** Records that responses of 200 acknowledged, over the whole file. */
const acknowledged: Record<Signal, number> = { metrics: 0, logs: 0, traces: 0 }

before(async () => {
  service = await startService({
    settings: { LETHE_INGEST_BODY_MB: '1' },
    async failpoint(name) {
      if (name !== 'fenced' || pause === null) return
      pause.fenced()
      await pause.until
    },
  })
})
after(() => service.stop())

function encode(signal: Signal, encoding: OtlpEncoding, message: object): Buffer {
  return encoding === 'json' ? Buffer.from(JSON.stringify(message)) : encodeProto(signal, message)
}

interface Export {
  readonly signal?: Signal
  readonly encoding?: OtlpEncoding
  readonly body: Uint8Array
  readonly headers?: Readonly<Record<string, string | null>>
}

function post({ signal = 'logs', encoding = 'protobuf', body, headers = {} }: Export): Promise<Answer> {
  return service.send('POST', `/v1/${signal}`, {
    as: 'acme/ingest',
    body,
    headers: { 'content-type': mediaTypes[encoding], ...headers },
  })
}

const Status = z.strictObject({ code: z.int(), message: z.string().min(1) })

/** Checks the google.rpc.Status of a refusal, in the encoding of its request. Returns its message. */
function assertStatus(answer: Answer, encoding: OtlpEncoding, status: number, code: number): string {
  assert.equal(answer.status, status, answer.text)
  assert.equal(answer.headers.get('content-type'), mediaTypes[encoding])
  const body = encoding === 'json' ? JSON.parse(answer.text) : decodeProto('RpcStatus', answer.bytes)
  const read = Status.parse(body)
  assert.equal(read.code, code)
  return read.message
}

const rejectedNames = { metrics: 'rejectedDataPoints', logs: 'rejectedLogRecords', traces: 'rejectedSpans' }

/**
 * The rejected records in a 200, and the reason. Fails where the body isn't the response of the
 * specification.
 */
function rejectedBy(answer: Answer, signal: Signal, encoding: OtlpEncoding): { count: number; why: string } {
  assert.equal(answer.status, 200, answer.text)
  assert.equal(answer.headers.get('content-type'), mediaTypes[encoding])
  const parsed = encoding === 'json' ? JSON.parse(answer.text) : decodeProto('ExportResponse', answer.bytes)
  assert.deepEqual(
    Object.keys(parsed).filter((key) => key !== 'partialSuccess'),
    [],
  )
  const partial = new Map<string, unknown>(Object.entries(parsed.partialSuccess ?? {}))
  const count = partial.get(encoding === 'json' ? rejectedNames[signal] : 'rejected')
  return { count: Number(count ?? 0), why: String(partial.get('errorMessage') ?? '') }
}

/** Data points, log records or spans in a message in OTLP/JSON form. */
function countRecords(value: unknown): number {
  if (Array.isArray(value)) return value.reduce((sum: number, item) => sum + countRecords(item), 0)
  if (typeof value !== 'object' || value === null) return 0
  return Object.entries(value).reduce(
    (sum, [name, member]) =>
      sum +
      (['dataPoints', 'logRecords', 'spans'].includes(name) && Array.isArray(member)
        ? member.length
        : countRecords(member)),
    0,
  )
}

/** Posts a complete message, which must be accepted except for the rejected records in the response. */
async function postMessage(signal: Signal, encoding: OtlpEncoding, message: object) {
  const answer = await post({ signal, encoding, body: encode(signal, encoding, message) })
  const rejected = rejectedBy(answer, signal, encoding)
  acknowledged[signal] += countRecords(message) - rejected.count
  return rejected
}

/** The service's own count of accepted records, from its metrics page. */
async function acceptedTotals(): Promise<Record<string, number>> {
  const page = await service.send('GET', '/metrics')
  const lines = page.text.matchAll(/^lethe_ingest_records_accepted_total\{signal="(\w+)"\} (\d+)$/gm)
  return Object.fromEntries([...lines].map(([, signal, count]) => [signal, Number(count)]))
}

async function storedRows(): Promise<Record<string, number>> {
  const { signals: stored } = await service.read('/usage/storage', StorageUsage)
  return Object.fromEntries(stored.map(({ signal, rows }) => [signal, rows]))
}

for (const encoding of encodings) {
  for (const signal of signals) {
    test(`${signal} in ${encoding}: complete messages with any content are accepted, and rejected records are counted`, async () => {
      assert.deepEqual(await postMessage(signal, encoding, sampleExport(signal, times)), {
        count: 0,
        why: '',
      })
      await postMessage(signal, encoding, sampleExport(signal, fifty))
      await fc.assert(
        fc.asyncProperty(arbitraryExport[signal], async (message) => {
          const { count, why } = await postMessage(signal, encoding, message)
          assert.equal(count === 0, why === '')
        }),
        { numRuns: 25 },
      )
    })
  }
}

test('bad records are rejected with number and reason, and the good ones beside them are stored', async () => {
  for (const encoding of encodings) {
    for (const signal of ['metrics', 'traces'] as const) {
      const earlier = (await storedRows())[signal] ?? 0
      const rejected = await postMessage(signal, encoding, sampleExport(signal, [0n, ...times, 0n]))
      assert.equal(rejected.count, 2)
      assert.match(rejected.why, /^2 .*time is 0/)
      assert.equal((await storedRows())[signal], earlier + 3)
      assert.equal((await postMessage(signal, encoding, sampleExport(signal, [0n]))).count, 1)
    }
  }
})

test('a body cut anywhere is refused or accepted, never half accepted without a report', async () => {
  for (const encoding of encodings) {
    for (const signal of signals) {
      const body = encode(signal, encoding, sampleExport(signal, times))
      for (let length = 0; length < body.length; length += 7) {
        const answer = await post({ signal, encoding, body: body.subarray(0, length) })
        // A protobuf message cut between two resources is a valid shorter message; there is only one here.
        if (length === 0 && encoding === 'protobuf') rejectedBy(answer, signal, encoding)
        else assertStatus(answer, encoding, 400, 3)
      }
    }
  }
})

test('a body altered anywhere is refused or accepted, and the service keeps running', async () => {
  const alteration = fc.record({
    signal: fc.constantFrom(...signals),
    encoding: fc.constantFrom(...encodings),
    bytes: fc.array(fc.record({ at: fc.nat(10_000), value: fc.nat(255) }), { minLength: 1, maxLength: 4 }),
    cut: fc.option(fc.nat(10_000)),
  })
  await fc.assert(
    fc.asyncProperty(alteration, async ({ signal, encoding, bytes, cut }) => {
      const whole = encode(signal, encoding, sampleExport(signal, times))
      for (const { at, value } of bytes) whole[at % whole.length] = value
      const body = cut === null ? whole : whole.subarray(0, cut % whole.length)
      const before = (await acceptedTotals())[signal] ?? 0
      const answer = await post({ signal, encoding, body })
      if (answer.status === 200) {
        rejectedBy(answer, signal, encoding)
        acknowledged[signal] += ((await acceptedTotals())[signal] ?? 0) - before
      } else assertStatus(answer, encoding, 400, 3)
    }),
    { numRuns: 250 },
  )
})

test('a body as large as the limit is accepted, and one byte more is refused', async () => {
  const record = sampleExport('logs', times)
  const text = JSON.stringify(record)
  const full = await post({ encoding: 'json', body: Buffer.from(text.padEnd(limitBytes)) })
  assert.equal(rejectedBy(full, 'logs', 'json').count, 0)
  acknowledged.logs += times.length
  for (const encoding of encodings) {
    const answer = await post({ encoding, body: Buffer.from(text.padEnd(limitBytes + 1)) })
    assertStatus(answer, encoding, 413, 8)
  }
  const many = Array.from({ length: 4000 }, (_, i) => mondayNs + BigInt(i))
  await postMessage('logs', 'protobuf', sampleExport('logs', many))
})

test('gzip is accepted, and the limit applies to the decompressed body', async () => {
  for (const encoding of encodings) {
    const message = sampleExport('logs', times)
    for (const coding of ['gzip', 'GZIP', 'identity']) {
      const plain = encode('logs', encoding, message)
      const body = coding === 'identity' ? plain : gzipSync(plain)
      const answer = await post({ encoding, body, headers: { 'content-encoding': coding } })
      assert.equal(rejectedBy(answer, 'logs', encoding).count, 0)
      acknowledged.logs += times.length
    }
    const large = gzipSync(Buffer.alloc(limitBytes + 1, ' '))
    const answer = await post({ encoding, body: large, headers: { 'content-encoding': 'gzip' } })
    assertStatus(answer, encoding, 413, 8)
  }
})

test('decompression stops at the limit: many bombs at once need little memory', async () => {
  // A thousand members of a mebibyte each: a body of one megabyte that decompresses to one gigabyte. And one
  // of three kilobytes that is invalid after the limit, when nothing reads it any more.
  const member = gzipSync(Buffer.alloc(limitBytes))
  const bomb = Buffer.concat(Array.from({ length: Math.floor(limitBytes / member.length) }, () => member))
  const broken = Buffer.concat([member, member, member, Buffer.from('not gzip at all')])
  const earlierKb = process.resourceUsage().maxRSS
  const bombs = Array.from({ length: 12 }, (_, i) => {
    const encoding = i % 2 === 0 ? 'protobuf' : 'json'
    return post({ encoding, body: i < 6 ? bomb : broken, headers: { 'content-encoding': 'gzip' } }).then(
      (answer) => assertStatus(answer, encoding, 413, 8),
    )
  })
  await Promise.all(bombs)
  const grownMb = (process.resourceUsage().maxRSS - earlierKb) / 1024
  assert.ok(grownMb < 300, `12 bombs made the process grow by ${Math.round(grownMb)} MB`)
})

test('a kilobyte of gzip that nests half a million arrays is refused before it is parsed', async () => {
  for (const nested of [
    '['.repeat(limitBytes),
    `${'['.repeat(limitBytes / 2)}${']'.repeat(limitBytes / 2)}`,
  ]) {
    const body = gzipSync(nested)
    assert.ok(body.length < 2_048)
    const answer = await post({ encoding: 'json', body, headers: { 'content-encoding': 'gzip' } })
    assert.equal(assertStatus(answer, 'json', 400, 3), 'request: nested too deeply to be read')
  }
})

test('a body with a wrong gzip header is refused', async () => {
  const good = gzipSync(encode('logs', 'protobuf', sampleExport('logs', times)))
  const altered = Buffer.from(good)
  altered[good.length >> 1] = (altered[good.length >> 1] ?? 0) ^ 0xff
  const broken: Buffer[] = [
    Buffer.from('not gzip'),
    Buffer.from([0x1f]),
    good.subarray(0, good.length - 5),
    good.subarray(0, good.length >> 1),
    altered,
    gzipSync(good),
  ]
  for (const encoding of encodings) {
    for (const body of broken) {
      const answer = await post({ encoding, body, headers: { 'content-encoding': 'gzip' } })
      assertStatus(answer, encoding, 400, 3)
    }
  }
})

test('an unsupported encoding or media type is refused with 415', async () => {
  for (const encoding of encodings) {
    const body = encode('logs', encoding, sampleExport('logs', times))
    for (const coding of ['deflate', 'br', 'zstd', 'gzip, gzip', 'snappy', 'compress']) {
      const answer = await post({ encoding, body, headers: { 'content-encoding': coding } })
      assertStatus(answer, encoding, 415, 3)
    }
  }
  const body = encode('logs', 'json', sampleExport('logs', times))
  const types = [
    'text/plain',
    'application/grpc',
    'application/octet-stream',
    'application/merge-patch+json',
    'x',
    null,
  ]
  for (const type of types) {
    assertStatus(await post({ body, headers: { 'content-type': type } }), 'json', 415, 3)
  }
})

test('media types are compared without parameters and case-insensitively', async () => {
  const body = encode('logs', 'json', sampleExport('logs', times))
  for (const type of ['application/json; charset=utf-8', 'Application/JSON']) {
    rejectedBy(await post({ body, headers: { 'content-type': type } }), 'logs', 'json')
    acknowledged.logs += times.length
  }
})

test('an empty protobuf body is an empty request, and an empty JSON body is invalid', async () => {
  for (const signal of signals) {
    const empty = await post({ signal, body: Buffer.alloc(0) })
    assert.deepEqual([empty.status, empty.bytes.length], [200, 0])
    assertStatus(await post({ signal, encoding: 'json', body: Buffer.alloc(0) }), 'json', 400, 3)
    const object = await post({ signal, encoding: 'json', body: Buffer.from('{}') })
    assert.deepEqual([object.status, object.text], [200, '{}'])
    for (const text of ['null', '[]', '"x"', '{"a":']) {
      assertStatus(await post({ signal, encoding: 'json', body: Buffer.from(text) }), 'json', 400, 3)
    }
  }
})

test('a sender that disconnects during a body leaves nothing stored', async () => {
  const { hostname, port } = new URL(service.address)
  const unzipped = encode('logs', 'protobuf', sampleExport('logs', times))
  for (const [body, coding] of [
    [unzipped, 'identity'],
    [gzipSync(unzipped), 'gzip'],
  ] as const) {
    const socket = connect(Number(port), hostname)
    await once(socket, 'connect')
    socket.write(
      `POST /v1/logs HTTP/1.1\r\nhost: lethe\r\nauthorization: Bearer ${service.secretOf('acme/ingest')}\r\n` +
        `content-type: application/x-protobuf\r\ncontent-encoding: ${coding}\r\ncontent-length: ${body.length}\r\n\r\n`,
    )
    socket.write(body.subarray(0, body.length / 2))
    socket.destroy()
    await once(socket, 'close')
  }
  assert.equal((await service.send('GET', '/healthz')).status, 200)
})

/**
 * Begins to erase a range of acme's and pauses when it is fenced; `finish` continues and waits for its end.
 */
async function eraseUpToFence(range: object): Promise<{ finish: () => Promise<unknown> }> {
  const goOn = Promise.withResolvers<void>()
  const fenced = Promise.withResolvers<void>()
  pause = { fenced: fenced.resolve, until: goOn.promise }
  const json = { scope: 'range', confirm: 'acme', ...range }
  const answer = await service.send('POST', '/usage/storage/deletions', { json })
  const { request_id } = DeletionRequest.parse(JSON.parse(answer.text))
  await fenced.promise
  pause = null
  return {
    finish() {
      goOn.resolve()
      return waitUntilCompleted(service, request_id, 'acme/owner')
    },
  }
}

test('while a range is being erased its telemetry is refused for a retry, and no other', async () => {
  const range = { range_start: '2026-06-01T00:00:00Z', range_end: '2026-06-02T00:00:00Z' }
  const sample = sampleExport('logs', [BigInt(Date.UTC(2026, 5, 1, 12)) * 1_000_000n])
  const { finish } = await eraseUpToFence(range)
  try {
    for (const encoding of encodings) {
      const refused = await post({ encoding, body: encode('logs', encoding, sample) })
      assert.match(assertStatus(refused, encoding, 503, 14), /erasure/)
      assert.match(refused.headers.get('retry-after') ?? '', /^[1-9]\d*$/)
      await postMessage('logs', encoding, sampleExport('logs', [BigInt(Date.UTC(2026, 5, 2)) * 1_000_000n]))
    }
    const foreign = await service.send('POST', '/v1/logs', { as: 'globex/ingest', json: sample })
    assert.deepEqual([foreign.status, foreign.text], [200, '{}'])
    foreignRecords++
  } finally {
    await finish()
  }
  await postMessage('logs', 'json', sample)
})

test('everything that was acknowledged is stored, and nothing that was not', async () => {
  assert.ok(Object.values(acknowledged).every((count) => count > 50))
  assert.deepEqual(await storedRows(), acknowledged)
  assert.deepEqual(await acceptedTotals(), { ...acknowledged, logs: acknowledged.logs + foreignRecords })
})
