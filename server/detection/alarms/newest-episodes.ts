// Which episodes a run reports. A run judges its whole window again, and an alarm that opens and closes every
// other minute has a thousand episodes in it for each series. Each that is reported is compared with mutes,
// gets a reason and is compared with what is recorded, on the event loop and in one transaction. So their
// number has a limit, for all series of a run together, and the others never leave the thread of evaluation.

import { minuteOf, type Series } from '../scoring/series.ts'
import type { Episode } from './episode.ts'

/**
 * Ended episodes that a run reports at most: as many as are kept of a detector. An older one would leave the
 * store as soon as it is recorded. Without a limit, fifty series of minutes have 54,000 in a window.
 */
export const reportedMax = 1000

interface SeriesEpisodes {
  readonly series: Pick<Series, 'startNs' | 'stepMinutes'>
  /** In order of time; only the last one may be open. */
  readonly episodes: readonly Episode[]
}

/**
 * Returns for each series, in the same order, the episodes to report: all that are open, and of those of all
 * series that ended the `max` newest. The newest are those that were seen last and not those that began last,
 * so that an anomaly whose episode has just ended is updated, however long it lasted.
 */
export function newestEpisodes(all: readonly SeriesEpisodes[], max = reportedMax): (readonly Episode[])[] {
  const ends = all.map(endsOf)
  const counts = newestCounts(ends, Number.NEGATIVE_INFINITY, max)
  return all.map(({ episodes }, i) => episodes.slice((ends[i]?.length ?? 0) - (counts[i] ?? 0)))
}

/**
 * Returns for each series how many of its ended episodes are among the `max` newest of all. `ends`: the ends
 * of the ended episodes of each series in minutes, in ascending order. None that ended before `sinceMinute`
 * counts.
 */
export function newestCounts(
  ends: readonly Float64Array[],
  sinceMinute: number,
  max = reportedMax,
): number[] {
  const recent = ends.map((each) => each.filter((end) => end >= sinceMinute))
  const count = recent.reduce((sum, { length }) => sum + length, 0)
  if (count <= max) return recent.map(({ length }) => length)
  const newest = newestOf(recent, max)
  const oldest = newest[0] ?? Number.POSITIVE_INFINITY
  let asOld = newest.findIndex((end) => end > oldest)
  if (asOld < 0) asOld = max
  return recent.map((each) => each.filter((end) => end > oldest || (end === oldest && asOld-- > 0)).length)
}

/** Follows which episodes can still be reported, while a run evaluates its series one after another. */
export class NewestEnds {
  readonly #max: number
  #ends = new Float64Array(0)

  constructor(max = reportedMax) {
    this.#max = max
  }

  /** An episode that ended before this minute is not reported, because there are enough newer ones. */
  get sinceMinute(): number {
    return this.#ends.length < this.#max ? Number.NEGATIVE_INFINITY : (this.#ends[0] ?? 0)
  }

  /** Adds the episodes of a series. */
  add(evaluated: SeriesEpisodes): void {
    this.#ends = newestOf([this.#ends, endsOf(evaluated)], this.#max)
  }
}

/** The largest of all, in ascending order. */
function newestOf(ends: readonly Float64Array[], max: number): Float64Array<ArrayBuffer> {
  const all = new Float64Array(ends.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const each of ends) {
    all.set(each, at)
    at += each.length
  }
  return all.sort().slice(Math.max(0, all.length - max))
}

function endsOf({ episodes, series }: SeriesEpisodes): Float64Array {
  const ended = episodes.at(-1)?.endIndex === null ? episodes.slice(0, -1) : episodes
  return endMinutes(
    series,
    Float64Array.from(ended, ({ lastIndex }) => lastIndex),
  )
}

/** The ends of buckets of a series, in minutes since 1970. */
export function endMinutes(series: SeriesEpisodes['series'], buckets: Float64Array): Float64Array {
  const startMinute = minuteOf(series, 0)
  return buckets.map((bucket) => startMinute + (bucket + 1) * series.stepMinutes)
}
