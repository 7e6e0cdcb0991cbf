// Makes a scorer with a bounded past of a scorer that begins with nothing and learns from all that follows.
// Time since 1970 is divided into blocks of equal length. A bucket is scored by a scorer that began one block
// before its own; the one that began with its own block only learns until the block ends. So the scores of a
// bucket depend on one to two blocks before it and not on how the series was divided into pieces, and each
// piece costs twice its own buckets.

import { bucketStartNs, type Series } from '../scoring/series.ts'
import { blankScores, type Scorer, type Scores } from './method.ts'

const nsPerMinute = 60_000_000_000n

export class RestartedScorer implements Scorer {
  private readonly begin: () => Scorer
  private readonly blockBuckets: number
  private block = Number.NaN
  private current: Scorer
  /** Null in the first block, in which the series began. */
  private next: Scorer | null = null

  /** `begin` makes a scorer that has learnt nothing; it scores at most two blocks. */
  constructor(begin: () => Scorer, blockBuckets: number) {
    this.begin = begin
    this.blockBuckets = blockBuckets
    this.current = begin()
  }

  score(piece: Series): Scores {
    const scores = blankScores(piece.values.length)
    const firstBucket = Number(piece.startNs / (BigInt(piece.stepMinutes) * nsPerMinute))
    for (let from = 0; from < piece.values.length; ) {
      const block = Math.floor((firstBucket + from) / this.blockBuckets)
      const to = Math.min(piece.values.length, (block + 1) * this.blockBuckets - firstBucket)
      this.enter(block)
      const part = partOf(piece, from, to)
      const scored = this.current.score(part)
      for (const name of columns) scores[name].set(scored[name], from)
      this.next?.score(part)
      from = to
    }
    return scores
  }

  private enter(block: number): void {
    if (block === this.block) return
    const isFirst = Number.isNaN(this.block)
    this.block = block
    if (isFirst) return
    this.current = this.next ?? this.current
    this.next = this.begin()
  }
}

const columns = ['score', 'expected', 'lower', 'upper'] as const

function partOf(piece: Series, from: number, to: number): Series {
  if (from === 0 && to === piece.values.length) return piece
  return {
    startNs: bucketStartNs(piece, from),
    stepMinutes: piece.stepMinutes,
    values: piece.values.slice(from, to),
    unknown: piece.unknown.slice(from, to),
    volumes: piece.volumes?.slice(from, to) ?? null,
  }
}
