// The rate at which a body has to arrive.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ManualClock } from '../core/manual-clock.ts'
import { type Arrival, Arrivals } from './arrivals.ts'

class Watched {
  readonly clock = new ManualClock(1_000_000)
  readonly arrivals = new Arrivals(this.clock)
  readonly slow: string[] = []

  open(name: string): Arrival {
    return this.arrivals.open(() => this.slow.push(name))
  }

  /** Advances the clock by seconds, one after the other. */
  async pass(seconds: number, eachSecond: () => void = () => {}): Promise<void> {
    for (let i = 0; i < seconds; i++) {
      eachSecond()
      await this.clock.advance(1000)
      // The check itself takes one more turn of the event loop.
      await new Promise(setImmediate)
      await new Promise(setImmediate)
    }
  }
}

test('a body that stops is ended after its grace period, however much it brought before', async () => {
  const watched = new Watched()
  watched.open('stopped').took(6_500_000)
  watched.open('nothing')
  await watched.pass(9)
  assert.deepEqual(watched.slow, [])
  await watched.pass(6)
  assert.deepEqual(watched.slow, ['nothing'])
  await watched.pass(10)
  assert.deepEqual(watched.slow, ['nothing', 'stopped'])
})

test('a body that is too slow is ended, and one over a slow uplink is not', async () => {
  const watched = new Watched()
  const [trickle, gprs] = [watched.open('trickle'), watched.open('gprs')]
  await watched.pass(50, () => {
    trickle.took(1)
    gprs.took(3_000)
  })
  assert.deepEqual(watched.slow, ['trickle'])
})

test('a body that pauses for five seconds and then continues is not ended', async () => {
  const watched = new Watched()
  const body = watched.open('pausing')
  for (let round = 0; round < 4; round++) {
    await watched.pass(5)
    await watched.pass(5, () => body.took(20_000))
  }
  assert.deepEqual(watched.slow, [])
})

test('a body is ended after a minute, however steadily it arrives', async () => {
  const watched = new Watched()
  const body = watched.open('endless')
  await watched.pass(59, () => body.took(100_000))
  assert.deepEqual(watched.slow, [])
  await watched.pass(6, () => body.took(100_000))
  assert.deepEqual(watched.slow, ['endless'])
})

test('without bodies nothing is checked, and an ended body is not checked', async () => {
  const watched = new Watched()
  const body = watched.open('whole')
  assert.equal(watched.clock.waiting, 1)
  body.end()
  await watched.pass(30)
  assert.equal(watched.clock.waiting, 0)
  assert.deepEqual(watched.slow, [])
  watched.open('next')
  await watched.arrivals.close()
  assert.equal(watched.clock.waiting, 0)
})
