// Makes a scorer with a bounded past of a scorer that begins with nothing and learns from all that follows.
// Time since 1970 is divided into blocks of equal length. A bucket is scored by a scorer that began one block
// before its own; the one that began with its own block only learns until the block ends. So the scores of a
// bucket depend on one to two blocks before it and not on how the series was divided into pieces, and each
// piece costs twice its own buckets.

import { blockParts, type Series, sliceOf } from '../scoring/series.ts'
import { blankScores, type Scorer, type Scores } from './method.ts'

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
    for (const { block, from, to } of blockParts(piece, this.blockBuckets)) {
      this.enter(block)
      const part = sliceOf(piece, from, to)
      const scored = this.current.score(part)
      for (const name of columns) scores[name].set(scored[name], from)
      this.next?.score(part)
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
