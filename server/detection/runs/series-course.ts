// The evaluation of one series, which continues from run to run: policies on missing data, then the method,
// then the alarm layer, each with what it learnt so far. It depends on the series only, not on how it was
// divided into pieces, so a course that was lost can be computed again from the past. Beside the state of
// method and alarms it keeps the newest buckets, which a run reports on.

import { AlarmLayer, type AlarmPolicy, countLately, type Evaluation } from '../alarms/alarm.ts'
import type { Episode } from '../alarms/episode.ts'
import { evidenceOf } from '../alarms/evidence.ts'
import { endMinutes } from '../alarms/newest-episodes.ts'
import { stateAmongPeers } from '../alarms/peer-state.ts'
import { type MethodChoice, startScorer } from '../methods/catalogue.ts'
import type { Scorer, Scores } from '../methods/method.ts'
import type { Comparison } from '../scoring/comparison.ts'
import { bucketStartNs, type Series } from '../scoring/series.ts'
import { alarmPolicy } from './alarm-policy.ts'
import { NewestRows } from './newest-rows.ts'

/** A series over the time that a run judges, with its scores and states. Indexes are those of this series. */
export interface JudgedWindow {
  readonly series: Series
  readonly evaluation: Evaluation
}

/** What `advance` adds to the newest rows. */
interface NewestColumns extends Scores {
  readonly values: Float64Array
  readonly unknown: Uint8Array
  readonly kinds: Uint8Array
  readonly volumes?: Float64Array
}

/** People's verdicts on the anomalies of a series. */
export type SeriesFeedback = Pick<AlarmPolicy, 'widening' | 'confirmed'>

interface CourseOptions {
  readonly choice: MethodChoice
  readonly stepMinutes: number
  readonly feedback: SeriesFeedback | undefined
  /** How many of the newest buckets a run may report on. */
  readonly keptBuckets: number
}

interface Reported {
  /** The same buckets of the other series of the group, for a method that compares them. */
  readonly peers?: readonly Series[]
  /** How many ended episodes are reported at most: the newest. Default: all. */
  readonly endedMax?: number | undefined
}

export class SeriesCourse {
  readonly feedback: SeriesFeedback | undefined
  private readonly choice: MethodChoice
  private readonly stepMinutes: number
  private readonly policy: AlarmPolicy
  private readonly scorer: Scorer
  private readonly alarms: AlarmLayer
  private readonly newest: NewestRows
  /** By bucket since the start of the series, oldest first. */
  private readonly compared = new Map<number, Comparison>()
  private startNs: bigint | null = null
  private buckets = 0

  constructor({ choice, feedback, keptBuckets, stepMinutes }: CourseOptions) {
    this.choice = choice
    this.stepMinutes = stepMinutes
    this.feedback = feedback
    this.policy = { ...alarmPolicy(choice.params, stepMinutes), ...feedback }
    this.scorer = startScorer(choice.method_key, choice.params, stepMinutes, feedback?.confirmed)
    this.alarms = new AlarmLayer(this.policy)
    this.newest = new NewestRows(keptBuckets)
  }

  /** End of the newest bucket; null before the first. */
  get endNs(): bigint | null {
    if (this.startNs === null) return null
    return bucketStartNs({ startNs: this.startNs, stepMinutes: this.stepMinutes }, this.buckets)
  }

  /**
   * Evaluates the next buckets; the piece begins where the one before ended. `peers`: the same
   * buckets of the other series of its group, as {@link peersOf} makes them.
   */
  advance(piece: Series, peers: readonly Series[] = []): void {
    this.startNs ??= piece.startNs
    const evidence = evidenceOf(piece, this.choice.params)
    const scores = this.scorer.score(evidence.series, peers)
    const edges = this.alarms.judge(evidence, scores)
    this.newest.add(piece.values.length, {
      ...edges,
      values: piece.values,
      unknown: piece.unknown,
      kinds: evidence.kinds,
      ...(piece.volumes === null ? {} : { volumes: piece.volumes }),
    })
    for (const [row, comparison] of scores.compared ?? []) this.compared.set(this.buckets + row, comparison)
    this.buckets += piece.values.length
    const firstKept = this.buckets - this.newest.length
    this.alarms.forgetBefore(firstKept)
    for (const bucket of this.compared.keys()) {
      if (bucket >= firstKept) break
      this.compared.delete(bucket)
    }
  }

  /** The ends of the episodes that ended in the newest buckets, in minutes since 1970, in ascending order. */
  episodeEnds(count: number): Float64Array {
    const first = this.buckets - Math.min(count, this.newest.length)
    const { startNs, stepMinutes } = this
    return endMinutes({ startNs: startNs ?? 0n, stepMinutes }, this.alarms.lastBucketsSince(first))
  }

  /**
   * Returns the newest buckets with their results. `spanBuckets`: how many buckets the detector looks at in
   * all, once there is data for all of them. The columns of the result are valid until the next call of
   * `advance`.
   */
  newestBuckets(count: number, spanBuckets: number, { endedMax, peers = [] }: Reported = {}): JudgedWindow {
    const { alarms, newest } = this
    const rows = Math.min(count, newest.length)
    const first = this.buckets - rows
    const { kinds, unknown, values, volumes, ...scores } = newest.last(rows) as unknown as NewestColumns
    const series: Series = {
      startNs: bucketStartNs({ startNs: this.startNs ?? 0n, stepMinutes: this.stepMinutes }, first),
      stepMinutes: this.stepMinutes,
      values,
      unknown,
      volumes: volumes ?? null,
    }
    const lately = countLately(kinds, scores.score, this.policy)
    const needed = this.scorer.pointsNeeded?.() ?? 1
    const state = alarms.stateAfter({ ...lately, spanBuckets, pointsNeeded: Math.max(1, needed) })
    const ended = alarms.endedSince(first)
    const reported = Math.min(ended, endedMax ?? ended)
    const episodes = alarms
      .newestEpisodes(reported)
      .filter(({ lastIndex }) => lastIndex >= first)
      .map((episode) => movedBy(episode, -first))
    const leftOut = reported < ended ? { leftOut: ended - reported } : {}
    const evaluation: Evaluation = { episodes, ...leftOut, state, scores, ...this.comparedSince(first) }
    if (this.choice.method_key !== 'peer_outlier') return { series, evaluation }
    const judged = { peers, score: scores.score, series: evidenceOf(series, this.choice.params).series }
    const amongPeers = stateAmongPeers(state, judged, this.choice.params)
    return { series, evaluation: { ...evaluation, state: amongPeers } }
  }

  /** With the rows of a window that begins at a bucket. Empty for a method that compares nothing. */
  private comparedSince(first: number): Pick<Evaluation, 'compared'> {
    const compared = new Map<number, Comparison>()
    for (const [bucket, comparison] of this.compared)
      if (bucket >= first) compared.set(bucket - first, comparison)
    return compared.size === 0 ? {} : { compared }
  }
}

function movedBy(episode: Episode, buckets: number): Episode {
  const { endIndex, lastIndex, openedIndex, peakIndex, startIndex } = episode
  return {
    ...episode,
    startIndex: startIndex + buckets,
    openedIndex: openedIndex + buckets,
    lastIndex: lastIndex + buckets,
    endIndex: endIndex === null ? null : endIndex + buckets,
    peakIndex: peakIndex + buckets,
  }
}
