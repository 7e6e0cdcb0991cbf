// The buckets of a replayed detector, each with the result of the first run that judged it, for drawing.

import { nsPerMinute } from '../../../contract/values/instant.ts'
import type { Scores } from '../../detection/methods/method.ts'
import type { JudgedGroup } from '../../detection/runs/course-in-progress.ts'
import type { Series } from '../../detection/scoring/series.ts'

const columns = ['score', 'expected', 'lower', 'upper'] as const

export class DrawnBuckets {
  #startNs = 0n
  #stepMinutes = 1
  #values: number[] = []
  #scores: Record<(typeof columns)[number], number[]> = { score: [], expected: [], lower: [], upper: [] }

  /** Adds new buckets. Where their width has changed, the drawing begins there. */
  add({ evaluation, series }: Pick<JudgedGroup, 'evaluation' | 'series'>): void {
    const stepNs = BigInt(series.stepMinutes) * nsPerMinute
    const reachedNs = this.#startNs + BigInt(this.#values.length) * stepNs
    const isFirst = this.#values.length === 0 || series.stepMinutes !== this.#stepMinutes
    if (isFirst || reachedNs < series.startNs) this.#begin(series)
    const from = isFirst || reachedNs < series.startNs ? 0 : Number((reachedNs - series.startNs) / stepNs)
    for (let i = from; i < series.values.length; i++) {
      this.#values.push(series.values[i] ?? Number.NaN)
      for (const name of columns) this.#scores[name].push(evaluation.scores[name][i] ?? Number.NaN)
    }
  }

  whole(): { readonly series: Series; readonly scores: Scores } {
    const values = Float64Array.from(this.#values)
    const { expected, lower, score, upper } = this.#scores
    return {
      series: {
        startNs: this.#startNs,
        stepMinutes: this.#stepMinutes,
        values,
        unknown: new Uint8Array(values.length),
        volumes: null,
      },
      scores: {
        score: Float64Array.from(score),
        expected: Float64Array.from(expected),
        lower: Float64Array.from(lower),
        upper: Float64Array.from(upper),
      },
    }
  }

  #begin({ startNs, stepMinutes }: Series): void {
    this.#startNs = startNs
    this.#stepMinutes = stepMinutes
    this.#values = []
    this.#scores = { score: [], expected: [], lower: [], upper: [] }
  }
}
