// How many statements pages without a token send to the control-plane database, and what they report about
// it.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AppError } from '../core/app-error.ts'
import { ManualClock } from '../core/manual-clock.ts'
import { ControlWatch } from './control-watch.ts'

const clock = new ManualClock(1_767_000_000_000)
const elapsedMs = () => clock.elapsedMs()

test('however many ask, the database gets one statement a second, and everybody has its answer', async () => {
  let statements = 0
  const watch = new ControlWatch({ clock, elapsedMs, ask: async () => ++statements })
  const everybody = () => Promise.all(Array.from({ length: 1000 }, () => watch.fault()))
  for (const ms of [0, 500, 499]) {
    await clock.advance(ms)
    assert.deepEqual(new Set(await everybody()), new Set([null]))
  }
  assert.equal(statements, 1)
  await clock.advance(1)
  await everybody()
  assert.equal(statements, 2)
})

test('a database that never answers is reported after two seconds, and gets no second statement until it does', async () => {
  let statements = 0
  let answer = () => {}
  const ask = () => {
    statements++
    return new Promise<void>((resolve) => {
      answer = resolve
    })
  }
  const watch = new ControlWatch({ clock, elapsedMs, ask })
  const first = watch.fault()
  await clock.advance(2_000)
  const sentence = 'The control-plane database does not answer within 2 s.'
  assert.equal(await first, sentence)
  await clock.advance(60_000)
  assert.equal(await watch.fault(), sentence)
  assert.equal(statements, 1)
  answer()
  await new Promise((resolve) => setImmediate(resolve))
  const next = watch.fault()
  assert.equal(statements, 2)
  answer()
  assert.equal(await next, null)
  assert.equal(clock.waiting, 0, 'nothing waits for a time that no longer matters')
})

test('a refusal is reported with its sentence, and any other error without its text', async () => {
  const faultOf = (error: Error) =>
    new ControlWatch({ clock, elapsedMs, ask: () => Promise.reject(error) }).fault()
  const sentence = 'The control-plane database is read-only.'
  assert.equal(await faultOf(new AppError('storage_unavailable', { sentence })), sentence)
  assert.equal(
    await faultOf(new Error('relation of lethe_internal')),
    'The control-plane database returns an error.',
  )
})
