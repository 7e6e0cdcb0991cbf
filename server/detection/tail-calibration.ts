// How far must a score go before it is worth an alarm? Not a matter of taste: the user states how many false alarms
// a week are bearable, and the past of the series says how high its scores go that often. That is a quantile far
// out in the tail, beyond most of what was seen, so it can't be counted; extreme value theory extends the tail.
//
// - The law: excesses over a high level follow a generalised Pareto distribution (Pickands 1975; Balkema and
//   de Haan 1974). Using it as an alarm threshold on a stream is SPOT (Siffer et al. 2017).
// - What is counted: not scores but alarms. An alarm opens when n of the last m buckets violate, that is when the
//   n-th largest of the last m scores passes the threshold, so that is the number followed here. Exceedances close
//   together are one alarm, hence one peak ("runs" declustering, Coles 2001, section 5.3). Without both, scores
//   that come in bursts would make the threshold far too high or the rate far too large. Alarms are counted over
//   all buckets, also those without a value: a budget is for a week, however little of it has data.
// - The promise is about alarms to come, so what is asked is the *predictive* quantile: the excess that the next peak
//   passes with the wanted probability, averaged over all the tails that the peaks seen leave plausible (Coles 2001,
//   section 9.1). Putting the one best fitted tail in their place, as SPOT does, keeps no promise: a threshold that
//   is too low by chance costs more alarms than one too high saves. With 16 exponential peaks and a budget one
//   hundredth of their rate, that alone is one and a half to twice the budget; with heavy tails it was four times.
// - What is plausible beforehand: shapes from -0.2 to 0.6, all alike. So a tail is never believed to end soon on the
//   word of a dozen peaks, and one without a variance is the heaviest. Scales: all alike in their logarithm.
// - An incident that slipped in must teach little: of a peak beyond five median excesses only that is learnt, that
//   it was beyond (it is censored there, not cut off: cutting would make every heavy tail look light). Of a peak
//   that opened an incident only the beginning was learnt, so it too counts as "at least that".
//
// - What is overspent is saved again: the law holds for a series that stays as it is, and few do. Where more alarms
//   were raised than the budget allows so far, the budget for those to come shrinks in proportion (the idea of adaptive
//   conformal inference, Gibbs and Candès 2021: follow the rate that was had, not only the one that was promised).
//
// The threshold never falls below `leastThreshold`: a budget is a ceiling, and alarms spent only to reach it are mostly
// false. It is 1, the edge as the method drew it, while the history is too short to speak (see `fewestScores` and
// `fewestPeaks`). It depends on earlier scores only, so a backtest does
// not peek at the future. decisions/0009 has what it keeps to, measured.

import { at } from './series.ts'
import { SortedWindow } from './sorted-window.ts'

