// The fair pool: which work begins next, with a clock and with ends of work that the test controls.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { AppError } from '../app-error.ts'
import { FairPool, type LendRequest, type WorkKind } from './fair-pool.ts'

const turn = () => new Promise((resolve) => setImmediate(resolve))

interface Under {
  readonly owner: string
  readonly end: () => void
}

/** A pool whose work ends when the test says so, `costMs` after it began. */
function poolOf(
  members: number,
  more: {
    atOnceByOwner?: number
    atOnceBesideOthers?: number
    waitingByOwner?: number
    waiting?: number
    /** Weight among owners of what clients ask for. */
    askedAmongOwners?: number
    /** Of a pause for each millisecond of work. */
    pausePerMs?: number
  } = {},
) {
  const { atOnceByOwner = members, atOnceBesideOthers, waiting = 1000, waitingByOwner = 1000 } = more
  const { askedAmongOwners = 1, pausePerMs = 0 } = more
  /** Ends of pauses, in the order in which they began. */
  const pauses: { readonly ms: number; readonly end: () => void }[] = []
  let nowMs = 0
  const beside = atOnceBesideOthers === undefined ? {} : { atOnceBesideOthers }
  const share = { weight: 4, weightAmongOwners: askedAmongOwners }
  const asked = { ...share, atOnceByOwner, ...beside, atOnce: members, waitingByOwner }
  const background = { weight: 1, atOnceByOwner: 1, atOnce: Math.max(1, members - 1), waitingByOwner }
  const names = Array.from({ length: members }, (_, i) => i)
  const pool = new FairPool(names, {
    kinds: { asked, background },
    waiting,
    nowMs: () => nowMs,
    pauses: {
      afterMs: (costMs) => costMs * pausePerMs,
      sleep: (ms) => new Promise((resolve) => pauses.push({ ms, end: resolve })),
    },
  })
  const begun: string[] = []
  const ofKind: WorkKind[] = []
  const alone: string[] = []
  const crowding: string[] = []
  const under: Under[] = []
  const lend = (owner: string, more: Partial<LendRequest> = {}) => {
    const kind = more.kind ?? 'asked'
    return pool.lend({ owner, kind, ...more }, (_, { isAlone, isCrowding }) => {
      ofKind.push(kind)
      if (isAlone) alone.push(owner)
      if (isCrowding) crowding.push(owner)
      const { promise, resolve } = Promise.withResolvers<void>()
      begun.push(owner)
      under.push({ owner, end: resolve })
      return promise
    })
  }
  /** Ends the oldest running work, of an owner where given, after it has cost `costMs`. */
  const end = async (costMs: number, owner?: string) => {
    const at = under.findIndex((one) => owner === undefined || one.owner === owner)
    nowMs += costMs
    under.splice(at, 1)[0]?.end()
    await turn()
  }
  const endAll = async (costMs = 1) => {
    while (under.length > 0) await end(costMs)
  }
  /** Ends work of 10 ms each until fifty have begun, and returns how many of them are of the owner. */
  const ofFifty = async (owner: string) => {
    await turn()
    while (begun.length < 50) await end(10)
    return begun.filter((one) => one === owner).length
  }
  /** Ends the oldest pause, before its time has passed by the clock, as a timer may. */
  const endPause = async () => {
    pauses.shift()?.end()
    await turn()
  }
  return { pool, alone, crowding, begun, ofKind, under, lend, end, endAll, ofFifty, endPause, pauses }
}

