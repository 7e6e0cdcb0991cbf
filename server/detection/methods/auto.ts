// The default: several simple members, each calibrated by its own past (surprise.ts), averaged by their squares. Nobody has to choose a
// method or a parameter, and no member has to be right alone: a spike is a record and a gap between values and an odd
// shape at once. Averaging rather than the loudest member, because each of them is wrong loudly now and then and they
// are seldom wrong together. The price: what a single member sees, such as a reading that stands still, must be
// very odd to be heard; for that there is the method itself (`absence`).
//
// `score` says how unusual the bucket is, `news` how much of that was not said before (alert-once.ts): news opens an
// incident, the score keeps it open. 1 is a surprise of `edgeSurprise`; the alarm layer moves the edge to the budget, out
// by a quarter while the budget is kept, and in only for a budget above one alarm a week.
// `expected` is the value that followed the most similar past. Nothing here knows a series, a label or a unit.

import type { MethodParams } from '../../../contract/detection-methods.ts'
import { methodParams } from '../../../contract/detection-methods.ts'
import { newsOf } from '../scoring/alert-once.ts'
import { type DenseValues, denseValuesOf, spreadOut } from '../scoring/dense-values.ts'
import { leftProfile } from '../scoring/left-profile.ts'
import { clockChanges } from '../scoring/local-clock.ts'
import { rollingMeans, rollingSpreads, rollingSteps, valueGaps } from '../scoring/rolling.ts'
import type { Series } from '../scoring/series.ts'
import { at } from '../scoring/series.ts'
import { combinedSurprise, recordSurprisesOf, surprisesOf, twoSidedSurprisesOf } from '../scoring/surprise.ts'
import type { Method, Scores } from './method.ts'
import { blankScores } from './method.ts'
import { seasonalBand } from './seasonal-band.ts'

const shapeLengths = [12, 96]
/** Of means, and of the two whose difference is a step: one huge early value is no huge early step for long. */
const smoothPoints = 6
/** Long enough that one huge value hardly moves the mean, and so doesn't silence every record after it. */
const slowPoints = 72
const spreadPoints = 36
const recordTolerance = 0.01
/** A combined surprise of this scores 1: what series in which nothing happens pass less than once a week. */
const edgeSurprise = 1.45

/** Made once: to accept a time zone, the schema asks the time zone database. */
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

/** What each member makes of a series. */
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

/** The scores that these surprises, all members' or others', come to together. */
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
    score: spreadOut(dense, score, length),
    news: spreadOut(dense, newsOf(score, params.memory_points), length),
    expected: spreadOut(dense, expected, length),
  }
}
