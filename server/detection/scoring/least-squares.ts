// Linear prediction whose weights are learnt from each value: recursive least squares with slow forgetting
// (Haykin, Adaptive Filter Theory, chapter 10). The caller limits errors, so an outlier moves the weights no
// further than an ordinary large error (Huber 1964).

import { at } from './series.ts'

/** Errors fade over about five thousand values: a few days of minutes. */
const forgetting = 0.9998
const firstVariance = 100
/** Without a limit the uncertainty of an input that is always 0 grows until it overflows. */
const mostVariance = 1e4

export class LeastSquares {
  private readonly weights: Float64Array
  /** Inverse correlation of the inputs, row by row. */
  private readonly inverse: Float64Array
  private readonly gain: Float64Array
  learnt = 0

  constructor(inputs: number) {
    this.weights = new Float64Array(inputs)
    this.gain = new Float64Array(inputs)
    this.inverse = new Float64Array(inputs * inputs)
    for (let i = 0; i < inputs; i++) this.inverse[i * inputs + i] = firstVariance
  }

  predict(inputs: Float64Array): number {
    let sum = 0
    for (let i = 0; i < inputs.length; i++) sum += at(this.weights, i) * at(inputs, i)
    return sum
  }

  /** Corrects the weights after `predict(inputs)` was too low by `error`. */
  learn(inputs: Float64Array, error: number): void {
    const { gain, inverse, weights } = this
    const count = inputs.length
    let norm = forgetting
    for (let i = 0; i < count; i++) {
      let sum = 0
      for (let j = 0; j < count; j++) sum += at(inverse, i * count + j) * at(inputs, j)
      gain[i] = sum
      norm += sum * at(inputs, i)
    }
    let largest = 0
    for (let i = 0; i < count; i++) {
      weights[i] = at(weights, i) + (at(gain, i) / norm) * error
      for (let j = 0; j <= i; j++) {
        const next = (at(inverse, i * count + j) - (at(gain, i) * at(gain, j)) / norm) / forgetting
        inverse[i * count + j] = next
        inverse[j * count + i] = next
      }
      largest = Math.max(largest, at(inverse, i * count + i))
    }
    if (largest > mostVariance) {
      for (let i = 0; i < inverse.length; i++) inverse[i] = (at(inverse, i) * mostVariance) / largest
    }
    this.learnt++
  }
}
