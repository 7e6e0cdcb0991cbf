// Decompression before the parser: complete bodies are unchanged, and endless ones end.

import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { gunzipBody } from './gunzip-body.ts'

const limitBytes = 100_000
const turn = async () => {}
const text = Buffer.from('telemetry '.repeat(5000))

test('a body within the limit is unchanged, whatever pieces it came in', async () => {
  const zipped = gzipSync(text)
  for (const size of [1, 7, zipped.length]) {
    const pieces = Array.from({ length: Math.ceil(zipped.length / size) }, (_, i) =>
      zipped.subarray(i * size, (i + 1) * size),
    )
    assert.deepEqual(await buffer(gunzipBody(Readable.from(pieces), { limitBytes: text.length, turn })), text)
  }
})

test('one byte above the limit is too large', async () => {
  const payload = Readable.from([gzipSync(text)])
  await assert.rejects(buffer(gunzipBody(payload, { limitBytes: text.length - 1, turn })), {
    code: 'body_too_large',
  })
})

test('an endless body is read no further than its limit, also when nobody listens any more', async () => {
  let pieces = 0
  const member = gzipSync(Buffer.alloc(limitBytes))
  const endless = Readable.from(
    (function* () {
      for (;;) {
        pieces++
        yield member
      }
    })(),
  )
  const body = gunzipBody(endless, { limitBytes, turn })
  // Fastify reads, refuses, and removes its listeners while the stream continues.
  await new Promise((resolve) => body.once('error', resolve).resume())
  const piecesAtRefusal = pieces
  for (let turn = 0; turn < 100; turn++) await nextTurn()
  assert.equal(pieces, piecesAtRefusal)
  assert.ok(!endless.destroyed, 'the answer still has to go out on it')
})

test('an error after the refusal has no effect', async () => {
  const bad = Buffer.concat([gzipSync(Buffer.alloc(limitBytes + 1)), Buffer.from('not gzip at all')])
  const body = gunzipBody(Readable.from([bad]), { limitBytes, turn })
  await new Promise((resolve) => body.once('error', resolve).resume())
  for (let turn = 0; turn < 100; turn++) await nextTurn()
})

test('a body that is not gzip, or ends too early, fails with a code of zlib', async () => {
  for (const bytes of [Buffer.from('not gzip'), gzipSync(text).subarray(0, 30)]) {
    await assert.rejects(buffer(gunzipBody(Readable.from([bytes]), { limitBytes, turn })), { code: /^Z_/ })
  }
})

test('a body pauses while its organisation waits for a turn, and continues at the turn', async () => {
  const large = Buffer.alloc(1024 * 1024, 'telemetry ')
  const waiting: (() => void)[] = []
  const limits = { limitBytes: large.length, turn: () => new Promise<void>((go) => waiting.push(go)) }
  const body = gunzipBody(Readable.from([gzipSync(large)]), limits)
  let read = 0
  body.on('data', (chunk: Buffer) => {
    read += chunk.length
  })
  let turns = 0
  for (let steps = 0; read < large.length; steps++) {
    assert.ok(steps < 100_000, `${read} bytes after ${turns} turns`)
    await nextTurn()
    assert.ok(waiting.length <= 1)
    assert.ok(read <= 100_000 * (turns + 1), `${read} bytes after ${turns} turns`)
    if (waiting.length === 0) continue
    turns++
    waiting.pop()?.()
  }
  assert.ok(turns >= 10, `${turns} turns`)
})
