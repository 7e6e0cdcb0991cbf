// A body on its way from a sender: whole whatever its pieces are, and no more memory than its sender has paid for.

import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { PassThrough } from 'node:stream'
import { test } from 'node:test'
import fc from 'fast-check'
import { AppError } from '../core/app-error.ts'
import { BodyBudget } from './body-budget.ts'
import { type IngestBody, readBody } from './read-body.ts'

const megabyte = 1024 * 1024

/** What a sender sends, by pieces, after a header that says how much it will be. */
function sent(
  declared: number | undefined,
  budget = new BodyBudget(64 * megabyte),
  limitBytes = 16 * megabyte,
) {
  const payload = new PassThrough({ highWaterMark: 64 * megabyte })
  const headers = declared === undefined ? {} : { 'content-length': String(declared) }
  const incoming = Object.assign(payload, { headers }) as unknown as IncomingMessage
  return { payload, budget, body: readBody(incoming, incoming, { limitBytes, budget }) }
}

const isRefusedAs = (code: string) => (error: unknown) => error instanceof AppError && error.code === code

test('a body is what was sent, however it was cut and whatever was declared', async () => {
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
      assert.equal(budget.heldBytes, whole.length)
      read.release()
      read.release()
      assert.equal(read.bytes.length, 0)
      assert.equal(budget.heldBytes, 0)
    }),
  )
})

test('a body counts as it arrives, whatever its sender declares, and goes with its sender', async () => {
  const { payload, budget, body } = sent(16 * megabyte)
  assert.equal(budget.heldBytes, 0)
  payload.write(Buffer.alloc(1000))
  await new Promise(setImmediate)
  assert.equal(budget.heldBytes, 1000)
  payload.write(Buffer.alloc(megabyte))
  await new Promise(setImmediate)
  assert.equal(budget.heldBytes, megabyte + 1000)
  payload.destroy(new Error('the sender has gone'))
  await assert.rejects(body, isRefusedAs('bad_request'))
  assert.equal(budget.heldBytes, 0)
})

test('a sender who goes when its body is whole takes nothing from the others', async () => {
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

test('what is too large or finds no room is refused, and holds nothing from then on', async () => {
  const declared = sent(2 * megabyte, undefined, megabyte)
  await assert.rejects(declared.body, isRefusedAs('body_too_large'))
  const undeclared = sent(undefined, undefined, megabyte)
  undeclared.payload.write(Buffer.alloc(megabyte + 1))
  await assert.rejects(undeclared.body, isRefusedAs('body_too_large'))

  const budget = new BodyBudget(megabyte)
  const first = sent(800_000, budget)
  first.payload.write(Buffer.alloc(800_000))
  await new Promise(setImmediate)
  const second = sent(400_000, budget)
  second.payload.write(Buffer.alloc(400_000))
  await assert.rejects(second.body, isRefusedAs('overloaded'))
  assert.equal(budget.heldBytes, 800_000)
  first.payload.end()
  const body = await first.body
  assert.equal(body.bytes.length, 800_000)
  body.release()
  for (const { budget: own } of [declared, undeclared, first]) assert.equal(own.heldBytes, 0)
})
