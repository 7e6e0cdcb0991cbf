// Learns how high a score must be to be worth an alarm, for scores that are logarithms of rarity. Their tail is
// near to exponential in every series, with a slope of its own: so the edge for one alarm a week lies where the
// line through two frequent scores reaches once a week. The two are the highest scores of an hour that every
// third hour and every sixteenth hour exceeds. They are frequent on purpose: incidents, of which there may be
// some in a week, are among the rarest scores, and an edge that is fitted to the rarest ones moves out with
// each real incident until it misses the next.
//
// Besides:
// - The edge never falls below `perDigit` digits` of rarity for the budget, however calm the past: a series without
//   small deviations has no tail to extend. A short past is drawn towards this floor.
// - The budget is for false alarms. An episode that peaks at `plainly` times the edge is plainly outside and does
//   not count, unless there are more than `mostPlainPerWeek`: then they belong to the series. Each one that
//   counts beyond the budget moves the edge out.

import { SortedWindow } from './sorted-window.ts'

const minutesPerWeek = 10_080
const blockMinutes = 60
const weeksKept = 8
const [oftenShare, seldomShare] = [0.3, 0.06]
/** How many blocks the floor is worth. */
const floorBlocks = 100
const refitBlocks = 6
const plainly = 1.5
const mostPlainPerWeek = 5

export interface EdgeOptions {
  readonly stepMinutes: number
  readonly budgetPerWeek: number
  /**
   * The lowest edge: `base`, and so much more per digit of how rare an alarm is to be among the values. Found on
   * labelled series of operations with steps of a minute to an hour.
   */
  readonly base: number
  readonly perDigit: number
}

export class LearntEdge {
  /** Scores above this are worth an alarm. */
  edge: number
  private readonly floor: number
  private readonly valuesPerBlock: number
  private readonly blocksPerWeek: number
  private readonly alarmsPerBlock: number
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
    this.highest = new SortedWindow(Math.ceil(weeksKept * this.blocksPerWeek))
    const rarity = minutesPerWeek / (stepMinutes * budgetPerWeek)
    this.floor = base + perDigit * Math.max(1, Math.log10(rarity))
    this.edge = this.floor
  }

  /** Learns the news of a value that was judged calm; 0 for the value that opens an episode. */
  learn(news: number): void {
    this.highestOfBlock = Math.max(this.highestOfBlock, news)
    if (++this.inBlock < this.valuesPerBlock) return
    this.highest.push(this.highestOfBlock)
    this.inBlock = 0
    this.highestOfBlock = 0
    if (++this.blocks % refitBlocks === 0) this.fit()
  }

  /** Counts an episode that this edge opened; `peak` is in units of the edge. */
  spend(peak: number): void {
    if (peak < plainly) this.counted++
    else this.plain++
    this.fit()
  }

  private fit(): void {
    const { highest } = this
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
    this.edge = Math.max(this.floor, own) + this.slope * Math.log10(Math.max(1, (1 + spent) / (1 + allowed)))
  }
}

/** Occurrences per block of what a share of the blocks has at least once. */
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
