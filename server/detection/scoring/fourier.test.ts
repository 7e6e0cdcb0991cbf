// The fast transform compared with the plain sum.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fourier } from './fourier.ts'
import { seededNormal } from './seeded-noise.ts'

test('the transform is the sum that defines it, and exchanged arguments give its inverse', () => {
  const next = seededNormal(1)
  const size = 64
  const signal = Float64Array.from({ length: size }, () => next())
  const real = signal.slice()
  const imaginary = new Float64Array(size)
  const fourier = new Fourier(size)
  fourier.transform(real, imaginary)
  for (let bin = 0; bin < size; bin++) {
    let cosines = 0
    let sines = 0
    for (const [i, value] of signal.entries()) {
      cosines += value * Math.cos((-2 * Math.PI * bin * i) / size)
      sines += value * Math.sin((-2 * Math.PI * bin * i) / size)
    }
    assert.ok(Math.hypot((real[bin] ?? 9) - cosines, (imaginary[bin] ?? 9) - sines) < 1e-10, `bin ${bin}`)
  }
  fourier.transform(imaginary, real)
  for (const [i, value] of signal.entries()) assert.ok(Math.abs((real[i] ?? 9) / size - value) < 1e-12)
})
