// The input of a run of a detector: the definition, the source of its series, and who evaluates for which
// organisation. It is the same for scheduled runs, previews and files, so that all of them give the same
// result.

import type { Ns } from '../../../contract/values/instant.ts'
import type { SeriesSet } from '../../series/series.ts'
import { type GroupBy, labelsOf } from '../../series/series-statement.ts'
import type { Signal } from '../../telemetry/schema/tables.ts'
import type { DetectorDefinition } from '../detectors/detector.ts'
import type { MethodChoice } from '../methods/catalogue.ts'
import type { EvaluationShare } from './evaluation-pool.ts'
import type { SeriesFeedback } from './series-course.ts'

export interface LearntSpan {
  readonly startNs: Ns
  readonly endNs: Ns
}

/** A read of the series of a detector. */
export interface SeriesRead extends LearntSpan {
  readonly stepMinutes: number
  readonly maxGroups: number
  /** Whether the counted events are known to have occurred before, so that a step without any is zero. */
  readonly isBorn: boolean
}

/** The source of a run's series, and the time that must not be used. */
export interface SeriesSource {
  read(read: SeriesRead): Promise<SeriesSet>
  /** Returns a time before which no series has a value; null where none has any. */
  earliestNs(): Promise<Ns | null>
  /** Changes when something of the organisation is hidden. */
  hidings(): number
  /** Erased or hidden time of a signal. */
  unknownTime(signal: Signal, span: LearntSpan): readonly unknown[]
}

export interface CourseRun {
  readonly detectorId: string
  /** All parts of the definition that affect results. */
  readonly version: string
  readonly definition: DetectorDefinition
  readonly choice: MethodChoice
  readonly nowMs: number
  readonly source: SeriesSource
  readonly share: EvaluationShare
  /** By `groupKey`. */
  readonly feedback: ReadonlyMap<string, SeriesFeedback>
  /** Whether the last run judged nothing; history may have been loaded since. */
  readonly judgedNothing: boolean
  /** Whether telemetry may still arrive late. A replay of the past has all of it. */
  readonly mayBeLate: boolean
}

/** JSON of the labels of `group_by`. */
export function groupKeyOf(groupBy: GroupBy | undefined, group: string | null): string {
  return JSON.stringify(Object.fromEntries(labelsOf(groupBy, group)))
}
