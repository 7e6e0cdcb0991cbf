// Who has used most lately.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RecentUse } from './recent-use.ts'

function scene() {
  let ms = 0
  const use = new RecentUse(() => ms)
  return { use, wait: (forMs: number) => (ms += forMs) }
}

test('an owner has most above six tenths of all use, and of two that use the same none has', () => {
  const { use } = scene()
  use.count('flood', 10)
  use.count('calm', 10)
  assert.deepEqual([use.hasMost('flood'), use.hasMost('calm')], [false, false])
  use.count('flood', 5)
  assert.ok(!use.hasMost('flood'), 'exactly six tenths')
  use.count('flood', 1)
  assert.deepEqual([use.hasMost('flood'), use.hasMost('calm')], [true, false])
})

test('what was used is forgotten after four seconds, so a flood is noticed although others used much before', () => {
  const { use, wait } = scene()
  use.count('calm', 1000)
  wait(3_999)
  use.count('flood', 10)
  assert.ok(!use.hasMost('flood'))
  wait(2_000)
  use.count('flood', 10)
  assert.ok(use.hasMost('flood'))
})

test('rates are averages of the last two to four seconds, and of at least one second', () => {
  const { use, wait } = scene()
  use.count('early', 500)
  assert.deepEqual([...use.rates()], [['early', 0.5]])
  wait(2_000)
  use.count('early', 1_000)
  use.count('late', 3_000)
  wait(1_000)
  assert.deepEqual(
    [...use.rates()],
    [
      ['early', 0.5],
      ['late', 1],
    ],
  )
  wait(3_000)
  assert.deepEqual([...use.rates()], [])
})
