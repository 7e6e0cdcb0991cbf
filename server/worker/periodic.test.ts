// The loop of all background work, with a manual clock. The database of the lease is a private one in memory.
// Each test waits for the loop to sleep before it advances time, so nothing depends on speed.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import pino from 'pino'
import { openControlPlane } from '../../tests/control-planes.ts'
import { ManualClock } from '../core/manual-clock.ts'
import { LeaseLost, Leases } from './lease.ts'
import { Periodic } from './periodic.ts'

const { control } = await openControlPlane()
const everyMs = 1000
const leaseMs = 10_000
let loops = 0

/** Runs everything that is ready until the condition is true; a condition that never is ends the test run. */
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await turn()
}

/** `storeOf` wraps the store of the loop's leases. */
function scene(
  round: (signal: AbortSignal) => Promise<void>,
  storeOf: (leases: Leases) => Pick<Leases, 'take' | 'release'> = (leases) => leases,
) {
  const clock = new ManualClock(0)
  const name = `loop-${++loops}`
  const logged: string[] = []
  const loop = new Periodic({
    name,
    everyMs,
    leaseMs,
    clock,
    leases: storeOf(new Leases(control, clock, 'this process')),
    logger: pino({ level: 'error' }, { write: (line: string) => void logged.push(line) }),
    round,
  })
  return { clock, name, logged, loop, others: new Leases(control, clock, 'another process') }
}

/** A promise that the test settles. */
function door() {
  let open = () => {}
  const passed = new Promise<void>((resolve) => {
    open = resolve
  })
  return { open, passed }
}

test('a round runs at the start and then once per period', async () => {
  let rounds = 0
  const { clock, loop } = scene(async () => void rounds++)
  loop.start()
  await until(() => clock.waiting === 1)
  assert.equal(rounds, 1)
  await clock.advance(everyMs - 1)
  assert.equal(rounds, 1)
  await clock.advance(1)
  await until(() => clock.waiting === 1)
  assert.equal(rounds, 2)
  await loop.stop()
})

test('starting twice is starting once', async () => {
  let rounds = 0
  const { clock, loop } = scene(async () => void rounds++)
  loop.start()
  loop.start()
  await until(() => clock.waiting > 0)
  assert.deepEqual([rounds, clock.waiting], [1, 1])
  await loop.stop()
})

test('rounds never overlap: a long one delays the next, with or without a nudge', async () => {
  const gates = [door(), door()]
  let running = 0
  let most = 0
  let begun = 0
  const { clock, loop } = scene(async () => {
    most = Math.max(most, ++running)
    await gates[begun++]?.passed
    running--
  })
  loop.start()
  await until(() => begun === 1)
  loop.nudge()
  await clock.advance(10 * everyMs)
  assert.equal(begun, 1)
  gates[0]?.open()
  await until(() => begun === 2)
  gates[1]?.open()
  await until(() => clock.waiting === 1)
  assert.equal(most, 1)
  await loop.stop()
})

test('a nudge during the pause begins the next round at once', async () => {
  let rounds = 0
  const { clock, loop } = scene(async () => void rounds++)
  loop.start()
  await until(() => clock.waiting === 1)
  loop.nudge()
  await until(() => rounds === 2 && clock.waiting === 1)
  assert.equal(clock.nowMs(), 0)
  await loop.stop()
})

test('a nudge during a round takes effect right after it, once', async () => {
  const gate = door()
  let rounds = 0
  const { clock, loop } = scene(async () => {
    if (++rounds === 1) await gate.passed
  })
  loop.start()
  await until(() => rounds === 1)
  loop.nudge()
  gate.open()
  await until(() => rounds === 2 && clock.waiting === 1)
  assert.equal(clock.nowMs(), 0)
  await loop.stop()
})

test('a round that throws is logged with the loop’s name, and the next one comes as usual', async () => {
  let rounds = 0
  const { clock, logged, loop, name } = scene(async () => {
    if (++rounds === 1) throw new Error('the store is away')
  })
  loop.start()
  await until(() => clock.waiting === 1)
  assert.equal(logged.length, 1)
  assert.match(logged[0] ?? '', /the store is away/)
  assert.ok(logged[0]?.includes(name))
  await clock.advance(everyMs)
  await until(() => clock.waiting === 1)
  assert.deepEqual([rounds, logged.length], [2, 1])
  await loop.stop()
})

test('while another process has the lease there is no round, and there is one when it expires', async () => {
  let rounds = 0
  const { clock, loop, name, others } = scene(async () => void rounds++)
  assert.equal(await others.take(name, 1500), true)
  loop.start()
  await until(() => clock.waiting === 1)
  await clock.advance(everyMs)
  await until(() => clock.waiting === 1)
  assert.equal(rounds, 0)
  await clock.advance(everyMs)
  await until(() => clock.waiting === 1)
  assert.equal(rounds, 1)
  await loop.stop()
})

