// A standstill is distinguished from a series that never changed, from one that pauses regularly, and
// from a short coincidence.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { standsStillAt } from './standstill.ts'

const stands = (values: readonly number[], i = values.length - 1) =>
  standsStillAt(
    {
      startNs: 0n,
      stepMinutes: 1,
      values: Float64Array.from(values),
      unknown: new Uint8Array(values.length),
      volumes: null,
    },
    i,
  )
const moving = Array.from({ length: 30 }, (_, i) => (i * 7) % 11)
const repeat = (value: number, count: number) => Array<number>(count).fill(value)

test('the same value again and again in a series that used to change is a standstill', () => {
  assert.equal(stands([...moving, ...repeat(5.5, 8)]), true)
  assert.equal(stands([...moving, ...repeat(5.5, 8), 6], 37), true, 'whatever comes after')
  assert.equal(stands([...moving, 5.5, Number.NaN, ...repeat(5.5, 6)]), true, 'across a gap')
})

test('a few equal values, a series that never changed, and one that pauses regularly are no standstill', () => {
  assert.equal(stands([...moving, ...repeat(5.5, 5)]), false)
  assert.equal(stands(repeat(5, 100)), false)
  const pausing = Array.from({ length: 100 }, (_, i) => Math.floor(i / 10))
  assert.equal(stands(pausing), false)
  assert.equal(stands([...pausing, ...repeat(9, 25)]), true)
  assert.equal(stands([]), false)
  assert.equal(stands(repeat(Number.NaN, 10)), false)
})
