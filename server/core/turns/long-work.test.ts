// Long work in a shared pool, with a clock, ends of work and ends of waiting that the test controls.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { FairPool, type LendRequest } from './fair-pool.ts'

const turn = () => new Promise((resolve) => setImmediate(resolve))

const longMs = 1_000
const rememberedMs = 60_000
const ranMs = 5_000
const waitedMs = 1_000
const heavyMs = 2_000

interface Under {
  readonly owner: string
  readonly end: () => void
  readonly ending: AbortSignal | undefined
}

/** A pool of four members, of which one owner may have all but one. */
function poolOfFour() {
  let nowMs = 0
  let heavyAtOnce = Number.POSITIVE_INFINITY
  const under: Under[] = []
  /** Waits of the watch that have not ended. */
  const waits = new Set<() => void>()
  const kind = { weight: 1, atOnceByOwner: 3, atOnce: 4, waitingByOwner: 100 }
  const pool = new FairPool([0, 1, 2, 3], {
    kinds: { asked: kind, background: kind },
    waiting: 100,
    nowMs: () => nowMs,
    longWork: {
      longMs,
      rememberedMs,
      heavyMs,
      heavyAtOnce: () => heavyAtOnce,
      ranMs,
      waitedMs,
      refusal: () => new Error('took long'),
      sleep: (ms, signal) =>
        new Promise((resolve) => {
          assert.equal(ms, waitedMs)
          const end = () => {
            waits.delete(end)
            resolve()
          }
          waits.add(end)
          signal.addEventListener('abort', end, { once: true })
        }),
    },
  })
  const lend = async (owner: string, kind: LendRequest['kind'] = 'asked') => {
    const lent = pool.lend({ owner, kind }, (_, { end: ending }) => {
      const { promise, resolve } = Promise.withResolvers<void>()
      under.push({ owner, end: resolve, ending })
      return promise
    })
    await turn()
    return { lent }
  }
  const pass = (ms: number) => {
    nowMs += ms
  }
  const endOf = async (owner: string) => {
    const at = under.findIndex((one) => one.owner === owner)
    under.splice(at, 1)[0]?.end()
    await turn()
  }
  /** The watch looks again. */
  const look = async () => {
    pass(waitedMs)
    for (const end of waits) end()
    await turn()
  }
  const cores = (state: 'free' | 'short') => {
    heavyAtOnce = state === 'short' ? 1 : Number.POSITIVE_INFINITY
  }
  const owners = () => under.map(({ owner }) => owner)
  const ending = () => under.filter((one) => one.ending?.aborted).map(({ owner }) => owner)
  const endAll = async () => {
    while (under.length > 0) await endOf(under[0]?.owner ?? '')
  }
  return { pool, lend, pass, endOf, endAll, look, cores, owners, ending, under, waits }
}

type Pool = ReturnType<typeof poolOfFour>

const four = ['a', 'b', 'c', 'd']

/** Each of the owners has had long work, which has ended. */
async function afterLongWorkOf(pool: Pool, owners: readonly string[]): Promise<void> {
  for (const owner of owners) await pool.lend(owner)
  pool.pass(longMs + 1)
  await pool.endAll()
}

