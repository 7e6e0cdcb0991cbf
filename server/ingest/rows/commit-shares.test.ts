// How much of the commits an organisation may use: everything while it is alone, small parts beside others,
// with pauses while it sends most of what arrives.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ManualClock } from '../../core/manual-clock.ts'
import { groupBytes } from './commit-parts.ts'
import { CommitShares } from './commit-shares.ts'

const megabyte = 1024 * 1024

/**
 * Cores are short unless a test says otherwise.
 *
 * @param waiting bytes that wait of each organisation; 20 MiB of those that it does not name
 */
function scene({ waiting = {}, areCoresShort = true }: Scene = {}) {
  const clock = new ManualClock(1_767_600_000_000)
  const cores = { areShort: areCoresShort }
  const shares = new CommitShares({
    clock,
    reservedBy: (tenantId) => waiting[tenantId] ?? 20 * megabyte,
    areCoresShort: () => cores.areShort,
  })
  return { clock, cores, shares }
}

interface Scene {
  readonly waiting?: Readonly<Record<string, number>>
  readonly areCoresShort?: boolean
}

const calmly = { calm: 3 * megabyte }

/** Of a body and of its rows. */
function receive(shares: CommitShares, tenantId: string, megabytes: number): void {
  shares.received(tenantId, megabytes * megabyte)
  shares.count(tenantId, megabytes * megabyte)
}

/** Every organisation sends its megabytes in each of some steps of 200 ms. */
async function send({ clock, shares }: ReturnType<typeof scene>, sent: Record<string, number>, steps = 20) {
  for (let step = 0; step < steps; step++) {
    for (const [tenantId, megabytes] of Object.entries(sent)) receive(shares, tenantId, megabytes)
    await clock.advance(200)
  }
}

/** Returns the pauses after a commit of 8 MiB of each that has taken no time, milliseconds. */
function pausesAfterCommit({ shares }: ReturnType<typeof scene>, tenantIds: readonly string[]) {
  const slices = tenantIds.flatMap((tenantId) =>
    [3, 5].map((megabytes) => ({
      place: { tenantId },
      bytes: megabytes * megabyte,
      partitions: new Set([1]),
    })),
  )
  shares.ended(slices, shares.nowMs())
  return tenantIds.map((tenantId) => shares.pauseMs(tenantId))
}

test('an organisation that is alone has whole commits and no pause', async () => {
  const alone = scene()
  await send(alone, { flood: 20 })
  assert.deepEqual([alone.shares.mostBytes('flood'), alone.shares.isLimited('flood')], [groupBytes, false])
  assert.deepEqual(pausesAfterCommit(alone, ['flood']), [0])
})

test('beside an organisation that is no flood all floods pause while cores are short, and it does not', async () => {
  const beside = scene({ waiting: calmly })
  await send(beside, { calm: 2, one: 5, other: 4, third: 5 })
  const all = ['one', 'other', 'third', 'calm']
  assert.deepEqual(
    all.map((one) => beside.shares.isLimited(one)),
    [true, true, true, false],
  )
  const [one = 0, other, third, calm] = pausesAfterCommit(beside, all)
  assert.ok(one > 0)
  assert.deepEqual([other, third, calm], [one, one, 0])
  await beside.clock.advance(one - 1)
  assert.equal(beside.shares.pauseMs('one'), 1)
  await beside.clock.advance(1)
  assert.equal(beside.shares.pauseMs('one'), 0)
})

test('floods together may commit three tenths of what arrives', async () => {
  const beside = scene({ waiting: calmly })
  await send(beside, { calm: 2, one: 9, other: 9 }, 40)
  // 20 MiB in 200 ms are 100 MiB in a second: each may commit 15 MiB in a second, or 8 MiB in 533 ms.
  const [one = 0, other = 0] = pausesAfterCommit(beside, ['one', 'other'])
  assert.ok(Math.abs(one - 533) < 60, `${one} ms`)
  assert.equal(other, one)
})

test('a flood may commit at half the rate of an organisation that is none', async () => {
  const beside = scene({ waiting: calmly })
  const floods = { one: 0.5, two: 0.5, three: 0.5, four: 0.5 }
  await send(beside, { calm: 4, ...floods }, 40)
  // The calm one sends 20 MiB in a second, so a flood may commit 8 MiB in 800 ms.
  const [pauseMs = 0] = pausesAfterCommit(beside, ['one'])
  assert.ok(Math.abs(pauseMs - 800) < 100, `${pauseMs} ms`)
})

test('no pause is longer than two seconds, and it counts from when the commit began', async () => {
  const beside = scene({ waiting: { calm: 0 } })
  await send(beside, { calm: 0.1, flood: 0.5 }, 40)
  assert.deepEqual(pausesAfterCommit(beside, ['flood']), [2000])
  const slice = { place: { tenantId: 'flood' }, bytes: megabyte, partitions: new Set([1]) }
  await beside.clock.advance(2000)
  beside.shares.ended([slice], beside.shares.nowMs() - 60_000)
  assert.equal(beside.shares.pauseMs('flood'), 0)
})

test('rows that came while an erasure locked their placement make no flood, for as long as it may take to catch up', async () => {
  const waiting: Record<string, number> = { calm: 0, own: 0 }
  const { clock, shares } = scene({ waiting })
  const arrive = async (megabytes: number, isLockedOut: boolean) => {
    waiting.own = (waiting.own ?? 0) + megabytes * megabyte
    shares.count('own', megabytes * megabyte, isLockedOut)
    shares.count('calm', megabyte)
    await clock.advance(200)
  }
  for (let step = 0; step < 10; step++) await arrive(2, true)
  for (let step = 0; step < 8; step++) await arrive(1, false)
  assert.equal(shares.isLimited('own'), false, 'twenty of its 28 MiB came during the lock')
  await arrive(1, false)
  assert.equal(shares.isLimited('own'), true, 'nine came after it')
})

