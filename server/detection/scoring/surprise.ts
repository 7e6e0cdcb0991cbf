// Surprise: how unusual a number is, in a unit that all methods share. It is minus the decimal logarithm of
// the probability, according to the past of the same series, of a number at least as large: 2 means one in
// a hundred. Distances, residuals and spreads have units that cannot be added; their surprises can.
// Averaging calibrated scores of simple detectors was among the best of 73 ways to choose or combine
// detectors (TSB-AutoAD 2025).
//
// The probability is counted, by rank, among the numbers seen recently. There are no ranks above the largest
// of them, so there the tail is extended as an exponential one, with the mean excess over the 98 % quantile
// (peaks over threshold as in tail-calibration.ts, with shape 0). The extension is limited to `mostBeyond`
// digits: one member may not outweigh all others, however large its spike.

import { at } from './series.ts'
import { SortedWindow } from './sorted-window.ts'

const tailQuantile = 0.98
const mostBeyond = 2
/** With fewer numbers than this nothing can be called rare. */
const fewestNumbers = 64
/** Rarity needs a long memory: with 2,048 numbers, every series has a one-in-2,000 event once a week. */
const capacity = 16_384

/** The surprises of numbers that come piece by piece. */
export class Surprises {
  private readonly past: SortedWindow

  /** `numbersMax`: at most this many numbers will come. */
  constructor(numbersMax = Number.POSITIVE_INFINITY) {
    this.past = new SortedWindow(Math.min(capacity, numbersMax))
  }

  /** Surprise of each number given the numbers before it; 0 until enough were seen, and for NaN. */
  of(numbers: Float64Array): Float64Array {
    const { past } = this
    return numbers.map((number) => {
      if (Number.isNaN(number)) return 0
      const surprise = past.size < fewestNumbers ? 0 : upperSurprise(past, number)
      past.push(number)
      return surprise
    })
  }
}

/** The surprises of numbers that all come at once. */
export function surprisesOf(numbers: Float64Array): Float64Array {
  return new Surprises(numbers.length).of(numbers)
}

/** A surprise of this, one number in a hundred, is a score of 1. */
const edgeSurprise = 2

/** Returns the scores of surprises; NaN for the first ones, up to `warmUp` of them. */
export function scoresOf(surprises: Float64Array, warmUp: number): Float64Array {
  return surprises.map((surprise, i) => (i < warmUp ? Number.NaN : surprise / edgeSurprise))
}

function upperSurprise(past: SortedWindow, number: number): number {
  const highest = past.rank(past.size - 1)
  if (number <= highest) return Math.log10((past.size + 1) / (past.size - past.countBelow(number) + 1))
  const levelRank = Math.floor(tailQuantile * (past.size - 1))
  const level = past.rank(levelRank)
  let excess = 0
  for (let rank = levelRank + 1; rank < past.size; rank++) {
    excess += (past.rank(rank) - level) / (past.size - levelRank - 1)
  }
  const beyond = excess > 0 ? (number - highest) / excess / Math.LN10 : mostBeyond
  return Math.log10(past.size + 1) + Math.min(mostBeyond, beyond)
}

/**
 * Combines the surprises of several members: the quadratic mean, element by element, of arrays of equal
 * length. It lies between the plain mean, in which seven low members hide a high one, and the maximum, in
 * which one wrong member decides.
 */
export function combinedSurprise(members: readonly Float64Array[]): Float64Array {
  const squares = new Float64Array(members[0]?.length ?? 0)
  for (const member of members) {
    for (let i = 0; i < squares.length; i++) {
      const surprise = at(member, i)
      squares[i] = at(squares, i) + (surprise * surprise) / members.length
    }
  }
  return squares.map(Math.sqrt)
}
