// Streams of two organisations that have everything at once: who reads how much before whom.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { setImmediate as nextRound } from 'node:timers/promises'
import { elapsedMs } from '../core/clock.ts'
import { LoopTurns } from '../core/turns/loop-turns.ts'
import { ReadTurns } from './read-turns.ts'

const piece = Buffer.alloc(64 * 1024)

function scene() {
  const reads = new ReadTurns(new LoopTurns({ nowMs: elapsedMs }))
  const order: string[] = []
  /** Reads a stream of this many pieces, which have all arrived. */
  const read = (tenantId: string, pieces: number) => {
    let left = pieces
    const stream = new Readable({
      read() {
        this.push(left-- > 0 ? piece : null)
      },
    })
    stream.on('data', (chunk: Buffer) => {
      order.push(tenantId)
      reads.took(tenantId, stream, chunk.length)
    })
    return { stream, ended: once(stream, 'end') }
  }
  return { order, read }
}

test('a sender with forty connections at once does not delay the body of another organisation', async () => {
  const { order, read } = scene()
  const flood = Array.from({ length: 40 }, () => read('flood', 64))
  const calm = read('calm', 16)
  await calm.ended
  const before = order.filter((tenantId) => tenantId === 'flood').length
  assert.ok(before <= 400, `${before} pieces of ${40 * 64} before`)
  await Promise.all(flood.map(({ ended }) => ended))
  assert.equal(order.length, 40 * 64 + 16)
})

test('a body of the usual size is read without a pause', async () => {
  const { read } = scene()
  const { stream, ended } = read('acme', 8)
  let pauses = 0
  stream.on('pause', () => pauses++)
  await ended
  assert.equal(pauses, 0)
})

test('what an organisation reads freely is for five milliseconds, however many rounds the loop has meanwhile', async () => {
  let ms = 0
  const reads = new ReadTurns(new LoopTurns({ nowMs: elapsedMs }), () => ms)
  /** Reads as many pieces, each in a round of its own, and returns how often the stream was paused. */
  const pausesIn = async (pieces: number) => {
    const stream = new Readable({ read() {} })
    let pauses = 0
    stream.on('pause', () => pauses++)
    stream.resume()
    for (let i = 0; i < pieces; i++) {
      reads.took('acme', stream, piece.length)
      await nextRound()
    }
    return pauses
  }
  assert.equal(await pausesIn(8), 0)
  assert.equal(await pausesIn(1), 1)
  ms = 5
  assert.equal(await pausesIn(8), 0)
})

test('a stream that ends while it waits takes the turn of no other', async () => {
  const { order, read } = scene()
  const gone = read('acme', 64)
  gone.ended.catch(() => {})
  const rest = read('acme', 20)
  await new Promise(setImmediate)
  gone.stream.destroy()
  await rest.ended
  assert.ok(order.length < 84)
})
