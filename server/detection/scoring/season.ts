// What was usual at this time of the day or of the week: the values at the same moment of earlier seasons and
// at its close neighbours, summarised by median and MAD, so that an outage last Tuesday does not change what
// is expected on Tuesdays. Memory is bounded: each moment keeps only its newest values.

import { at } from './series.ts'

const sigmaPerMad = 1.4826
/** Neighbours on either side of the moment: people's rhythms are not exact to the minute. */
const neighbourMinutes = 20
const mostNeighbours = 2
/** At least two seasons: one season shows what is usual, but not how much that varies. */
const fewestSeasons = 2
const fewestValues = 5

export interface Usual {
  readonly centre: number
  /** One robust standard deviation, or the distance to the nearest other value where that is 0. */
  readonly sigma: number
}

/** Values by their moment of a season. */
export class SeasonalPast {
  private readonly values: Float64Array
  private readonly counts: Uint32Array
  /** Overwritten for each moment. */
  private readonly pool: Float64Array
  private readonly depth: number
  private readonly moments: number
  private readonly stepMinutes: number
  private readonly neighbours: number
  private readonly fewestSeasons: number

  /**
   * `depth`: how many earlier seasons are kept. `fewest`: how many seasons `usualAt` needs;
   * with one, sigma may be 0.
   */
  constructor(seasonMinutes: number, stepMinutes: number, depth: number, fewest = fewestSeasons) {
    this.fewestSeasons = fewest
    this.moments = Math.max(1, Math.ceil(seasonMinutes / stepMinutes))
    this.stepMinutes = stepMinutes
    this.depth = depth
    this.values = new Float64Array(this.moments * depth)
    this.counts = new Uint32Array(this.moments)
    this.neighbours = Math.min(mostNeighbours, Math.floor(neighbourMinutes / stepMinutes))
    this.pool = new Float64Array((2 * this.neighbours + 1) * depth)
  }

  learn(minuteOfSeason: number, value: number): void {
    const moment = this.momentOf(minuteOfSeason)
    const count = this.counts[moment] ?? 0
    this.values[moment * this.depth + (count % this.depth)] = value
    this.counts[moment] = count + 1
  }

  /** What is usual at a moment; null where too few seasons or too few values were seen. */
  usualAt(minuteOfSeason: number): Usual | null {
    const pool = this.poolAround(this.momentOf(minuteOfSeason), this.fewestSeasons)
    if (pool === null) return null
    const centre = medianOf(pool)
    const distances = pool
    for (let i = 0; i < pool.length; i++) distances[i] = Math.abs(at(pool, i) - centre)
    distances.sort()
    const mad = at(distances, distances.length >> 1)
    return { centre, sigma: mad > 0 ? sigmaPerMad * mad : (distances.find((each) => each > 0) ?? 0) }
  }

  /** The median at a moment in the seasons so far, also in one; NaN without any. */
  centreAt(minuteOfSeason: number): number {
    const pool = this.poolAround(this.momentOf(minuteOfSeason), 1)
    return pool === null ? Number.NaN : medianOf(pool)
  }

  private momentOf(minuteOfSeason: number): number {
    return Math.min(this.moments - 1, Math.floor(minuteOfSeason / this.stepMinutes))
  }

  private poolAround(moment: number, fewest: number): Float64Array | null {
    const least = Math.min(this.depth, this.counts[moment] ?? 0)
    if (least < fewest) return null
    let size = 0
    for (let shift = -this.neighbours; shift <= this.neighbours; shift++) {
      const other = (moment + shift + this.moments) % this.moments
      const kept = Math.min(this.depth, this.counts[other] ?? 0)
      for (let i = 0; i < kept; i++) this.pool[size++] = at(this.values, other * this.depth + i)
    }
    const needed = fewest < fewestSeasons ? 1 : fewestValues
    return size < needed ? null : this.pool.subarray(0, size).sort()
  }
}

function medianOf(sorted: Float64Array): number {
  return at(sorted, (sorted.length - 1) >> 1) / 2 + at(sorted, sorted.length >> 1) / 2
}
