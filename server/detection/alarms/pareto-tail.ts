// The tails that a handful of excesses leave plausible, and how far out an alarm must be looked for under all of them.
//
// - The law: excesses over a high level follow a generalised Pareto distribution (Pickands 1975; Balkema and de Haan 1974).
// - What is plausible beforehand: shapes from -0.2 to 0.6, all alike. So a tail is never believed to end soon on the
//   word of a dozen peaks, and one without a variance is the heaviest. Scales: all alike in their logarithm.
// - The *predictive* quantile: the excess that the next peak passes with the wanted probability, averaged over all those
//   tails (Coles 2001, section 9.1). With 16 exponential peaks and a budget one hundredth of their rate, the best fitted
//   tail alone would pass its quantile one and a half to twice as often as promised; with heavy tails, four times.
// - An excess need not be known exactly. Of one that was cut short only the least is known, and of counts only the
//   step they stand on: a 2 says "at least 2 and less than 3" of whatever the law is about. Taken for exact numbers,
//   steps make the law see nothing between them and put its quantile just short of the next one.
// - An excess beyond five medians is one of which only that is learnt: a giant must teach little, but cutting it off
//   would make every heavy tail look light.

const censoredBeyondMedians = 5
const shapes = [-0.2, -0.1, 0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
/** Scales tried on either side of the one that the median suggests, this far apart in standard errors. */
const scaleSteps = 6
const scaleStep = 0.9
/** Tails less plausible than this beside the best one are left out. */
const leastWeight = 1e-7
const mostSteps = 60

/** How far a peak went beyond the level, in order of nothing. */
export interface Excess {
  readonly size: number
  /** On a step, where the next one begins: it stands for all from `size` to here. Equal to `size` where it is exact. */
  readonly below: number
  /** It was cut short: it went at least so far. */
  readonly isLeast: boolean
}

/** A generalised Pareto law. Scale in units of the excesses; shape 0 is the exponential law, larger is heavier. */
interface ParetoTail {
  readonly scale: number
  readonly shape: number
  /** How plausible it is beside the others; all add up to 1. */
  readonly weight: number
}

/** The tails that such excesses may have come from: the posterior on a grid. At least one excess is above 0. */
export function plausibleTails(excesses: readonly Excess[]): ParetoTail[] {
  const middle = middleOf(excesses)
  const cut = cutAt(censoredBeyondMedians * middle.excess, excesses)
  const step = scaleStep / Math.sqrt(excesses.length)
  const tails = shapes.flatMap((shape) => {
    const units = shape === 0 ? -Math.log(middle.beyond) : (middle.beyond ** -shape - 1) / shape
    return Array.from({ length: 2 * scaleSteps + 1 }, (_, i) => {
      const scale = (middle.excess / units) * Math.exp(step * (i - scaleSteps))
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

/** The median excess and the share beyond it; on steps, where its step ends and the share of those on higher ones. */
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

/** -Infinity where the law makes one of the excesses impossible. */
function logLikelihood({ exact, least, steps }: Cut, shape: number, scale: number): number {
  let onSteps = 0
  for (const { below, count, size } of steps) {
    onSteps += count * Math.log(survival(size / scale, shape) - survival(below / scale, shape))
  }
  if (shape === 0) return onSteps - (sumOf(exact) + sumOf(least)) / scale - exact.length * Math.log(scale)
  const perUnit = shape / scale
  const beyond = (1 + 1 / shape) * logOfProduct(exact, perUnit) + logOfProduct(least, perUnit) / shape
  return Number.isNaN(beyond) ? Number.NEGATIVE_INFINITY : onSteps - beyond - exact.length * Math.log(scale)
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
  /** On a step, each once with how many stand there. */
  readonly steps: readonly { readonly size: number; readonly below: number; readonly count: number }[]
}

function cutAt(limit: number, excesses: readonly Excess[]): Cut {
  const isKnown = ({ below, isLeast }: Excess) => !isLeast && below <= limit
  const sizesOf = (some: readonly Excess[]) => Float64Array.from(some, ({ size }) => Math.min(size, limit))
  const known = excesses.filter(isKnown)
  const counts = new Map<number, Cut['steps'][number]>()
  for (const { below, size } of known) {
    if (below > size) counts.set(size, { size, below, count: 1 + (counts.get(size)?.count ?? 0) })
  }
  return {
    exact: sizesOf(known.filter(({ below, size }) => below === size)),
    least: sizesOf(excesses.filter((each) => !isKnown(each))),
    steps: [...counts.values()],
  }
}
