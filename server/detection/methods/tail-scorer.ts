// Makes a scorer of a method that can only score a whole series: keeps the newest buckets and scores them
// again together with each piece. The kept buckets begin at a multiple of `tailBuckets` since 1970, one or
// two tails before the judged bucket. So the scores of a bucket depend on the series and not on how it was
// divided into pieces.

import { joinedValues } from '../scoring/dense-values.ts'
import { blockParts, type Series, sliceOf } from '../scoring/series.ts'
import { blankScores, type Scorer, type Scores } from './method.ts'

const nsPerMinute = 60_000_000_000n

export class TailScorer implements Scorer {
  private readonly whole: (series: Series) => Scores
  private readonly tailBuckets: number
  private kept: Series | null = null

  /** `whole` scores a series from nothing and keeps nothing. It must be causal. */
  constructor(whole: (series: Series) => Scores, tailBuckets: number) {
    this.whole = whole
    this.tailBuckets = tailBuckets
  }

  score(piece: Series): Scores {
    const scores = blankScores(piece.values.length)
    const stepNs = BigInt(piece.stepMinutes) * nsPerMinute
    for (const { block, from, to } of blockParts(piece, this.tailBuckets)) {
      this.keep(sliceOf(piece, from, to), BigInt((block - 1) * this.tailBuckets) * stepNs)
      const known = this.kept ?? piece
      const scored = this.whole(known)
      for (const [name, column] of Object.entries(scored) as [keyof Scores, Float64Array][]) {
        const into = columnOf(scores, name)
        into.set(column.subarray(column.length - (to - from)), from)
      }
    }
    return scores
  }

  /** Appends a piece, and drops what is older than `fromNs`. */
  private keep(piece: Series, fromNs: bigint): void {
    const before = this.kept
    if (before === null) {
      this.kept = piece
      return
    }
    const stepNs = BigInt(piece.stepMinutes) * nsPerMinute
    const drop = Math.max(0, Number((fromNs - before.startNs) / stepNs))
    this.kept = joined(sliceOf(before, Math.min(drop, before.values.length), before.values.length), piece)
  }
}

/** A column of the scores; `unreported` is added where it is absent. */
function columnOf(scores: Scores, name: keyof Scores): Float64Array {
  const column = scores[name] ?? new Float64Array(scores.score.length).fill(Number.NaN)
  Object.assign(scores, { [name]: column })
  return column
}

/** Two series of which the second begins where the first ends. */
function joined(first: Series, second: Series): Series {
  const volumesOf = (series: Series) =>
    series.volumes ?? new Float64Array(series.values.length).fill(Number.NaN)
  const hasVolumes = first.volumes !== null || second.volumes !== null
  return {
    startNs: first.startNs,
    stepMinutes: first.stepMinutes,
    values: joinedValues(first.values, second.values),
    unknown: joinedValues(first.unknown, second.unknown),
    volumes: hasVolumes ? joinedValues(volumesOf(first), volumesOf(second)) : null,
  }
}
