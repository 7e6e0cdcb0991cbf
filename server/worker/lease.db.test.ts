// Leases in a real database; each holder has its own handle, as two processes would. With a manual clock that
// also goes back.

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { openSharedControlPlane } from '../../tests/control-planes.ts'
import { ManualClock } from '../core/manual-clock.ts'
import { LeaseLost, Leases, underLease } from './lease.ts'

const { another, close, control: controlA } = await openSharedControlPlane()
const controlB = another()
after(close)

let names = 0
/** Two holders, an unused lease name, and the clock of both. */
function scene() {
  const clock = new ManualClock(1_763_717_400_000)
  return {
    name: `lease-${++names}`,
    clock,
    a: new Leases(controlA, clock, 'holder-a'),
    b: new Leases(controlB, clock, 'holder-b'),
  }
}

test('of two holders one has the lease, and keeps it by renewing', async () => {
  const { name, clock, a, b } = scene()
  assert.equal(await a.take(name, 1000), true)
  assert.equal(await b.take(name, 1000), false)
  await clock.advance(900)
  assert.equal(await a.take(name, 1000), true)
  await clock.advance(900)
  assert.equal(await b.take(name, 1000), false, 'the renewal counts from when it was made')
})

test('a lease that is not renewed expires at its end and not before', async () => {
  const { name, clock, a, b } = scene()
  await a.take(name, 1000)
  await clock.advance(999)
  assert.equal(await b.take(name, 1000), false)
  await clock.advance(1)
  assert.equal(await b.take(name, 1000), true)
  assert.equal(await a.take(name, 1000), false, 'who lost it can’t renew it')
})

test('of many concurrent attempts exactly one gets the lease', async () => {
  const { name, clock } = scene()
  const holders = Array.from(
    { length: 10 },
    (_, i) => new Leases(i % 2 === 0 ? controlA : controlB, clock, `holder-${i}`),
  )
  const held = await Promise.all(holders.map((holder) => holder.take(name, 1000)))
  assert.equal(held.filter(Boolean).length, 1)
  await clock.advance(1000)
  const again = await Promise.all(holders.map((holder) => holder.take(name, 1000)))
  assert.equal(again.filter(Boolean).length, 1)
})

test('a released lease is free at once, and only its holder can release it', async () => {
  const { name, a, b } = scene()
  await a.take(name, 1000)
  await b.release(name)
  assert.equal(await b.take(name, 1000), false)
  await a.release(name)
  assert.equal(await b.take(name, 1000), true)
})

test('leases of different names are independent', async () => {
  const { name, a, b } = scene()
  assert.equal(await a.take(name, 1000), true)
  assert.equal(await b.take(`${name}-other`, 1000), true)
})

test('a clock that goes back never gives the lease to two, and its owner renews from the new time', async () => {
  const { name, clock, a, b } = scene()
  await a.take(name, 1000)
  await clock.advance(-3_600_000)
  assert.equal(await b.take(name, 1000), false)
  assert.equal(await a.take(name, 1000), true)
  await clock.advance(1000)
  assert.equal(await b.take(name, 1000), true, 'and nobody waits an hour for it')
})

test('work under a lease sees that it is lost, and not that the service is stopped', async () => {
  const lost = new LeaseLost('deletion')
  for (const [reason, seen] of [
    [lost, true],
    [undefined, false],
  ] as const) {
    const before = await underLease(AbortSignal.abort(reason), async (lease) => lease)
    assert.equal(before.aborted, seen)
    const loop = new AbortController()
    const lease = await underLease(loop.signal, async (given) => {
      assert.equal(given.aborted, false)
      loop.abort(reason)
      return given
    })
    assert.equal(lease.aborted, seen)
    if (seen) assert.equal(lease.reason, lost)
  }
})
