// Shared by the benches of detection: series of generated values, methods with their parameters, and pictures
// of one pass over a series.

import { type MethodKey, methodParams } from '../../contract/detection/methods.ts'
import type { Chart } from '../../server/cli/charts/chart.ts'
import type { Evaluation } from '../../server/detection/alarms/alarm.ts'
import type { MethodChoice } from '../../server/detection/methods/catalogue.ts'
import type { Series } from '../../server/detection/scoring/series.ts'

/** A method with these params and its defaults for the others. */
export function choiceOf(key: MethodKey, params: object = {}): MethodChoice {
  // The schema of this very key made the parameters, which the type of a lookup by key can't express.
  return { method_key: key, params: methodParams[key].parse(params) } as MethodChoice
}

/** One value per step; NaN is missing. Nothing is erased. */
export function seriesOf(values: Float64Array, stepMinutes: number, startNs = 0n): Series {
  return { startNs, stepMinutes, values, unknown: new Uint8Array(values.length), volumes: null }
}

interface Labelled {
  /** Half-open spans of buckets. */
  readonly labels: Iterable<readonly [from: number, until: number]>
  readonly judgedFrom: number
  /** Buckets after an event in which it may still be found. */
  readonly tolerance: number
}

export function judgedChart(
  title: string,
  { startNs, stepMinutes, values }: Series,
  { episodes, scores: { lower, score, upper } }: Evaluation,
  { judgedFrom, labels, tolerance }: Labelled,
): Chart {
  return {
    ...{ title, startMs: Number(startNs / 1_000_000n), stepMs: stepMinutes * 60_000 },
    ...{ values, lower, score, upper, judgedFrom, tolerance, labels: [...labels] },
    anomalies: episodes.map(({ lastIndex, openedIndex }) => [openedIndex, lastIndex + 1]),
  }
}

/** Knuth's product of uniforms, in parts of 50 so that it stays above zero. */
export function poisson(mean: number, uniform: () => number): number {
  let count = 0
  for (let left = mean; left > 0; left -= 50) {
    const limit = Math.exp(-Math.min(50, left))
    for (let product = uniform(); product > limit; product *= uniform()) count++
  }
  return count
}
