// Judges a ratio by the volume behind it. Two errors of three requests and two thousand of three thousand
// are the same ratio, but only the second is significant. Where the volume of the bucket is known, errors
// are counts with a known distribution. Under the past rate (the series' own past with a half-life, and a
// beta prior worth at least `prior_events`) errors are beta-binomial. The score compares the distance from
// the expected rate with the standard deviation of that distribution. Values outside 0 to 1, or without a
// volume, are counts themselves and are treated as gamma-Poisson in the same way. The past of the series
// decides which of the two it is.
//
// The band is `k` of those deviations plus one event: narrow for much traffic, wide for little. Sources:
// Gelman et al., Bayesian Data Analysis, sections 2.4 and 2.6. Dispersion beyond the distribution (no
// telemetry is exactly binomial) is learnt as a factor. About 100 nanoseconds per value.

import type { MethodParams } from '../../../contract/detection/methods.ts'
import type { Series } from '../scoring/series.ts'
import { at } from '../scoring/series.ts'
import { blankScores, methodOf, type Scorer, type Scores, scoreOf } from './method.ts'

const minutesPerDay = 1440
/** Dispersion is averaged over about this many values. */
const dispersionMemory = 200
/** One value counts at most this many times the dispersion so far: an episode must not raise it. */
const mostSurprise = 9
const mostDispersion = 1e6

export const rateTest = methodOf('rate_test', (params, step) => new RateScorer(params, step))

class RateScorer implements Scorer {
  private readonly params: MethodParams<'rate_test'>
  private readonly past: RatePast

  constructor(params: MethodParams<'rate_test'>, stepMinutes: number) {
    this.params = params
    this.past = new RatePast(0.5 ** (stepMinutes / minutesPerDay / params.base_days), params.prior_events)
  }

  score({ values, volumes }: Series): Scores {
    const { past } = this
    const { k, warmup_points } = this.params
    const scores = blankScores(values.length)
    for (let i = 0; i < values.length; i++) {
      const value = at(values, i)
      const volume = volumes ? at(volumes, i) : Number.NaN
      past.fade()
      if (past.seen >= warmup_points) {
        const expected = past.rate
        const half = k * past.sigmaAt(volume)
        scores.expected[i] = expected
        scores.lower[i] = expected - half
        scores.upper[i] = expected + half
        scores.score[i] = scoreOf(Math.abs(value - expected), half)
      }
      if (!Number.isNaN(value)) past.learn(value, volume)
    }
    return scores
  }
}

/** Events of the past and their exposure, both fading. */
class RatePast {
  seen = 0
  private events = 0
  private exposure = 0
  private dispersion = 1
  private isRatio = true
  private readonly kept: number
  private readonly prior: number

  constructor(kept: number, prior: number) {
    this.kept = kept
    this.prior = prior
  }

  get rate(): number {
    return this.exposure > 0 ? this.events / this.exposure : 0
  }

  fade(): void {
    this.events *= this.kept
    this.exposure *= this.kept
  }

  /** Standard deviation of the next value, given its volume where that is known; never 0. */
  sigmaAt(volume: number): number {
    const exposure = this.isRatio && volume > 0 ? volume : 1
    return Math.sqrt(this.varianceAt(volume) * this.dispersion) + 1 / Math.max(1, exposure) / 4
  }

  learn(value: number, volume: number): void {
    if (this.isRatio && (value < 0 || value > 1 || !(volume >= 0))) {
      this.isRatio = false
      this.events = 0
      this.exposure = 0
    }
    const variance = this.varianceAt(volume)
    if (this.exposure > 0 && variance > 0) {
      const squared = Math.min(mostSurprise * this.dispersion, (value - this.rate) ** 2 / variance)
      const memory = Math.min(dispersionMemory, this.seen + 1)
      const dispersion = this.dispersion + (squared - this.dispersion) / memory
      this.dispersion = Math.max(1, Math.min(mostDispersion, dispersion))
    }
    const exposure = this.isRatio ? volume : 1
    this.events += value * exposure
    this.exposure += exposure
    this.seen++
  }

  /** Variance of the distribution alone, without the learnt dispersion. */
  private varianceAt(volume: number): number {
    const rate = Math.abs(this.rate)
    const known = this.exposure + this.prior
    if (!this.isRatio || !(volume > 0)) return rate * (1 + 1 / known)
    return Math.max(rate * (1 - rate), rate / known) * (1 / volume + 1 / known)
  }
}
