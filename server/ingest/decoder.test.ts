// Small bodies on the event loop and large ones in a thread: the same rows, the same refusals, and the event
// loop runs.

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { deflateSync, gzipSync } from 'node:zlib'
import { encodeProto, logsOfLongResource } from '../../tests/otlp/otlp-messages.ts'
import { compress, encodeRequest } from '../../tests/prometheus/remote-write-messages.ts'
import { AppError } from '../core/app-error.ts'
import { elapsedMs } from '../core/clock.ts'
import { ManualClock } from '../core/manual-clock.ts'
import { LoopTurns } from '../core/turns/loop-turns.ts'
import { ThreadTurns } from '../core/turns/thread-turns.ts'
import { type DecodeJob, runDecode } from './decode-job.ts'
import { Decoder } from './decoder.ts'
import { OtlpDecodeError } from './rows/otlp-decode-error.ts'
import type { Coding } from './uncompress.ts'

const place = { tenantId: 'acme', placement: 3 }
const megabyte = 1024 * 1024

const newDecoder = (nowMs = elapsedMs, thread: { readonly clock?: ManualClock; readonly entry?: URL } = {}) =>
  new Decoder({
    loop: new LoopTurns({ nowMs: elapsedMs }),
    thread: new ThreadTurns({ nowMs: elapsedMs }),
    nowMs,
    ...thread,
  })

const decoder = newDecoder()
after(() => decoder.close())

function logs(count: number, size = 1000) {
  const logRecords = Array.from({ length: count }, (_, i) => ({
    timeUnixNano: String(1_767_571_200_000_000_000n + BigInt(i)),
    body: { stringValue: 'x'.repeat(size) },
    attributes: [{ key: 'n', value: { intValue: String(i) } }],
  }))
  return { resourceLogs: [{ scopeLogs: [{ logRecords }] }] }
}

function otlp(encoding: 'protobuf' | 'json', body: Buffer): DecodeJob {
  const limitBytes = 16 * megabyte
  return {
    protocol: 'otlp',
    signal: 'logs',
    encoding,
    coding: 'identity',
    body,
    limitBytes,
    place,
    receivedNs: 1n,
  }
}

const jobs: Readonly<Record<string, () => DecodeJob>> = {
  protobuf: () => otlp('protobuf', encodeProto('logs', logs(2000))),
  JSON: () => otlp('json', Buffer.from(JSON.stringify(logs(2000)))),
  'remote write': () => {
    const samples = Array.from({ length: 20_000 }, (_, i) => ({ value: i, timestamp: 1_767_571_200_000 + i }))
    const body = Buffer.from(compress(encodeRequest('2.0', [{ labels: { __name__: 'up' }, samples }])))
    return { protocol: 'remote_write', version: '2.0', body, limitBytes: 16 * megabyte, place }
  },
}

/** Decodes as if the body had `bodyBytes` bytes. */
function decode(job: () => DecodeJob, bodyBytes: number, tenantId = 'acme', onRelease = () => {}) {
  return decoder.decode(tenantId, { bodyBytes, job, release: onRelease })
}

for (const [name, job] of Object.entries(jobs)) {
  test(`${name}: the rows are the same wherever they are decoded`, async () => {
    const here = await decode(job, 1000)
    const there = await decode(job, 2 * megabyte)
    assert.ok(here.parts.some(({ accepted }) => accepted >= 2000))
    assert.deepEqual(there, here)
    assert.ok(there.parts.every(({ batch }) => batch.every(({ bytes }) => Buffer.isBuffer(bytes))))
    assert.deepEqual(here, runDecode(job()))
  })
}

test('the event loop runs while a large body is decoded', async () => {
  const large = Buffer.from(JSON.stringify(logs(10_000)))
  let isOver = false
  const decoded = decode(() => otlp('json', large), large.length).finally(() => {
    isOver = true
  })
  let turns = 0
  while (!isOver) {
    await new Promise(setImmediate)
    turns++
  }
  const [part] = (await decoded).parts
  assert.equal(part?.accepted, 10_000)
  assert.ok(turns > 20, `${turns} turns`)
})

test('what can not be read is refused with the same sentence from the thread', async () => {
  const broken = () => otlp('protobuf', Buffer.from([0x0a, 0xff]))
  const reason = async (bytes: number) => {
    try {
      await decode(broken, bytes)
    } catch (error) {
      return error
    }
    return assert.fail('it was read')
  }
  const [here, there] = [await reason(10), await reason(2 * megabyte)]
  assert.ok(here instanceof OtlpDecodeError && there instanceof OtlpDecodeError)
  assert.equal(there.message, here.message)
  const bomb = (): DecodeJob => {
    const body = Buffer.from(compress(Buffer.alloc(2000)))
    return { protocol: 'remote_write', version: '2.0', body, limitBytes: 1000, place }
  }
  await assert.rejects(decode(bomb, 2 * megabyte), { name: 'AppError', code: 'body_too_large' })
})

const codings: Readonly<Record<Exclude<Coding, 'identity'>, (bytes: Buffer) => Buffer>> = {
  gzip: gzipSync,
  deflate: deflateSync,
}
for (const [coding, compressed] of Object.entries(codings)) {
  test(`${coding}: a body has the same rows and size wherever it is uncompressed, also where it claims less`, async () => {
    const plain = encodeProto('logs', logs(3000))
    assert.ok(plain.length > 2 * megabyte)
    const expected = runDecode(otlp('protobuf', plain))
    const job = () => ({ ...otlp('protobuf', compressed(plain)), coding: coding as Coding }) as DecodeJob
    for (const claimed of [10, plain.length]) {
      let released = 0
      const decoded = await decode(job, claimed, 'acme', () => released++)
      assert.deepEqual(decoded, expected)
      assert.equal(decoded.bodyBytes, plain.length)
      assert.equal(released, 1)
    }
  })
}

