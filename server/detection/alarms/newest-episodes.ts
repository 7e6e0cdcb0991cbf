// Which episodes a run reports. A run judges its whole window again, and an alarm that opens and closes every
// other minute has a thousand episodes in it for each series. Each that is reported is compared with mutes,
// gets a reason and is compared with what is recorded, on the event loop and in one transaction. So their
// number has a limit, for all series of a run together, and the others never leave the thread of evaluation.

import { minuteOf, type Series } from '../scoring/series.ts'
import type { Episode } from './episode-tracker.ts'

/**
 * Ended episodes that a run reports at most: as many as are kept of a detector. An older one would leave the
 * store as soon as it is recorded. Without a limit, fifty series of minutes have 54,000 in a window.
 */
export const reportedMax = 1000

interface SeriesEpisodes {
  readonly series: Pick<Series, 'startNs' | 'stepMinutes'>
  readonly episodes: readonly Episode[]
}

/**
 * Returns for each series, in the same order, the episodes to report: all that are open, and of those of all
 * series that ended the `max` newest. The newest are those that were seen last and not those that began last,
 * so that an anomaly whose episode has just ended is updated, however long it lasted.
 */
export function newestEpisodes(all: readonly SeriesEpisodes[], max = reportedMax): (readonly Episode[])[] {
  const ends = all.flatMap(({ episodes, series }) => {
    const startMinute = minuteOf(series, 0)
    const ended = episodes.filter(({ endIndex }) => endIndex !== null)
    return ended.map(({ lastIndex }) => endMinute(startMinute, series, lastIndex))
  })
  if (ends.length <= max) return all.map(({ episodes }) => episodes)
  const newest = Float64Array.from(ends)
    .sort()
    .subarray(ends.length - max)
  const oldest = newest[0] ?? Number.POSITIVE_INFINITY
  let asOld = newest.findIndex((end) => end > oldest)
  if (asOld < 0) asOld = max
  return all.map(({ episodes, series }) => {
    const startMinute = minuteOf(series, 0)
    return episodes.filter(({ endIndex, lastIndex }) => {
      if (endIndex === null) return true
      const end = endMinute(startMinute, series, lastIndex)
      return end > oldest || (end === oldest && asOld-- > 0)
    })
  })
}

function endMinute(startMinute: number, { stepMinutes }: Pick<Series, 'stepMinutes'>, last: number): number {
  return startMinute + (last + 1) * stepMinutes
}