const tailShare = 0.02
/** A short history uses a thicker tail, so that this many scores exceed the level. */
const fewestExceedances = 32
/** Up to this share of the history; bursts, which merge into few peaks, thicken it as far too. */
const thickestTailShare = 0.25
/** The fit is repeated as the history grows by this factor, and whenever an alarm says that it may be too low. */
const refitGrowth = 1.25
/** From fewer peaks than this nothing is concluded. */
const fewestPeaks = 3
const fewestScores = 16
const censoredBeyondMedians = 5
const shapes = [-0.2, -0.1, 0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
/** Scales tried on either side of the one that the median suggests, this far apart in standard errors. */
const scaleSteps = 6
const scaleStep = 0.9
/** Tails less plausible than this beside the best one are left out. */
const leastWeight = 1e-7
const mostSteps = 60

export interface CalibrationPolicy {
  readonly violateN: number
  readonly windowM: number
  readonly clearN: number
  /** Alarms per bucket that are bearable, between 0 and 1. */
  readonly budgetPerBucket: number
  /** In units of the method's score; at most 1. */
  readonly leastThreshold: number
}

/** Learns scores one by one, oldest first; `threshold` is valid for the next score. */
export class TailCalibration {
  readonly #policy: CalibrationPolicy
  readonly #recent: SortedWindow
  readonly #history: Float64Array
  readonly #isOpening: Uint8Array
  #length = 0
  #emptyBuckets = 0
  #openings = 0
  #nextFit = fewestScores
  #threshold = 1

  /** `capacity`: the most scores that will be learnt. */
  constructor(policy: CalibrationPolicy, capacity: number) {
    this.#policy = policy
    this.#recent = new SortedWindow(policy.windowM)
    this.#history = new Float64Array(capacity)
    this.#isOpening = new Uint8Array(capacity)
  }

  /** In units of the method's score; at least `leastThreshold`. */
  get threshold(): number {
    return this.#threshold
  }

  /** Takes a score (not NaN) of a bucket outside any incident, or of the one that `opens` an incident. */
  learn(score: number, opens = false): void {
    this.#recent.push(score)
    const opening = this.#recent.rank(this.#recent.size - this.#policy.violateN)
    if (opens) this.#openings++
    this.#isOpening[this.#length] = opens ? 1 : 0
    this.#history[this.#length++] = Number.isNaN(opening) ? 0 : opening
    if (this.#length < (opens ? fewestScores : this.#nextFit)) return
    const buckets = this.#length + this.#emptyBuckets
    const left = Math.min(1, (1 + this.#policy.budgetPerBucket * buckets) / (1 + this.#openings))
    this.#threshold = thresholdFor(
      {
        scores: this.#history.subarray(0, this.#length),
        isOpening: this.#isOpening.subarray(0, this.#length),
        buckets,
      },
      { ...this.#policy, budgetPerBucket: this.#policy.budgetPerBucket * left },
    )
    this.#nextFit = Math.ceil(this.#length * refitGrowth)
  }

  /** Takes a bucket that has no score but belongs to the time the budget is for. */
  pass(): void {
    if (this.#length > 0) this.#emptyBuckets++
  }
}

export interface ScoreHistory {
  /** In order of time. */
  readonly scores: Float64Array
  /** 1 where an incident opened: the score is then the least that its peak was. */
  readonly isOpening: Uint8Array
  /** How long it took. */
  readonly buckets: number
}

/** The score that will be passed as often as the budget allows; 1 where that can't be told. */
export function thresholdFor(
  history: ScoreHistory,
  policy: Pick<CalibrationPolicy, 'clearN' | 'budgetPerBucket' | 'leastThreshold'>,
): number {
  const { scores, buckets } = history
  if (scores.length < fewestScores) return 1
  const tail = tailOf(history, policy.clearN)
  if (tail === null) return 1
  const rarity = tail.peaks.length / buckets / policy.budgetPerBucket
  const excess = rarity <= 1 ? 0 : excessPassedOnceIn(rarity, plausibleTails(tail.peaks))
  return Math.max(policy.leastThreshold, tail.level + excess)
}

/** Where runs are so few that each exceedance counts for itself, the rate is too large: that errs on the quiet side. */
function tailOf(history: ScoreHistory, clearN: number): { level: number; peaks: Excess[] } | null {
  const { scores } = history
  const sorted = scores.slice().sort()
  const most = scores.length * thickestTailShare
  const least = Math.floor(Math.min(most, Math.max(fewestExceedances, scores.length * tailShare)))
  for (const calmScores of [clearN, 0]) {
    for (let exceedances = least; exceedances <= most; exceedances = Math.ceil(exceedances * 1.5)) {
      const level = aboveAtom(sorted, scores.length - 1 - exceedances)
      const peaks = clusterPeaks(history, level, calmScores)
      if (peaks.length >= fewestPeaks) return { level, peaks }
    }
  }
  return null
}

/**
 * The score of a rank; or, where that is the one that most of the history has, the median of those above it. The law is
 * about what exceeds a level among many that nearly do, and above zeros nothing needs to be near.
 */
function aboveAtom(sorted: Float64Array, rank: number): number {
  const level = at(sorted, rank)
  if (level > at(sorted, 0)) return level
  const above = sorted.findIndex((score) => score > level)
  return above < 0 ? level : at(sorted, (above + sorted.length) >> 1)
}

/** How far a peak went beyond the level, in order of nothing. */
export interface Excess {
  readonly size: number
  /** It went at least so far. */
  readonly isLeast: boolean
}

/** A generalised Pareto law. Scale in units of the excesses; shape 0 is the exponential law, larger is heavier. */
export interface ParetoTail {
  readonly scale: number
  readonly shape: number
  /** How plausible it is beside the others; all add up to 1. */
  readonly weight: number
}

/** The tails that such excesses may have come from: the posterior on a grid. At least one excess is above 0. */
export function plausibleTails(excesses: readonly Excess[]): ParetoTail[] {
  const sizes = Float64Array.from(excesses, ({ size }) => size).sort()
  const median = at(sizes, sizes.length >> 1)
  const cut = cutAt(censoredBeyondMedians * median, excesses)
  const step = scaleStep / Math.sqrt(excesses.length)
  const tails = shapes.flatMap((shape) => {
    const middle = shape === 0 ? median / Math.LN2 : (median * shape) / (2 ** shape - 1)
    return Array.from({ length: 2 * scaleSteps + 1 }, (_, i) => {
      const scale = middle * Math.exp(step * (i - scaleSteps))
      return { shape, scale, likelihood: logLikelihood(cut, shape, scale) }
    })
  })
  const best = tails.reduce((most, { likelihood }) => Math.max(most, likelihood), Number.NEGATIVE_INFINITY)
  const kept = tails
    .map(({ shape, scale, likelihood }) => ({ shape, scale, weight: Math.exp(likelihood - best) }))
    .filter(({ weight }) => weight > leastWeight)
  const total = kept.reduce((sum, { weight }) => sum + weight, 0)
  return kept.map((tail) => ({ ...tail, weight: tail.weight / total }))
}

/** The excess that the next peak passes with probability 1 / `rarity`; 0 for rarities up to 1. */
export function excessPassedOnceIn(rarity: number, tails: readonly ParetoTail[]): number {
  if (rarity <= 1) return 0
  const tooOften = (excess: number) => Math.log(chanceBeyond(excess, tails) * rarity)
  let low = 0
  let atLow = Math.log(rarity)
  let high = Math.max(...tails.map(({ scale }) => scale))
  let atHigh = tooOften(high)
  for (; atHigh > 0; atHigh = tooOften(high)) {
    low = high
    atLow = atHigh
    high *= 2
  }
  // The secant through both ends, of which one that stays twice counts half (the Illinois rule): a third of the looks
  // that halving takes. Where all tails have ended there is no secant, so there it is halved.
  let moved: 'low' | 'high' | null = null
  for (let steps = 0; steps < mostSteps && high - low > 1e-11 * high; steps++) {
    const secant = high - (atHigh * (high - low)) / (atHigh - atLow)
    const guess = secant > low && secant < high ? secant : (low + high) / 2
    const atGuess = tooOften(guess)
    if (atGuess > 0) {
      if (moved === 'low') atHigh /= 2
      low = guess
      atLow = atGuess
      moved = 'low'
    } else {
      if (moved === 'high') atLow /= 2
      high = guess
      atHigh = atGuess
      moved = 'high'
    }
  }
  return high
}

function chanceBeyond(excess: number, tails: readonly ParetoTail[]): number {
  let chance = 0
  for (const { shape, scale, weight } of tails) chance += weight * survival(excess / scale, shape)
  return chance
}

function survival(units: number, shape: number): number {
  return shape === 0 ? Math.exp(-units) : Math.max(0, 1 + shape * units) ** (-1 / shape)
}

/** -Infinity where the law makes one of the excesses impossible. */
function logLikelihood({ exact, least }: Cut, shape: number, scale: number): number {
  if (shape === 0) return -(sumOf(exact) + sumOf(least)) / scale - exact.length * Math.log(scale)
  const perUnit = shape / scale
  const beyond = (1 + 1 / shape) * logOfProduct(exact, perUnit) + logOfProduct(least, perUnit) / shape
  return Number.isNaN(beyond) ? Number.NEGATIVE_INFINITY : -beyond - exact.length * Math.log(scale)
}

/** The logarithm of the product of 1 + size * perUnit; NaN where a factor is not positive. */
function logOfProduct(sizes: Float64Array, perUnit: number): number {
  // One logarithm for many factors: a fit takes thousands of them.
  let product = 1
  let logs = 0
  for (const size of sizes) {
    const factor = 1 + size * perUnit
    if (factor <= 0) return Number.NaN
    product *= factor
    if (product > 1e200 || product < 1e-200) {
      logs += Math.log(product)
      product = 1
    }
  }
  return logs + Math.log(product)
}

function sumOf(sizes: Float64Array): number {
  let sum = 0
  for (const size of sizes) sum += size
  return sum
}

/** Excesses as far as they are learnt from. */
interface Cut {
  readonly exact: Float64Array
  /** The true excess is at least so large. */
  readonly least: Float64Array
}

function cutAt(limit: number, excesses: readonly Excess[]): Cut {
  const isExact = ({ isLeast, size }: Excess) => !isLeast && size <= limit
  const sizesOf = (some: readonly Excess[]) => Float64Array.from(some, ({ size }) => Math.min(size, limit))
  return {
    exact: sizesOf(excesses.filter(isExact)),
    least: sizesOf(excesses.filter((each) => !isExact(each))),
  }
}

/** The highest score of each run above the level; `calmScores` at or below it end a run. */
function clusterPeaks({ scores, isOpening }: ScoreHistory, level: number, calmScores: number): Excess[] {
  const peaks: Excess[] = []
  let calm = calmScores
  for (let i = 0; i < scores.length; i++) {
    const size = at(scores, i) - level
    if (size <= 0) {
      calm++
      continue
    }
    const peak = { size, isLeast: isOpening[i] === 1 }
    const before = calm < calmScores ? peaks.pop() : undefined
    peaks.push(before === undefined || size > before.size ? peak : before)
    calm = 0
  }
  return peaks
}
