// Combines the violations of one series into episodes: what opens one, what keeps it open, and when it ends.
// alarm.ts has the rules in words. Old episodes can be dropped, so that memory stays bounded however long a
// series continues.

import type { Comparison } from '../scoring/comparison.ts'

/** During a cool-down, only a peak this many times the last one opens an episode. */
const clearlyWorse = 1.5

export interface EpisodePolicy {
  readonly violateN: number
  readonly windowM: number
  readonly clearN: number
  readonly cooldownBuckets: number
}

/** Indexes are buckets since the start of the series. */
export interface Episode {
  /** At the peak: above or below the expected value, odd where there is none, or silent without data. */
  readonly kind: 'high' | 'low' | 'odd' | 'silent'
  /** First of the violating buckets that opened the episode. */
  readonly startIndex: number
  /** The bucket after which the alarm was raised; `openedIndex - startIndex` is the delay. */
  readonly openedIndex: number
  /** The last violating bucket so far. */
  readonly lastIndex: number
  /** Equal to `lastIndex` once closed, null while open. */
  readonly endIndex: number | null
  readonly peakIndex: number
  /** Null for silence. */
  readonly peakValue: number | null
  /** Expected value at the peak; null for methods without one, and before warm-up. */
  readonly expected: number | null
  /** Edges at the peak; null where the method has none. */
  readonly lower: number | null
  readonly upper: number | null
  /** At the peak. 1 is the edge of alarm, also for silence. */
  readonly score: number
  /** What the peak was compared with, where the method says it. */
  readonly compared?: Comparison
}

/** A bucket outside its edges, as the peak of the episode that it belongs to. */
export type Violation = Omit<Episode, 'startIndex' | 'openedIndex' | 'lastIndex' | 'endIndex'>

/**
 * Combines violations into episodes. Episodes that end before `startReporting` are
 * left out, except silence.
 */
export class EpisodeTracker {
  readonly episodes: Episode[] = []
  private readonly policy: EpisodePolicy
  /** The violating buckets among the last `windowM` judged ones, with ordinals among all judged ones. */
  private recent: { ordinal: number; violation: Violation }[] = []
  private judged = 0
  private open: Episode | null = null
  private isReporting = false
  private calm = 0
  private mutedUntil = -1
  private mutedBelow = 0
  isMuted = false

  constructor(policy: EpisodePolicy) {
    this.policy = policy
  }

  get isOpen(): boolean {
    return this.open !== null
  }

  get isUnreported(): boolean {
    return this.open !== null && this.episodes.at(-1) !== this.open
  }

  get isRecovering(): boolean {
    return this.open !== null && this.calm > 0
  }

  get isAlarming(): boolean {
    return this.isOpen || this.isMuted
  }

  /** From the next judged bucket on, episodes are reported. */
  startReporting(): void {
    this.isReporting = true
  }

  /** Adds the next judged bucket: its violation, or null for a calm bucket. */
  judge(index: number, violation: Violation | null): void {
    this.judged++
    if (this.open) this.goOn(this.open, index, violation)
    else this.openIfDue(index, violation)
  }

  /** Drops episodes that ended before a bucket. */
  forgetBefore(index: number): void {
    while (this.episodes[0] && this.episodes[0] !== this.open && this.episodes[0].lastIndex < index)
      this.episodes.shift()
  }

  private openIfDue(index: number, violation: Violation | null): void {
    if (violation) this.recent.push({ ordinal: this.judged, violation })
    const oldest = this.judged - this.policy.windowM
    if (this.recent[0] && this.recent[0].ordinal <= oldest) this.recent.shift()
    this.isMuted = false
    const first = this.recent[0]
    if (!first || this.recent.length < this.policy.violateN) return
    const violations = this.recent.map((one) => one.violation)
    const worst = violations.reduce((a, b) => (b.score > a.score ? b : a))
    if (index <= this.mutedUntil && worst.score < this.mutedBelow) {
      this.isMuted = true
      return
    }
    const lastIndex = violations.at(-1)?.peakIndex ?? index
    const span = { startIndex: first.violation.peakIndex, openedIndex: index, lastIndex, endIndex: null }
    this.write({ ...span, ...worst }, this.mayReport(violation))
    this.calm = 0
  }

  private goOn(episode: Episode, index: number, violation: Violation | null): void {
    if (violation) {
      this.calm = 0
      const worse = violation.score > episode.score ? violation : {}
      const isFirstReport = this.isUnreported && this.mayReport(violation)
      const opened = isFirstReport ? { openedIndex: index } : {}
      this.write({ ...episode, ...worse, ...opened, lastIndex: index }, isFirstReport)
    } else if (++this.calm >= this.policy.clearN) {
      this.write({ ...episode, endIndex: episode.lastIndex }, false)
      this.recent = []
      this.mutedUntil = index + this.policy.cooldownBuckets
      this.mutedBelow = episode.score * clearlyWorse
    }
  }

  private mayReport(violation: Violation | null): boolean {
    return this.isReporting || violation?.kind === 'silent'
  }

  /** Episodes are replaced and never changed. */
  private write(fields: Episode, isFirstReport: boolean): void {
    const episode = Object.freeze(fields)
    const isReported = this.isOpen && !this.isUnreported
    if (isReported) this.episodes.pop()
    if (isReported || isFirstReport) this.episodes.push(episode)
    this.open = episode.endIndex === null ? episode : null
  }
}
