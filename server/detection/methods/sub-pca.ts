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
import { type DenseValues, denseValuesOf, toSparse } from '../scoring/dense-values.ts'
import { clockChanges } from '../scoring/local-clock.ts'
import type { Series } from '../scoring/series.ts'
import { at } from '../scoring/series.ts'
import { surprisesOf } from '../scoring/surprise.ts'
import type { Method, Scores } from './method.ts'
import { blankScores } from './method.ts'
import { TailScorer } from './tail-scorer.ts'

const refitEvery = 256
const edgeSurprise = 2
/** Share of the mean variance that is added to each variance: noise below it is not a shape. */
const ridge = 1e-3
/** In units of the spread, as in left-profile.ts. */
const cutOff = 1e3

export const subPca: Method<'sub_pca'> = {
  key: 'sub_pca',
  start: (params) => new TailScorer((series) => subPca.score(series, params), params.history_points),
  score(series: Series, params: MethodParams<'sub_pca'>): Scores {
    const length = series.values.length
    const dense = denseValuesOf(series.values, clockChanges(series, params.timezone))
    const score = surprisesOf(distancesOf(dense, params)).map((surprise, i) =>
      i < params.warmup_points ? Number.NaN : surprise / edgeSurprise,
    )
    return { ...blankScores(length), score: toSparse(dense, score, length) }
  },
}

function distancesOf(dense: DenseValues, params: MethodParams<'sub_pca'>): Float64Array {
  let model: StretchModel | null = null
  let nextFit = 4 * params.length
  return dense.values.map((_, i) => {
    if (i >= nextFit) {
      model = new StretchModel(dense, i, params.length, params.history_points)
      // At first the model is fitted more often, because each value still changes it much.
      nextFit = i + Math.min(refitEvery, Math.ceil(i / 2))
    }
    return model && (dense.runs[i] ?? 0) >= params.length ? model.distanceAt(dense.values, i) : Number.NaN
  })
}

/** Mean and covariance of the stretches that end before `end`. */
class StretchModel {
  readonly #length: number
  readonly #mean: Float64Array
  /** Lower triangle of the Cholesky factor, row by row. */
  readonly #factor: Float64Array
  readonly #solved: Float64Array
  #centre = 0
  #spread = 1

  constructor(dense: DenseValues, end: number, length: number, history: number) {
    this.#length = length
    this.#mean = new Float64Array(length)
    this.#factor = new Float64Array(length * length)
    this.#solved = new Float64Array(length)
    const from = Math.max(0, end - history)
    this.#measure(dense.values.slice(from, end).sort())
    const ends = Array.from({ length: end - from }, (_, i) => from + i).filter(
      (i) => (dense.runs[i] ?? 0) >= length,
    )
    this.#addUp(dense.values, ends)
    this.#factorise()
  }

  distanceAt(values: Float64Array, i: number): number {
    const length = this.#length
    let squared = 0
    for (let row = 0; row < length; row++) {
      let rest = this.#unit(values, i - length + 1 + row) - at(this.#mean, row)
      for (let column = 0; column < row; column++) {
        rest -= at(this.#factor, row * length + column) * at(this.#solved, column)
      }
      const solved = rest / at(this.#factor, row * length + row)
      this.#solved[row] = solved
      squared += solved * solved
    }
    return Math.sqrt(squared / length)
  }

  #measure(sorted: Float64Array): void {
    const quantile = (share: number) => at(sorted, Math.floor(share * (sorted.length - 1)))
    this.#centre = quantile(0.5)
    this.#spread = quantile(0.95) - quantile(0.05) || quantile(1) - quantile(0) || 1
  }

  #unit(values: Float64Array, i: number): number {
    return Math.max(-cutOff, Math.min(cutOff, (at(values, i) - this.#centre) / this.#spread))
  }

  #addUp(values: Float64Array, ends: readonly number[]): void {
    const length = this.#length
    const stretch = new Float64Array(length)
    for (const end of ends) {
      for (let row = 0; row < length; row++) {
        stretch[row] = this.#unit(values, end - length + 1 + row)
        this.#mean[row] = at(this.#mean, row) + at(stretch, row) / ends.length
        for (let column = 0; column <= row; column++) {
          const entry = row * length + column
          const product = (at(stretch, row) * at(stretch, column)) / ends.length
          this.#factor[entry] = at(this.#factor, entry) + product
        }
      }
    }
  }

  /** Converts mean products to the covariance and then to its Cholesky factor, in place. */
  #factorise(): void {
    const length = this.#length
    const factor = this.#factor
    let trace = 0
    for (let row = 0; row < length; row++) {
      for (let column = 0; column <= row; column++) {
        const entry = row * length + column
        factor[entry] = at(factor, entry) - at(this.#mean, row) * at(this.#mean, column)
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
