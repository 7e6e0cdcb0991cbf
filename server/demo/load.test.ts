// Loading against a real HTTP server on this machine: what arrives, what happens when the server is busy or
// refuses, and which progress is reported. Waits use a manual clock.

import assert from 'node:assert/strict'
import type { IncomingMessage, RequestListener } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { BinaryWriter } from '@bufbuild/protobuf/wire'
import type { Clock } from '../core/clock.ts'
import type { LoadProgress } from './load.ts'
import { loadHistory } from './load.ts'
import { readLogs, readPoints, readSpans } from './otlp-reference.ts'
import { parseRetryAfter, SendError } from './send.ts'

const nowNs = 1_763_522_220_000_000_000n

/** A clock on which every wait ends at once and is recorded. */
function openHastyClock(): Clock & { readonly waits: number[] } {
  const waits: number[] = []
  let nowMs = Number(nowNs / 1_000_000n)
  return {
    waits,
    nowMs: () => nowMs,
    nowNs: () => BigInt(nowMs) * 1_000_000n,
    steady: () => ({ boot: 'hasty', ms: nowMs }),
    elapsedMs: () => nowMs,
    sleep(ms) {
      waits.push(ms)
      nowMs += ms
      return Promise.resolve()
    },
  }
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(Buffer.from(chunk))
  return Buffer.concat(chunks)
}