describe('long work in a shared pool', () => {
  test('leaves a member to others once it is known, and a short one gets that at once', async () => {
    const pool = poolOfFour()
    await afterLongWorkOf(pool, four)
    for (const owner of four) await pool.lend(owner)
    assert.deepEqual(pool.owners(), ['a', 'b', 'c'])
    await pool.lend('quick')
    assert.deepEqual(pool.owners(), ['a', 'b', 'c', 'quick'])
    await pool.endOf('quick')
    assert.deepEqual(pool.owners(), ['a', 'b', 'c'], 'the last one stays free')
    await pool.endOf('a')
    assert.deepEqual(pool.owners(), ['b', 'c', 'd'])
    await pool.endAll()
  })

  test('gets a member like any other while short work has the rest', async () => {
    const pool = poolOfFour()
    await afterLongWorkOf(pool, ['a'])
    for (const owner of ['x', 'y', 'z']) await pool.lend(owner)
    await pool.lend('a')
    assert.deepEqual(pool.owners(), ['x', 'y', 'z', 'a'])
    await pool.endAll()
  })

  test('counts while it runs too, and no longer than it is remembered', async () => {
    const pool = poolOfFour()
    for (const owner of ['a', 'b', 'c']) await pool.lend(owner)
    pool.pass(longMs + 1)
    await pool.lend('a')
    assert.deepEqual(pool.owners(), ['a', 'b', 'c'])
    await pool.endAll()
    pool.pass(rememberedMs)
    for (const owner of four) await pool.lend(owner)
    assert.deepEqual(pool.owners(), four)
    await pool.endAll()
  })

  test('that waits stays long, however long it waits', async () => {
    const pool = poolOfFour()
    await afterLongWorkOf(pool, four)
    for (const owner of four) await pool.lend(owner)
    pool.pass(rememberedMs)
    await pool.lend('quick')
    await pool.endOf('quick')
    assert.deepEqual(pool.owners(), ['a', 'b', 'c'])
    await pool.endAll()
  })

  test('of detectors does not count for the charts of the same owner', async () => {
    const pool = poolOfFour()
    for (const owner of ['a', 'b', 'c']) await pool.lend(owner, 'background')
    pool.pass(longMs + 1)
    await pool.lend('a')
    assert.deepEqual(pool.owners(), ['a', 'b', 'c', 'a'])
    await pool.endAll()
  })

  test('that has run very long ends for a client that waits, one at a time', async () => {
    const pool = poolOfFour()
    const lent = []
    for (const owner of four) {
      lent.push(await pool.lend(owner))
      pool.pass(1)
    }
    await pool.lend('quick')
    for (let passed = waitedMs; passed < ranMs - waitedMs; passed += waitedMs) await pool.look()
    assert.deepEqual(pool.ending(), [], 'none has run long enough')
    await pool.look()
    await pool.look()
    assert.deepEqual(pool.ending(), ['a'])
    assert.match(String(pool.under[0]?.ending?.reason), /took long/)
    await pool.look()
    assert.deepEqual(pool.ending(), ['a'], 'it has not ended yet')
    await pool.lend('a')
    await pool.endOf('a')
    assert.deepEqual(pool.owners(), ['b', 'c', 'd', 'quick'], 'its next work waits')
    await pool.endAll()
    await Promise.all(lent)
  })

  test('of the owner with most members ends first', async () => {
    const pool = poolOfFour()
    for (const owner of ['a', 'b', 'c', 'c']) {
      await pool.lend(owner)
      pool.pass(1)
    }
    pool.pass(ranMs)
    await pool.lend('quick')
    await pool.look()
    assert.deepEqual(pool.ending(), ['c'])
    await pool.endAll()
  })

  test('does not end for detectors, for long work, or for an owner that has a member', async () => {
    const pool = poolOfFour()
    await afterLongWorkOf(pool, ['a'])
    for (const owner of ['b', 'c', 'd', 'd']) await pool.lend(owner)
    await pool.lend('quick', 'background')
    await pool.lend('a')
    await pool.lend('b')
    for (let times = 0; times < 10; times++) await pool.look()
    assert.deepEqual(pool.ending(), [])
    await pool.lend('quick')
    await pool.look()
    assert.deepEqual(pool.ending(), ['d'])
    await pool.endAll()
  })

  test('does not end while a member has short work, which makes it free soon', async () => {
    const pool = poolOfFour()
    for (const owner of ['a', 'b', 'c', 'x']) await pool.lend(owner)
    pool.pass(ranMs)
    await pool.endOf('x')
    await pool.lend('x')
    await pool.lend('y')
    await pool.lend('quick')
    assert.deepEqual(pool.owners(), ['a', 'b', 'c', 'y'])
    await pool.look()
    assert.deepEqual(pool.ending(), [])
    await pool.endAll()
  })

  test('of detectors does not end', async () => {
    const pool = poolOfFour()
    for (const owner of ['a', 'b', 'c']) await pool.lend(owner, 'background')
    await pool.lend('d')
    await pool.lend('quick')
    for (let times = 0; times < 10; times++) await pool.look()
    assert.deepEqual(pool.ending(), ['d'])
    await pool.endAll()
  })

  test('is watched only as long as something waits', async () => {
    const pool = poolOfFour()
    for (const owner of four) await pool.lend(owner)
    assert.equal(pool.waits.size, 0)
    await pool.lend('quick')
    await pool.lend('other')
    assert.equal(pool.waits.size, 1)
    await pool.endOf('a')
    assert.equal(pool.waits.size, 1)
    await pool.endOf('b')
    assert.equal(pool.waits.size, 0)
    await pool.endAll()
  })

  test('of heavy owners has one member while cores are short, and short and light work begins beside it', async () => {
    const pool = poolOfFour()
    await afterLongWorkOf(pool, ['a', 'b', 'light'])
    pool.cores('short')
    await pool.lend('a')
    pool.pass(heavyMs)
    await pool.lend('b')
    pool.pass(heavyMs)
    await pool.endAll()
    for (const owner of ['a', 'b', 'b']) await pool.lend(owner)
    assert.deepEqual(pool.owners(), ['a'], 'one of the heavy owners waits')
    await pool.lend('light')
    await pool.lend('quick')
    assert.deepEqual(pool.owners(), ['a', 'light', 'quick'])
    await pool.endOf('quick')
    await pool.endOf('light')
    assert.deepEqual(pool.owners(), ['a'])
    await pool.endOf('a')
    assert.deepEqual(pool.owners(), ['b'], 'it is the turn of the other one')
    await pool.endAll()
    await pool.lend('light')
    await pool.lend('a')
    assert.deepEqual(pool.owners(), ['light', 'a'], 'light work takes no place of heavy work')
    await pool.endAll()
  })

  test('of heavy owners begins as soon as the watch sees that cores are free again', async () => {
    const pool = poolOfFour()
    await afterLongWorkOf(pool, ['a', 'b'])
    pool.cores('short')
    for (const owner of ['a', 'b']) await pool.lend(owner)
    pool.pass(heavyMs)
    for (const owner of ['a', 'b']) await pool.lend(owner)
    await pool.endOf('a')
    assert.deepEqual(pool.owners(), ['b'])
    await pool.look()
    assert.deepEqual(pool.owners(), ['b'], 'cores are still short')
    pool.cores('free')
    await pool.look()
    assert.deepEqual(pool.owners().toSorted(), ['a', 'b', 'b'])
    await pool.endAll()
  })

  test('of an owner that is alone has every member that it may have, however heavy it is', async () => {
    const pool = poolOfFour()
    pool.cores('short')
    for (let times = 0; times < 3; times++) await pool.lend('a')
    pool.pass(heavyMs)
    await pool.endAll()
    for (let times = 0; times < 3; times++) await pool.lend('a')
    assert.deepEqual(pool.owners(), ['a', 'a', 'a'])
    await pool.endOf('a')
    pool.pool.noteOther('sender')
    await pool.lend('a')
    assert.deepEqual(pool.owners(), ['a', 'a'], 'another one sends')
    await pool.endAll()
  })

  test('is not heavy beside work of another owner that took three times as long, or runs that long', async () => {
    const pool = poolOfFour()
    await afterLongWorkOf(pool, ['much', 'some', 'little'])
    pool.cores('short')
    await pool.lend('little')
    pool.pass(heavyMs / 2 + 200)
    await pool.lend('some')
    await pool.endOf('little')
    await pool.lend('much')
    pool.pass(2 * heavyMs)
    await pool.endOf('some')
    pool.pass(2 * heavyMs)
    // 9 s of much, 5 s of some, 2.2 s of little.
    for (const owner of ['some', 'little']) await pool.lend(owner)
    assert.deepEqual(pool.owners(), ['much', 'little'])
    await pool.endAll()
  })

  test('is heavy only as long as it took much time lately', async () => {
    const pool = poolOfFour()
    await afterLongWorkOf(pool, ['a', 'b'])
    for (const owner of ['a', 'b']) await pool.lend(owner)
    pool.pass(heavyMs)
    await pool.endAll()
    pool.pass(20_000)
    pool.cores('short')
    for (const owner of ['a', 'b']) await pool.lend(owner)
    assert.deepEqual(pool.owners(), ['a', 'b'])
    await pool.endAll()
  })
})
