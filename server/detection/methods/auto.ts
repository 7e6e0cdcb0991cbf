// The default method: several simple members, each calibrated by its own past (surprise.ts), combined by
// their quadratic mean. Nobody has to choose a method or a parameter, and no member has to be right alone: a
// spike is at the same time a record, a gap between values and an unusual shape. The mean is better than the
// maximum, because each member is strongly wrong now and then, and members are seldom wrong at the same time.
// The cost: something that only one member notices, such as a standstill, must be very unusual to count; for
// that case there is the single method (`absence`).
//
// `score` says how unusual the bucket is, `unreported` how much of it was not reported before
// (alert-once.ts). An unreported score opens an episode, and the score keeps it open. 1 is a surprise of
// `edgeSurprise`. The alarm layer moves this edge to meet the alarm budget: outwards by a quarter while the
// budget is met, and inwards only for a budget above one alarm a week. `expected` is the value that followed
// the most similar past. Nothing here depends on a particular series, label or unit.

import type { MethodParams } from '../../../contract/detection-methods.ts'
import { methodParams } from '../../../contract/detection-methods.ts'
import { unreportedScores } from '../scoring/alert-once.ts'
import { type DenseValues, denseValuesOf, toSparse } from '../scoring/dense-values.ts'
import { leftProfile } from '../scoring/left-profile.ts'
import { clockChanges } from '../scoring/local-clock.ts'
import { rollingMeans, rollingSpreads, rollingSteps, valueGaps } from '../scoring/rolling.ts'
import type { Series } from '../scoring/series.ts'
import { at } from '../scoring/series.ts'
import { combinedSurprise, recordSurprisesOf, surprisesOf, twoSidedSurprisesOf } from '../scoring/surprise.ts'
import type { Method, Scores } from './method.ts'
import { blankScores } from './method.ts'
import { seasonalBand } from './seasonal-band.ts'
import { TailScorer } from './tail-scorer.ts'

const shapeLengths = [12, 96]
/**
 * For means, and for the two means whose difference is a step: a single huge early value must not count as a
 * huge early step for long.
 */
const smoothPoints = 6
/** Long enough that one huge value hardly moves the mean; otherwise it would hide every record after it. */
const slowPoints = 72
const spreadPoints = 36
const recordTolerance = 0.01
/** A combined surprise of this size scores 1. A series without episodes exceeds it less than once a week. */
const edgeSurprise = 1.45

/** Parsed once, because the schema looks up the time zone in the time zone database. */
const seasonalDefaults = methodParams.seasonal_band.parse({})

const memberNames = [
  'shape_12',
  'shape_96',
  'record',
  'smooth_record',
  'slow_record',
  'step_record',
  'spread_record',
  'spread',
  'value_gap',
  'season',
] as const
type MemberName = (typeof memberNames)[number]

export const auto: Method<'auto'> = {
  key: 'auto',
  start: (params) => new TailScorer((series) => auto.score(series, params), params.history_points),
  score(series: Series, params: MethodParams<'auto'>): Scores {
    const members = autoMembers(series, params)
    return combineMembers(Object.values(members.surprises), members, params)
  },
}

interface AutoMembers {
  readonly dense: DenseValues
  /** Buckets of the series. */
  readonly length: number
  /** Per member, one surprise per dense value. */
  readonly surprises: Readonly<Record<MemberName, Float64Array>>
  readonly expected: Float64Array
}

/** Runs every member on a series. */
function autoMembers(series: Series, params: MethodParams<'auto'>): AutoMembers {
  const dense = denseValuesOf(series.values, clockChanges(series, params.timezone))
  const { values } = dense
  const { distances, expected } = leftProfile(dense, shapeLengths, params.history_points)
  const [shape12, shape96] = distances.map(surprisesOf)
  const residuals = seasonalBand.score(series, { ...seasonalDefaults, timezone: params.timezone }).score
  const spreads = rollingSpreads(values, spreadPoints)
  const empty = new Float64Array(values.length)
  const surprises = {
    shape_12: shape12 ?? empty,
    shape_96: shape96 ?? empty,
    record: recordSurprisesOf(values, recordTolerance),
    smooth_record: recordSurprisesOf(rollingMeans(values, smoothPoints), recordTolerance),
    slow_record: recordSurprisesOf(rollingMeans(values, slowPoints), recordTolerance),
    step_record: recordSurprisesOf(rollingSteps(values, smoothPoints), recordTolerance),
    spread_record: recordSurprisesOf(spreads, recordTolerance),
    spread: twoSidedSurprisesOf(spreads),
    value_gap: surprisesOf(valueGaps(values)),
    season: surprisesOf(Float64Array.from(dense.buckets, (bucket) => at(residuals, bucket))),
  }
  return { dense, length: series.values.length, surprises, expected }
}

/** Combines the surprises of members into scores. */
function combineMembers(
  surprises: readonly Float64Array[],
  { dense, expected, length }: Pick<AutoMembers, 'dense' | 'expected' | 'length'>,
  params: MethodParams<'auto'>,
): Scores {
  const score = combinedSurprise(surprises).map((surprise, i) =>
    i < params.warmup_points ? Number.NaN : surprise / edgeSurprise,
  )
  return {
    ...blankScores(length),
    score: toSparse(dense, score, length),
    unreported: toSparse(dense, unreportedScores(score, params.memory_points), length),
    expected: toSparse(dense, expected, length),
  }
}
