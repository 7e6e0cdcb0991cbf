// Prediction by recursive least squares.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LeastSquares } from './least-squares.ts'
import { seededNormal } from './seeded-noise.ts'

function learn(model: LeastSquares, rule: (a: number, b: number) => number, count: number, seed: number) {
  const next = seededNormal(seed)
  for (let i = 0; i < count; i++) {
    const [a, b] = [next(), next()]
    const inputs = Float64Array.of(1, a, b, 0)
    model.learn(inputs, rule(a, b) + 0.1 * next() - model.predict(inputs))
  }
}

test('the weights of a linear rule are found, and followed when the rule changes', () => {
  const model = new LeastSquares(4)
  learn(model, (a, b) => 1 + 2 * a - b, 500, 1)
  assert.ok(Math.abs(model.predict(Float64Array.of(1, 3, 1, 0)) - 6) < 0.1)
  learn(model, (a) => -a, 30_000, 2)
  assert.ok(Math.abs(model.predict(Float64Array.of(1, 3, 1, 0)) + 3) < 0.3)
})

test('an input that is always 0 never makes the weights overflow', () => {
  const model = new LeastSquares(4)
  learn(model, (a) => a, 200_000, 3)
  const told = model.predict(Float64Array.of(1, 1, 1, 1))
  assert.ok(Number.isFinite(told) && Math.abs(told - 1) < 1, String(told))
})
