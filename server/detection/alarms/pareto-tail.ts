// Estimates tails of a distribution from a handful of excesses, and how far out an alarm edge must be under
// all tails that are plausible.
//
// - The distribution: excesses over a high level follow a generalised Pareto distribution (Pickands 1975;
//   Balkema and de Haan 1974).
// - The prior: shapes from -0.2 to 0.6, equally probable. So a dozen peaks cannot show that a tail ends soon,
//   and the heaviest shape has no variance. Scales: equally probable on a logarithmic scale.
// - The *predictive* quantile: the excess that the next peak exceeds with the wanted probability, averaged
//   over all those tails (Coles 2001, section 9.1). With 16 exponential peaks and a budget of one hundredth
//   of their rate, the best-fitting tail alone would exceed its quantile one and a half to two times as often
//   as intended; with heavy tails, four times.
// - An excess need not be known exactly. Of a censored one only a lower bound is known, and of a count only
//   its step: a 2 means "from 2 up to 3" in the continuous distribution. If steps were taken for exact
//   numbers, the fit would see nothing between them and put its quantile just below the next step.
// - An excess beyond five medians is censored there: a huge one must not dominate, but removing it would make
//   every heavy tail look light.

const censoredBeyondMedians = 5
const shapes = [-0.2, -0.1, 0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
/**
 * Number of scales tried on either side of the one that the median suggests, and their
 * distance in standard errors.
 */
const scaleSteps = 6
const scaleStep = 0.9
/** Tails with less weight than this, relative to the best one, are left out. */
const leastWeight = 1e-7
const mostSteps = 60

/** How far a peak was above the level. The order of excesses does not matter. */
export interface Excess {
  readonly size: number
  /**
   * For a count, the next step: the excess stands for all values from `size` up to here. Equal to
   * `size` where it is exact.
   */
  readonly below: number
  /** Whether only a lower bound is known: the true excess is `size` or more. */
  readonly isCensored: boolean
}

/**
 * A generalised Pareto distribution. Scale in units of the excesses; shape 0 is exponential, a
 * larger shape is heavier.
 */
export interface ParetoTail {
  readonly scale: number
  readonly shape: number
  /** Probability of this tail relative to the others; all weights add up to 1. */
  readonly weight: number
}

/**
 * The tails that may have produced these excesses: the posterior on a grid. One excess
 * or more must be above 0.
 */
export function plausibleTails(excesses: readonly Excess[]): ParetoTail[] {
  const middle = middleOf(excesses)
  const censored = censorAt(censoredBeyondMedians * middle.excess, excesses)
  const step = scaleStep / Math.sqrt(excesses.length)
  const tails = shapes.flatMap((shape) => {
    const units = shape === 0 ? -Math.log(middle.beyond) : (middle.beyond ** -shape - 1) / shape
    return Array.from({ length: 2 * scaleSteps + 1 }, (_, i) => {
      const scale = (middle.excess / units) * Math.exp(step * (i - scaleSteps))
      return { shape, scale, likelihood: logLikelihood(censored, shape, scale) }
    })
  })
  const best = tails.reduce((most, { likelihood }) => Math.max(most, likelihood), Number.NEGATIVE_INFINITY)
  const kept = tails
    .map(({ shape, scale, likelihood }) => ({ shape, scale, weight: Math.exp(likelihood - best) }))
    .filter(({ weight }) => weight > leastWeight)
  const total = kept.reduce((sum, { weight }) => sum + weight, 0)
  return kept.map((tail) => ({ ...tail, weight: tail.weight / total }))
}

/**
 * The return level: the excess that the next peak exceeds with probability 1 / `rarity`; 0 for rarities up to
 * 1.
 */
export function returnLevel(rarity: number, tails: readonly ParetoTail[]): number {
  if (rarity <= 1) return 0
  const logRatioAt = (excess: number) => Math.log(chanceBeyond(excess, tails) * rarity)
  let low = 0
  let atLow = Math.log(rarity)
  let high = Math.max(...tails.map(({ scale }) => scale))
  let atHigh = logRatioAt(high)
  for (; atHigh > 0; atHigh = logRatioAt(high)) {
    low = high
    atLow = atHigh
    high *= 2
  }
  // Secant between both ends; an end that stays twice counts half (the Illinois rule). This takes a third of
  // the steps of bisection. Where all tails have ended there is no secant, so the interval is halved.
  let moved: 'low' | 'high' | null = null
  for (let steps = 0; steps < mostSteps && high - low > 1e-11 * high; steps++) {
    const secant = high - (atHigh * (high - low)) / (atHigh - atLow)
    const guess = secant > low && secant < high ? secant : (low + high) / 2
    const atGuess = logRatioAt(guess)
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

/**
 * The median excess and the share of excesses beyond it. For counts: the end of the median's step and
 * the share on higher steps.
 */
function middleOf(excesses: readonly Excess[]): { excess: number; beyond: number } {
  const bySize = excesses.toSorted((a, b) => a.size - b.size)
  const median = bySize[bySize.length >> 1]
  if (median === undefined) throw new Error('A tail needs excesses')
  if (median.below === median.size) return { excess: median.size, beyond: 0.5 }
  const higher = excesses.filter(({ size }) => size >= median.below).length
  return { excess: median.below, beyond: (higher + 0.5) / (excesses.length + 1) }
}

function chanceBeyond(excess: number, tails: readonly ParetoTail[]): number {
  let chance = 0
  for (const { shape, scale, weight } of tails) chance += weight * survival(excess / scale, shape)
  return chance
}

function survival(units: number, shape: number): number {
  return shape === 0 ? Math.exp(-units) : Math.max(0, 1 + shape * units) ** (-1 / shape)
}

/** -Infinity where one of the excesses is impossible. */
function logLikelihood(
  { exact, lowerBounds, steps }: CensoredExcesses,
  shape: number,
  scale: number,
): number {
  let onSteps = 0
  for (const { below, count, size } of steps) {
    onSteps += count * Math.log(survival(size / scale, shape) - survival(below / scale, shape))
  }
  if (shape === 0)
    return onSteps - (sumOf(exact) + sumOf(lowerBounds)) / scale - exact.length * Math.log(scale)
  const perUnit = shape / scale
  const beyond = (1 + 1 / shape) * logOfProduct(exact, perUnit) + logOfProduct(lowerBounds, perUnit) / shape
  return Number.isNaN(beyond) ? Number.NEGATIVE_INFINITY : onSteps - beyond - exact.length * Math.log(scale)
}

/** The logarithm of the product of 1 + size * perUnit; NaN where a factor is not positive. */
function logOfProduct(sizes: Float64Array, perUnit: number): number {
  // One logarithm for many factors, because a fit takes thousands of them.
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

/** Excesses, divided by how exactly they are known. */
interface CensoredExcesses {
  readonly exact: Float64Array
  /** The true excess is this or more. */
  readonly lowerBounds: Float64Array
  /** Counts: each step once, with the number of excesses on it. */
  readonly steps: readonly { readonly size: number; readonly below: number; readonly count: number }[]
}

function censorAt(limit: number, excesses: readonly Excess[]): CensoredExcesses {
  const isKnown = ({ below, isCensored }: Excess) => !isCensored && below <= limit
  const sizesOf = (some: readonly Excess[]) => Float64Array.from(some, ({ size }) => Math.min(size, limit))
  const known = excesses.filter(isKnown)
  const counts = new Map<number, CensoredExcesses['steps'][number]>()
  for (const { below, size } of known) {
    if (below > size) counts.set(size, { size, below, count: 1 + (counts.get(size)?.count ?? 0) })
  }
  return {
    exact: sizesOf(known.filter(({ below, size }) => below === size)),
    lowerBounds: sizesOf(excesses.filter((each) => !isKnown(each))),
    steps: [...counts.values()],
  }
}
