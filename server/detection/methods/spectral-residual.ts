// The spectral residual (Hou and Zhang 2007; for telemetry Ren et al. 2019, "SR-CNN", here without the CNN).
// The log amplitude spectrum of a window minus its local average is the part of the spectrum that is unusual.
// Transformed back to time, it gives a saliency map: high values mark unusual points. Each value has its own
// window that ends with it, so only the past counts; the saliency of the newest value is the score. A few
// extrapolated values follow it (as published), so that the edge of the window is not salient itself.
//
// The result has no unit: saliency divided by the mean of its window, then surprise (surprise.ts). The method
// suits spikes in web metrics and does not notice slow change. Two pairs of FFTs of `window_points` per value
// (restarted-scorer.ts), about 40 microseconds at 256.

import type { MethodParams } from '../../../contract/detection/methods.ts'
import { DenseReader, joinedValues, toSparse } from '../scoring/dense-values.ts'
import { Fourier } from '../scoring/fourier.ts'
import type { Series } from '../scoring/series.ts'
import { at } from '../scoring/series.ts'
import { Surprises, scoresOf } from '../scoring/surprise.ts'
import type { Method, Scorer, Scores } from './method.ts'
import { blankScores } from './method.ts'
import { RestartedScorer } from './restarted-scorer.ts'

const averagedBins = 3
const extrapolatedPoints = 5
/** Size times logarithm of the size of transforms that cost as much as a bucket of `auto`. */
const costlyOperations = 180

type Params = MethodParams<'spectral_residual'>

export const spectralResidual: Method<'spectral_residual'> = {
  key: 'spectral_residual',
  cost: ({ window_points }) => {
    const size = sizeOf(window_points)
    return { perBucket: (size * Math.log2(size)) / costlyOperations, again: 0 }
  },
  start: (params) => {
    const block = 8 * params.window_points
    return new RestartedScorer(() => new SpectralScorer(params, 2 * block), block)
  },
  score: (series, params) => new SpectralScorer(params, series.values.length).score(series),
}

class SpectralScorer implements Scorer {
  private readonly params: Params
  private readonly dense = new DenseReader()
  private readonly surprises: Surprises
  /** As many as precede a value in its window. */
  private recent = new Float64Array(0)
  private values = 0

  constructor(params: Params, bucketsMax: number) {
    this.params = params
    this.surprises = new Surprises(bucketsMax)
  }

  score(piece: Series): Scores {
    const dense = this.dense.read(piece.values)
    const saliency = saliencyOf(sizeOf(this.params.window_points))
    const before = this.recent.length
    const values = joinedValues(this.recent, dense.values)
    const salience = dense.values.map((_, i) => saliency.ofNewest(values, before + i, dense.runs[i] ?? 0))
    this.recent = values.slice(Math.max(0, values.length - saliency.before))
    const score = scoresOf(this.surprises.of(salience), this.params.warmup_points - this.values)
    this.values += dense.values.length
    const length = piece.values.length
    return { ...blankScores(length), score: toSparse(dense, score, length) }
  }
}

function sizeOf(windowPoints: number): number {
  return 2 ** Math.round(Math.log2(windowPoints))
}

/** One for each size, because they keep nothing between values. */
const saliencies = new Map<number, Saliency>()

function saliencyOf(size: number): Saliency {
  const saliency = saliencies.get(size) ?? new Saliency(size)
  saliencies.set(size, saliency)
  return saliency
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

  /** How many values before a value are in its window. */
  get before(): number {
    return this.#size - extrapolatedPoints - 1
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
