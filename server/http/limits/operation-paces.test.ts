// The pace of an operation, with a clock that the test advances: who waits, for how long, and who is next.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ManualClock } from '../../core/manual-clock.ts'
import { OperationPaces } from './operation-paces.ts'

const pace = { atOnce: 2, perSecond: 4 }
const stepMs = 250

/** Sends requests, and notes which have begun. */
function sending() {
  const clock = new ManualClock(1_763_717_400_000)
  const paces = new OperationPaces(clock)
  const begun: string[] = []
  const send = async (
    name: string,
    {
      branch = 'root',
      operation = 'POST /erasures',
      signal = new AbortController().signal,
      tenantId = 'acme',
    } = {},
  ) => {
    await paces.turnOf({ tenantId, line: { root: 'root', branch } }, operation, pace, signal)
    begun.push(name)
  }
  /** Advances time by so many steps, and returns what has begun since the last call. */
  const begunAfter = async (steps: number) => {
    await clock.advance(0)
    for (let step = 0; step < steps; step++) await clock.advance(stepMs)
    await new Promise((resolve) => setImmediate(resolve))
    return begun.splice(0)
  }
  return { begunAfter, send }
}

const names = (word: string, count: number) => Array.from({ length: count }, (_, at) => `${word} ${at + 1}`)

test('some requests begin at once, and further ones one after another', async () => {
  const { begunAfter, send } = sending()
  const sent = names('erasure', 5).map((name) => send(name))
  assert.deepEqual(await begunAfter(0), ['erasure 1', 'erasure 2'])
  assert.deepEqual(await begunAfter(1), ['erasure 3'])
  assert.deepEqual(await begunAfter(2), ['erasure 4', 'erasure 5'])
  await Promise.all(sent)
})

test('after a pause as many begin at once as at first, and not more', async () => {
  const { begunAfter, send } = sending()
  for (let round = 0; round < 2; round++) {
    const sent = names('erasure', 3).map((name) => send(name))
    assert.deepEqual(await begunAfter(0), ['erasure 1', 'erasure 2'])
    assert.deepEqual(await begunAfter(20), ['erasure 3'])
    await Promise.all(sent)
  }
})

test('a request does not wait for those of another organisation, or of another operation', async () => {
  const { begunAfter, send } = sending()
  const sent = [
    ...names('erasure', 3).map((name) => send(name)),
    send('neighbour', { tenantId: 'globex' }),
    send('other operation', { operation: 'POST /others' }),
  ]
  assert.deepEqual(await begunAfter(0), ['erasure 1', 'erasure 2', 'neighbour', 'other operation'])
  await begunAfter(1)
  await Promise.all(sent)
})

test('the branch of tokens that was served least is next', async () => {
  const { begunAfter, send } = sending()
  const sent = names('stolen', 6).map((name) => send(name, { branch: 'stolen' }))
  await begunAfter(1)
  sent.push(...names('owner', 2).map((name) => send(name)))
  assert.deepEqual(await begunAfter(5), ['owner 1', 'stolen 4', 'owner 2', 'stolen 5', 'stolen 6'])
  await Promise.all(sent)
})

test('a request whose client is gone takes no time of the others', async () => {
  const { begunAfter, send } = sending()
  const gone = new AbortController()
  const sent = [
    ...names('erasure', 2).map((name) => send(name)),
    send('gone', { signal: gone.signal }),
    send('erasure 3'),
  ]
  await begunAfter(0)
  gone.abort()
  assert.deepEqual(await begunAfter(0), ['gone'], 'its handler learns that it is gone')
  assert.deepEqual(await begunAfter(1), ['erasure 3'])
  await Promise.all(sent)
})

test('what would wait too long is refused, but not the first request of a branch', async () => {
  const { begunAfter, send } = sending()
  const sent = names('stolen', 2 + 20).map((name) => send(name, { branch: 'stolen' }))
  await assert.rejects(send('stolen 23', { branch: 'stolen' }), {
    code: 'too_many_requests',
    retryAfterSeconds: 1,
    message: '20 such requests of your organisation wait; wait for a response before the next one.',
  })
  sent.push(send('owner'))
  await begunAfter(0)
  assert.ok((await begunAfter(2)).includes('owner'))
  await begunAfter(20)
  await Promise.all(sent)
})
