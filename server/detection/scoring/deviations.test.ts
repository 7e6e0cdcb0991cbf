// The looks at one value: what each notices, and how past incidents affect it.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Deviations } from './deviations.ts'
import { seededNormal } from './seeded-noise.ts'

const perDay = 288
const looks = ['season', 'day', 'jump', 'forecast', 'gap'] as const
type Look = (typeof looks)[number]

/**
 * Digits at the last value of a series of five-minute steps; `outside`: the values that are not learnt as
 * usual.
 */
function digitsAt(
  values: ArrayLike<number>,
  outside: (bucket: number) => 'usual' | 'start' | 'rest' = () => 'usual',
): Record<Look, number> {
  const deviations = new Deviations(5, 4096)
  for (let i = 0; i < values.length; i++) {
    const value = values[i] ?? Number.NaN
    if (Number.isNaN(value)) continue
    deviations.compare(5 * i, value)
    if (i < values.length - 1) deviations.learn(5 * i, outside(i))
  }
  return Object.fromEntries(looks.map((look, i) => [look, deviations.digits[i] ?? Number.NaN])) as Record<
    Look,
    number
  >
}

function traffic(days: number, seed = 1): number[] {
  const next = seededNormal(seed)
  return Array.from(
    { length: days * perDay },
    (_, i) => 500 - 300 * Math.cos((2 * Math.PI * i) / perDay) + 5 * next(),
  )
}

test('half of the traffic gone at noon is rare in every look, although the value is usual at other times', () => {
  const digits = digitsAt([...traffic(9.5), 400])
  for (const look of ['season', 'day', 'jump', 'forecast'] as const) {
    assert.ok(digits[look] > 4, `${look} ${digits[look]}`)
  }
  assert.ok(digits.gap < 2, `gap ${digits.gap}`)
})

test('a value that follows the rhythm is usual in every look', () => {
  const all = traffic(9.5)
  const digits = digitsAt(all)
  for (const look of looks) assert.ok(digits[look] < 2, `${look} ${digits[look]}`)
})

test('an outage is as rare after another outage three days ago', () => {
  const [from, to] = [6 * perDay, 6 * perDay + 12]
  const values = traffic(9.5).map((value, i) => (i >= from && i < to ? 0 : value))
  const outside = (i: number) => (i < from || i >= to ? 'usual' : i < from + 3 ? 'start' : 'rest')
  const digits = digitsAt([...values, 0], outside)
  for (const look of ['season', 'day', 'jump', 'forecast'] as const) {
    assert.ok(digits[look] > 4, `${look} ${digits[look]}`)
  }
})

test('after a long gap nothing is compared with the values before it', () => {
  const values = traffic(9.5).map((value, i) => (i > 9 * perDay ? Number.NaN : value))
  const digits = digitsAt([...values, 0])
  assert.ok(Number.isNaN(digits.jump) && Number.isNaN(digits.forecast) && digits.season > 4)
})

test('values of any size and series that never change give finite digits', () => {
  const hostile = [...Array(100).fill(1e300), ...Array(100).fill(-1e300), ...Array(100).fill(0), 1e-300]
  for (const values of [hostile, Array(500).fill(7), [...Array(500).fill(7), 8]]) {
    for (const digits of Object.values(digitsAt(values))) {
      assert.ok(Number.isNaN(digits) || (digits >= 0 && digits <= 8), String(digits))
    }
  }
})
