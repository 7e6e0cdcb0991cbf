// The rules of every implementation of the locks of placements, as tests: `keepsPlacementLocks` runs them.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import type { PlacementLock, PlacementLocks } from './placement-locks.ts'

/** `open` opens locks that nobody has taken. */
export function keepsPlacementLocks(implementation: string, open: () => PlacementLocks): void {
  describe(`placement locks of ${implementation}`, () => {
    keepsOrder(open)
    showsLoss(open)
  })
}

const lists = fc.array(fc.uniqueArray(fc.nat({ max: 3 }), { minLength: 1, maxLength: 3 }), { maxLength: 12 })

function keepsOrder(open: () => PlacementLocks): void {
  test('on one placement nothing overlaps, work runs in the order of the calls, and tokens grow', async () => {
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), lists, async (scheduler, works) => {
        const locks = open()
        const busy = new Set<number>()
        const begun: { readonly at: number; readonly token: number }[] = []
        const running = works.map((placements, at) =>
          locks.exclusively(placements, async ({ token }) => {
            begun.push({ at, token })
            for (const placement of placements) {
              assert.ok(!busy.has(placement), `placement ${placement} is taken twice`)
              assert.ok(locks.isTaken(placement))
              busy.add(placement)
            }
            await scheduler.schedule(Promise.resolve())
            for (const placement of placements) busy.delete(placement)
            return at
          }),
        )
        await scheduler.waitFor(Promise.all(running))
        assert.deepEqual(
          await Promise.all(running),
          works.map((_, at) => at),
        )
        for (let placement = 0; placement < 4; placement++) {
          assert.ok(!locks.isTaken(placement))
          const here = begun.filter(({ at }) => works[at]?.includes(placement))
          assertGrows(here.map(({ at }) => at))
          assertGrows(here.map(({ token }) => token))
        }
      }),
    )
  })

  test('different placements don’t wait for each other', async () => {
    const locks = open()
    const slow = Promise.withResolvers<void>()
    const first = locks.exclusively([1], () => slow.promise)
    assert.equal(await locks.exclusively([2], async () => 'done'), 'done')
    slow.resolve()
    await first
  })

  test('an error is thrown to the caller, and the next one runs', async () => {
    const locks = open()
    const failing = locks.exclusively([1, 2], async () => {
      throw new Error('no space left')
    })
    const next = locks.exclusively([2], async () => 'done')
    await assert.rejects(failing, /no space left/)
    assert.equal(await next, 'done')
    const sync = locks.exclusively([2], () => {
      throw new Error('at once')
    })
    await assert.rejects(sync, /at once/)
    assert.equal(await locks.exclusively([2], async () => 'still'), 'still')
  })
}

function assertGrows(numbers: readonly number[]): void {
  assert.deepEqual(
    numbers,
    [...new Set(numbers)].toSorted((a, b) => a - b),
  )
}

function showsLoss(open: () => PlacementLocks): void {
  test('a lock is lost with the right to it, and the signal of its work gives the reason', async () => {
    const right = new AbortController()
    await open().exclusively(
      [1],
      async ({ signal }) => {
        assert.equal(signal.aborted, false)
        right.abort(new Error('the lease ran out'))
        assert.throws(() => signal.throwIfAborted(), /the lease ran out/)
      },
      right.signal,
    )
  })

  test('the next one after a loss has a higher token, and the loss is visible to the work before', async () => {
    const locks = open()
    const right = new AbortController()
    const goOn = Promise.withResolvers<void>()
    const taken: PlacementLock[] = []
    const first = locks.exclusively(
      [1],
      async (lock) => {
        taken.push(lock)
        await goOn.promise
      },
      right.signal,
    )
    const second = locks.exclusively([1], async (lock) => {
      assert.ok(taken[0]?.signal.aborted)
      assert.ok(lock.token > (taken[0]?.token ?? 0))
      assert.equal(lock.signal.aborted, false)
    })
    while (taken.length === 0) await Promise.resolve()
    right.abort(new Error('the lease ran out'))
    goOn.resolve()
    await Promise.all([first, second])
  })

  test('a caller that loses the right while waiting never gets the lock, and the next one does', async () => {
    const locks = open()
    const [slow, right] = [Promise.withResolvers<void>(), new AbortController()]
    const first = locks.exclusively([1], () => slow.promise)
    const lost = locks.exclusively([1], () => assert.fail('it ran'), right.signal)
    const last = locks.exclusively([1], async () => 'done')
    right.abort(new Error('the lease ran out'))
    slow.resolve()
    await first
    await assert.rejects(lost, /the lease ran out/)
    assert.equal(await last, 'done')
  })

  test('work that continues after its lock has ended sees that it has no lock', async () => {
    const lock = await open().exclusively([1], async (given) => given)
    assert.equal(lock.signal.aborted, true)
  })
}
