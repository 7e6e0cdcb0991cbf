// The chart of a series that was judged, from spans of time. Pure.

import { nsPerMs } from '../../../contract/values/instant.ts'
import type { Scores } from '../../detection/methods/method.ts'
import type { Series } from '../../detection/scoring/series.ts'
import type { BucketSpan, Chart, Marker } from './chart.ts'

/** Half-open, in milliseconds since 1970. */
interface TimeSpan {
  readonly startMs: number
  readonly endMs: number
}

interface JudgedSeries {
  readonly title: string
  readonly series: Series
  readonly scores: Pick<Scores, 'lower' | 'score' | 'upper'>
  readonly anomalies: readonly TimeSpan[]
  /** Events to find; absent where nothing is labelled. */
  readonly events?: readonly TimeSpan[] | undefined
  /** Events and anomalies that begin earlier do not count. */
  readonly judgedFromMs?: number
  readonly deploys?: readonly Marker[]
}

/** Spans cover every bucket that they touch. */
export function seriesChart(judged: JudgedSeries): Chart {
  const { anomalies, deploys, events, judgedFromMs, scores, series, title } = judged
  const startMs = Number(series.startNs / nsPerMs)
  const stepMs = series.stepMinutes * 60_000
  const bucketsOf = (span: TimeSpan): BucketSpan => [
    Math.floor((span.startMs - startMs) / stepMs),
    Math.ceil((span.endMs - startMs) / stepMs),
  ]
  const { lower, score, upper } = scores
  return {
    ...{ title, startMs, stepMs, values: series.values, lower, score, upper },
    anomalies: anomalies.map(bucketsOf),
    ...(events && { labels: events.map(bucketsOf) }),
    ...(judgedFromMs !== undefined && {
      judgedFrom: Math.max(0, Math.ceil((judgedFromMs - startMs) / stepMs)),
    }),
    ...(deploys && { deploys }),
  }
}
