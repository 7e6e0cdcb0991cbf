// The spectral residual (Hou and Zhang 2007; on telemetry, Ren et al. 2019, "SR-CNN", without the CNN): the log
// amplitude spectrum of a window minus its local average is what the window has and its kind has not; turned back
// into time it is a saliency map, high where the eye is caught. Window by window, so that only the past counts: the
// newest value's saliency is the score, with a few extrapolated values behind it (as published) to keep the edge of
// the window from being salient itself.
//
// Without a unit: saliency over its window's mean, then surprise (surprise.ts). Spikes in web KPIs are its field; it
// is blind to slow change. One FFT pair of `window_points` per value, about 70 microseconds at 256.

import type { MethodParams } from '../../../contract/detection-methods.ts'
import { denseValuesOf, spreadOut } from '../scoring/dense-values.ts'
import { Fourier } from '../scoring/fourier.ts'
import type { Series } from '../scoring/series.ts'
import { at } from '../scoring/series.ts'
import { surprisesOf } from '../scoring/surprise.ts'
import type { Method, Scores } from './method.ts'
import { blankScores } from './method.ts'

const averagedBins = 3
const extrapolatedPoints = 5
const edgeSurprise = 2

export const spectralResidual: Method<'spectral_residual'> = {
  key: 'spectral_residual',
  score(series: Series, params: MethodParams<'spectral_residual'>): Scores {
    const length = series.values.length
    const dense = denseValuesOf(series.values)
    const saliency = new Saliency(2 ** Math.round(Math.log2(params.window_points)))
    const salience = dense.values.map((_, i) => saliency.ofNewest(dense.values, i, dense.runs[i] ?? 0))
    const score = surprisesOf(salience).map((surprise, i) =>
      i < params.warmup_points ? Number.NaN : surprise / edgeSurprise,
    )
    return { ...blankScores(length), score: spreadOut(dense, score, length) }
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

  /** How salient value i is in the window that ends with it; NaN until a window is full. */
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

  /** Lays the window out in units of its own largest distance from its first value; false when it is constant. */
  #fill(values: Float64Array, i: number, kept: number): boolean {
    const origin = at(values, i - kept + 1)
    let unit = 0
    for (let j = 0; j < kept; j++) unit = Math.max(unit, Math.abs(at(values, i - kept + 1 + j) - origin))
    if (unit === 0) return false
    for (let j = 0; j < kept; j++) this.#real[j] = (at(values, i - kept + 1 + j) - origin) / unit
    // The average slope to the newest value's predecessor, from there one step on, is repeated behind the window.
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
