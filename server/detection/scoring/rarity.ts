// Rarity: how unusual a deviation is, in a unit that all members of `auto` share. It is minus the decimal
// logarithm of the probability, according to the past of the same series, of a deviation at least as large on
// the same side: 2 means one in a hundred. The past is a histogram of sizes on a logarithmic scale, so its
// memory does not grow and a new deviation costs one addition.
//
// Among usual deviations the probability is counted. Beyond them it follows a Pareto tail, fitted by Hill's
// estimator (1975) to the largest few in a hundred and drawn towards `priorShape` where these are few.
// Counting alone has no answer beyond the largest deviation seen: in a short past everything large would be
// equally rare. Each side has a tail of its own: where values jump up every day, a jump down is still rare.
//
// Deviations must be in units of what is usual (robust standard deviations), because sizes below 1 are never
// taken for a tail.

const binsPerOctave = 8
/** Sizes from 2^-8 to 2^24; others count in the first or the last bin. */
const lowestOctave = -8
const bins = 32 * binsPerOctave
const tailShare = 0.02
const fewestInTail = 12
/** At most this share of a short past is taken for the tail. */
const thickestTail = 0.25
/** A normal distribution has about this shape around its 98 % quantile. */
const priorShape = 3
/** How many deviations of the tail the prior shape is worth. */
const priorWeight = 16
const fewestDeviations = 30
/** One member may not outweigh all others, however far out it is. */
const mostDigits = 8
/** The largest rarity beyond what the past could have shown once. */
const digitsBeyondPast = 3
/** When this many were learnt, all counts are halved: the past fades, over one to two times as many. */
const fullWeight = 32_768
/** A short past has no estimate of rarity beyond this share of one deviation. */
const sureShare = 0.25
/** A deviation that is rarer than this is learnt as if it were as rare as this: an incident is not a tail. */
const leastChance = 1e-4
/** The tail is fitted again when the past has grown by this share. */
const refitShare = 1 / 64
/** The share of deviations, on each side, that are not usual. */
const unusualShare = 0.01

export class Rarity {
  private readonly overlap: number
  private readonly above = new Float64Array(bins)
  private readonly below = new Float64Array(bins)
  private total = 0
  private sinceFit = Number.POSITIVE_INFINITY
  private tailBin = 0
  private tailChance = 1
  private shareAbove = 0.5
  private shapeAbove = priorShape
  private shapeBelow = priorShape

  /** Deviations of means over `overlap` values count as that many times fewer. */
  constructor(overlap = 1) {
    this.overlap = overlap
  }

  /** 0 for a usual deviation, at most 8, and 0 until thirty deviations were learnt. */
  digits(deviation: number): number {
    if (this.total < fewestDeviations * this.overlap) return 0
    this.fitWhenDue()
    const isAbove = deviation >= 0
    const octaves = Math.log2(Math.abs(deviation) + 1e-12) - lowestOctave - this.tailBin / binsPerOctave
    const chance =
      octaves > 0
        ? this.tailChance *
          (isAbove ? this.shareAbove : 1 - this.shareAbove) *
          2 ** (-octaves * (isAbove ? this.shapeAbove : this.shapeBelow))
        : this.countedChance(isAbove ? this.above : this.below, binOf(deviation))
    const most = Math.min(mostDigits, Math.log10(this.total / this.overlap) + digitsBeyondPast)
    return Math.min(most, Math.max(0, -Math.log10(2 * chance)))
  }

  /**
   * How far deviations usually go below and above 0, on each side: one in a hundred goes farther.
   * Infinite until thirty were learnt.
   */
  usualReach(): { readonly below: number; readonly above: number } {
    const { above, below, shareAbove } = this
    return {
      below: this.reachOf(below, 1 - shareAbove, this.shapeBelow),
      above: this.reachOf(above, shareAbove, this.shapeAbove),
    }
  }

  learn(deviation: number): void {
    const side = deviation >= 0 ? this.above : this.below
    const bin = Math.min(binOf(deviation), this.mostBin(deviation >= 0))
    side[bin] = (side[bin] ?? 0) + 1
    this.total++
    this.sinceFit++
    if (this.total < fullWeight) return
    for (let i = 0; i < bins; i++) {
      this.above[i] = (this.above[i] ?? 0) / 2
      this.below[i] = (this.below[i] ?? 0) / 2
    }
    this.total /= 2
  }

  /** The bin of the largest deviation that is learnt as it is: one in `1 / leastChance`. */
  private mostBin(isAbove: boolean): number {
    if (this.total < fewestDeviations) return bins - 1
    this.fitWhenDue()
    const shape = isAbove ? this.shapeAbove : this.shapeBelow
    const chance = Math.max(leastChance, sureShare / this.total)
    const octaves = Math.max(0, Math.log2(this.tailChance / chance)) / shape
    return this.tailBin + Math.ceil(octaves * binsPerOctave)
  }

  private reachOf(side: Float64Array, share: number, shape: number): number {
    if (this.total < fewestDeviations * this.overlap) return Number.POSITIVE_INFINITY
    const octaves = Math.log2((this.tailChance * share) / unusualShare) / shape
    if (octaves > 0) return 2 ** (this.tailBin / binsPerOctave + lowestOctave + octaves)
    let bin = this.tailBin
    let count = this.total * this.tailChance * share
    while (bin > 0 && count < unusualShare * this.total) count += side[--bin] ?? 0
    return bin === 0 ? 0 : 2 ** (bin / binsPerOctave + lowestOctave)
  }

  private countedChance(side: Float64Array, bin: number): number {
    let count = (side[bin] ?? 0) / 2
    for (let i = bin + 1; i < bins; i++) count += side[i] ?? 0
    return (count + 0.5) / (this.total + 1)
  }

  private fitWhenDue(): void {
    if (this.sinceFit > Math.max(8, this.total * refitShare)) this.fitTail()
  }

  private fitTail(): void {
    this.sinceFit = 0
    const wanted = Math.max(tailShare * this.total, Math.min(fewestInTail, thickestTail * this.total))
    const first = -lowestOctave * binsPerOctave
    let [above, below, logsAbove, logsBelow] = [0, 0, 0, 0]
    let bin = bins
    // The sums of logarithms are relative to the lower edge of the bin reached last.
    while (bin > first && above + below < wanted) {
      bin--
      logsAbove += (above * Math.LN2) / binsPerOctave
      logsBelow += (below * Math.LN2) / binsPerOctave
      above += this.above[bin] ?? 0
      below += this.below[bin] ?? 0
      logsAbove += ((this.above[bin] ?? 0) * Math.LN2) / binsPerOctave / 2
      logsBelow += ((this.below[bin] ?? 0) * Math.LN2) / binsPerOctave / 2
    }
    this.tailBin = bin
    this.tailChance = (above + below + 1) / (this.total + 2)
    this.shareAbove = (above + 1) / (above + below + 2)
    const shape = shapeOf(above + below, logsAbove + logsBelow, priorShape)
    this.shapeAbove = shapeOf(above, logsAbove, shape)
    this.shapeBelow = shapeOf(below, logsBelow, shape)
  }
}

function shapeOf(count: number, logs: number, prior: number): number {
  return (count + priorWeight) / (logs + priorWeight / prior)
}

function binOf(deviation: number): number {
  const octave = Math.log2(Math.abs(deviation) + 1e-12) - lowestOctave
  return Math.max(0, Math.min(bins - 1, Math.floor(octave * binsPerOctave)))
}
