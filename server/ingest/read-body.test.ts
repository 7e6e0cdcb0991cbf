// Receives bodies: complete whatever their pieces are, and with no more memory than has arrived.

import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import { test } from 'node:test'
import fc from 'fast-check'
import { AppError } from '../core/app-error.ts'
import { elapsedMs } from '../core/clock.ts'
import { ManualClock } from '../core/manual-clock.ts'
import { LoopTurns } from '../core/turns/loop-turns.ts'
import { BodyBudget, emptyBodyBytes } from './body-budget.ts'
import { type IngestBody, readBody } from './read-body.ts'
import { ReadTurns } from './read-turns.ts'

const megabyte = 1024 * 1024

/** A body in pieces, after a header that declares its length. */
function sent(
  declaredBytes: number | undefined,
  budget = new BodyBudget(64 * megabyte, new ManualClock(0)),
  limitBytes = 16 * megabyte,
  tenantId = 'acme',
) {
  const payload = new PassThrough({ highWaterMark: 64 * megabyte })
  const incoming = { tenantId, incoming: payload, payload, declaredBytes: declaredBytes ?? 0 }
  // Of its own, because what another body reads freely counts for some milliseconds.
  const reads = new ReadTurns(new LoopTurns({ nowMs: elapsedMs }))
  return { payload, budget, body: readBody(incoming, { limitBytes, budget, reads }) }
}

const isRefusedAs = (code: string) => (error: unknown) => error instanceof AppError && error.code === code

test('a body is what was sent, whatever its pieces and its declared length', async () => {
  const bytes = fc.uint8Array({ maxLength: 3000 })
  const pieces = fc.array(
    fc.oneof(
      bytes,
      bytes.map((own) => Buffer.concat(Array(60).fill(own))),
    ),
    { maxLength: 8 },
  )
  await fc.assert(
    fc.asyncProperty(pieces, fc.constantFrom('whole', 'less', 'nothing'), async (chunks, said) => {
      const whole = Buffer.concat(chunks)
      const declared = { whole: whole.length, less: whole.length >> 1, nothing: undefined }[said]
      const { payload, budget, body } = sent(declared)
      for (const chunk of chunks) payload.write(chunk)
      payload.end()
      const read: IngestBody = await body
      assert.ok(whole.equals(read.bytes))
      const reserved = budget.reservedBytes - emptyBodyBytes
      assert.ok(reserved >= whole.length && reserved <= 2 * whole.length + 16 * 1024, `${reserved} reserved`)
      read.release()
      read.release()
      assert.equal(read.bytes.length, 0)
      assert.equal(budget.reservedBytes, 0)
    }),
  )
})

test('a body counts as it arrives, whatever its sender declares, and is freed when its sender disconnects', async () => {
  const { payload, budget, body } = sent(16 * megabyte)
  assert.equal(budget.reservedBytes, emptyBodyBytes)
  payload.write(Buffer.alloc(1000))
  await new Promise(setImmediate)
  assert.equal(budget.reservedBytes, emptyBodyBytes + 16 * 1024)
  payload.write(Buffer.alloc(megabyte))
  await new Promise(setImmediate)
  const reserved = budget.reservedBytes - emptyBodyBytes
  assert.ok(reserved >= megabyte + 1000 && reserved <= 2 * megabyte, `${reserved} reserved`)
  payload.destroy(new Error('the sender has gone'))
  await assert.rejects(body, isRefusedAs('bad_request'))
  assert.equal(budget.reservedBytes, 0)
})

test('a sender that disconnects after its body is complete takes nothing from the others', async () => {
  const gone = sent(40_000)
  gone.payload.write(Buffer.alloc(40_000, 'gone'))
  gone.payload.end()
  const whole = await gone.body
  const other = sent(40_000)
  other.payload.write(Buffer.alloc(40_000, 'stays'))
  await new Promise(setImmediate)
  gone.payload.emit('error', new Error('the sender has gone'))
  other.payload.end()
  const stays = await other.body
  assert.ok(stays.bytes.equals(Buffer.alloc(40_000, 'stays')))
  assert.ok(whole.bytes.equals(Buffer.alloc(40_000, 'gone')))
  for (const body of [whole, stays]) body.release()
})

test('a body that is too large, or finds no memory, is refused and reserves nothing afterwards', async () => {
  const declared = sent(2 * megabyte, undefined, megabyte)
  await assert.rejects(declared.body, isRefusedAs('body_too_large'))
  const undeclared = sent(undefined, undefined, megabyte)
  undeclared.payload.write(Buffer.alloc(megabyte + 1))
  await assert.rejects(undeclared.body, isRefusedAs('body_too_large'))

  const budget = new BodyBudget(megabyte, new ManualClock(0))
  const first = sent(800_000, budget)
  first.payload.write(Buffer.alloc(800_000))
  await new Promise(setImmediate)
  const second = sent(400_000, budget)
  second.payload.write(Buffer.alloc(400_000))
  await assert.rejects(second.body, isRefusedAs('overloaded'))
  assert.equal(budget.reservedBytes, emptyBodyBytes + 800_000)
  first.payload.end()
  const body = await first.body
  assert.equal(body.bytes.length, 800_000)
  body.release()
  for (const { budget: own } of [declared, undeclared, first]) assert.equal(own.reservedBytes, 0)
})

test('a body of single bytes reserves about as much memory as one in large pieces', async () => {
  const { payload, budget, body } = sent(undefined)
  for (let i = 0; i < 20_000; i++) payload.write(Buffer.from([i & 0xff]))
  await new Promise(setImmediate)
  assert.equal(budget.reservedBytes - emptyBodyBytes, 32 * 1024)
  payload.end()
  const read = await body
  assert.ok(read.bytes.equals(Buffer.from(Array.from({ length: 20_000 }, (_, i) => i & 0xff))))
  read.release()
})

test('a body that stops ends with request_timeout, and its memory is freed', async () => {
  const clock = new ManualClock(0)
  const budget = new BodyBudget(64 * megabyte, clock)
  const { payload, body } = sent(6 * megabyte, budget)
  const refused = assert.rejects(body, isRefusedAs('request_timeout'))
  payload.write(Buffer.alloc(5 * megabyte))
  await new Promise(setImmediate)
  for (let i = 0; i < 5; i++) {
    await clock.advance(5000)
    await new Promise(setImmediate)
    await new Promise(setImmediate)
  }
  await refused
  assert.equal(budget.reservedBytes, 0)
})

test('a complete body that waits is ended for a neighbour, and never read as an empty one', async () => {
  const budget = new BodyBudget(megabyte, new ManualClock(0))
  const flood = sent(900_000, budget)
  flood.payload.end(Buffer.alloc(900_000))
  const waiting = await flood.body
  const calm = sent(200_000, budget, megabyte, 'globex')
  calm.payload.end(Buffer.alloc(200_000))
  const body = await calm.body
  assert.throws(() => waiting.bytes, isRefusedAs('overloaded'))
  waiting.release()
  body.release()
  assert.equal(budget.reservedBytes, 0)
})
