// The spectral residual (Hou and Zhang 2007; for telemetry Ren et al. 2019, "SR-CNN", here without the CNN).
// The log amplitude spectrum of a window minus its local average is the part of the spectrum that is unusual.
// Transformed back to time, it gives a saliency map: high values mark unusual points. Each value has its own
// window that ends with it, so only the past counts; the saliency of the newest value is the score. A few
// extrapolated values follow it (as published), so that the edge of the window is not salient itself.
//
// The result has no unit: saliency divided by the mean of its window, then surprise (surprise.ts). The method
// suits spikes in web metrics and does not notice slow change. One pair of FFTs of `window_points` per value,
// about 70 microseconds at 256.

import type { MethodParams } from '../../../contract/detection/methods.ts'
import { denseValuesOf, toSparse } from '../scoring/dense-values.ts'
import { Fourier } from '../scoring/fourier.ts'
import type { Series } from '../scoring/series.ts'
import { at } from '../scoring/series.ts'
import { surprisesOf } from '../scoring/surprise.ts'
import type { Method, Scores } from './method.ts'
import { blankScores } from './method.ts'
import { TailScorer } from './tail-scorer.ts'

const averagedBins = 3
const extrapolatedPoints = 5
const edgeSurprise = 2

export const spectralResidual: Method<'spectral_residual'> = {
  key: 'spectral_residual',
  start: (params) =>
    new TailScorer((series) => spectralResidual.score(series, params), 8 * params.window_points),
  score(series: Series, params: MethodParams<'spectral_residual'>): Scores {
    const length = series.values.length
    const dense = denseValuesOf(series.values)
    const saliency = new Saliency(2 ** Math.round(Math.log2(params.window_points)))
    const salience = dense.values.map((_, i) => saliency.ofNewest(dense.values, i, dense.runs[i] ?? 0))
    const score = surprisesOf(salience).map((surprise, i) =>
      i < params.warmup_points ? Number.NaN : surprise / edgeSurprise,
    )
    return { ...blankScores(length), score: toSparse(dense, score, length) }
  },
}

class Saliency {
  readonly #size: number
  readonly #fourier: Fourier
  readonly #real: Float64Array
  readonly #imaginary: Float64Array
  readonly #logs: Float64Array

  constructor(size: number) {
    this.#size = size
    this.#fourier = new Fourier(size)
    this.#real = new Float64Array(size)
    this.#imaginary = new Float64Array(size)
    this.#logs = new Float64Array(size)
  }

  /**
   * Saliency of value i in the window that ends with it; NaN until a window is full, 0 in a constant window.
   */
  ofNewest(values: Float64Array, i: number, run: number): number {
    const kept = this.#size - extrapolatedPoints
    if (run < kept || !this.#fill(values, i, kept)) return run < kept ? Number.NaN : 0
    this.#fourier.transform(this.#real, this.#imaginary)
    this.#keepResidual()
    this.#fourier.transform(this.#imaginary, this.#real)
    let mean = 0
    for (let j = 0; j < kept; j++) {
      mean += Math.hypot(at(this.#real, j), at(this.#imaginary, j)) / kept
    }
    const newest = Math.hypot(at(this.#real, kept - 1), at(this.#imaginary, kept - 1))
    return mean > 0 ? newest / mean : 0
  }

  /**
   * Writes the window relative to its first value, in units of the largest distance from it. Returns false
   * when the window is constant.
   */
  #fill(values: Float64Array, i: number, kept: number): boolean {
    const origin = at(values, i - kept + 1)
    let unit = 0
    for (let j = 0; j < kept; j++) unit = Math.max(unit, Math.abs(at(values, i - kept + 1 + j) - origin))
    if (unit === 0) return false
    for (let j = 0; j < kept; j++) this.#real[j] = (at(values, i - kept + 1 + j) - origin) / unit
    // Values behind the window: one step from the value before the newest, along the average slope up to it.
    const before = at(this.#real, kept - 2)
    let slope = 0
    for (let j = 1; j <= extrapolatedPoints; j++) {
      slope += (before - at(this.#real, kept - 2 - j)) / j / extrapolatedPoints
    }
    this.#real.fill(before + slope, kept)
    this.#imaginary.fill(0)
    return true
  }

  /** Divides each amplitude by the local average of its logarithm, keeping the phase. */
  #keepResidual(): void {
    for (let j = 0; j < this.#size; j++) {
      this.#logs[j] = Math.log(Math.hypot(at(this.#real, j), at(this.#imaginary, j)) + 1e-12)
    }
    let sum = 0
    for (let j = 0; j < this.#size; j++) {
      sum += at(this.#logs, j) - (j >= averagedBins ? at(this.#logs, j - averagedBins) : 0)
      const average = sum / Math.min(averagedBins, j + 1)
      const factor = Math.exp(-average)
      this.#real[j] = at(this.#real, j) * factor
      this.#imaginary[j] = at(this.#imaginary, j) * factor
    }
  }
}
