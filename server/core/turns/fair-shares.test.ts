// Max-min fairness of what owners share.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { FairShares, type Share } from './fair-shares.ts'

function opened(shares: FairShares, name: string, units: number, cut: string[] = []): Share | null {
  const share = shares.open(name, () => cut.push(`${name} ${units}`))
  if (share.grow(units)) return share
  share.release()
  return null
}

test('one owner may have everything, and is refused more', () => {
  const shares = new FairShares(100)
  const first = opened(shares, 'a', 60)
  assert.ok(first)
  assert.ok(first.grow(40))
  assert.equal(opened(shares, 'a', 1), null)
  assert.equal(first.grow(1), true, 'a share that is alone is let in whatever its size')
  first.release()
  first.release()
  assert.equal(shares.reserved, 0)
})

test('an owner with less is admitted, and the youngest shares of the one with the most are cut', () => {
  const shares = new FairShares(100)
  const cut: string[] = []
  for (const units of [50, 20, 30]) assert.ok(opened(shares, 'a', units, cut))
  assert.ok(opened(shares, 'b', 40, cut))
  assert.deepEqual(cut, ['a 30', 'a 20'])
  assert.deepEqual([shares.reservedBy('a'), shares.reservedBy('b')], [50, 40])
  assert.equal(opened(shares, 'b', 15, cut), null, 'b would have more than anybody else')
  assert.deepEqual(cut, ['a 30', 'a 20'], 'nothing is cut for one that is refused')
})

test("a share that is kept can't be cut", () => {
  const shares = new FairShares(100)
  const kept = opened(shares, 'a', 100)
  kept?.keep()
  assert.equal(shares.refuses('b', 1), true)
  assert.equal(opened(shares, 'b', 1), null)
  kept?.release()
  assert.equal(shares.refuses('b', 1), false)
})

for (const owners of [2, 64, 500]) {
  test(`${owners} owners that want as much as possible have nearly an equal part each`, () => {
    const limit = 256 * 1024
    const shares = new FairShares(limit)
    for (let round = 0; round < (2 * limit) / owners / 64; round++) {
      for (let i = 0; i < owners; i++) opened(shares, `owner ${i}`, 64)
    }
    const equal = limit / owners
    for (let i = 0; i < owners; i++) {
      const reserved = shares.reservedBy(`owner ${i}`)
      assert.ok(Math.abs(reserved - equal) <= 64, `${reserved} of ${equal}`)
    }
    assert.ok(opened(shares, 'newcomer', 64))
  })
}

test('at any time the limit is kept, sums are right, and an owner below an equal part is never refused', () => {
  const step = fc.record({
    who: fc.nat(3),
    units: fc.integer({ min: 1, max: 60 }),
    isRelease: fc.boolean(),
    pick: fc.nat(20),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 150 }), (steps) => {
      const shares = new FairShares(100)
      let live: { readonly name: string; readonly share: Share }[] = []
      for (const { who, units, isRelease, pick } of steps) {
        const name = `owner ${who}`
        const picked = live[pick % Math.max(1, live.length)]
        if (isRelease && picked !== undefined) {
          live = live.filter((one) => one !== picked)
          picked.share.release()
        } else {
          const before = shares.reservedBy(name)
          const names = new Set([...live.map((one) => one.name), name])
          const wouldRefuse = shares.refuses(name, units)
          const share = shares.open(name, () => {
            live = live.filter((one) => one.share !== share)
          })
          const isIn = share.grow(units)
          assert.equal(isIn, !wouldRefuse)
          if (isIn) live.push({ name, share })
          else share.release()
          if (before + units <= 100 / names.size)
            assert.ok(isIn, `${name} with ${before} was refused ${units}`)
        }
        const sum = live.reduce((total, one) => total + one.share.units, 0)
        assert.equal(shares.reserved, sum)
        assert.ok(sum <= 100)
        for (const each of [0, 1, 2, 3]) {
          const own = live.filter((one) => one.name === `owner ${each}`)
          assert.equal(
            shares.reservedBy(`owner ${each}`),
            own.reduce((total, one) => total + one.share.units, 0),
          )
          assert.equal(shares.countOf(`owner ${each}`), own.length)
        }
      }
    }),
  )
})
