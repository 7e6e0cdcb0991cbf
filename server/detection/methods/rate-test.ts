// Ratios judged by how much stands behind them. Two errors of three requests and two thousand of three thousand are
// the same ratio and not the same news: with the volume of the bucket known, the errors are counts, and counts have
// a law. Under the past rate (a beta prior worth at least `prior_events`, its own past with a half-life) errors are
// beta-binomial; the score compares the distance from the expected rate with the standard deviation that law gives.
// For values outside 0 to 1, and where no volume is known, values are counts themselves, gamma-Poisson in the same
// way; whichever of the two a series is, its past says.
//
// The band is `k` of those deviations plus one event: narrow when there is traffic, wide when there is none. Sources:
// Gelman et al., Bayesian Data Analysis, sections 2.4 and 2.6. The observed dispersion beyond the law (no telemetry
// is exactly binomial) is learnt as a factor. About 100 nanoseconds per value.

import type { MethodParams } from '../../../contract/detection-methods.ts'
import type { Series } from '../scoring/series.ts'
import { at } from '../scoring/series.ts'
import type { Method, Scores } from './method.ts'
import { blankScores, scoreOf } from './method.ts'

const minutesPerDay = 1440
/** Dispersion is averaged over about this many values. */
const dispersionMemory = 200
/** One value counts at most this many times the dispersion so far: an incident must not teach it. */
const mostSurprise = 9
const mostDispersion = 1e6

export const rateTest: Method<'rate_test'> = {
  key: 'rate_test',
  score(series: Series, params: MethodParams<'rate_test'>): Scores {
    const scores = blankScores(series.values.length)
    const kept = 0.5 ** (series.stepMinutes / minutesPerDay / params.base_days)
    const past = new RatePast(kept, params.prior_events)
    for (let i = 0; i < series.values.length; i++) {
      const value = at(series.values, i)
      const volume = series.volumes ? at(series.volumes, i) : Number.NaN
      past.fade()
      if (past.seen >= params.warmup_points) {
        const expected = past.rate
        const half = params.k * past.sigmaAt(volume)
        scores.expected[i] = expected
        scores.lower[i] = expected - half
        scores.upper[i] = expected + half
        scores.score[i] = scoreOf(Math.abs(value - expected), half)
      }
      if (!Number.isNaN(value)) past.learn(value, volume)
    }
    return scores
  },
}

/** Events of the past and what they came from, fading. */
class RatePast {
  seen = 0
  #events = 0
  #exposure = 0
  #dispersion = 1
  #isRatio = true
  readonly #kept: number
  readonly #prior: number

  constructor(kept: number, prior: number) {
    this.#kept = kept
    this.#prior = prior
  }

  get rate(): number {
    return this.#exposure > 0 ? this.#events / this.#exposure : 0
  }

  fade(): void {
    this.#events *= this.#kept
    this.#exposure *= this.#kept
  }

  /** Standard deviation of the next value, of that volume if it is known; never 0. */
  sigmaAt(volume: number): number {
    const exposure = this.#isRatio && volume > 0 ? volume : 1
    return Math.sqrt(this.#lawAt(volume) * this.#dispersion) + 1 / Math.max(1, exposure) / 4
  }

  learn(value: number, volume: number): void {
    if (this.#isRatio && (value < 0 || value > 1 || !(volume >= 0))) {
      this.#isRatio = false
      this.#events = 0
      this.#exposure = 0
    }
    const law = this.#lawAt(volume)
    if (this.#exposure > 0 && law > 0) {
      const squared = Math.min(mostSurprise * this.#dispersion, (value - this.rate) ** 2 / law)
      const memory = Math.min(dispersionMemory, this.seen + 1)
      const dispersion = this.#dispersion + (squared - this.#dispersion) / memory
      this.#dispersion = Math.max(1, Math.min(mostDispersion, dispersion))
    }
    const exposure = this.#isRatio ? volume : 1
    this.#events += value * exposure
    this.#exposure += exposure
    this.seen++
  }

  /** Variance by the law alone. */
  #lawAt(volume: number): number {
    const rate = Math.abs(this.rate)
    const known = this.#exposure + this.#prior
    if (!this.#isRatio || !(volume > 0)) return rate * (1 + 1 / known)
    return Math.max(rate * (1 - rate), rate / known) * (1 / volume + 1 / known)
  }
}
