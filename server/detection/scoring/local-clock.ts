// The position of a bucket in its local day and week, for series that follow local time. Summer time moves
// the local day against UTC, so the time zone database is asked for the offset once per hour of UTC: offsets
// change only at full hours.

import { offsetReader } from '../../core/zone-offsets.ts'
import type { Series } from './series.ts'
import { bucketStartNs } from './series.ts'

const nsPerMinute = 60_000_000_000n
const minutesPerDay = 1440
/** 1970-01-01 was a Thursday; weeks begin on Monday. */
const epochWeekday = 3

interface LocalTime {
  /** From 0 at Monday 00:00 to 10,079. */
  readonly minuteOfWeek: number
  readonly minuteOfDay: number
  /** Local days since 1970-01-01. */
  readonly day: number
}

/** Returns a function from bucket number to local time. `timezone` is an IANA name. */
export function localClock(
  series: Pick<Series, 'startNs' | 'stepMinutes'>,
  timezone: string,
): (i: number) => LocalTime {
  const startMinute = Number(bucketStartNs(series, 0) / nsPerMinute)
  const offsetAt = timezone === 'UTC' ? () => 0 : hourlyOffset(timezone)
  return (i) => {
    const minute = startMinute + i * series.stepMinutes
    const local = minute + offsetAt(minute)
    const minuteOfDay = remainder(local, minutesPerDay)
    const day = Math.floor(local / minutesPerDay)
    return { day, minuteOfDay, minuteOfWeek: remainder(day + epochWeekday, 7) * minutesPerDay + minuteOfDay }
  }
}

/**
 * The buckets of a piece at which the offset to UTC is not that of the bucket before, as where summer time
 * begins or ends; oldest first. A day with the same offset at both ends is not searched.
 */
export function clockChanges(
  piece: Pick<Series, 'startNs' | 'stepMinutes' | 'values'>,
  timezone: string,
): number[] {
  if (timezone === 'UTC') return []
  const startMinute = Number(bucketStartNs(piece, 0) / nsPerMinute)
  const offsetAt = hourlyOffset(timezone)
  const offsetOf = (i: number) => offsetAt(startMinute + i * piece.stepMinutes)
  const day = Math.max(1, Math.floor(minutesPerDay / piece.stepMinutes))
  const last = piece.values.length - 1
  const changes: number[] = []
  for (let from = -1; from < last; from += day) {
    let before = from
    let after = Math.min(from + day, last)
    if (offsetOf(before) === offsetOf(after)) continue
    while (after - before > 1) {
      const middle = (before + after) >> 1
      if (offsetOf(middle) === offsetOf(from)) before = middle
      else after = middle
    }
    changes.push(after)
  }
  return changes
}

function hourlyOffset(timezone: string): (minute: number) => number {
  const offsetMsAt = offsetReader(timezone)
  let hour = Number.NaN
  let offset = 0
  return (minute) => {
    const asked = Math.floor(minute / 60)
    if (asked !== hour) {
      hour = asked
      offset = Math.floor(offsetMsAt(asked * 3_600_000) / 60_000)
    }
    return offset
  }
}

function remainder(value: number, of: number): number {
  return ((value % of) + of) % of
}
