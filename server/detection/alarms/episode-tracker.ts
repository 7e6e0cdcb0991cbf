// Combines the violations of one series into episodes: what opens one, what keeps it open, and when it ends.
// alarm.ts has the rules in words. Episodes that have ended can be forgotten (ended-episodes.ts), so that
// memory stays bounded however long a series continues.

import { EndedEpisodes } from './ended-episodes.ts'
import type { Episode } from './episode.ts'

/** During a cool-down, only a peak this many times the last one opens an episode. */
const clearlyWorse = 1.5

export interface EpisodePolicy {
  readonly violateN: number
  readonly windowM: number
  readonly clearN: number
  readonly cooldownBuckets: number
}

/** A bucket outside its edges, as the peak of the episode that it belongs to. */
export type Violation = Omit<Episode, 'startIndex' | 'openedIndex' | 'lastIndex' | 'endIndex'>

/**
 * Combines violations into episodes. Episodes that end before `startReporting` are
 * left out, except silence.
 */
export class EpisodeTracker {
  /** Those that were reported. */
  readonly ended = new EndedEpisodes()
  private readonly policy: EpisodePolicy
  /** The violating buckets among the last `windowM` judged ones, with ordinals among all judged ones. */
  private recent: { ordinal: number; violation: Violation }[] = []
  private judged = 0
  private open: Episode | null = null
  private isOpenReported = false
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
    return this.open !== null && !this.isOpenReported
  }

  /** Null where none is open, or the open one is not reported. */
  get reportedOpen(): Episode | null {
    return this.isOpenReported ? this.open : null
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
  private write(episode: Episode, isFirstReport: boolean): void {
    const isReported = isFirstReport || (this.isOpen && this.isOpenReported)
    const isEnded = episode.endIndex !== null
    if (isEnded && isReported) this.ended.add(episode)
    this.open = isEnded ? null : episode
    this.isOpenReported = isReported && !isEnded
  }
}