test('the event loop runs while a small body that contains a large one is refused', async () => {
  const bomb = gzipSync(Buffer.alloc(64 * megabyte))
  const job = (): DecodeJob => ({ ...otlp('json', bomb), coding: 'gzip' }) as DecodeJob
  let turns = 0
  // Several, because on busy cores the loop may not run at all during one.
  for (let bombs = 0; bombs < 10; bombs++) {
    let isOver = false
    const refused = assert.rejects(decode(job, 10), { code: 'body_too_large' }).finally(() => {
      isOver = true
    })
    while (!isOver) {
      await new Promise(setImmediate)
      turns++
    }
    await refused
  }
  assert.ok(turns > 50, `${turns} turns`)
})

const repeating = (count: number, attributeBytes: number): Buffer =>
  encodeProto('logs', logsOfLongResource(count, attributeBytes, '1767571200000000000'))

test('the event loop runs while the many bytes of rows of a small body are written', async () => {
  const body = repeating(3_000, 20_000)
  assert.ok(body.length < 100_000)
  let turns = 0
  let isOver = false
  const decoded = decode(() => otlp('protobuf', body), body.length).finally(() => {
    isOver = true
  })
  while (!isOver) {
    await new Promise(setImmediate)
    turns++
  }
  const [part] = (await decoded).parts
  assert.equal(part?.accepted, 3_000)
  assert.ok((part?.batch[0]?.bytes.length ?? 0) > 60_000_000)
  assert.ok(turns > 20, `${turns} turns`)
  await assert.rejects(
    decode(() => otlp('protobuf', repeating(6_000, 30_000)), 1000),
    { code: 'body_too_large' },
  )
})

test('the next bodies of an organisation whose small body was large go to the thread at once, for a while', async () => {
  let nowMs = 0
  const careful = newDecoder(() => nowMs)
  /** Returns on how many threads the body was begun. */
  const begun = async (tenantId: string, body: Buffer) => {
    let times = 0
    const job = () => {
      times++
      return otlp('protobuf', body)
    }
    await careful.decode(tenantId, { bodyBytes: body.length, job, release: () => {} })
    return times
  }
  const much = repeating(1_000, 20_000)
  assert.equal(await begun('acme', much), 2, 'on the event loop, and again in the thread')
  const together = [begun('acme', much), begun('acme', much), begun('globex', much), begun('globex', much)]
  assert.deepEqual(await Promise.all(together), [1, 1, 2, 1])
  nowMs = 10_000
  assert.equal(await begun('acme', much), 2)
  await careful.close()
})

test('an error at the body’s turn is its refusal, and the next one gets its turn', async () => {
  let released = 0
  const first = decode(jobs.protobuf ?? assert.fail(), 2 * megabyte, 'acme', () => released++)
  const taken = decode(
    () => {
      throw new AppError('overloaded', { retryAfterSeconds: 1 })
    },
    2 * megabyte,
    'acme',
    () => released++,
  )
  const last = decode(jobs.JSON ?? assert.fail(), 2 * megabyte, 'acme', () => released++)
  await assert.rejects(taken, { code: 'overloaded' })
  await Promise.all([first, last])
  assert.equal(released, 2)
})

test('many large bodies of one organisation delay another one’s by two', async () => {
  const order: string[] = []
  const send = (tenantId: string) =>
    decode(jobs.protobuf ?? assert.fail(), 2 * megabyte, tenantId).then(() => order.push(tenantId))
  const flood = Array.from({ length: 12 }, () => send('flood'))
  await Promise.all([...flood, send('calm')])
  assert.ok(order.indexOf('calm') <= 2, order.join())
})

test('a decoder that is closed refuses what it had, to be retried elsewhere', async () => {
  const closing = newDecoder()
  const job = jobs.JSON ?? assert.fail()
  const under = closing.decode('acme', { bodyBytes: 2 * megabyte, job, release: () => {} })
  await closing.close()
  await assert.rejects(under, { code: 'not_ready' })
  const late = closing.decode('acme', { bodyBytes: 2 * megabyte, job, release: () => {} })
  await assert.rejects(late, { code: 'not_ready' })
})

/** The usual thread, which does not end with bodies of `stuck`. */
function threadStuckWith(stuck: string): URL {
  const usual = new URL('./decode-thread.ts', import.meta.url)
  const program = `import { parentPort } from 'node:worker_threads'
    parentPort.on('message', ({ place }) => { if (place.tenantId === '${stuck}') for (;;); })
    await import('${usual}')`
  return new URL(`data:text/javascript,${encodeURIComponent(program)}`)
}

test('a body whose decoding does not end is refused after a minute, and the next ones are decoded', async () => {
  const clock = new ManualClock(0)
  const limited = newDecoder(elapsedMs, { clock, entry: threadStuckWith('spin') })
  const send = (tenantId: string) => {
    const job = () => ({ ...(jobs.JSON ?? assert.fail())(), place: { ...place, tenantId } })
    return limited.decode(tenantId, { bodyBytes: 2 * megabyte, job, release: () => {} })
  }
  const first = await send('acme')
  assert.equal(clock.waiting, 0, 'nothing is left of a body that was decoded')
  const stuck = assert.rejects(send('spin'), { code: 'body_too_large', message: /takes longer than allowed/ })
  let next: unknown = null
  const waiting = send('acme').then((decoded) => {
    next = decoded
  })
  while (clock.waiting === 0) await new Promise(setImmediate)
  await clock.advance(59_999)
  assert.equal(next, null)
  await clock.advance(1)
  await stuck
  await waiting
  assert.deepEqual(next, first)
  await limited.close()
  assert.equal(clock.waiting, 0)
})
