// What an erasure does to an anomaly; no I/O. An anomaly contains data from two ranges of time: its own time,
// which its values come from, and the window before it, which its expected band was learnt from. Erasing a
// part of its own time removes the whole anomaly. Erasing a part of the window clears what was learnt there
// and keeps the fact that something was seen. Time that the run did not read, because it was already erased
// or hidden, has no effect.

import type { Ns } from '../../../contract/values/instant.ts'
import { OutermostRanges } from '../../core/outermost-ranges.ts'
import { overlaps, type TimeRange, without } from '../../core/time-range.ts'
import type { ErasedPart } from '../../telemetry/derived-store.ts'
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

export interface Erasure extends ErasedPart {
  readonly held: readonly HeldPart[]
}

/** `redacted`: band, score and reason are cleared; the rest stays. */
type AnomalyFate = 'kept' | 'redacted' | 'removed'

/**
 * What legal holds cover together. Each signal has its ranges without those that another one covers, so a
 * binary search decides about an anomaly, however many holds there are.
 */
export class HeldTime {
  readonly #ofSignal = new Map<Signal, OutermostRanges<HeldPart>>()

  constructor(held: readonly HeldPart[]) {
    for (const part of held) {
      for (const signal of part.signals) {
        const ranges = this.#ofSignal.get(signal) ?? new OutermostRanges<HeldPart>()
        this.#ofSignal.set(signal, ranges)
        ranges.add(part)
      }
    }
  }

  /** Whether the anomaly is about a part of what the holds cover. */
  keeps(anomaly: AnomalySource): boolean {
    const own = ownTime(anomaly)
    return anomaly.signals.some((signal) => this.#ofSignal.get(signal)?.hasOverlapping(own) === true)
  }

  /** Returns what the holds leave of the range, for one signal; in order of time. */
  without(range: TimeRange, signal: Signal): TimeRange[] {
    const held = this.#ofSignal.get(signal)?.overlapping(range) ?? []
    return without(
      range,
      held.map((part) => part.range),
    )
  }
}

/** What one erasure does to anomalies. Prepared once, because an organisation may have a million of them. */
export class AnomalyFates {
  readonly #erasure: ErasedPart
  readonly #held: HeldTime
  /** The erased time of a signal. */
  readonly #gone = new Map<Signal, OutermostRanges<{ readonly range: TimeRange }>>()

  constructor({ held, ...erasure }: Erasure) {
    this.#erasure = erasure
    this.#held = new HeldTime(held)
  }

  /**
   * An anomaly about time under a legal hold is evidence and is kept as it is, even where another of its
   * signals is erased. Time under a hold that it learnt from does not matter, because that time is not
   * erased.
   */
  of(anomaly: AnomalySource): AnomalyFate {
    const { range, signals } = this.#erasure
    const erased = anomaly.signals.filter((signal) => signals.includes(signal))
    if (erased.length === 0 || this.#held.keeps(anomaly)) return 'kept'
    if (overlaps(range, ownTime(anomaly))) return 'removed'
    const isLearntThere = erased.some((signal) => {
      const gone = this.#goneOf(signal)
      return anomaly.read.some((stretch) => gone.hasOverlapping(stretch))
    })
    return isLearntThere ? 'redacted' : 'kept'
  }

  #goneOf(signal: Signal): OutermostRanges<{ readonly range: TimeRange }> {
    const known = this.#gone.get(signal)
    if (known !== undefined) return known
    const gone = new OutermostRanges<{ readonly range: TimeRange }>()
    for (const range of this.#held.without(this.#erasure.range, signal)) gone.add({ range })
    this.#gone.set(signal, gone)
    return gone
  }
}

/** {@link AnomalyFates.of} for a single anomaly. */
export function fateOf(anomaly: AnomalySource, erasure: Erasure): AnomalyFate {
  return new AnomalyFates(erasure).of(anomaly)
}

/**
 * Collects the holds because of which an erasure keeps anomalies as they are: for each anomaly those about
 * its own time, or, if there are none, those that cover erased time that it learnt from. None for an anomaly
 * of which something is erased, or that would be kept without holds too. While all of them are in force
 * nothing of these anomalies becomes free.
 */
export class KeepingHolds<Hold extends HeldPart> {
  readonly found = new Set<Hold>()
  readonly #erasure: ErasedPart
  readonly #held: HeldTime
  readonly #fates: AnomalyFates
  readonly #fatesWithoutHolds: AnomalyFates
  /** The holds that are not found yet: only these need be compared with an anomaly. */
  #others: readonly Hold[]

  constructor(erasure: ErasedPart, holds: readonly Hold[]) {
    this.#erasure = erasure
    this.#held = new HeldTime(holds)
    this.#fates = new AnomalyFates({ ...erasure, held: holds })
    this.#fatesWithoutHolds = new AnomalyFates({ ...erasure, held: [] })
    this.#others = holds
  }

  add(anomaly: AnomalySource): void {
    if (this.#others.length === 0) return
    if (this.#fatesWithoutHolds.of(anomaly) === 'kept' || this.#fates.of(anomaly) !== 'kept') return
    const keeping = this.#held.keeps(anomaly)
      ? this.#others.filter((hold) => isHeldBy(hold, anomaly))
      : this.#learntUnder(anomaly)
    if (keeping.length === 0) return
    for (const hold of keeping) this.found.add(hold)
    this.#others = this.#others.filter((hold) => !this.found.has(hold))
  }

  /** Returns the holds that cover erased time that the anomaly learnt from. */
  #learntUnder(anomaly: AnomalySource): Hold[] {
    const { range, signals } = this.#erasure
    const learnt = anomaly.read.filter((stretch) => overlaps(stretch, range))
    return this.#others.filter(
      (hold) =>
        hold.signals.some((signal) => signals.includes(signal) && anomaly.signals.includes(signal)) &&
        // Outside the range there is nothing to keep.
        learnt.some((stretch) => shareInstant(stretch, range, hold.range)),
    )
  }
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