async function withServer(answer: RequestListener, use: (endpoint: string) => Promise<void>): Promise<void> {
  const server = createServer(answer)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  try {
    await use(`http://127.0.0.1:${port}`)
  } finally {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
}

/** Reads each HTTP request to its end, then responds. The loader may have closed the connection meanwhile. */
const answering =
  (
    answer: (
      request: IncomingMessage,
      body: Buffer,
    ) => { status: number; headers?: Record<string, string>; body?: Uint8Array | string },
  ): RequestListener =>
  (request, response) => {
    const isGivenUp = () => request.destroyed && !request.complete
    void bodyOf(request)
      .catch((error: unknown) => {
        if (!isGivenUp()) throw error
        return null
      })
      .then((body) => {
        if (body === null) return
        const { status, headers = {}, body: words = '' } = answer(request, body)
        response.writeHead(status, headers).end(words)
      })
  }

const load = (endpoint: string, more: Partial<Parameters<typeof loadHistory>[0]> = {}) =>
  loadHistory({
    endpoint,
    token: 'an-ingest-token',
    seed: 20,
    nowNs,
    historyDays: 1,
    clock: openHastyClock(),
    ...more,
  })

describe('loading the history', () => {
  test('delivers every row once, compressed, with the token, and reports its progress', async () => {
    const arrived = { metrics: 0, logs: 0, traces: 0 }
    const progress: LoadProgress[] = []
    const answer = answering((request, body) => {
      assert.equal(request.headers.authorization, 'Bearer an-ingest-token')
      assert.equal(request.headers['content-type'], 'application/x-protobuf')
      assert.equal(request.headers['content-encoding'], 'gzip')
      const raw = gunzipSync(body)
      if (request.url === '/v1/metrics') arrived.metrics += readPoints(raw).length
      else if (request.url === '/v1/logs') arrived.logs += readLogs(raw).length
      else if (request.url === '/v1/traces') arrived.traces += readSpans(raw).length
      return { status: 200, headers: { 'content-type': 'application/x-protobuf' } }
    })
    await withServer(answer, async (endpoint) => {
      const result = await load(`${endpoint}/`, { onProgress: (each) => progress.push(each) })
      assert.equal(arrived.metrics + arrived.logs + arrived.traces, result.rows)
      assert.ok(Math.min(arrived.metrics, arrived.logs, arrived.traces) > 1_000)
      assert.ok(result.compressedBytes < result.rawBytes / 3)
      assert.equal(progress.at(-1)?.doneRows, result.rows)
      assert.equal(progress.at(-1)?.totalRows, result.rows)
    })
    assert.ok(progress.every(({ doneRows, totalRows }) => doneRows <= totalRows))
    assert.ok(progress.slice(1).every(({ doneRows }, index) => doneRows >= (progress[index]?.doneRows ?? 0)))
  })

  test('sends as many bodies at once as configured, and never more', async () => {
    const both = Promise.withResolvers<void>()
    let underWay = 0
    let most = 0
    const counting: typeof fetch = async () => {
      most = Math.max(most, ++underWay)
      if (underWay === 2) both.resolve()
      await both.promise
      underWay--
      return new Response(null, { status: 200 })
    }
    await load('http://unused.example', { fetch: counting, concurrency: 2, rowsPerBody: 2_000 })
    assert.equal(most, 2)
  })

  for (const status of [429, 503]) {
    test(`waits as long as Retry-After says after a ${status}, then continues without loss`, async () => {
      let requests = 0
      const accepted = new Set<string>()
      const clock = openHastyClock()
      const answer = answering((_, body) => {
        if (requests++ % 3 === 1) return { status, headers: { 'retry-after': '7' } }
        accepted.add(body.toString('base64'))
        return { status: 200 }
      })
      await withServer(answer, async (endpoint) => {
        const result = await load(endpoint, { clock, concurrency: 1 })
        assert.equal(accepted.size, result.bodies)
      })
      assert.ok(clock.waits.length > 2)
      assert.ok(
        clock.waits.every((ms) => ms === 7_000),
        `${clock.waits}`,
      )
    })
  }

  test('waits longer each time without Retry-After, and ends with an error after the last try', async () => {
    const clock = openHastyClock()
    await withServer(
      answering(() => ({ status: 503 })),
      async (endpoint) => {
        await assert.rejects(load(endpoint, { clock, concurrency: 1 }), (error) => {
          assert.ok(error instanceof SendError)
          assert.equal(error.status, 503)
          return true
        })
      },
    )
    assert.deepEqual(clock.waits, [500, 1_000, 2_000, 4_000, 8_000, 15_000, 15_000, 15_000, 15_000])
  })

  test('stops at a refusal, with the message of the server in the error', async () => {
    let requests = 0
    const answer = answering(() => {
      requests++
      return {
        status: 401,
        headers: { 'content-type': 'application/json' },
        body: '{"detail":"no such token"}',
      }
    })
    await withServer(answer, async (endpoint) => {
      await assert.rejects(
        load(endpoint, { concurrency: 2 }),
        /POST http:.*\/v1\/\w+ returned 401: .*no such token/,
      )
    })
    assert.ok(requests <= 2, `${requests} requests`)
  })

  test('reads the message of a protobuf refusal', async () => {
    const body = new BinaryWriter().uint32(8).int32(3).uint32(18).string('span without a name').finish()
    const answer = answering(() => ({
      status: 400,
      headers: { 'content-type': 'application/x-protobuf' },
      body,
    }))
    await withServer(answer, async (endpoint) => {
      await assert.rejects(load(endpoint), /returned 400: span without a name/)
    })
  })

  test('treats a partial success as an error', async () => {
    const body = new BinaryWriter()
      .uint32(10)
      .fork()
      .uint32(8)
      .int64(12)
      .uint32(18)
      .string('too old')
      .join()
      .finish()
    const answer = answering(() => ({
      status: 200,
      headers: { 'content-type': 'application/x-protobuf' },
      body,
    }))
    await withServer(answer, async (endpoint) => {
      await assert.rejects(load(endpoint), /rejected 12 rows: too old/)
    })
  })

  test('retries when there is no response', async () => {
    let calls = 0
    const failing: typeof fetch = () => {
      if (calls++ === 0) return Promise.reject(new TypeError('fetch failed'))
      return Promise.resolve(new Response(null, { status: 200 }))
    }
    const clock = openHastyClock()
    await load('http://unused.example', { fetch: failing, clock, concurrency: 1 })
    assert.deepEqual(clock.waits, [500])
  })

  test('stops when it is aborted', async () => {
    const stop = new AbortController()
    let calls = 0
    const counting: typeof fetch = () => {
      if (++calls === 3) stop.abort(new Error('enough'))
      return Promise.resolve(new Response(null, { status: 200 }))
    }
    await assert.rejects(
      load('http://unused.example', { fetch: counting, concurrency: 1, signal: stop.signal }),
      /enough/,
    )
    assert.equal(calls, 3)
  })
})

test('Retry-After is read as seconds or as a date', () => {
  assert.equal(parseRetryAfter('2', 0), 2_000)
  assert.equal(parseRetryAfter('Wed, 19 Nov 2025 03:17:05 GMT', Date.UTC(2025, 10, 19, 3, 17, 0)), 5_000)
  assert.equal(parseRetryAfter('Wed, 19 Nov 2025 03:17:05 GMT', Date.UTC(2025, 10, 19, 4, 0, 0)), 0)
  assert.equal(parseRetryAfter('soon', 0), undefined)
  assert.equal(parseRetryAfter('', 0), undefined)
  assert.equal(parseRetryAfter(null, 0), undefined)
})
