// Learns the score above which an alarm is raised, for scores that are logarithms of rarity. Their tail is
// nearly exponential in every series, with a slope of its own. So the edge for one alarm a week is where the
// line through two frequent scores reaches once a week. The two are the highest scores of an hour that every
// third and every sixteenth hour exceeds. Rare scores are not used: they include those of incidents, so an
// edge fitted to them would move out with each incident and miss the next.
//
// Besides:
// - The edge is never below a floor, which depends on the budget and the step only, because a series without
//   small deviations has no tail to extend. The shorter the past, the nearer is the edge to this floor.
// - The budget is for false alarms. An episode that peaks at `plainly` times the edge is an incident and does
//   not count, unless there are more than `mostPlainPerWeek`: then they belong to the series. Each one that
//   counts beyond the budget moves the edge out.

import { SortedWindow } from './sorted-window.ts'

const minutesPerWeek = 10_080
const blockMinutes = 60
const weeksKept = 8
/** Shares of the hours; larger where the alarms of a large budget would be among them. */
const [leastOften, leastSeldom] = [0.3, 0.06]
const seldomPerAlarm = 2.5
const mostSeldom = 0.25
const oftenPerSeldom = 2.5
/** The weight of the floor, in blocks. */
const floorBlocks = 100
const refitBlocks = 6
const plainly = 1.3
/** How far the edge moves out when the budget is overspent tenfold, in digits of the own tail. */
const digitsPerDecade = 0.7
const mostPlainPerWeek = 5

interface EdgeOptions {
  readonly stepMinutes: number
  readonly budgetPerWeek: number
  /**
   * The lowest edge: `base`, plus `perDigit` for each digit of rarity that an alarm is to have among the
   * values.
   */
  readonly base: number
  readonly perDigit: number
}

export class LearntEdge {
  /** Scores above this raise an alarm. */
  edge: number
  private readonly floor: number
  private readonly valuesPerBlock: number
  private readonly blocksPerWeek: number
  private readonly alarmsPerBlock: number
  private readonly oftenShare: number
  private readonly seldomShare: number
  private readonly highest: SortedWindow
  private inBlock = 0
  private highestOfBlock = 0
  private blocks = 0
  private slope = 0
  private counted = 0
  private plain = 0

  constructor({ base, budgetPerWeek, perDigit, stepMinutes }: EdgeOptions) {
    this.valuesPerBlock = Math.max(1, Math.round(blockMinutes / stepMinutes))
    this.blocksPerWeek = minutesPerWeek / (this.valuesPerBlock * stepMinutes)
    this.alarmsPerBlock = budgetPerWeek / this.blocksPerWeek
    this.seldomShare = Math.max(leastSeldom, Math.min(mostSeldom, seldomPerAlarm * this.alarmsPerBlock))
    this.oftenShare = Math.max(leastOften, oftenPerSeldom * this.seldomShare)
    this.highest = new SortedWindow(Math.ceil(weeksKept * this.blocksPerWeek))
    const rarity = minutesPerWeek / (stepMinutes * budgetPerWeek)
    this.floor = base + perDigit * Math.max(1, Math.log10(rarity))
    this.edge = this.floor
  }

  /** Learns the unreported score of a calm value; 0 for the value that opens an episode. */
  learn(unreported: number): void {
    this.highestOfBlock = Math.max(this.highestOfBlock, unreported)
    if (++this.inBlock < this.valuesPerBlock) return
    this.highest.push(this.highestOfBlock)
    this.inBlock = 0
    this.highestOfBlock = 0
    if (++this.blocks % refitBlocks === 0) this.fit()
  }

  /**
   * Counts an episode that this edge opened; `peak` is in units of the edge. One that counts is learnt like
   * the highest score of an hour.
   */
  spend(peak: number): void {
    if (peak < plainly) {
      this.counted++
      this.highest.push(peak * this.edge)
    } else this.plain++
    this.fit()
  }

  private fit(): void {
    const { highest, oftenShare, seldomShare } = this
    const often = quantileOf(highest, 1 - oftenShare)
    const seldom = quantileOf(highest, 1 - seldomShare)
    if (Number.isNaN(seldom)) return
    this.slope = Math.max(0, (seldom - often) / Math.log10(rateOf(oftenShare) / rateOf(seldomShare)))
    const extended = seldom + this.slope * Math.log10(rateOf(seldomShare) / this.alarmsPerBlock)
    const weight = highest.size / (highest.size + floorBlocks)
    const own = weight * extended + (1 - weight) * this.floor
    const allowed = this.blocks * this.alarmsPerBlock
    const plainAllowed = mostPlainPerWeek * (1 + this.blocks / this.blocksPerWeek)
    const spent = this.counted + Math.max(0, this.plain - plainAllowed)
    this.edge =
      Math.max(this.floor, own) +
      this.slope * digitsPerDecade * Math.log10(Math.max(1, (1 + spent) / (1 + allowed)))
  }
}

/** Occurrences per block of an event that a share of the blocks has at least once. */
function rateOf(share: number): number {
  return -Math.log(1 - share)
}

function quantileOf(window: SortedWindow, share: number): number {
  const position = share * (window.size - 1)
  const low = Math.floor(position)
  const lower = window.rank(low)
  const upper = low + 1 < window.size ? window.rank(low + 1) : lower
  return lower + (position - low) * (upper - lower)
}