describe('a pool that is shared fairly', () => {
  test('tells an owner of whom more waits beside others, and none that is alone or asks for one thing', async () => {
    const { begun, crowding, lend, endAll } = poolOf(1)
    const first = [lend('attacker'), lend('attacker')]
    await turn()
    assert.deepEqual([begun, crowding], [['attacker'], []], 'it is alone')
    const all = [...first, lend('neighbour'), lend('attacker'), lend('attacker')]
    await endAll()
    await Promise.all(all)
    assert.deepEqual(
      [begun.filter((owner) => owner === 'attacker').length, crowding],
      [4, ['attacker', 'attacker']],
      'the last one has nothing behind it',
    )
  })

  test('counts owners that work elsewhere for that, who take no members from it', async () => {
    const { begun, crowding, endAll, lend, pool } = poolOf(2, { atOnceBesideOthers: 1 })
    pool.noteOther('attacker')
    const first = [lend('attacker'), lend('attacker'), lend('attacker')]
    await turn()
    assert.deepEqual(crowding, [], 'it is alone')
    await endAll()
    await Promise.all(first)
    pool.noteOther('sender')
    const all = [lend('attacker'), lend('attacker'), lend('attacker')]
    await turn()
    assert.equal(begun.length, 3 + 2)
    assert.deepEqual(crowding, ['attacker', 'attacker'])
    await endAll()
    await Promise.all(all)
  })

  test('pauses an owner of whom more waits beside others, serves them meanwhile, and goes on by itself', async () => {
    const { begun, lend, end, endPause, pauses } = poolOf(2, { atOnceByOwner: 1, pausePerMs: 2 })
    const all = [lend('attacker'), lend('attacker'), lend('attacker')]
    await turn()
    await end(10)
    assert.deepEqual([begun, pauses], [['attacker', 'attacker'], []], 'it is alone')
    all.push(lend('neighbour'))
    await end(10, 'attacker')
    assert.deepEqual([begun, pauses.map(({ ms }) => ms)], [['attacker', 'attacker', 'neighbour'], [20]])
    await end(5, 'neighbour')
    all.push(lend('neighbour'))
    await turn()
    assert.deepEqual(begun.slice(3), ['neighbour'], 'nothing of it waits, so it does not pause')
    await endPause()
    assert.deepEqual(begun.slice(4), ['attacker'])
    await end(1)
    await end(1)
    await Promise.all(all)
    assert.deepEqual(pauses, [], 'nothing of it waits any more')
  })

  test('serves a new owner next, however much another has queued', async () => {
    const { begun, lend, end, endAll } = poolOf(1)
    const all = Array.from({ length: 50 }, () => lend('attacker'))
    await turn()
    await end(10)
    all.push(lend('neighbour'))
    await end(10)
    assert.equal(begun.indexOf('neighbour'), 2)
    await endAll()
    await Promise.all(all)
  })

  test('counts the cost of work, not its number', async () => {
    const { begun, lend, endAll, end } = poolOf(1)
    const all = Array.from({ length: 60 }, (_, i) => lend(i % 2 === 0 ? 'dear' : 'cheap'))
    await turn()
    while (begun.length < 30) await end(begun.at(-1) === 'dear' ? 100 : 10)
    const dear = begun.filter((owner) => owner === 'dear').length
    assert.ok(dear >= 2 && dear <= 5, `${dear} of 30`)
    await endAll()
    await Promise.all(all)
  })

  test('gives an owner fewer members at once while another owner has requests', async () => {
    const { alone, begun, lend, endAll, end, under } = poolOf(4, { atOnceByOwner: 2, atOnceBesideOthers: 1 })
    const all = [lend('first'), lend('first')]
    await turn()
    assert.deepEqual(
      [begun, alone],
      [
        ['first', 'first'],
        ['first', 'first'],
      ],
    )
    all.push(lend('neighbour'), lend('neighbour'), lend('first'))
    await turn()
    assert.deepEqual(begun, ['first', 'first', 'neighbour'])
    await end(10, 'first')
    assert.deepEqual(under.map(({ owner }) => owner).sort(), ['first', 'neighbour'])
    await endAll(10)
    assert.equal(alone.length, 2)
    // The neighbour has not asked for longer than an owner counts as present.
    all.push(lend('first'))
    await end(10_000)
    all.push(lend('first'), lend('first'))
    await turn()
    assert.deepEqual(alone.slice(2), ['first', 'first'])
    await endAll()
    await Promise.all(all)
  })

  test('gives an owner nothing for the time in which it was idle', async () => {
    const { begun, lend, end, endAll } = poolOf(1)
    const all = [lend('late'), lend('busy')]
    await turn()
    await end(10)
    await end(10)
    for (let i = 0; i < 100; i++) {
      all.push(lend('busy'))
      await turn()
      await end(10)
    }
    const from = begun.length
    for (let i = 0; i < 10; i++) all.push(lend('busy'), lend('late'))
    await turn()
    for (let i = 0; i < 10; i++) await end(10)
    const late = begun.slice(from, from + 10).filter((owner) => owner === 'late').length
    assert.ok(late >= 4 && late <= 6, `${late} of 10`)
    await endAll()
    await Promise.all(all)
  })

  test('gives no owner every member, whoever waits', async () => {
    const { begun, lend, end, endAll } = poolOf(3, { atOnceByOwner: 2 })
    const all = Array.from({ length: 10 }, () => lend('attacker'))
    all.push(lend('attacker', { kind: 'background' }))
    await turn()
    assert.equal(begun.length, 3)
    await end(1)
    const neighbour = lend('neighbour')
    await end(1)
    assert.ok(begun.indexOf('neighbour') <= 4)
    await endAll()
    await Promise.all([...all, neighbour])
  })

  test('gives what an owner’s clients ask for four times the time of its background work', async () => {
    const { ofKind, lend, end, endAll } = poolOf(1)
    const all = Array.from({ length: 100 }, (_, i) =>
      lend('one', { kind: i % 2 === 0 ? 'asked' : 'background' }),
    )
    await turn()
    for (let i = 1; i < 50; i++) await end(10)
    const background = ofKind.filter((kind) => kind === 'background').length
    assert.ok(background >= 9 && background <= 12, `${background} of 50`)
    await endAll()
    await Promise.all(all)
  })

  test('gives each owner the same time, whether its clients ask or its background work waits', async () => {
    const { lend, endAll, ofFifty } = poolOf(1)
    const askers = ['a', 'b', 'c', 'd']
    const all = Array.from({ length: 25 }, () => [
      ...askers.map((owner) => lend(owner)),
      lend('detecting', { kind: 'background' }),
    ]).flat()
    const ofDetecting = await ofFifty('detecting')
    assert.ok(ofDetecting >= 9 && ofDetecting <= 11, `${ofDetecting} of 50`)
    await endAll()
    await Promise.all(all)
  })

  test('with weights among owners, puts background work behind what clients of any owner ask for', async () => {
    const { lend, endAll, ofFifty } = poolOf(1, { askedAmongOwners: 4 })
    const kinds: WorkKind[] = ['asked', 'background']
    const all = Array.from({ length: 50 }, () => kinds.map((kind) => lend(kind, { kind }))).flat()
    const background = await ofFifty('background')
    assert.ok(background >= 9 && background <= 12, `${background} of 50`)
    await endAll()
    await Promise.all(all)
  })

  test('forgets owners that came once as soon as another has used more than each of them', async () => {
    const { lend, end, pool } = poolOf(1)
    const owners = Array.from({ length: 100 }, (_, i) => `once ${i}`)
    for (const owner of [...owners, 'always', 'always', 'always']) {
      const work = lend(owner)
      await turn()
      await end(1)
      await work
    }
    assert.ok(pool.owners <= 3, `${pool.owners} owners`)
  })

  test('refuses work above the limit of one owner before it begins, and accepts it again later', async () => {
    const { begun, lend, end, endAll } = poolOf(1, { waitingByOwner: 3 })
    const all = Array.from({ length: 4 }, () => lend('attacker'))
    const refusal = (error: unknown) =>
      error instanceof AppError && error.code === 'too_many_requests' && error.retryAfterSeconds === 1
    await assert.rejects(lend('attacker'), refusal)
    all.push(lend('neighbour'))
    await end(1)
    await end(1)
    all.push(lend('attacker'))
    assert.deepEqual(begun, ['attacker', 'neighbour', 'attacker'])
    await endAll()
    await Promise.all(all)
    assert.equal(begun.length, 6)
  })

  test('accepts the first work of every owner where it is full of others', async () => {
    const { lend, endAll, pool } = poolOf(1, { waiting: 2 })
    const all = [lend('a'), lend('a'), lend('a'), lend('b')]
    await assert.rejects(lend('b'), AppError)
    assert.equal(pool.waiting, 3)
    await turn()
    await endAll()
    await Promise.all(all)
  })

  test('drops waiting work that was aborted, and does not begin it', async () => {
    const { begun, lend, endAll, pool } = poolOf(1)
    const [gone, here] = [new AbortController(), new AbortController()]
    const first = lend('a')
    const waiting = assert.rejects(lend('a', { signal: gone.signal }), { name: 'AbortError' })
    const last = lend('a', { signal: here.signal })
    gone.abort()
    await waiting
    await assert.rejects(lend('a', { signal: gone.signal }), { name: 'AbortError' })
    assert.equal(pool.waiting, 1)
    await turn()
    await endAll()
    await Promise.all([first, last])
    assert.equal(begun.length, 2)
  })

  test('lends a member again whose work failed or never began', async () => {
    const { pool } = poolOf(1)
    const request: LendRequest = { owner: 'a', kind: 'asked' }
    await assert.rejects(
      pool.lend(request, async () => Promise.reject(new Error('failed'))),
      /failed/,
    )
    const throwing = pool.lend(request, () => {
      throw new Error('thrown')
    })
    await assert.rejects(throwing, /thrown/)
    assert.equal(await pool.lend(request, async (member) => member), 0)
  })
})