/** A round that blocks until the test releases it, and the reason of its signal. */
function longRound() {
  const end = door()
  const seen: { begun: number; reason: object | null } = { begun: 0, reason: null }
  const round = async (signal: AbortSignal) => {
    seen.begun++
    const stopped = door()
    signal.addEventListener('abort', () => {
      seen.reason = signal.reason
      stopped.open()
    })
    await Promise.race([end.passed, stopped.passed])
  }
  return { end, seen, round }
}

test('a round that takes longer than its lease keeps it, and releases it at the end', async () => {
  const { end, round, seen } = longRound()
  const { clock, loop, logged, name, others } = scene(round)
  loop.start()
  await until(() => clock.waiting === 1)
  for (let passedMs = 0; passedMs < 5 * leaseMs; passedMs += 1000) {
    await clock.advance(1000)
    assert.equal(await others.take(name, 1000), false, `after ${passedMs} ms`)
    await until(() => clock.waiting === 1)
  }
  assert.deepEqual([seen.reason, logged], [null, []])
  end.open()
  await until(() => clock.waiting === 1)
  await loop.stop()
  assert.equal(await others.take(name, 1000), true)
})

test('a round whose lease another process has taken is stopped with that reason, and begins again when it is free', async () => {
  const { round, seen } = longRound()
  const { clock, loop, logged, name, others } = scene(round)
  loop.start()
  await until(() => clock.waiting === 1)
  // The clock is set, so that the lease looks expired.
  clock.set(leaseMs)
  assert.equal(await others.take(name, 2 * leaseMs), true)
  await clock.advance(leaseMs / 4)
  await until(() => clock.waiting === 1)
  assert.ok(seen.reason instanceof LeaseLost)
  assert.match(logged.join(), /a lease was lost/)
  assert.equal(seen.begun, 1)
  await clock.advance(everyMs)
  await until(() => clock.waiting === 1)
  assert.equal(seen.begun, 1, 'the other process has it')
  await others.release(name)
  seen.reason = null
  await clock.advance(everyMs)
  await until(() => seen.begun === 2)
  assert.equal(seen.reason, null, 'the new round is not stopped by the reason of the old one')
  await loop.stop()
})

test('a failed renewal is tried again, and one that continues to fail loses the lease before it has expired', async () => {
  let isAway = false
  const { round, seen } = longRound()
  const { clock, loop, name, others } = scene(round, (leases) => ({
    take: async (...asked) => {
      if (isAway) throw new Error('the store is away')
      return leases.take(...asked)
    },
    release: (given) => leases.release(given),
  }))
  loop.start()
  await until(() => clock.waiting === 1)
  const pass = async (ms: number) => {
    await clock.advance(ms)
    await until(() => clock.waiting === 1)
  }
  isAway = true
  await pass(leaseMs / 5)
  await pass(leaseMs / 5)
  isAway = false
  await pass(leaseMs / 5)
  isAway = true
  await pass(leaseMs / 5)
  await pass(leaseMs / 5)
  await pass(leaseMs / 5)
  assert.equal(seen.reason, null, 'it counts from the renewal that was made')
  await clock.advance(leaseMs / 5)
  await until(() => seen.reason !== null)
  assert.deepEqual(String(seen.reason), String(new LeaseLost(name)))
  assert.equal(await others.take(name, 1000), false, 'there was still time to stop')
  await loop.stop()
})

test('a renewal without a result loses the lease in time', async () => {
  const unanswered = door()
  let asked = 0
  const { round, seen } = longRound()
  const { clock, loop, name, others } = scene(round, (leases) => ({
    take: async (...given) => {
      if (++asked > 1) await unanswered.passed
      return leases.take(...given)
    },
    release: (given) => leases.release(given),
  }))
  loop.start()
  await until(() => clock.waiting === 1)
  await clock.advance(leaseMs / 5)
  await until(() => asked === 2 && clock.waiting === 1)
  await clock.advance((3 * leaseMs) / 4 - leaseMs / 5)
  await until(() => seen.reason !== null)
  assert.ok(seen.reason instanceof LeaseLost)
  assert.equal(await others.take(name, 1000), false, 'there was still time to stop')
  unanswered.open()
  await loop.stop()
})

test('stopping aborts the running round, waits for it, and releases the lease', async () => {
  const gate = door()
  let signalled = false
  let finished = false
  let begun = false
  const { loop, name, others } = scene(async (signal) => {
    begun = true
    signal.addEventListener('abort', () => {
      signalled = true
    })
    await gate.passed
    finished = true
  })
  loop.start()
  await until(() => begun)
  let stopped = false
  const stopping = loop.stop().then(() => {
    stopped = true
  })
  await turn()
  assert.deepEqual([signalled, finished, stopped], [true, false, false])
  assert.equal(await others.take(name, 1000), false)
  gate.open()
  await stopping
  assert.equal(finished, true)
  assert.equal(await others.take(name, 1000), true)
})

test('stopping during the pause ends at once, without another round', async () => {
  let rounds = 0
  const { clock, loop } = scene(async () => void rounds++)
  loop.start()
  await until(() => clock.waiting === 1)
  await loop.stop()
  assert.deepEqual([rounds, clock.waiting], [1, 0])
})

test('a loop that was never started stops too', async () => {
  const { loop } = scene(async () => {})
  await loop.stop()
})
