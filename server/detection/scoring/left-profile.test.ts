// The running sums compared with the definition, computed plainly.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { denseValuesOf } from './dense-values.ts'
import { LeftProfile } from './left-profile.ts'
import { seededNormal } from './seeded-noise.ts'

const profileOf = (values: readonly number[], lengths: readonly number[], history = 4096) =>
  new LeftProfile(lengths, history).add(denseValuesOf(Float64Array.from(values)))

/** Distance per value from the stretch ending at i to the nearest earlier one that does not overlap. */
function plainDistance(values: readonly number[], i: number, length: number, history: number): number {
  let nearest = Number.POSITIVE_INFINITY
  for (let j = i - length; j >= length - 1 && j >= i - history; j--) {
    let sum = 0
    for (let k = 0; k < length; k++) sum += ((values[i - k] ?? 0) - (values[j - k] ?? 0)) ** 2
    nearest = Math.min(nearest, Math.sqrt(sum / length))
  }
  return nearest === Number.POSITIVE_INFINITY ? Number.NaN : nearest
}

function sameAsPlain(values: readonly number[], lengths: readonly number[], history: number, slack: number) {
  const { distances } = profileOf(values, lengths, history)
  for (const [which, length] of lengths.entries()) {
    for (const [i, distance] of (distances[which] ?? new Float64Array()).entries()) {
      const plain = plainDistance(values, i, length, history)
      const isSame = Number.isNaN(plain) ? Number.isNaN(distance) : Math.abs(distance - plain) <= slack
      assert.ok(isSame, `${distance} for ${plain} at ${i}, length ${length}`)
    }
  }
}

test('distances are those of the definition, for every length and history', () => {
  const values = fc.array(fc.integer({ min: -50, max: 50 }), { minLength: 1, maxLength: 60 })
  fc.assert(
    fc.property(values, fc.integer({ min: 10, max: 80 }), (each, history) => {
      sameAsPlain(each, [3, 7], history, 1e-6)
    }),
  )
})

test('the sums do not drift over thousands of values, nor after a spike', () => {
  const next = seededNormal(5)
  const values = Array.from({ length: 2600 }, (_, i) => 1e6 + next() + (i === 300 ? 400 : 0))
  sameAsPlain(values, [12], 200, 1e-4)
})

test('the profile is the same wherever pieces end, also within and across blocks', () => {
  const next = seededNormal(6)
  const values = Array.from({ length: 2400 }, (_, i) => (i < 150 ? 5 : i % 700 === 0 ? Number.NaN : next()))
  for (const lengths of [[12], [5, 9, 40], [4, 8, 16, 32]]) {
    const dense = denseValuesOf(Float64Array.from(values))
    const whole = new LeftProfile(lengths, 600).add(dense)
    const profile = new LeftProfile(lengths, 600)
    for (let from = 0, turn = 0; from < dense.values.length; turn++) {
      const to = from + ([1, 60, 700, 1500][turn % 4] ?? 1)
      const piece = profile.add({ values: dense.values.slice(from, to), runs: dense.runs.slice(from, to) })
      assert.deepEqual(piece.expected, whole.expected.slice(from, to))
      for (const [which, all] of whole.distances.entries())
        assert.deepEqual(piece.distances[which], all.slice(from, to))
      from = to
    }
  }
})

test('a rhythm is expected to continue, and its break is far from everything before', () => {
  const wave = Array.from({ length: 400 }, (_, i) => Math.round(100 * Math.sin((i * 2 * Math.PI) / 40)))
  const broken = [...wave, ...Array(12).fill(100)]
  const { distances, expected } = profileOf(broken, [12])
  assert.equal(distances[0]?.[399], 0)
  assert.equal(Math.abs(expected[400] ?? 9), 0)
  assert.ok((distances[0]?.[411] ?? 0) > 10)
})

test('the first change of a constant series is seen at once', () => {
  const { distances } = profileOf([...Array(100).fill(5), 6], [4])
  assert.equal(distances[0]?.[99], 0)
  assert.equal(distances[0]?.[100], 0.5)
})

test('no shape crosses a long gap', () => {
  const values = [
    ...Array.from({ length: 40 }, (_, i) => i % 4),
    ...Array(6).fill(Number.NaN),
    0,
    1,
    2,
    3,
    0,
    1,
  ]
  const { distances } = profileOf(values, [4])
  assert.deepEqual([...(distances[0] ?? [])].slice(40).map(Number.isNaN), [
    true,
    true,
    true,
    false,
    false,
    false,
  ])
})
