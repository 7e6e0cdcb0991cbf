// When the series of a run are muted. An episode is muted where every bucket since its alarm was raised is.
// It may have thousands of buckets, a run a thousand episodes and an organisation two hundred mutes. So each
// mute becomes spans of time once, and no episode is compared bucket by bucket. The result is that of
// `muteAt` for each bucket.
//
// Spans are whole minutes. A bucket is inside a mute where its last instant is, and buckets end at whole
// minutes, so spans name ends of buckets: those of minute `from` up to before `until`.

import type { Weekly } from '../../../contract/detection/feedback.ts'
import { type Ns, nsPerMinute } from '../../../contract/values/instant.ts'
import { partitionPoint } from '../../core/partition-point.ts'
import type { Pace } from '../../core/turns/pace.ts'
import { offsetStretches } from '../../core/zone-offsets.ts'
import { isOnDay, type MuteRule, msPerDay, timesOfDay } from './mute.ts'

/** Ends of buckets in minutes since 1970; `until` is exclusive. */
interface MinuteSpan {
  readonly from: number
  readonly until: number
}

interface MuteSpan extends MinuteSpan {
  readonly mute: MuteRule
}

/** The buckets of an episode, by their ends in minutes since 1970. */
export interface EndedBuckets {
  readonly firstEnd: number
  /** The first bucket counts also where it is later. */
  readonly lastEnd: number
  readonly stepMinutes: number
}

/** The time of a run, as the mutes of its detector divide it. */
export class MutedTime {
  /** By start. */
  readonly #spans: readonly MuteSpan[]

  private constructor(spans: readonly MuteSpan[]) {
    this.#spans = spans
  }

  /** Only what the mutes have inside `range`, which names ends of buckets. */
  static async of(mutes: readonly MuteRule[], range: MinuteSpan, pace: Pace): Promise<MutedTime> {
    const spans: MuteSpan[] = []
    for (const mute of mutes) {
      if (pace.isOver()) await pace.turn()
      for (const span of spansOf(mute, range)) spans.push({ ...span, mute })
    }
    return new MutedTime(spans.sort((a, b) => a.from - b.from))
  }

  /** The time in which at least one of these mutes is active. */
  of(mutes: readonly MuteRule[]): MutedSpans {
    const own = new Set(mutes)
    const union: { from: number; until: number }[] = []
    for (const { from, mute, until } of this.#spans) {
      if (!own.has(mute)) continue
      const last = union.at(-1)
      if (last === undefined || from > last.until) union.push({ from, until })
      else last.until = Math.max(last.until, until)
    }
    return new MutedSpans(union)
  }
}

/** The time in which a series is muted. */
export class MutedSpans {
  /** In order, with time between them. */
  readonly #spans: readonly MinuteSpan[]

  constructor(spans: readonly MinuteSpan[]) {
    this.#spans = spans
  }

  /** Whether the first bucket is muted, and every one after it up to the last. */
  hasAll({ firstEnd, lastEnd, stepMinutes }: EndedBuckets): boolean {
    const spans = this.#spans
    let end = firstEnd
    let i = partitionPoint(spans.length, (at) => (spans[at]?.until ?? end) > end)
    for (;;) {
      const span = spans[i]
      if (span === undefined || span.from > end) return false
      end += stepMinutes * Math.ceil((span.until - end) / stepMinutes)
      if (end > lastEnd) return true
      while ((spans[i]?.until ?? Number.POSITIVE_INFINITY) <= end) i++
    }
  }
}

/** Of a series without mutes. */
export const neverMuted = new MutedSpans([])

function spansOf({ fromNs, untilNs, weekly }: MuteRule, range: MinuteSpan): MinuteSpan[] {
  const from = Math.max(range.from, endAfterNs(fromNs))
  const until = untilNs === null ? range.until : Math.min(range.until, endAfterNs(untilNs))
  if (from >= until) return []
  return weekly === null ? [{ from, until }] : weeklySpans(weekly, { from, until })
}

/** Each stretch with the same offset to UTC has the windows of its local days. */
function weeklySpans(weekly: Weekly, range: MinuteSpan): MinuteSpan[] {
  const times = timesOfDay(weekly)
  const { fromMs } = times
  const lengthMs = times.untilMs - fromMs + (times.untilMs > fromMs ? 0 : msPerDay)
  // The last instant of a bucket is before its end.
  const [startMs, endMs] = [(range.from - 1) * 60_000, range.until * 60_000]
  return offsetStretches(weekly.time_zone, startMs, endMs).flatMap((stretch) => {
    const { offsetMs } = stretch
    const [sinceMs, untilMs] = [Math.max(startMs, stretch.startMs), Math.min(endMs, stretch.endMs)]
    const firstDay = Math.floor((sinceMs + offsetMs) / msPerDay) - 1
    const days = Math.ceil((untilMs - sinceMs) / msPerDay) + 2
    return Array.from({ length: Math.max(0, days) }, (_, i) => firstDay + i).flatMap((day) => {
      if (!isOnDay(weekly, day)) return []
      const windowMs = day * msPerDay + fromMs - offsetMs
      const from = Math.max(range.from, endAfterMs(Math.max(sinceMs, windowMs)))
      const until = Math.min(range.until, endAfterMs(Math.min(untilMs, windowMs + lengthMs)))
      return from < until ? [{ from, until }] : []
    })
  })
}

/** The first whole minute after an instant: a bucket that ends there has a last instant not before it. */
function endAfterNs(ns: Ns): number {
  return Number(ns / nsPerMinute) + 1
}

function endAfterMs(ms: number): number {
  return Math.floor(ms / 60_000) + 1
}
