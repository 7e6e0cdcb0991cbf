// Evaluations of series, each from the beginning or from where the last one of the same series ended.
// Scheduled runs, previews and benchmarks all go through here, so a preview shows what a run will do.

import { comparesPeers } from '../../../contract/detection/methods.ts'
import type { Evaluation } from '../alarms/alarm.ts'
import { evidenceOf } from '../alarms/evidence.ts'
import type { MethodChoice } from '../methods/catalogue.ts'
import type { Series } from '../scoring/series.ts'
import { SeriesCourse, type SeriesFeedback } from './series-course.ts'

/**
 * Evaluates a whole series from the beginning. Pure: the same series and parameters give the same result. An
 * empty series gives `no_data`. The series must end with a complete bucket. Early buckets have little history
 * before them and are judged by the method's own band.
 *
 * `peers` are the other series of its group as {@link peersOf} makes them. A method that compares peers
 * judges nothing without them.
 */
export function evaluateSeries(
  series: Series,
  choice: MethodChoice,
  feedback?: SeriesFeedback,
  peers: readonly Series[] = [],
): Evaluation {
  const { stepMinutes, values } = series
  const course = new SeriesCourse({ choice, stepMinutes, feedback, keptBuckets: Number.POSITIVE_INFINITY })
  course.advance(series, peers)
  return course.newestBuckets(values.length, values.length, { peers }).evaluation
}

/**
 * For each series of a group, the other series as a method that compares them may see them; empty lists for
 * all other methods. All series have the same buckets.
 */
export function peersOf(group: readonly Series[], choice: MethodChoice): readonly (readonly Series[])[] {
  if (!comparesPeers(choice.method_key)) return group.map(() => [])
  const evidence = group.map((series) => evidenceOf(series, choice.params).series)
  return evidence.map((own) => evidence.filter((other) => other !== own))
}