test('who erases all the time is a flood where it has much waiting that came between the locks', async () => {
  const { clock, shares } = scene({ waiting: calmly })
  for (let step = 0; step < 20; step++) {
    shares.count('flood', 0.5 * megabyte, step % 2 === 0)
    shares.count('calm', megabyte)
    await clock.advance(200)
  }
  assert.equal(shares.isLimited('flood'), true)
})

test('where only floods send, none of them pauses', async () => {
  const waiting: Record<string, number> = { one: 0, other: 0 }
  const floods = scene({ waiting })
  await send(floods, { one: 5, other: 4 }, 1)
  for (const each of Object.keys(waiting)) delete waiting[each]
  await send(floods, { one: 5, other: 4 })
  assert.ok(floods.shares.mostBytes('one') <= groupBytes / 4)
  assert.deepEqual(pausesAfterCommit(floods, ['one', 'other']), [0, 0])
})

test('an organisation that sends most is no flood where all that it has fits into a commit', async () => {
  const usual = scene({ waiting: { usual: 8 * megabyte, little: 0 } })
  await send(usual, { usual: 9, little: 0.01 })
  assert.ok(!usual.shares.isLimited('usual'))
  assert.deepEqual(pausesAfterCommit(usual, ['usual']), [0])
})

test('a flood has no limit while cores are free, and loses it within seconds after they are', async () => {
  const free = scene({ waiting: calmly, areCoresShort: false })
  await send(free, { calm: 1, flood: 5 })
  assert.deepEqual(pausesAfterCommit(free, ['flood']), [0])
  free.cores.areShort = true
  await send(free, { calm: 1, flood: 5 })
  assert.ok(free.shares.isLimited('flood'))
  free.cores.areShort = false
  await send(free, { calm: 1, flood: 5 }, 40)
  assert.ok(!free.shares.isLimited('flood'))
})

test('a flood counts as none four seconds after it had much waiting for the last time', async () => {
  const waiting: Record<string, number> = { calm: 0 }
  const beside = scene({ waiting })
  await send(beside, { calm: 1, flood: 5 })
  waiting.flood = 2 * megabyte
  await send(beside, { calm: 1, flood: 0.1 }, 19)
  assert.ok(beside.shares.isLimited('flood'))
  await send(beside, { calm: 1, flood: 0.1 }, 3)
  assert.ok(!beside.shares.isLimited('flood'))
})

/** Sends each 50 ms; in the second half of a pause only rows that were sent before, unless `always`. */
async function sendInPause({ clock, shares }: ReturnType<typeof scene>, pauseMs: number, always: boolean) {
  for (let ms = 0; ms < pauseMs; ms += 50) {
    if (always || ms < pauseMs / 2) receive(shares, 'flood', 1.25)
    else shares.count('flood', 1.25 * megabyte)
    receive(shares, 'calm', 0.5)
    await clock.advance(Math.min(50, pauseMs - ms))
  }
  assert.equal(shares.pauseMs('flood'), 0)
}

test('who sends as much in three pauses as before is no flood, for as long as it may take to catch up', async () => {
  const beside = scene({ waiting: calmly })
  await send(beside, { calm: 2, flood: 5 })
  for (let pauses = 0; pauses < 3; pauses++) {
    assert.equal(beside.shares.isLimited('flood'), true)
    const [pause = 0] = pausesAfterCommit(beside, ['flood'])
    assert.ok(pause >= 200)
    await sendInPause(beside, pause, true)
  }
  assert.equal(beside.shares.isLimited('flood'), false)
  assert.deepEqual(pausesAfterCommit(beside, ['flood']), [0])
  await send(beside, { calm: 2, flood: 5 }, 18)
  assert.equal(beside.shares.isLimited('flood'), false)
  await send(beside, { calm: 2, flood: 5 }, 4)
  assert.equal(beside.shares.isLimited('flood'), true)
})

test('who sends nothing in the second half of one of three pauses stays a flood', async () => {
  const beside = scene({ waiting: calmly })
  await send(beside, { calm: 2, flood: 5 })
  for (const always of [true, true, false, true, false, true, true]) {
    const [pause = 0] = pausesAfterCommit(beside, ['flood'])
    await sendInPause(beside, pause, always)
    assert.equal(beside.shares.isLimited('flood'), true)
  }
})

test('the limit ends within ten seconds after the others have sent their last', async () => {
  const { clock, shares } = scene()
  shares.count('calm', megabyte)
  for (let second = 0; second < 10; second++) {
    shares.count('flood', 9 * megabyte)
    if (second < 5) assert.ok(shares.mostBytes('flood') < groupBytes)
    await clock.advance(1000)
  }
  shares.count('flood', 9 * megabyte)
  assert.equal(shares.mostBytes('flood'), groupBytes)
})

test('a flood pauses for the partitions of its commit, not only for its bytes', async () => {
  const beside = scene({ waiting: calmly })
  await send(beside, { calm: 2, flood: 5 })
  const [pauseMs = 0] = pausesAfterCommit(beside, ['flood'])
  assert.ok(pauseMs > 0)
  const partitions = (from: number) => new Set(Array.from({ length: 72 }, (_, at) => from + at))
  const slices = [0, 72].map((from) => ({
    place: { tenantId: 'flood' },
    bytes: 20_000,
    partitions: partitions(from),
  }))
  beside.shares.ended(slices, beside.shares.nowMs())
  assert.equal(beside.shares.pauseMs('flood'), pauseMs)
})
