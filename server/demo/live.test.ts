// The live generator on a manual clock: it begins where the history ended, sends nothing twice, loses nothing
// within the catch-up bound, and stops when its signal aborts.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { ManualClock } from '../core/manual-clock.ts'
import type { LiveOptions } from './live.ts'
import { runLive } from './live.ts'
import { readLogs, readPoints, readSpans } from './otlp-reference.ts'
import { openLiveSlicer } from './payloads.ts'
import { openShop } from './shop.ts'

const anchorNs = 1_763_522_220_000_000_000n
const anchorMs = Number(anchorNs / 1_000_000n)
const historyDays = 1

interface Receiver {
  readonly fetch: typeof fetch
  readonly spanIds: string[]
  readonly spanStartMs: number[]
  readonly pointTimesMs: Set<number>
  readonly logs: { count: number }
}

/** Accepts HTTP requests; `refuse` says which of them (from 1) get a 400. */
function openReceiver(refuse: (request: number) => boolean = () => false): Receiver {
  const spanIds: string[] = []
  const spanStartMs: number[] = []
  const pointTimesMs = new Set<number>()
  const logs = { count: 0 }
  let requests = 0
  return {
    spanIds,
    spanStartMs,
    pointTimesMs,
    logs,
    async fetch(url, init) {
      const body = gunzipSync(new Uint8Array(await new Response(init?.body ?? null).arrayBuffer()))
      if (refuse(++requests)) return new Response('not now', { status: 400 })
      if (String(url).endsWith('/v1/traces')) {
        for (const span of readSpans(body)) {
          spanIds.push(span.spanId)
          spanStartMs.push(Number(span.startNs / 1_000_000n))
        }
      } else if (String(url).endsWith('/v1/logs')) logs.count += readLogs(body).length
      else for (const { timeNs } of readPoints(body)) pointTimesMs.add(Number(timeNs / 1_000_000n))
      return new Response(null, { status: 200 })
    },
  }
}

/**
 * Starts a run at the given time and returns functions to control it; what it sent is checked after `stop`.
 */
function start(clock: ManualClock, receiver: Receiver, more: Partial<LiveOptions> = {}) {
  const stop = new AbortController()
  const errors: unknown[] = []
  const ended = runLive({
    endpoint: 'http://unused.example',
    token: 'token',
    seed: 20,
    anchorNs,
    historyDays,
    clock,
    signal: stop.signal,
    fetch: receiver.fetch,
    onError: (error) => errors.push(error),
    ...more,
  })
  return {
    errors,
    /** Waits until the run sleeps, moves the clock and waits again. */
    async advance(ms: number): Promise<void> {
      await untilAsleep(clock)
      await clock.advance(ms)
      await untilAsleep(clock)
    },
    async stop(): Promise<void> {
      stop.abort()
      await ended
    },
  }
}

async function untilAsleep(clock: ManualClock): Promise<void> {
  while (clock.waiting === 0) await new Promise((resolve) => setImmediate(resolve))
}

function spansExpected(fromMs: number, toMs: number): string[] {
  const shop = openShop({ seed: 20, anchorNs, historyDays })
  return openLiveSlicer(shop, fromMs)
    .slice(fromMs, toMs)
    .filter(({ signal }) => signal === 'traces')
    .flatMap(({ body }) => readSpans(body).map(({ spanId }) => spanId))
}

describe('the live generator', () => {
  test('sends every ten seconds, once, what happened since the end of the history', async () => {
    const clock = new ManualClock(anchorMs + 3_000)
    const receiver = openReceiver()
    const run = start(clock, receiver)
    for (let step = 0; step < 20; step++) await run.advance(10_000)
    await run.stop()
    const settledMs = Math.floor((clock.nowMs() - 10_000) / 10_000) * 10_000
    assert.deepEqual(receiver.spanIds.toSorted(), spansExpected(anchorMs, settledMs).toSorted())
    assert.ok(receiver.spanIds.length > 50 && receiver.logs.count > 5)
    assert.deepEqual([...receiver.pointTimesMs], [anchorMs + 60_000, anchorMs + 120_000, anchorMs + 180_000])
    assert.deepEqual(run.errors, [])
  })

  test('sends no span before its time', async () => {
    const clock = new ManualClock(anchorMs)
    const receiver = openReceiver()
    const run = start(clock, receiver)
    for (let step = 0; step < 12; step++) {
      await run.advance(10_000)
      assert.ok(receiver.spanStartMs.every((startMs) => startMs < clock.nowMs()))
    }
    await run.stop()
  })

  test('catches up after a pause without a gap', async () => {
    const clock = new ManualClock(anchorMs)
    const receiver = openReceiver()
    const run = start(clock, receiver)
    await run.advance(10 * 60_000)
    await run.stop()
    assert.deepEqual(
      receiver.spanIds.toSorted(),
      spansExpected(anchorMs, anchorMs + 9 * 60_000 + 50_000).toSorted(),
    )
    assert.equal(receiver.pointTimesMs.size, 9)
  })

  test('catches up at most an hour', async () => {
    const clock = new ManualClock(anchorMs)
    const receiver = openReceiver()
    const run = start(clock, receiver)
    await run.advance(30 * 3_600_000)
    await run.stop()
    assert.ok(Math.min(...receiver.spanStartMs) >= clock.nowMs() - 3_600_000 - 10_000)
    assert.ok(Math.max(...receiver.spanStartMs) > clock.nowMs() - 30_000)
    assert.ok(receiver.pointTimesMs.size >= 59 && receiver.pointTimesMs.size <= 60)
  })

  test('reports a refusal and sends only the refused part again', async () => {
    const clock = new ManualClock(anchorMs)
    const receiver = openReceiver((request) => request >= 2 && request <= 5)
    const run = start(clock, receiver)
    for (let step = 0; step < 14; step++) await run.advance(10_000)
    await run.stop()
    assert.equal(run.errors.length, 4)
    assert.match(String(run.errors[0]), /returned 400: not now/)
    assert.deepEqual(receiver.spanIds.toSorted(), spansExpected(anchorMs, anchorMs + 130_000).toSorted())
  })

  test('stops while it waits, and when the signal aborts before it starts', async () => {
    const clock = new ManualClock(anchorMs)
    const receiver = openReceiver()
    const run = start(clock, receiver)
    await untilAsleep(clock)
    await run.stop()
    assert.equal(clock.waiting, 0)
    await start(clock, receiver, { signal: AbortSignal.abort() }).stop()
    assert.deepEqual(receiver.spanIds, [])
  })

  test('stops in the middle of a request without calling it an error', async () => {
    const clock = new ManualClock(anchorMs + 600_000)
    const stop = new AbortController()
    const errors: unknown[] = []
    const hanging: typeof fetch = (_, init) =>
      new Promise((_resolve, reject) => {
        init?.signal?.addEventListener('abort', () => reject(init.signal?.reason))
        stop.abort()
      })
    await runLive({
      endpoint: 'http://unused.example',
      token: 'token',
      seed: 20,
      anchorNs,
      historyDays,
      clock,
      signal: stop.signal,
      fetch: hanging,
      onError: (error) => errors.push(error),
    })
    assert.deepEqual(errors, [])
  })
})
