// Principal components of short stretches (Sub-PCA, the best of the plain methods in TSB-AD, Liu and
// Paparrizos 2024). The last `history_points` stretches of `length` values show which shapes vary and by
// how much. The distance of a stretch from their mean, with every component weighted by the inverse of its
// variance, says how unusual it is. That is the Mahalanobis distance, so the components need not be
// computed: one Cholesky factor of the covariance is enough. A ridge on its diagonal replaces the usual
// cut of small components.
//
// The model is fitted again every 256 values from the values before, in units of their own spread. The score
// is the surprise of the distance divided by 2; there is no band. It takes `length` squared operations per
// value, and about as many per value for the fits: 10 to 25 microseconds at 24. It suits smooth metrics with
// a rhythm; on pure noise it is a slow z-score.

import type { MethodParams } from '../../../contract/detection/methods.ts'
import { DenseReader, joinedValues, toSparse } from '../scoring/dense-values.ts'
import { clockChanges } from '../scoring/local-clock.ts'
import type { Series } from '../scoring/series.ts'
import { at } from '../scoring/series.ts'
import { Surprises, scoresOf } from '../scoring/surprise.ts'
import type { Method, Scorer, Scores } from './method.ts'
import { blankScores } from './method.ts'
import { RestartedScorer } from './restarted-scorer.ts'

const refitEvery = 256
/** Share of the mean variance that is added to each variance: noise below it is not a shape. */
const ridge = 1e-3
/** In units of the spread, as in left-profile.ts. */
const cutOff = 1e3
/** Squares of lengths, of values and of fits, that cost as much as a bucket of `auto`. */
const costlyOperations = 8000

type Params = MethodParams<'sub_pca'>

export const subPca: Method<'sub_pca'> = {
  key: 'sub_pca',
  cost: ({ history_points, length }) => ({
    perBucket: (length * length * (1 + history_points / refitEvery)) / costlyOperations,
    again: 0,
  }),
  start: (params) => {
    const block = params.history_points
    return new RestartedScorer(() => new SubPcaScorer(params, 2 * block), block)
  },
  score: (series, params) => new SubPcaScorer(params, series.values.length).score(series),
}

class SubPcaScorer implements Scorer {
  private readonly params: Params
  private readonly dense = new DenseReader()
  private readonly surprises: Surprises
  private model: StretchModel | null = null
  private nextFit: number
  /** As many as a model is fitted to, with the stretch before them, and their positions in their runs. */
  private recent = new Float64Array(0)
  private recentRuns = new Int32Array(0)
  private values = 0

  constructor(params: Params, bucketsMax: number) {
    this.params = params
    this.surprises = new Surprises(bucketsMax)
    this.nextFit = 4 * params.length
  }

  score(piece: Series): Scores {
    const { history_points, length, timezone, warmup_points } = this.params
    const dense = this.dense.read(piece.values, clockChanges(piece, timezone))
    const before = this.recent.length
    const values = joinedValues(this.recent, dense.values)
    const runs = joinedValues(this.recentRuns, dense.runs)
    const first = this.values
    const distances = dense.values.map((_, i) => {
      const own = before + i
      this.fitBefore(first + i, { values, runs, end: own })
      return this.model && (runs[own] ?? 0) >= length ? this.model.distanceAt(values, own) : Number.NaN
    })
    this.values += dense.values.length
    const from = Math.max(0, values.length - history_points - length)
    this.recent = values.slice(from)
    this.recentRuns = runs.slice(from)
    const score = scoresOf(this.surprises.of(distances), warmup_points - first)
    const rows = piece.values.length
    return { ...blankScores(rows), score: toSparse(dense, score, rows) }
  }

  /** Fits the model where it is time, to the values before `end`, which is value i of the series. */
  private fitBefore(i: number, { end, runs, values }: Stretches): void {
    if (i < this.nextFit) return
    const { history_points, length } = this.params
    this.model = new StretchModel({ values, runs, end }, length, history_points)
    // At first the model is fitted more often, because each value still changes it much.
    this.nextFit = i + Math.min(refitEvery, Math.ceil(i / 2))
  }
}

interface Stretches {
  readonly values: Float64Array
  readonly runs: Int32Array
  readonly end: number
}

/** Mean and covariance of the stretches that end before `end`. */
class StretchModel {
  private readonly length: number
  private readonly mean: Float64Array
  /** Lower triangle of the Cholesky factor, row by row. */
  private readonly factor: Float64Array
  private readonly solved: Float64Array
  private centre = 0
  private spread = 1

  constructor({ end, runs, values }: Stretches, length: number, history: number) {
    this.length = length
    this.mean = new Float64Array(length)
    this.factor = new Float64Array(length * length)
    this.solved = new Float64Array(length)
    const from = Math.max(0, end - history)
    this.measure(values.slice(from, end).sort())
    const ends = Array.from({ length: end - from }, (_, i) => from + i).filter(
      (i) => (runs[i] ?? 0) >= length,
    )
    this.addUp(values, ends)
    this.factorise()
  }

  distanceAt(values: Float64Array, i: number): number {
    const length = this.length
    let squared = 0
    for (let row = 0; row < length; row++) {
      let rest = this.unit(values, i - length + 1 + row) - at(this.mean, row)
      for (let column = 0; column < row; column++) {
        rest -= at(this.factor, row * length + column) * at(this.solved, column)
      }
      const solved = rest / at(this.factor, row * length + row)
      this.solved[row] = solved
      squared += solved * solved
    }
    return Math.sqrt(squared / length)
  }

  private measure(sorted: Float64Array): void {
    const quantile = (share: number) => at(sorted, Math.floor(share * (sorted.length - 1)))
    this.centre = quantile(0.5)
    this.spread = quantile(0.95) - quantile(0.05) || quantile(1) - quantile(0) || 1
  }

  private unit(values: Float64Array, i: number): number {
    return Math.max(-cutOff, Math.min(cutOff, (at(values, i) - this.centre) / this.spread))
  }

  private addUp(values: Float64Array, ends: readonly number[]): void {
    const length = this.length
    const stretch = new Float64Array(length)
    for (const end of ends) {
      for (let row = 0; row < length; row++) {
        stretch[row] = this.unit(values, end - length + 1 + row)
        this.mean[row] = at(this.mean, row) + at(stretch, row) / ends.length
        for (let column = 0; column <= row; column++) {
          const entry = row * length + column
          const product = (at(stretch, row) * at(stretch, column)) / ends.length
          this.factor[entry] = at(this.factor, entry) + product
        }
      }
    }
  }

  /** Converts mean products to the covariance and then to its Cholesky factor, in place. */
  private factorise(): void {
    const length = this.length
    const factor = this.factor
    let trace = 0
    for (let row = 0; row < length; row++) {
      for (let column = 0; column <= row; column++) {
        const entry = row * length + column
        factor[entry] = at(factor, entry) - at(this.mean, row) * at(this.mean, column)
      }
      trace += Math.max(0, at(factor, row * length + row))
    }
    const least = ridge * (trace / length) + 1e-9
    for (let row = 0; row < length; row++) {
      for (let column = 0; column <= row; column++) {
        let rest = at(factor, row * length + column) + (row === column ? least : 0)
        for (let k = 0; k < column; k++)
          rest -= at(factor, row * length + k) * at(factor, column * length + k)
        const isDiagonal = row === column
        factor[row * length + column] = isDiagonal
          ? Math.sqrt(Math.max(least, rest))
          : rest / at(factor, column * length + column)
      }
    }
  }
}
