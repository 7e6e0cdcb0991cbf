// What an erasure does to an anomaly; no I/O. An anomaly contains data from two ranges of time: its own time,
// which its values come from, and the window before it, which its expected band was learnt from. Erasing a
// part of its own time removes the whole anomaly. Erasing a part of the window clears what was learnt there
// and keeps the fact that something was seen. Time that the run did not read, because it was already erased
// or hidden, has no effect.

import type { Ns } from '../../../contract/values/instant.ts'
import { overlaps, type TimeRange, without } from '../../core/time-range.ts'
import type { HeldPart } from '../../telemetry/held-part.ts'
import type { Signal } from '../../telemetry/schema/tables.ts'

/** What an anomaly is derived from. */
export interface AnomalySource {
  readonly signals: readonly Signal[]
  /** `[startedNs, seenUntilNs)` is its own time. */
  readonly startedNs: Ns
  readonly seenUntilNs: Ns
  /**
   * The time that band, score and reason were computed from, own time included; empty once they are redacted.
   */
  readonly read: readonly TimeRange[]
}

export interface Erasure {
  readonly signals: readonly Signal[]
  readonly range: TimeRange
  readonly held: readonly HeldPart[]
}

/** `redacted`: band, score and reason are cleared; the rest stays. */
type AnomalyFate = 'kept' | 'redacted' | 'removed'

/**
 * An anomaly about time under a legal hold is evidence and is kept as it is, even where another of its
 * signals is erased. Time under a hold that it learnt from does not matter, because that time is not erased.
 */
export function fateOf(anomaly: AnomalySource, erasure: Erasure): AnomalyFate {
  const erased = anomaly.signals.filter((signal) => erasure.signals.includes(signal))
  if (erased.length === 0) return 'kept'
  if (erasure.held.some((part) => isHeldBy(part, anomaly))) return 'kept'
  if (overlaps(erasure.range, ownTime(anomaly))) return 'removed'
  const gone = erased.flatMap((signal) => without(erasure.range, heldOf(signal, erasure)))
  const isLearntThere = gone.some((part) => anomaly.read.some((stretch) => overlaps(part, stretch)))
  return isLearntThere ? 'redacted' : 'kept'
}

/**
 * Returns the holds because of which the erasure keeps the anomaly as it is: those about its own time, or, if
 * there are none, those that cover erased time that it learnt from. Empty where something of it is erased, or
 * would be kept without holds too. While all of them are in force nothing of it becomes free.
 */
export function keepersOf<Hold extends HeldPart>(
  anomaly: AnomalySource,
  { range, signals }: Omit<Erasure, 'held'>,
  holds: readonly Hold[],
): Hold[] {
  const isKeptBy = (held: readonly HeldPart[]) => fateOf(anomaly, { signals, range, held }) === 'kept'
  if (isKeptBy([]) || !isKeptBy(holds)) return []
  const about = holds.filter((hold) => isHeldBy(hold, anomaly))
  if (about.length > 0) return about
  const learnt = anomaly.read.filter((stretch) => overlaps(stretch, range))
  return holds.filter(
    (hold) =>
      hold.signals.some((signal) => signals.includes(signal) && anomaly.signals.includes(signal)) &&
      // Outside the range there is nothing to keep.
      learnt.some((stretch) => shareInstant(stretch, range, hold.range)),
  )
}

/** Whether an instant is in all three ranges. Any two of them share one exactly where all three do. */
function shareInstant(a: TimeRange, b: TimeRange, c: TimeRange): boolean {
  return overlaps(a, b) && overlaps(b, c) && overlaps(a, c)
}

/** Whether the anomaly is about a part of what the hold covers. */
export function isHeldBy(part: HeldPart, anomaly: AnomalySource): boolean {
  return (
    part.signals.some((signal) => anomaly.signals.includes(signal)) && overlaps(part.range, ownTime(anomaly))
  )
}

function ownTime({ seenUntilNs, startedNs }: AnomalySource): TimeRange {
  return { startNs: startedNs, endNs: seenUntilNs }
}

function heldOf(signal: Signal, { held }: Erasure): TimeRange[] {
  return held.filter(({ signals }) => signals.includes(signal)).map(({ range }) => range)
}
